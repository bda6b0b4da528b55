//! bzip2, xz, lzma and lz4, through readers of other crates.

use core::ops::Range;
use std::io::{self, BufRead, Read};

use read_at::ReadAt;

use super::Take;
use crate::error::{Error, ErrorKind};

const PIECE: usize = 4096;

#[cfg(feature = "bzip2")]
pub(super) fn bzip2(source: &dyn ReadAt, at: u64, take: Take<'_>) -> Result<Option<u64>, Error> {
    let mut input = Input::new(source, at);
    let outcome = pump(&mut bzip2::bufread::BzDecoder::new(&mut input), take);
    input.end(outcome, 0)
}

#[cfg(feature = "xz")]
pub(super) fn xz(source: &dyn ReadAt, at: u64, memory: u64, take: Take<'_>) -> Result<Option<u64>, Error> {
    let mut input = Input::new(source, at);
    // The padding between streams is part of the format.
    let mut reader = lzma_rust2::XzReader::new_mem_limit(&mut input, true, in_kib(memory));
    let outcome = pump(&mut reader, take);
    drop(reader);
    input.end(outcome, 0)
}

#[cfg(feature = "xz")]
pub(super) fn lzma(source: &dyn ReadAt, at: u64, memory: u64, take: Take<'_>) -> Result<Option<u64>, Error> {
    let mut input = Input::new(source, at);
    let (outcome, unused) = match lzma_rust2::LzmaReader::new_mem_limit(&mut input, in_kib(memory), None) {
        Ok(mut reader) => {
            reader.set_relaxed_end_condition(false);
            let outcome = pump(&mut reader, take);
            (outcome, reader.into_parts().1.len())
        }
        Err(error) => (Err(error), 0),
    };
    input.end(outcome, unused as u64)
}

#[cfg(feature = "lz4")]
pub(super) fn lz4(source: &dyn ReadAt, at: u64, memory: u64, take: Take<'_>) -> Result<Option<u64>, Error> {
    let mut input = Input::new(source, at);
    // The header says how long a block may be; the decoder holds three.
    let block = input.fill_buf().ok().and_then(|start| start.get(5)).map_or(0, |kind| kind >> 4 & 7);
    let outcome = if (3 << 8) << (2 * block) > memory {
        Err(io::ErrorKind::OutOfMemory.into())
    } else {
        pump(&mut lz4_flex::frame::FrameDecoder::new(&mut input), take)
    };
    // It takes the end of its input for the end of a frame.
    let is_cut = input.is_exhausted;
    input.end(
        outcome.and_then(|ended| if is_cut { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(ended) }),
        0,
    )
}

#[cfg(feature = "xz")]
fn in_kib(memory: u64) -> u32 {
    u32::try_from(memory >> 10).unwrap_or(u32::MAX)
}

/// Reads to the end, and says whether all was wanted.
fn pump(reader: &mut dyn Read, take: Take<'_>) -> io::Result<bool> {
    let mut piece = [0; PIECE];
    loop {
        let mut len = 0;
        // A read into no bytes is the end of a block to some.
        let outcome = loop {
            match piece.get_mut(len..).filter(|rest| !rest.is_empty()).map(|rest| reader.read(rest)) {
                None | Some(Ok(0)) => break Ok(()),
                Some(Ok(more)) => len += more,
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Some(Err(error)) => break Err(error),
            }
        };
        if len > 0 && !take(piece.get(..len).unwrap_or_default()) {
            return Ok(false);
        }
        outcome?;
        if len < PIECE {
            return Ok(true);
        }
    }
}

/// A source as a stream.
struct Input<'s> {
    source: &'s dyn ReadAt,
    /// Where the bytes end that were read.
    at: u64,
    buffer: [u8; PIECE],
    pending: Range<usize>,
    /// Whether more was read than there is.
    is_exhausted: bool,
    failure: Option<read_at::Error>,
}

impl<'s> Input<'s> {
    fn new(source: &'s dyn ReadAt, at: u64) -> Self {
        Self { source, at, buffer: [0; PIECE], pending: 0..0, is_exhausted: false, failure: None }
    }

    /// Where a decoder stopped that left `unused` bytes.
    fn end(self, outcome: io::Result<bool>, unused: u64) -> Result<Option<u64>, Error> {
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        let end = self.at - self.pending.len() as u64 - unused;
        match outcome {
            Ok(true) => Ok(Some(end)),
            Ok(false) => Ok(None),
            Err(_) => Err(Error::from(ErrorKind::Damaged {}).at(end)),
        }
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.pending.is_empty() {
            let left = self.source.total_len().saturating_sub(self.at);
            let len = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            self.is_exhausted |= len == 0;
            if let Err(failure) =
                self.source.read_exact_at(self.at, self.buffer.get_mut(..len).unwrap_or_default())
            {
                self.failure = Some(failure);
                return Err(io::Error::other("the source failed"));
            }
            self.at += len as u64;
            self.pending = 0..len;
        }
        Ok(self.buffer.get(self.pending.clone()).unwrap_or_default())
    }

    fn consume(&mut self, len: usize) {
        self.pending.start = (self.pending.start + len).min(self.pending.end);
    }
}

impl Read for Input<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let bytes = self.fill_buf()?;
        let len = bytes.len().min(out.len());
        let (Some(out), Some(bytes)) = (out.get_mut(..len), bytes.get(..len)) else { return Ok(0) };
        out.copy_from_slice(bytes);
        self.consume(len);
        Ok(len)
    }
}
