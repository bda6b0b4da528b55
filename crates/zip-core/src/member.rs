//! Reading members.

use alloc::boxed::Box;
use core::ops::Range;

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use read_at::ReadAt;

use crate::crc::Hasher;
use crate::entry::{Entry, Method};
use crate::error::{Error, ErrorKind};
use crate::problem::Problem;

const INPUT: usize = 4096;

/// A member as a stream of decompressed bytes: never more than it declares.
pub struct Member<'a, R> {
    source: &'a R,
    /// Compressed bytes that are left.
    rest: Range<u64>,
    /// Decompressed bytes that are left.
    left: u64,
    len: u64,
    expected: u32,
    crc32: Hasher,
    /// `None` for a stored member.
    inflate: Option<Box<Inflate>>,
}

struct Inflate {
    state: Box<InflateState>,
    input: [u8; INPUT],
    pending: Range<usize>,
    ended: bool,
}

/// Whether the checksum of a member matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It does.
    Matches,
    /// The directory has 0, as PyTorch writes where checksums are switched off.
    Absent,
    /// It does not.
    Differs,
}

impl<R> core::fmt::Debug for Member<'_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Member").field("rest", &self.rest).field("left", &self.left).finish_non_exhaustive()
    }
}

impl<'a, R: ReadAt> Member<'a, R> {
    /// A member of the archive that `source` is, for those who keep the entry and not the archive.
    ///
    /// # Errors
    ///
    /// As [`Archive::member`](crate::Archive::member).
    pub fn new(source: &'a R, entry: &Entry) -> Result<Self, Error> {
        let rest = entry.data.clone().ok_or_else(|| Error::from(ErrorKind::NoData {}).at(entry.header))?;
        let inflate = match entry.method {
            Method::STORED => None,
            Method::DEFLATED => Some(Inflate::new(DataFormat::Raw)),
            Method(method) => return Err(Error::from(ErrorKind::Method { method }).at(entry.header)),
        };
        Ok(Self {
            source,
            rest,
            left: entry.len,
            len: entry.len,
            expected: entry.crc32,
            crc32: Hasher::new(),
            inflate,
        })
    }

    /// Fills the beginning of `out` and returns how much of it; 0 at the end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Deflate`], [`ErrorKind::Short`], [`ErrorKind::Read`].
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let Some(out) = out.get_mut(..wanted).filter(|out| !out.is_empty()) else { return Ok(0) };
        let len = match &mut self.inflate {
            None => {
                let len =
                    usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX).min(out.len());
                self.source.read_exact_at(self.rest.start, out.get_mut(..len).unwrap_or_default())?;
                self.rest.start += len as u64;
                len
            }
            Some(state) => state.read(self.source, &mut self.rest, out)?,
        };
        if len == 0 {
            let found = self.len - self.left;
            return Err(Error::from(ErrorKind::Short { expected: self.len, found }).at(self.rest.start));
        }
        self.crc32.update(out.get(..len).unwrap_or_default());
        self.left -= len as u64;
        Ok(len)
    }

    /// After the last byte: whether the checksum matches.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        match self.crc32.clone().finalize() {
            found if found == self.expected => Checksum::Matches,
            _ if self.expected == 0 => Checksum::Absent,
            _ => Checksum::Differs,
        }
    }

    /// Reads what is left, and says whether the data contradict the directory.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn verify(&mut self) -> Result<Option<Problem>, Error> {
        let mut piece = [0; INPUT];
        while self.read(&mut piece)? > 0 {}
        // A byte beyond what is declared, or after the end of the compressed data.
        let longer = match &mut self.inflate {
            None => self.rest.start < self.rest.end,
            Some(state) => {
                let more = state.read(self.source, &mut self.rest, &mut [0])? > 0;
                more || !state.pending.is_empty() || !self.rest.is_empty()
            }
        };
        let differs = self.checksum() == Checksum::Differs;
        Ok(if differs { Some(Problem::Checksum {}) } else { longer.then_some(Problem::Longer {}) })
    }
}

/// Decompresses a deflate stream at the beginning of `range`, a piece at a time, until `take` returns `false`. Returns where the stream ends,
/// or `None` if it was left before its end.
pub(crate) fn inflate_all(
    source: &dyn ReadAt,
    range: Range<u64>,
    format: DataFormat,
    take: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<Option<u64>, Error> {
    let mut state = Inflate::new(format);
    let (mut rest, mut found, mut piece) = (range, 0, [0; INPUT]);
    loop {
        let len = state.read(&source, &mut rest, &mut piece)?;
        found += len as u64;
        if len == 0 && !state.ended {
            return Err(Error::from(ErrorKind::Short { expected: found + 1, found }).at(rest.start));
        }
        if len == 0 {
            return Ok(Some(rest.start - state.pending.len() as u64));
        }
        if !take(piece.get(..len).unwrap_or_default()) {
            return Ok(None);
        }
    }
}

impl Inflate {
    fn new(format: DataFormat) -> Box<Self> {
        let state = InflateState::new_boxed(format);
        Box::new(Self { state, input: [0; INPUT], pending: 0..0, ended: false })
    }

    /// 0 at the end of the stream or of its input.
    fn read<R: ReadAt>(&mut self, source: &R, rest: &mut Range<u64>, out: &mut [u8]) -> Result<usize, Error> {
        while !self.ended {
            if self.pending.is_empty() {
                let len = usize::try_from(rest.end - rest.start).unwrap_or(usize::MAX).min(INPUT);
                source.read_exact_at(rest.start, self.input.get_mut(..len).unwrap_or_default())?;
                rest.start += len as u64;
                self.pending = 0..len;
            }
            let input = self.input.get(self.pending.clone()).unwrap_or_default();
            let was_empty = input.is_empty();
            let result = inflate(&mut self.state, input, out, MZFlush::None);
            self.pending.start += result.bytes_consumed;
            match result.status {
                Ok(MZStatus::StreamEnd) => self.ended = true,
                Ok(_) | Err(MZError::Buf) => {}
                Err(_) => return Err(Error::from(ErrorKind::Deflate {}).at(rest.start)),
            }
            if result.bytes_written > 0 {
                return Ok(result.bytes_written);
            }
            if was_empty {
                return Ok(0);
            }
        }
        Ok(0)
    }
}
