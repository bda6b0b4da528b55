//! The source, through a window where it is not in memory.

use alloc::vec::Vec;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::Fault;
use crate::machine::Framing;
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
    framing: Framing,
    /// End of the current frame.
    frame: Option<u64>,
    /// Whether a piece was partly in a frame since this was asked.
    straddled: bool,
}

/// A line without its end.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) range: Range<u64>,
    /// Whether it ends with a newline rather than with the source.
    pub(crate) terminated: bool,
}

impl<R: ReadAt> Reader<R> {
    /// From `position`, or from the end if that is before it.
    pub(crate) fn new(source: R, position: u64) -> Self {
        let len = source.total_len();
        Self {
            source,
            position: position.min(len),
            len,
            window: Vec::new(),
            window_start: 0,
            framing: Framing::Memory,
            frame: None,
            straddled: false,
        }
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

    pub(crate) const fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Bytes of the current frame that are left.
    pub(crate) fn rest_of_frame(&self) -> u64 {
        self.frame.map_or(0, |end| end.saturating_sub(self.position))
    }

    pub(crate) const fn leave_frame(&mut self) {
        self.frame = None;
    }

    /// Whether a piece was partly in a frame since the last call.
    pub(crate) const fn take_straddled(&mut self) -> bool {
        core::mem::replace(&mut self.straddled, false)
    }

    /// Begins a frame here.
    pub(crate) fn begin_frame(&mut self, len: u64) -> Result<(), Fault> {
        match self.framing {
            Framing::Memory => self.frame = Some(self.position.saturating_add(len)),
            Framing::File => {
                self.begin_piece(len);
                if len > self.rest() {
                    return Err(Fault::Truncated);
                }
                // A frame inside the buffer leaves it as it is.
                self.frame = self.frame.or(Some(self.position + len));
            }
        }
        Ok(())
    }

    /// Before `len` bytes are read as one piece. If they are partly in the frame, the C unpickler takes them from after it when it reads
    /// from a file.
    fn begin_piece(&mut self, len: u64) {
        let rest = self.rest_of_frame();
        if len > rest {
            self.straddled |= rest > 0;
            if self.framing == Framing::File {
                self.position += rest;
            }
            self.frame = None;
        }
    }

    /// The next byte, or `None` at the end of the source.
    pub(crate) fn byte(&mut self) -> Result<Option<u8>, Fault> {
        self.begin_piece(1);
        let byte = self.peek(1)?.first().copied();
        self.position += u64::from(byte.is_some());
        Ok(byte)
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.begin_piece(N as u64);
        let bytes = *self.peek(N)?.first_chunk().ok_or(Fault::Truncated)?;
        self.position += N as u64;
        Ok(bytes)
    }

    /// Passes `len` bytes, which the C unpickler reads as one piece.
    pub(crate) fn skip_piece(&mut self, len: u64) -> Result<Range<u64>, Fault> {
        self.begin_piece(len);
        self.skip(len)
    }

    /// Passes the bytes of a bytes object, of which the C unpickler reads a part from the frame and a part from the file.
    pub(crate) fn skip_parts(&mut self, len: u64) -> Result<Range<u64>, Fault> {
        let rest = self.rest_of_frame();
        if len > rest {
            self.straddled |= rest > 0;
            self.frame = None;
        }
        self.skip(len)
    }

    /// Passes `len` bytes, wherever they are.
    fn skip(&mut self, len: u64) -> Result<Range<u64>, Fault> {
        if len > self.rest() {
            return Err(Fault::Truncated);
        }
        let start = self.position;
        self.position += len;
        Ok(start..self.position)
    }

    /// Passes `len` bytes of UTF-8 in which surrogates may occur.
    pub(crate) fn skip_utf8(&mut self, len: u64) -> Result<Range<u64>, Fault> {
        self.begin_piece(len);
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
        let rest = self.rest_of_frame();
        let line = self.line_from_here()?;
        if self.position - start <= rest && line.terminated {
            return Ok(line);
        }
        let end = core::mem::replace(&mut self.position, start);
        self.begin_piece(u64::MAX);
        if self.position != start {
            return self.line_from_here();
        }
        self.position = end;
        Ok(line)
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
