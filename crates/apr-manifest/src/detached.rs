//! minisign signatures of files of any size.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use apr_crypto::minisign::{Prehash, PublicKey, SecretKey, Signature};

use crate::error::Error;
use crate::hashing::{Watch, read_range};
use crate::limits::Limits;

const BUFFER_LEN: usize = 256 * 1024;

/// Longest signature file that is looked at.
const MAX_SIGNATURE_LEN: u64 = 16 * 1024;

/// A file that is the signed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedFile {
    trusted_comment: String,
    len: u64,
}

impl VerifiedFile {
    /// What the signer wrote, signed with the file. Escape control characters before showing it.
    #[must_use]
    pub fn trusted_comment(&self) -> &str {
        &self.trusted_comment
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn n_bytes(&self) -> u64 {
        self.len
    }
}

/// Where minisign puts and looks for the signature of a file: `.minisig` after its name.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(apr_manifest::minisign_path(Path::new("m/model.gguf")), Path::new("m/model.gguf.minisig"));
/// ```
#[must_use]
pub fn minisign_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".minisig");
    name.into()
}

/// Signs a file, which goes by once. `Display` of the signature is the text of its file.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("apr-manifest-doc-file-{}", std::process::id()));
/// # std::fs::write(&path, "weights")?;
/// use apr_crypto::{OsRandom, SigningKey, minisign::SecretKey};
/// use apr_manifest::{Limits, sign_file, verify_file};
///
/// let key = SecretKey::from(SigningKey::generate(&mut OsRandom)?);
/// let signature = sign_file(&path, &key, "version 1.2", "signed with apr", &|_, _| ())?;
/// let verified = verify_file(&path, &key.public(), &signature, &Limits::default(), &|_, _| ())?;
/// assert_eq!(verified.trusted_comment(), "version 1.2");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// A [`durable_file::Error`] or [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, [`ErrorKind::Unstable`](crate::ErrorKind::Unstable) if it changes
/// meanwhile; an [`apr_crypto::Error`] for comments that are not one line.
pub fn sign_file(
    path: &Path,
    key: &SecretKey,
    trusted_comment: &str,
    untrusted_comment: &str,
    watch: Watch<'_>,
) -> Result<Signature, Error> {
    let (hash, _) = hash(path, watch)?;
    Ok(key.sign(&hash, trusted_comment, untrusted_comment)?)
}

/// Checks that `key` signed the file.
///
/// # Errors
///
/// An [`apr_crypto::Error`] if the signature names another key or does not match; a [`durable_file::Error`] or
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, or if it has a signature of the old kind and is longer
/// than the limit for those; [`ErrorKind::Unstable`](crate::ErrorKind::Unstable).
pub fn verify_file(
    path: &Path,
    key: &PublicKey,
    signature: &Signature,
    limits: &Limits,
    watch: Watch<'_>,
) -> Result<VerifiedFile, Error> {
    verify_file_any(path, core::slice::from_ref(key), signature, limits, watch).map(|(_, verified)| verified)
}

/// Checks that one of `keys` signed the file, and says which: its place among them. The file goes by once.
///
/// # Errors
///
/// Those of [`verify_file`]; of several keys, what the last one had to say.
pub fn verify_file_any(
    path: &Path,
    keys: &[PublicKey],
    signature: &Signature,
    limits: &Limits,
    watch: Watch<'_>,
) -> Result<(usize, VerifiedFile), Error> {
    let (signed, len) = if signature.is_prehashed() {
        let (hash, len) = hash(path, watch)?;
        (Signed::Hash(Box::new(hash)), len)
    } else {
        let file = durable_file::read(path, limits.legacy_len)?;
        let len = file.len() as u64;
        watch(len, len);
        (Signed::File(file), len)
    };
    let mut refused = apr_crypto::Error::from(apr_crypto::ErrorKind::Signature);
    for (idx, key) in keys.iter().enumerate() {
        let checked = match &signed {
            Signed::Hash(hash) => key.verify(hash, signature),
            Signed::File(file) => key.verify_file(file, signature),
        };
        match checked {
            Ok(comment) => return Ok((idx, VerifiedFile { trusted_comment: comment.to_owned(), len })),
            Err(error) => refused = error,
        }
    }
    Err(Error::from(refused).in_file(path))
}

/// What a signature is of.
enum Signed {
    Hash(Box<[u8; Prehash::LEN]>),
    File(Vec<u8>),
}

/// Reads a signature's file.
///
/// # Errors
///
/// A [`durable_file::Error`] if it cannot be read or is longer than 16 KiB; an [`apr_crypto::Error`] if it is none.
pub fn read_signature(path: &Path) -> Result<Signature, Error> {
    let bytes = durable_file::read(path, MAX_SIGNATURE_LEN)?;
    let text = core::str::from_utf8(&bytes).map_err(|_| {
        apr_crypto::Error::from(apr_crypto::ErrorKind::Text {
            format: "a minisign signature",
            what: "not UTF-8",
        })
    });
    let signature = text.and_then(Signature::from_text);
    signature.map_err(|error| Error::from(error).in_file(path))
}

fn hash(path: &Path, watch: Watch<'_>) -> Result<([u8; Prehash::LEN], u64), Error> {
    let len = durable_file::open_regular(path, u64::MAX)?.len();
    let mut hash = Prehash::new();
    let mut buffer = vec![0; BUFFER_LEN];
    read_range(path, len, &(0..len), &mut buffer, |data| {
        hash.update(data);
        watch(data.len() as u64, len);
    })?;
    Ok((hash.finish(), len))
}
