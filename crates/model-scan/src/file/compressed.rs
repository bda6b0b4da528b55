//! Compressed files.

use pickle_core::{Error, ErrorKind};
use read_at::ReadAt as _;
use zip_core::Compression;

use super::item::{Files, Item};
use super::pieces::Pieces;
use super::zip::is_read;

/// Why decompressing stopped.
pub(super) const EXPANDS: &str = "expands beyond the limit";

/// Memory of a decoder for an empty file: dictionaries of 4 MiB, as joblib's level 3 has.
const MEMORY: u64 = 9 << 19;

impl Files<'_> {
    pub(super) fn compressed(&mut self, item: Item<'_>, compression: Compression) -> Result<(), Error> {
        let Item { source, path, name, .. } = item;
        let mut pieces = Pieces::default();
        let max = self.inflated;
        // With what is decompressed, as much as a file of this length may use.
        let memory = source.total_len().saturating_mul(12).saturating_add(MEMORY).max(max);
        let problem = match zip_core::decompress(source, compression, memory, |piece| pieces.push(piece, max))
        {
            Ok(true) => None,
            Ok(false) => Some(EXPANDS),
            Err(error) if is_read(&error) => return Err(ErrorKind::Read {}.into()),
            Err(error) => Some(match error.kind() {
                zip_core::ErrorKind::NoDecoder { .. } => "compressed with bzip2, xz, lzma or lz4",
                zip_core::ErrorKind::Trailing {} => "bytes after the compressed data",
                _ => "cannot be decompressed",
            }),
        };
        if let Some(reason) = problem {
            self.unopened(path, reason);
        }
        if pieces.total_len() == 0 {
            return Ok(());
        }
        // Also of what is not complete: it may have been loaded before its reader stopped.
        self.inflated = self.inflated.saturating_sub(pieces.total_len());
        let name = name.rsplit_once('.').map_or("", |(name, _)| name);
        self.file(Item { source: &pieces, name, depth: item.depth + 1, ..item }).map(drop)
    }
}
