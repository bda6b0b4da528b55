//! SHA-256 of files.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use sha2::{Digest as _, Sha256};

use crate::error::{CODE_INTERNAL, Failure};
use crate::remote::{self, Remote};
use crate::terminal::Console;

/// Bytes between two looks at the progress.
const PIECE_LEN: usize = 1 << 20;
/// Files that are open at once while they wait to be hashed.
const OPENED_MAX: usize = 256;
/// Time between two looks at another thread.
const INTERVAL: Duration = Duration::from_millis(200);
/// What the progress line calls the work.
const LABEL: &str = "hashing the source for its provenance record";
const SKIPPED_BY: &str = "--no-provenance skips this";

/// SHA-256 of a regular file, or of what a URL names; `advance` hears of each piece that was read.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn sha256(path: &Path, mut advance: impl FnMut(usize)) -> Result<[u8; 32], Failure> {
    if let Some(remote) = Remote::open(path)? {
        return remote.sha256(advance);
    }
    local(path, |len| {
        advance(len);
        true
    })
}

/// SHA-256 of an open source.
///
/// # Errors
///
/// If it cannot be read.
#[cfg(feature = "serve")]
pub(crate) fn sha256_of(source: &impl read_at::ReadAt) -> Result<[u8; 32], read_at::Error> {
    let (mut hash, mut piece, mut at) = (Sha256::new(), vec![0; PIECE_LEN], 0);
    while at < source.total_len() {
        let len = (source.total_len() - at).min(PIECE_LEN as u64);
        let piece = &mut piece[..len as usize];
        source.read_exact_at(at, piece)?;
        hash.update(piece);
        at += len;
    }
    Ok(hash.finalize().into())
}

/// [`sha256`] in hexadecimal digits.
///
/// # Errors
///
/// If the file cannot be read.
pub(crate) fn hex_sha256(path: &Path, advance: impl FnMut(usize)) -> Result<String, Failure> {
    Ok(base16ct::lower::encode_string(&sha256(path, advance)?))
}

/// SHA-256 of a file of this machine, or of its beginning if `goes_on` says no after it.
fn local(path: &Path, goes_on: impl FnMut(usize) -> bool) -> Result<[u8; 32], Failure> {
    hash(durable_file::open_regular(path, u64::MAX)?.into_file(), path, goes_on)
}

/// The same of an open file.
fn hash(mut file: File, path: &Path, mut goes_on: impl FnMut(usize) -> bool) -> Result<[u8; 32], Failure> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_LEN];
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => {
                hash.update(&piece[..len]);
                if !goes_on(len) {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::io("read the file", path, &error)),
        }
    }
    Ok(hash.finalize().into())
}

/// A file whose digest is recorded.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    /// One whose digest is known.
    Known(String),
}

/// What stands for digests where only their length matters.
pub(crate) fn placeholders(count: usize) -> Vec<String> {
    vec!["0".repeat(64); count]
}

/// Digests of files in hexadecimal digits, which a thread computes beside other work. Once this is dropped, it stops.
#[derive(Debug)]
pub(crate) struct Digests {
    found: Receiver<Result<Vec<String>, Failure>>,
    state: Arc<State>,
    len: u64,
}

#[derive(Debug, Default)]
struct State {
    hashed: AtomicU64,
    is_unwanted: AtomicBool,
}

impl State {
    fn digest(&self, source: Source, opened: Option<File>) -> Result<String, Failure> {
        let path = match source {
            Source::Known(digest) => return Ok(digest),
            Source::File(path) => path,
        };
        let goes_on = |len| {
            self.hashed.fetch_add(len as u64, Ordering::Relaxed);
            !self.is_unwanted.load(Ordering::Relaxed)
        };
        let digest = match opened {
            Some(file) => hash(file, &path, goes_on)?,
            None => local(&path, goes_on)?,
        };
        Ok(base16ct::lower::encode_string(&digest))
    }
}

impl Digests {
    /// Begins. What is behind URLs is hashed before this returns.
    ///
    /// # Errors
    ///
    /// If a URL cannot be read, or there is no thread.
    pub(crate) fn start(mut sources: Vec<Source>, console: &Console) -> Result<Self, Failure> {
        let mut len = 0_u64;
        let mut opened = Vec::with_capacity(sources.len());
        for source in &mut sources {
            opened.push(match source {
                Source::File(path) if remote::is_url(path) => {
                    let known = Remote::open(path)?.map_or(0, |remote| remote.version().0);
                    let mut progress = console.progress(LABEL, known);
                    progress.item(SKIPPED_BY);
                    *source = Source::Known(hex_sha256(path, |len| progress.advance(len))?);
                    None
                }
                Source::File(path) => {
                    // Now: another file may take its name while the work goes on. Of very many, the last are opened later.
                    let file = durable_file::open_regular(path, u64::MAX)?;
                    len = len.saturating_add(file.len());
                    Some(file.into_file()).filter(|_| opened.len() < OPENED_MAX)
                }
                Source::Known(_) => None,
            });
        }
        let (send, found) = mpsc::channel();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let work = move || {
            // The other end may have been dropped.
            let each = sources.into_iter().zip(opened);
            let _ = send.send(each.map(|(source, opened)| shared.digest(source, opened)).collect());
        };
        thread::Builder::new()
            .name("digests".to_owned())
            .spawn(work)
            .map_err(|error| Failure::new(CODE_INTERNAL, format!("no thread: {error}")))?;
        Ok(Self { found, state, len })
    }

    /// Waits for the digests of the sources, in their order.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub(crate) fn finish(self, console: &Console) -> Result<Vec<String>, Failure> {
        let mut progress = console.progress(LABEL, self.len);
        progress.item(SKIPPED_BY);
        let mut shown = 0;
        loop {
            match self.found.recv_timeout(INTERVAL) {
                Ok(digests) => return digests,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new(
                        CODE_INTERNAL,
                        "the thread that hashes the source has panicked",
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let hashed = self.state.hashed.load(Ordering::Relaxed);
                    progress.advance(usize::try_from(hashed - shown).unwrap_or(usize::MAX));
                    shown = hashed;
                }
            }
        }
    }
}

impl Drop for Digests {
    fn drop(&mut self) {
        self.state.is_unwanted.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_where_it_is_told_to() {
        let path = std::env::temp_dir().join(format!("apr-file-digest-{}", std::process::id()));
        std::fs::write(&path, vec![0; 3 * PIECE_LEN]).unwrap();
        let mut pieces = 0;
        let whole = local(&path, |_| {
            pieces += 1;
            true
        });
        let beginning = local(&path, |_| {
            pieces += 1;
            false
        });
        std::fs::remove_file(&path).unwrap();
        assert_eq!(pieces, 4);
        assert_eq!(whole.unwrap()[..], Sha256::digest(vec![0; 3 * PIECE_LEN])[..]);
        assert_eq!(beginning.unwrap()[..], Sha256::digest(vec![0; PIECE_LEN])[..]);
    }
}
