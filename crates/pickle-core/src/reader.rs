//! The source, through a window where it is not in memory.

use alloc::vec::Vec;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::Fault;
use crate::string;

const WINDOW: usize = 64 << 10;

/// Reads forward, and remembers where it is.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    source: R,
    position: u64,
    len: u64,
    /// Bytes of the source from `window_start`; unused if the source is in memory.
    window: Vec<u8>,
    window_start: u64,
    /// End of the frame that the C unpickler has read from a file: see [`Framing::File`](crate::Framing::File).
    buffered: Option<u64>,
}

/// A line without its end.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) range: Range<u64>,
    /// Whether it ends with a newline rather than with the source.
    pub(crate) terminated: bool,
}

impl<R: ReadAt> Reader<R> {
    /// From `position`, or from the end if that is behind it.
    pub(crate) fn new(source: R, position: u64) -> Self {
        let len = source.total_len();
        Self { source, position: position.min(len), len, window: Vec::new(), window_start: 0, buffered: None }
    }

    pub(crate) const fn source(&self) -> &R {
        &self.source
    }

    pub(crate) fn into_source(self) -> R {
        self.source
    }

    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    pub(crate) const fn rest(&self) -> u64 {
        self.len - self.position
    }

    /// The bytes from here: at least `least`, or all that are left.
    fn peek(&mut self, least: usize) -> Result<&[u8], Fault> {
        if self.source.in_memory().is_none() {
            self.fill(least)?;
            return Ok(after(&self.window, self.position - self.window_start));
        }
        Ok(after(self.source.in_memory().unwrap_or_default(), self.position))
    }

    #[cold]
    fn refill(&mut self) -> Result<(), Fault> {
        let len = self.rest().min(WINDOW as u64);
        let len = usize::try_from(len).map_err(|_| Fault::Memory)?;
        self.window.clear();
        self.window.try_reserve_exact(len).map_err(|_| Fault::Memory)?;
        self.window.resize(len, 0);
        self.window_start = self.position;
        self.source.read_exact_at(self.position, &mut self.window).map_err(|error| {
            self.window.clear();
            Fault::Read(error)
        })
    }

    fn fill(&mut self, least: usize) -> Result<(), Fault> {
        let end = self.window_start + self.window.len() as u64;
        let wanted = self.rest().min(least as u64);
        let inside = self.position >= self.window_start && self.position + wanted <= end;
        if inside { Ok(()) } else { self.refill() }
    }

    /// As the C unpickler does with a file: `len` bytes that are not all in its buffer are read from after it, and the rest of the
    /// buffer is lost.
    fn leave_buffer(&mut self, len: u64) {
        if let Some(end) = self.buffered
            && len > end.saturating_sub(self.position)
        {
            self.position = self.position.max(end);
            self.buffered = None;
        }
    }

    /// Reads `len` bytes into the buffer of the C unpickler.
    pub(crate) fn buffer(&mut self, len: u64) -> Result<(), Fault> {
        self.leave_buffer(len);
        if len > self.rest() {
            return Err(Fault::Truncated);
        }
        let end = self.position + len;
        self.buffered = Some(self.buffered.unwrap_or(end));
        Ok(())
    }

    /// The next byte, or `None` at the end of the source.
    pub(crate) fn byte(&mut self) -> Result<Option<u8>, Fault> {
        self.leave_buffer(1);
        let byte = self.peek(1)?.first().copied();
        self.position += u64::from(byte.is_some());
        Ok(byte)
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.leave_buffer(N as u64);
        let bytes = *self.peek(N)?.first_chunk().ok_or(Fault::Truncated)?;
        self.position += N as u64;
        Ok(bytes)
    }

    /// Passes `len` bytes, which the C unpickler reads as one piece.
    pub(crate) fn skip_piece(&mut self, len: u64) -> Result<Range<u64>, Fault> {
        self.leave_buffer(len);
        self.skip(len)
    }

    /// Passes `len` bytes, wherever they are.
    pub(crate) fn skip(&mut self, len: u64) -> Result<Range<u64>, Fault> {
        if len > self.rest() {
            return Err(Fault::Truncated);
        }
        let start = self.position;
        self.position += len;
        Ok(start..self.position)
    }

    /// Passes `len` bytes of UTF-8 in which surrogates may occur.
    pub(crate) fn skip_utf8(&mut self, len: u64) -> Result<Range<u64>, Fault> {
        self.leave_buffer(len);
        if len > self.rest() {
            return Err(Fault::Truncated);
        }
        let start = self.position;
        let end = start + len;
        while self.position < end {
            let rest = usize::try_from(end - self.position).unwrap_or(usize::MAX);
            let bytes = self.peek(string::LONGEST_CHARACTER)?;
            let part = bytes.get(..rest).unwrap_or(bytes);
            let valid = string::valid_utf8(part).ok_or(Fault::Text)?;
            if valid == 0 {
                return Err(Fault::Text); // The last character is incomplete.
            }
            self.position += valid as u64;
        }
        Ok(start..end)
    }

    /// Passes a line and its end.
    pub(crate) fn line(&mut self) -> Result<Line, Fault> {
        let start = self.position;
        let line = self.line_from_here()?;
        match self.buffered {
            Some(end) if self.position > end || !line.terminated => {
                self.position = start;
                self.leave_buffer(u64::MAX);
                self.line_from_here()
            }
            _ => Ok(line),
        }
    }

    fn line_from_here(&mut self) -> Result<Line, Fault> {
        let start = self.position;
        loop {
            let bytes = self.peek(1)?;
            if bytes.is_empty() {
                return Ok(Line { range: start..self.position, terminated: false });
            }
            let found = bytes.iter().position(|byte| *byte == b'\n');
            let passed = found.unwrap_or(bytes.len()) as u64;
            self.position += passed;
            if found.is_some() {
                self.position += 1;
                return Ok(Line { range: start..self.position - 1, terminated: true });
            }
        }
    }

    /// Copies a range that was passed.
    pub(crate) fn copy(&self, range: &Range<u64>, limit: (&'static str, u32)) -> Result<Vec<u8>, Fault> {
        let len = range.end - range.start;
        if len > u64::from(limit.1) {
            return Err(Fault::Limit(limit.0, limit.1.into()));
        }
        let len = usize::try_from(len).map_err(|_| Fault::Memory)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| Fault::Memory)?;
        bytes.resize(len, 0);
        self.source.read_exact_at(range.start, &mut bytes).map_err(Fault::Read)?;
        Ok(bytes)
    }
}

fn after(bytes: &[u8], position: u64) -> &[u8] {
    usize::try_from(position).ok().and_then(|from| bytes.get(from..)).unwrap_or_default()
}
