//! Files and folders of the cache: those of this user alone, not through links.

use core::hash::BuildHasher as _;
use core::time::Duration;
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::SystemTime;

use crate::error::{Error, ErrorKind};

/// Beginning of the names of files that are being written.
pub(super) const TEMPORARY: &str = "tmp-";
/// A file that was used in this time is not marked as used again.
const USED: Duration = Duration::from_secs(3600);

/// Why a file was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is not there, or the disk does not give it.
    Missing,
    /// It is none of this cache.
    Foreign,
}

/// Makes a folder that only its owner can use, and those above it.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// # Errors
///
/// [`ErrorKind::BlockCache`] if it is there, and others can write into it.
pub(super) fn check_folder(folder: &Path) -> Result<(), Error> {
    let wrong = |problem| Err(ErrorKind::BlockCache { problem }.into());
    let Ok(metadata) = fs::symlink_metadata(folder) else { return Ok(()) };
    if !metadata.is_dir() {
        return wrong("it is a link or a file, not a folder");
    }
    if !is_own(&metadata) {
        return wrong("the folder belongs to another user");
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o022 != 0 {
        return wrong("others can write into the folder");
    }
    Ok(())
}

/// Whether it belongs to this user.
fn is_own(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    {
        let _ = metadata;
        true
    }
}

/// Whether it is a folder of this user, and not a link to one.
pub(super) fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata))
}

/// Whether reading a file makes it one that was used last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Marked,
    Unmarked,
}

/// Reads a file of at most `max_len` bytes.
pub(super) fn read(path: &Path, max_len: u64, use_of: Use) -> Result<Vec<u8>, Unread> {
    let of = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unread::Missing,
        // A link is one too.
        _ if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) => Unread::Foreign,
        _ => Unread::Missing,
    };
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        // A pipe would wait.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Unread::Foreign);
    }
    let file = options.open(path).map_err(of)?;
    let metadata = file.metadata().map_err(of)?;
    if !metadata.is_file() || !is_own(&metadata) || metadata.len() > max_len {
        return Err(Unread::Foreign);
    }
    let mut bytes = Vec::new();
    let len = usize::try_from(metadata.len()).map_err(|_| Unread::Foreign)?;
    bytes.try_reserve_exact(len).map_err(|_| Unread::Missing)?;
    (&file).take(max_len).read_to_end(&mut bytes).map_err(of)?;
    if use_of == Use::Marked {
        mark_used(&file, &metadata);
    }
    Ok(bytes)
}

fn mark_used(file: &File, metadata: &Metadata) {
    let now = SystemTime::now();
    let is_old = |used| now.duration_since(used).is_ok_and(|since| since > USED);
    if metadata.modified().is_ok_and(is_old) {
        // What cannot be marked is removed earlier.
        let _ = file.set_modified(now);
    }
}

/// Writes a file as a whole: others see all of it or nothing. Its content is not flushed to the medium, because readers compare a hash.
pub(super) fn write(folder: &Path, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    // Another process may remove the folder when it is empty.
    let is_passing =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists);
    match write_once(folder, name, parts) {
        Err(error) if is_passing(&error) => write_once(folder, name, parts),
        written => written,
    }
}

fn write_once(folder: &Path, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    make_folder(folder)?;
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || !is_own(&metadata) {
        return Err(io::Error::other("the folder of an object is a link, or of another user"));
    }
    // A process that was killed may have had the same ID.
    let id = RandomState::new().hash_one(std::process::id());
    let temporary = folder.join(format!("{TEMPORARY}{id:016x}"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    drop(file);
    let written = written.and_then(|()| fs::rename(&temporary, folder.join(name)));
    if written.is_err() {
        remove(&temporary);
    }
    written
}

/// Removes a file, a link, or an empty folder that has the name of a file; what stays is found again. Whether nothing has stayed.
pub(super) fn remove(path: &Path) -> bool {
    let removed = |done: io::Result<()>| match done {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    removed(fs::remove_file(path)) || removed(fs::remove_dir(path))
}
