//! Reads at given offsets of one open file, from any number of threads.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use read_at::{AnySource, FileSource, ReadAt as _};
use st_core::{Header, ReadOptions};

use crate::error::{Error, ErrorKind, InFile};
use crate::map::{Mapping, PrivateMapping};

/// Bytes fetched before anything about the file is known: enough for most headers, in one call.
const FIRST_READ: u64 = 64 << 10;

/// Piece of a large read: big enough that a disk streams, small enough that threads finish together. Pieces
/// begin at multiples of it, so that no two threads touch one large page of the page cache.
const CHUNK: u64 = 8 << 20;

/// More reads in flight than this bring no disk further.
const MAX_THREADS: usize = 8;

/// A regular file or a source of another kind, its length when it was opened, and its name for errors.
#[derive(Debug)]
pub(crate) struct PositionedFile {
    source: AnySource,
    path: PathBuf,
}

impl PositionedFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let regular = durable_file::open_regular(path, u64::MAX)?;
        let len = regular.len();
        Ok(Self::new(FileSource::with_len(regular.into_file(), len), path))
    }

    pub(crate) fn new(source: impl Into<AnySource>, path: &Path) -> Self {
        Self { source: source.into(), path: path.to_path_buf() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.source.total_len()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn map(&self) -> Result<Mapping, Error> {
        Mapping::of(self.file("map")?, self.len()).in_file(&self.path)
    }

    pub(crate) fn map_private(&self) -> Result<PrivateMapping, Error> {
        PrivateMapping::of(self.file("map")?, self.len()).in_file(&self.path)
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.source.file().ok_or(io::ErrorKind::Unsupported)?.metadata()
    }

    fn file(&self, operation: &'static str) -> Result<&File, Error> {
        let missing = || ErrorKind::Io { operation, error: io::ErrorKind::Unsupported.into() }.at(&self.path);
        self.source.file().ok_or_else(missing)
    }

    pub(crate) const fn source(&self) -> &AnySource {
        &self.source
    }

    /// Fills `buf` from `offset`; an end of file inside it means that the file shrank.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        let read = match &self.source {
            AnySource::File(source) => source.read_file_at(offset, buf),
            AnySource::Shared(source) => source.read_exact_at(offset, buf).map_err(io::Error::from),
        };
        read.map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                ErrorKind::Shrunk { expected: self.len() }.at(&self.path)
            } else {
                ErrorKind::Io { operation: "read", error }.at(&self.path)
            }
        })
    }

    /// The first `data_start` bytes, their length checked against the limits and the file before they are
    /// read. A file of less than 8 bytes is returned as it is, for the parser to refuse.
    pub(crate) fn read_prefix(&self, options: &ReadOptions) -> Result<Vec<u8>, Error> {
        let mut prefix = vec![0; self.len().min(FIRST_READ) as usize];
        self.read_at(&mut prefix, 0)?;
        let Some(first8) = prefix.first_chunk::<8>() else {
            return Ok(prefix);
        };
        let header_len = Header::declared_len(*first8, self.len(), options).in_file(&self.path)?;
        let too_large = || ErrorKind::OutOfMemory { needed: header_len }.at(&self.path);
        let needed =
            usize::try_from(header_len).ok().and_then(|len| len.checked_add(8)).ok_or_else(too_large)?;
        let have = prefix.len();
        if needed > have {
            prefix.try_reserve_exact(needed - have).map_err(|_| too_large())?;
            prefix.resize(needed, 0);
            self.read_at(&mut prefix[have..], have as u64)?;
        }
        prefix.truncate(needed);
        Ok(prefix)
    }

    /// Fills `buf` from `offset` with several threads if it is large.
    pub(crate) fn read_parallel(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS);
        self.read_chunked(buf, offset, CHUNK, threads)
    }

    fn read_chunked(&self, buf: &mut [u8], offset: u64, chunk: u64, threads: usize) -> Result<(), Error> {
        let n_chunks = (buf.len() as u64).div_ceil(chunk);
        // Two chunks take about as long as starting a thread for one of them is worth.
        if threads < 2 || n_chunks <= 2 {
            return self.read_at(buf, offset);
        }
        let threads = threads.min(usize::try_from(n_chunks).unwrap_or(threads));

        let to_boundary = (chunk - offset % chunk) as usize;
        let (first, rest) = buf.split_at_mut(to_boundary);
        let rest_offset = offset + to_boundary as u64;
        let pieces = (0..).map(|idx| rest_offset + idx * chunk).zip(rest.chunks_mut(chunk as usize));
        let jobs = Mutex::new(core::iter::once((offset, first)).chain(pieces));
        let failed = AtomicBool::new(false);
        let first_error = Mutex::new(None);

        let work = || {
            while !failed.load(Ordering::Relaxed) {
                let Some((offset, piece)) = jobs.lock().ok().and_then(|mut jobs| jobs.next()) else {
                    return;
                };
                if let Err(error) = self.read_at(piece, offset) {
                    failed.store(true, Ordering::Relaxed);
                    if let Ok(mut slot) = first_error.lock() {
                        slot.get_or_insert(error);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // A system that is out of threads is no reason not to read: this thread works too.
                if thread::Builder::new().name("st-load".into()).spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        first_error.into_inner().ok().flatten().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of `len` bytes that differ from place to place, open and already without a name.
    fn file_of(name: &str, len: usize) -> (PositionedFile, Vec<u8>) {
        let bytes: Vec<u8> =
            (0..len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
        let path = std::env::temp_dir().join(format!("st-mmap-positioned-{}-{name}", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let file = PositionedFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (file, bytes)
    }

    #[test]
    fn chunked_reads_equal_one_read_at_every_boundary() {
        let (file, bytes) = file_of("boundaries", 4096);
        let chunk = 64;
        for offset in [0, 1, 63, 64, 65, 100, 128] {
            for len in [0, 1, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, 257, 1000, 2048] {
                for threads in [1, 2, 3, 8] {
                    let mut buf = vec![0xAA; len];
                    file.read_chunked(&mut buf, offset as u64, chunk, threads).unwrap();
                    assert_eq!(buf, bytes[offset..offset + len], "{offset} {len} {threads}");
                }
            }
        }
    }

    #[test]
    fn reading_past_the_end_is_an_error_with_any_number_of_threads() {
        let (file, _) = file_of("past", 1000);
        for threads in [1, 2, 8] {
            let error = file.read_chunked(&mut [0; 900], 200, 64, threads).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Shrunk { expected: 1000 }), "{error}");
        }
    }
}
