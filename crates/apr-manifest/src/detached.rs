//! minisign signatures of files of any size.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use apr_crypto::minisign::{Prehash, PublicKey, SecretKey, Signature};

use crate::error::Error;
use crate::hashing::{Watch, read_range};

const BUFFER_LEN: usize = 256 * 1024;

/// Maximum length of a signature file.
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

    /// The name the file had when it was signed, where the comment says it as minisign's do: `file:NAME`, one of the fields
    /// between tabs. Files of one signer can be exchanged under their names unless it is compared.
    #[must_use]
    pub fn signed_name(&self) -> Option<&str> {
        self.trusted_comment.split('\t').find_map(|field| field.strip_prefix("file:"))
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
/// use apr_manifest::{sign_file, verify_file};
///
/// let key = SecretKey::from(SigningKey::generate(&mut OsRandom)?);
/// let signature = sign_file(&path, &key, "version 1.2", "signed with apr", &|_, _| ())?;
/// let verified = verify_file(&path, &key.public(), &signature, &|_, _| ())?;
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

/// Checks that `key` signed the file, which goes by once, whatever kind of signature it has.
///
/// # Errors
///
/// An [`apr_crypto::Error`] if the signature names another key or does not match; a [`durable_file::Error`] or
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read;
/// [`ErrorKind::Unstable`](crate::ErrorKind::Unstable) if it changes meanwhile.
pub fn verify_file(
    path: &Path,
    key: &PublicKey,
    signature: &Signature,
    watch: Watch<'_>,
) -> Result<VerifiedFile, Error> {
    verify_file_any(path, core::slice::from_ref(key), signature, watch).map(|(_, verified)| verified)
}

/// Verifies that one of `keys` signed the file, and returns its index. The file is read once.
///
/// # Errors
///
/// Those of [`verify_file`]; of several keys, what the last one had to say.
pub fn verify_file_any(
    path: &Path,
    keys: &[PublicKey],
    signature: &Signature,
    watch: Watch<'_>,
) -> Result<(usize, VerifiedFile), Error> {
    let mut checked: Vec<Result<&str, apr_crypto::Error>>;
    let len;
    if signature.is_prehashed() {
        let hash;
        (hash, len) = self::hash(path, watch)?;
        checked = keys.iter().map(|key| key.verify(&hash, signature)).collect();
    } else {
        // What is hashed depends on the key.
        let mut pending: Vec<_> = keys.iter().map(|key| key.verification(signature)).collect();
        len = stream(path, watch, |data| {
            pending.iter_mut().flatten().for_each(|verification| verification.update(data));
        })?;
        checked = pending.into_iter().map(|verification| verification?.finish()).collect();
    }
    match checked.iter().position(Result::is_ok) {
        Some(idx) => {
            let trusted_comment = checked.swap_remove(idx)?.to_owned();
            Ok((idx, VerifiedFile { trusted_comment, len }))
        }
        None => {
            let refused = checked.pop().and_then(Result::err);
            let refused = refused.unwrap_or_else(|| apr_crypto::ErrorKind::Signature.into());
            Err(Error::from(refused).in_file(path))
        }
    }
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
    let mut hash = Prehash::new();
    let len = stream(path, watch, |data| hash.update(data))?;
    Ok((hash.finish(), len))
}

/// Hands a file to `take`, piece by piece; its length.
fn stream(path: &Path, watch: Watch<'_>, mut take: impl FnMut(&[u8])) -> Result<u64, Error> {
    let len = durable_file::open_regular(path, u64::MAX)?.len();
    let mut buffer = vec![0; BUFFER_LEN];
    read_range(path, len, &(0..len), &mut buffer, |data| {
        take(data);
        watch(data.len() as u64, len);
    })?;
    Ok(len)
}
