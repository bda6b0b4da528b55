//! The bytes of a model file: its source, or the original inside a sealed source.

#[cfg(feature = "apr")]
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

#[cfg(feature = "sealed")]
use apr_sealed::{Part, SealedReader};
use read_at::ReadAt;

use crate::error::{Error, ErrorKind};

/// Where the bytes are.
#[derive(Debug)]
pub(crate) enum Content<R> {
    Source(R),
    /// Each byte is decrypted and verified where it is read.
    #[cfg(feature = "sealed")]
    Sealed(alloc::boxed::Box<SealedContent<R>>),
    /// Files that `st-mmap` reads.
    #[cfg(feature = "std")]
    Files,
}

impl<R: ReadAt> ReadAt for Content<R> {
    fn total_len(&self) -> u64 {
        match self {
            Self::Source(source) => source.total_len(),
            #[cfg(feature = "sealed")]
            Self::Sealed(content) => content.reader.content_len(),
            #[cfg(feature = "std")]
            Self::Files => 0,
        }
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        match self {
            Self::Source(source) => source.read_exact_at(offset, out),
            #[cfg(feature = "sealed")]
            Self::Sealed(content) => content.read_exact_at(offset, out),
            #[cfg(feature = "std")]
            Self::Files => read_at::check_range(offset, out.len(), 0),
        }
    }

    #[cfg(feature = "std")]
    fn as_file(&self) -> Option<&read_at::FileSource> {
        match self {
            Self::Source(source) => source.as_file(),
            _ => None,
        }
    }

    fn will_read(&self, range: Range<u64>) {
        match self {
            Self::Source(source) => source.will_read(range),
            #[cfg(feature = "sealed")]
            Self::Sealed(content) => content.will_read(&range),
            #[cfg(feature = "std")]
            Self::Files => {}
        }
    }

    fn in_memory(&self) -> Option<&[u8]> {
        match self {
            Self::Source(source) => source.in_memory(),
            #[cfg(feature = "sealed")]
            Self::Sealed(_) => None,
            #[cfg(feature = "std")]
            Self::Files => None,
        }
    }
}

#[cfg(feature = "apr")]
impl<R: ReadAt> Content<R> {
    /// Whether this is the original of a sealed file.
    pub(crate) const fn is_sealed(&self) -> bool {
        #[cfg(feature = "sealed")]
        return matches!(self, Self::Sealed(_));
        #[cfg(not(feature = "sealed"))]
        return false;
    }
}

/// The first `len` bytes, or all of a shorter file.
pub(crate) fn read_prefix(file: &dyn ReadAt, len: u64) -> Result<Vec<u8>, Error> {
    read_vec(file, len.min(file.total_len()))
}

/// All bytes, without a copy of those in memory.
#[cfg(feature = "apr")]
pub(crate) fn read_all(file: &dyn ReadAt) -> Result<Cow<'_, [u8]>, Error> {
    match file.in_memory() {
        Some(bytes) => Ok(Cow::Borrowed(bytes)),
        None => read_vec(file, file.total_len()).map(Cow::Owned),
    }
}

/// The first `len` bytes of a file that is as long.
fn read_vec(file: &dyn ReadAt, len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let capacity = usize::try_from(len).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
    bytes.resize(capacity.ok_or(ErrorKind::OutOfMemory { bytes: len })?, 0);
    file.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

/// The original of a sealed file, any range of which can be read.
#[cfg(feature = "sealed")]
#[derive(Debug)]
pub(crate) struct SealedContent<R> {
    pub(crate) reader: SealedReader<'static, R>,
    /// Where each part begins in the original.
    starts: Vec<u64>,
}

#[cfg(feature = "sealed")]
impl<R: ReadAt> SealedContent<R> {
    pub(crate) fn new(reader: SealedReader<'static, R>) -> Self {
        let starts = reader.parts().iter().scan(0, |end, part| {
            let start = *end;
            *end += part.len();
            Some(start)
        });
        Self { starts: starts.collect(), reader }
    }

    /// A range of one part: tensors are.
    fn will_read(&self, range: &Range<u64>) {
        let idx = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let place = self.starts.get(idx).zip(self.reader.parts().get(idx));
        if place.is_some_and(|(start, part)| (*start, start + part.len()) == (range.start, range.end)) {
            self.reader.will_read_part(idx);
        }
    }

    fn read_exact_at(&self, offset: u64, mut out: &mut [u8]) -> Result<(), read_at::Error> {
        read_at::check_range(offset, out.len(), self.reader.content_len())?;
        let mut at = offset;
        // Empty parts begin where the next one does: of several, the last.
        let mut idx = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        while !out.is_empty() {
            let place = self.starts.get(idx).zip(self.reader.parts().get(idx));
            let (start, part) = place.ok_or(read_at::ErrorKind::OutOfRange {
                offset,
                len: out.len() as u64,
                available: self.reader.content_len(),
            })?;
            let within = at - start;
            let len = Part::len(part).saturating_sub(within).min(out.len() as u64);
            let (now, rest) = out.split_at_mut(len as usize);
            self.reader.read_part(idx, within, now).map_err(read_at::Error::from_source)?;
            (out, at, idx) = (rest, at + len, idx + 1);
        }
        Ok(())
    }
}

/// The content from its first byte to its last.
#[cfg(feature = "std")]
pub(crate) struct Reader<'c> {
    content: &'c dyn ReadAt,
    at: u64,
}

#[cfg(feature = "std")]
impl<'c> Reader<'c> {
    pub(crate) const fn new(content: &'c dyn ReadAt) -> Self {
        Self { content, at: 0 }
    }
}

#[cfg(feature = "std")]
impl std::io::Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.content.total_len() - self.at).unwrap_or(usize::MAX);
        let (now, _) = out.split_at_mut(left.min(out.len()));
        self.content.read_exact_at(self.at, now)?;
        self.at += now.len() as u64;
        Ok(now.len())
    }
}
