//! Streaming reader of a file of version 1.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use std::path::Path;

use read_at::{FileSource, ReadAt};

use crate::codec::{DecodePayload, Source};
use crate::compression::with_decompressed;
use crate::crc::Crc32;
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v1::candidates::Candidates;
use crate::v1::header::{CHECKSUM_LEN, HEADER_LEN, Header, check_magic};

/// Maximum length of a file that a header can describe.
pub(crate) const FILE_LEN_MAX: u64 = 1 << 34;

/// The file at `path`, of at most `max_len` bytes.
pub(crate) fn open(path: &Path, max_len: u64) -> Result<FileSource, Error> {
    let regular = durable_file::open_regular(path, max_len)?;
    let len = regular.len();
    Ok(FileSource::with_len(regular.into_file(), len))
}

/// All bytes of a source.
#[cfg(feature = "crypto")]
pub(crate) fn read_all(source: &dyn ReadAt) -> Result<Vec<u8>, Error> {
    let len = source.total_len();
    let mut file = Vec::new();
    match usize::try_from(len).ok().filter(|len| file.try_reserve_exact(*len).is_ok()) {
        Some(capacity) => file.resize(capacity, 0),
        None => return Err(ErrorKind::OutOfMemory { bytes: len }.into()),
    }
    source.read_exact_at(0, &mut file).map_err(|error| failed(error, len, 0))?;
    Ok(file)
}

/// Decodes the model in a file if `check` does not refuse its header.
pub(crate) fn load<M: DecodePayload>(
    source: &dyn ReadAt,
    options: &ReadOptions,
    check: impl FnOnce(&Header) -> Result<(), Error>,
) -> Result<M, Error> {
    let len = source.total_len();
    let mut file = FileReader::new(source);
    let header = file.header(options)?;
    check(&header)?;
    let (geometry, bound) =
        match header.geometry(len, options).and_then(|it| Ok((it, header.bound(options)?))) {
            Ok(found) => found,
            // The last bytes of a truncated file are not its checksum.
            Err(error) if matches!(error.kind(), ErrorKind::Truncated { .. }) => return Err(error),
            Err(error) => return Err(file.damage_or(error)),
        };
    let (metadata_end, payload_end) = (geometry.metadata_end, geometry.payload_end);
    // `geometry` has checked its length against the limit.
    let mut metadata = vec![0; header.metadata_len as usize];
    file.read_exact(&mut metadata)?;
    let candidates = match Candidates::new(&header, &metadata, options) {
        Ok(candidates) => candidates,
        Err(error) => return Err(file.damage_or(error)),
    };
    drop(metadata);
    let mut is_first = true;
    let decoded = candidates.decode(bound, |read| {
        if !core::mem::take(&mut is_first) {
            file.restart(metadata_end)?;
        }
        let stored_len = payload_end - metadata_end;
        let mut payload = FilePart { file: &mut file, left: stored_len };
        with_decompressed(header.compression, &mut payload, stored_len, bound, read)
    });
    match decoded {
        Ok(model) => match file.damage()? {
            Some(damage) => Err(damage),
            None => Ok(model),
        },
        Err(error) => Err(file.damage_or(error)),
    }
}

/// Compares the checksum at the end of a file, of either version, with the bytes before it, without parsing them; `None` if it
/// matches.
///
/// This distinguishes a corrupted file from one that was written wrongly. A truncated file does not match either, nor does one of
/// version 2 without a checksum.
///
/// # Errors
///
/// [`ErrorKind::File`], [`ErrorKind::Io`].
pub fn checksum_mismatch(path: impl AsRef<Path>) -> Result<Option<Error>, Error> {
    checksum_mismatch_from(&open(path.as_ref(), u64::MAX)?)
}

/// [`checksum_mismatch`] of a source.
///
/// # Errors
///
/// [`ErrorKind::Io`].
pub fn checksum_mismatch_from(source: &dyn ReadAt) -> Result<Option<Error>, Error> {
    FileReader::new(source).damage()
}

/// Reads forward and computes the checksum of what it read.
pub(crate) struct FileReader<'s> {
    source: &'s dyn ReadAt,
    len: u64,
    buffer: Vec<u8>,
    /// The bytes of `buffer` not yet consumed.
    ready: Range<usize>,
    /// Offset in the file of the end of the buffer.
    position: u64,
    crc: Crc32,
    last: [u8; CHECKSUM_LEN],
}

impl<'s> FileReader<'s> {
    const BUFFER_LEN: usize = 128 << 10;

    pub(crate) fn new(source: &'s dyn ReadAt) -> Self {
        let len = source.total_len();
        let buffer_len = usize::try_from(len).unwrap_or(Self::BUFFER_LEN).min(Self::BUFFER_LEN);
        let buffer = vec![0; buffer_len];
        Self { source, len, buffer, ready: 0..0, position: 0, crc: Crc32::default(), last: [0; CHECKSUM_LEN] }
    }

    pub(crate) fn header(&mut self, options: &ReadOptions) -> Result<Header, Error> {
        let mut header = [0; HEADER_LEN];
        let needed = (HEADER_LEN + CHECKSUM_LEN) as u64;
        if self.len < needed {
            let mut magic = [0; 4];
            if self.len >= 4 {
                self.read_exact(&mut magic)?;
                check_magic(magic)?;
            }
            return Err(ErrorKind::TooSmall { available: self.len, needed }.into());
        }
        self.read_exact(&mut header)?;
        Header::from_bytes(&header, options)
    }

    pub(crate) fn read_exact(&mut self, mut out: &mut [u8]) -> Result<(), Error> {
        while !out.is_empty() {
            self.refill()?;
            let ready = self.buffer.get(self.ready.clone()).unwrap_or_default();
            let step = ready.len().min(out.len());
            if step == 0 {
                return Err(self.shrunk());
            }
            let (head, rest) = out.split_at_mut(step);
            head.copy_from_slice(ready.get(..step).unwrap_or_default());
            out = rest;
            self.ready.start += step;
        }
        Ok(())
    }

    /// Reads more bytes if none are ready and the end is not reached.
    fn refill(&mut self) -> Result<(), Error> {
        if !self.ready.is_empty() {
            return Ok(());
        }
        let wanted = usize::try_from(self.len - self.position).unwrap_or(usize::MAX).min(self.buffer.len());
        let Some(buffer) = self.buffer.get_mut(..wanted).filter(|buffer| !buffer.is_empty()) else {
            return Ok(());
        };
        let read = buffer.len();
        if let Err(error) = self.source.read_exact_at(self.position, buffer) {
            return Err(failed(error, self.len, self.position));
        }
        // The last four bytes are the checksum itself.
        let sealed_end = self.len.saturating_sub(CHECKSUM_LEN as u64);
        let covered =
            usize::try_from(sealed_end.saturating_sub(self.position)).unwrap_or(usize::MAX).min(read);
        let (covered, checksum) = buffer.split_at(read).0.split_at(covered);
        self.crc.update(covered);
        let first = (self.position + covered.len() as u64).saturating_sub(sealed_end) as usize;
        for (place, byte) in self.last.iter_mut().skip(first).zip(checksum) {
            *place = *byte;
        }
        self.position += read as u64;
        self.ready = 0..read;
        Ok(())
    }

    /// Starts again from the beginning and skips to `offset`.
    fn restart(&mut self, offset: u64) -> Result<(), Error> {
        (self.position, self.ready, self.crc) = (0, 0..0, Crc32::default());
        self.skip(offset)
    }

    fn skip(&mut self, mut count: u64) -> Result<(), Error> {
        while count > 0 {
            self.refill()?;
            let step = usize::try_from(count).unwrap_or(usize::MAX).min(self.ready.len());
            if step == 0 {
                return Err(self.shrunk());
            }
            self.ready.start += step;
            count -= step as u64;
        }
        Ok(())
    }

    /// Reads to the end and compares the checksum; the mismatch if there is one.
    pub(crate) fn damage(&mut self) -> Result<Option<Error>, Error> {
        self.skip(self.len - self.position + self.ready.len() as u64)?;
        let (expected, actual) = (u32::from_le_bytes(self.last), self.crc.get());
        let at = self.len.saturating_sub(CHECKSUM_LEN as u64);
        Ok((expected != actual).then(|| ErrorKind::ChecksumMismatch { expected, actual }.at(at)))
    }

    /// The checksum mismatch of a corrupted file, which is more informative than the first invalid value.
    fn damage_or(&mut self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Io { .. } | ErrorKind::File(_) => error,
            _ => self.damage().ok().flatten().unwrap_or(error),
        }
    }

    fn shrunk(&self) -> Error {
        shrunk(self.len, self.position)
    }
}

fn shrunk(needed: u64, available: u64) -> Error {
    ErrorKind::Truncated { part: "file", needed, available }.into()
}

/// The error for a source that could not be read at `position`.
#[cold]
pub(crate) fn failed(error: read_at::Error, len: u64, position: u64) -> Error {
    if error.kind() != read_at::ErrorKind::Source {
        return std::io::Error::from(error).into();
    }
    let Some(source) = error.into_source() else { return shrunk(len, position) };
    match source.downcast::<std::io::Error>() {
        Ok(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Error::from(*error),
        Err(source) => std::io::Error::other(source).into(),
        Ok(_) => shrunk(len, position),
    }
}

/// The next `left` bytes of a file.
struct FilePart<'f, 's> {
    file: &'f mut FileReader<'s>,
    left: u64,
}

impl Source for FilePart<'_, '_> {
    fn fill(&mut self) -> Result<&[u8], Error> {
        if self.left == 0 {
            return Ok(&[]);
        }
        self.file.refill()?;
        let ready = self.file.buffer.get(self.file.ready.clone()).unwrap_or_default();
        let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(ready.len());
        Ok(ready.get(..len).unwrap_or_default())
    }

    fn consume(&mut self, len: usize) {
        self.file.ready.start = (self.file.ready.start + len).min(self.file.ready.end);
        self.left = self.left.saturating_sub(len as u64);
    }
}
