//! Datasets of alimentar, `.ald`: both layouts, plain, compressed, encrypted, signed, licensed.
//!
//! `docs/tables.md` says what is accepted; the layouts are in `docs/ald-format.md`.

use alloc::sync::Arc;

use read_at::ReadAt;

use crate::error::{Error, ErrorKind};

mod checksum;
mod header;
mod index;
mod license;
mod metadata;
mod payload;

pub use self::checksum::Checksum;
pub use self::header::{Compression, DatasetType, Encryption, Layout};
pub use self::license::License;
pub use self::metadata::Metadata;

/// What a file begins with.
pub const MAGIC: [u8; 4] = *b"ALDF";

/// Longest metadata, schema and index.
const MAX_SECTION: u64 = 64 << 20;

/// The input of a dataset.
pub(crate) type Source = Arc<dyn ReadAt + Send + Sync>;

fn read(source: &dyn ReadAt, at: u64, out: &mut [u8]) -> Result<(), Error> {
    source.read_exact_at(at, out).map_err(|error| Error::caused(ErrorKind::Read {}, error).at(at))
}

fn invalid(what: &'static str) -> Error {
    ErrorKind::Ald { what }.into()
}
