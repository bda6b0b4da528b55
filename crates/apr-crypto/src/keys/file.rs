//! Key files: never overwritten, private to their owner.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use alloc::vec;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::encrypt::password::Argon2Limits;
use crate::error::{Error, ErrorKind};
use crate::keys::stored::{LockedKey, PublicKey, SecretKey, StoredKey};
use crate::keys::text::MAX_TEXT_LEN;

/// Who may read or change a file that is being read.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    /// Its owner alone may read it.
    Secret,
    /// Its owner alone may change it.
    Trusted,
    /// No restriction.
    Any,
}

impl SecretKey {
    /// Creates a key file, mode 0600, and syncs it to disk. A file that exists is never replaced.
    ///
    /// ```
    /// # let rng = &mut apr_crypto::OsRandom;
    /// # let folder = std::env::temp_dir().join(format!("apr-crypto-doc-key-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("release.key");
    /// use apr_crypto::{Argon2Limits, SecretKey, SigningKey, StoredKey};
    ///
    /// let key = SecretKey::from(SigningKey::generate(rng)?);
    /// key.create_file(&path, "releases of example.org")?;
    /// assert_eq!(key.create_file(&path, "again").unwrap_err().code(), "cy-file-exists");
    /// let StoredKey::Open(same) = StoredKey::open_file(&path, &Argon2Limits::default())? else { panic!() };
    /// assert_eq!(same.public(), key.public());
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FileExists`], [`ErrorKind::File`], [`ErrorKind::Comment`].
    pub fn create_file(&self, path: &Path, comment: &str) -> Result<(), Error> {
        create(path, self.to_file_text(comment)?.as_str(), Access::Secret)
    }
}

impl LockedKey {
    /// Creates a key file, mode 0600, and syncs it to disk. A file that exists is never replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FileExists`], [`ErrorKind::File`], [`ErrorKind::Comment`].
    pub fn create_file(&self, path: &Path, comment: &str) -> Result<(), Error> {
        create(path, &self.to_file_text(comment)?, Access::Secret)
    }
}

impl StoredKey {
    /// Reads a secret key's file. On Unix, one that group or others may read, change or execute is refused: the key is
    /// to be considered known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exposed`], [`ErrorKind::NotRegular`], [`ErrorKind::File`], and those of
    /// [`from_file_text`](Self::from_file_text).
    pub fn open_file(path: &Path, limits: &Argon2Limits) -> Result<Self, Error> {
        let text = read(path, Access::Secret, MAX_TEXT_LEN)?;
        text_of(&text)
            .and_then(|text| Self::from_file_text(text, limits))
            .map_err(|error| error.in_file(path))
    }
}

impl PublicKey {
    /// Creates a key file that anyone may read, and syncs it to disk. A file that exists is never replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FileExists`], [`ErrorKind::File`], [`ErrorKind::Comment`].
    pub fn create_file(&self, path: &Path, comment: &str) -> Result<(), Error> {
        create(path, &self.to_file_text(comment)?, Access::Any)
    }

    /// Reads a public key's file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRegular`], [`ErrorKind::File`], and those of [`from_file_text`](Self::from_file_text).
    pub fn open_file(path: &Path) -> Result<Self, Error> {
        let text = read(path, Access::Any, MAX_TEXT_LEN)?;
        text_of(&text).and_then(Self::from_file_text).map_err(|error| error.in_file(path))
    }
}

/// Creates a file that must not exist, whole or not at all.
pub(crate) fn create(path: &Path, text: &str, access: Access) -> Result<(), Error> {
    let failed = |operation, error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::from(ErrorKind::FileExists).in_file(path),
        _ => Error::wrap(ErrorKind::File { operation }, error).in_file(path),
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if matches!(access, Access::Secret) {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = access;
    let mut file = options.open(path).map_err(|error| failed("create", error))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written {
        drop(file);
        // Ours: it did not exist before. Half a key must not stay.
        let _ = fs::remove_file(path);
        return Err(failed("write", error));
    }
    // The name as well, where folders can be synced: a key that a power cut takes away may have been used already.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// The text of a regular file, cut after `limit` bytes and one.
pub(crate) fn read(path: &Path, access: Access, limit: usize) -> Result<Zeroizing<Vec<u8>>, Error> {
    let failed = |error: io::Error| Error::wrap(ErrorKind::File { operation: "read" }, error).in_file(path);
    // First by name: opening a pipe would wait for a writer.
    check(&fs::metadata(path).map_err(failed)?, access).map_err(|kind| Error::from(kind).in_file(path))?;
    let mut file = File::open(path).map_err(failed)?;
    // Then what was opened: the name may lead elsewhere by now.
    check(&file.metadata().map_err(failed)?, access).map_err(|kind| Error::from(kind).in_file(path))?;

    // Of one size from the beginning: a buffer that grew would leave its old copy behind.
    let mut text = Zeroizing::new(vec![0; limit + 1]);
    let mut len = 0;
    loop {
        let (_, free) = text.split_at_mut(len);
        match file.read(free) {
            Ok(0) => break,
            Ok(count) => len += count.min(free.len()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    // One byte too many is left for the parser to refuse.
    text.truncate(len);
    Ok(text)
}

/// Refuses a file with a secret in it to which group or others have any right: the secret is to be considered known. Where
/// the system has no such rights, nothing is checked.
///
/// # Errors
///
/// [`ErrorKind::Exposed`]; [`ErrorKind::NotRegular`] if it is no regular file.
pub fn refuse_exposed(metadata: &fs::Metadata) -> Result<(), Error> {
    Ok(check(metadata, Access::Secret)?)
}

/// The text of a key file's bytes.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, Error> {
    core::str::from_utf8(bytes)
        .map_err(|_| ErrorKind::Text { format: "a key file", what: "bytes that are not UTF-8" }.into())
}

fn check(metadata: &fs::Metadata, access: Access) -> Result<(), ErrorKind> {
    if !metadata.is_file() {
        return Err(ErrorKind::NotRegular);
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
        let forbidden = match access {
            Access::Secret => 0o077,
            Access::Trusted => 0o022,
            Access::Any => 0,
        };
        if mode & forbidden != 0 {
            return Err(ErrorKind::Exposed { mode });
        }
    }
    #[cfg(not(unix))]
    let _ = access;
    Ok(())
}
