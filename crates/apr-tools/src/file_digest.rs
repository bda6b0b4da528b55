//! SHA-256 of files.

use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::Failure;
use crate::remote::Remote;

/// Bytes between two looks at the progress.
const PIECE_LEN: usize = 1 << 20;

/// SHA-256 of a regular file; `advance` hears of each piece that was read.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn sha256(path: &Path, mut advance: impl FnMut(usize)) -> Result<[u8; 32], Failure> {
    if let Some(remote) = Remote::open(path)? {
        return remote.sha256(advance);
    }
    let mut file = durable_file::open_regular(path, u64::MAX)?.into_file();
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_LEN];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(len) => {
                hash.update(&piece[..len]);
                advance(len);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::io("read", path, &error)),
        }
    }
}
