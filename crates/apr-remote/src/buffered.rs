//! A source whose reads are expensive, read in few and long pieces.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use read_at::{ReadAt, check_range};

use crate::error::{Error, ErrorKind};
use crate::plan::{BEGINNING_MAX, ReadAhead, first_read, next_end};

/// Keeps the beginning of a source, and reads ahead beyond it. Threads can share it; at most 24 MiB of the source are in memory.
///
/// A read at an arbitrary offset requests 64 KiB or what is asked for; a reader that goes on from there causes longer requests, up to
/// 8 MiB. A read that is longer is one request. Of many files of one client, the eight read last have a piece read ahead.
#[derive(Debug)]
pub struct Buffered<S> {
    source: S,
    held: Arc<Mutex<Held>>,
    windows: Windows,
}

/// The bytes in memory.
#[derive(Debug)]
pub(crate) struct Held {
    beginning: Vec<u8>,
    window: Vec<u8>,
    window_at: u64,
    ahead: ReadAhead,
}

/// Sources whose windows are in memory at once.
const WINDOWS: usize = 8;

/// The sources whose windows are in memory, the one that was read last at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(Arc<Mutex<VecDeque<Weak<Mutex<Held>>>>>);

impl Windows {
    /// Notes that a source has a new window: that of another one goes, if there are too many.
    fn add(&self, held: &Arc<Mutex<Held>>) {
        let own = Arc::downgrade(held);
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| !source.ptr_eq(&own));
        sources.push_back(own);
        let oldest = if sources.len() > WINDOWS { sources.pop_front() } else { None };
        drop(sources);
        if let Some(oldest) = oldest.as_ref().and_then(Weak::upgrade) {
            oldest.lock().unwrap_or_else(PoisonError::into_inner).window = Vec::new();
        }
    }
}

/// What has to be requested.
enum Wanted {
    /// The rest of a header whose length is not known.
    Beginning(Range<u64>),
    Window(Range<u64>),
}

impl Held {
    /// Copies what is here of the bytes from `offset` on, and says how many.
    fn copy(&self, offset: u64, out: &mut [u8]) -> usize {
        let from = |bytes: &[u8], at: u64, out: &mut [u8]| {
            let rest = offset.checked_sub(at).and_then(|skip| bytes.get(usize::try_from(skip).ok()?..))?;
            let len = rest.len().min(out.len());
            out.get_mut(..len)?.copy_from_slice(rest.get(..len)?);
            Some(len).filter(|len| *len > 0)
        };
        from(&self.beginning, 0, out).or_else(|| from(&self.window, self.window_at, out)).unwrap_or(0)
    }

    fn wanted(&mut self, offset: u64, len: u64, total: u64) -> Wanted {
        let have = self.beginning.len() as u64;
        let end = next_end(&self.beginning, offset.saturating_add(len), total);
        if offset == have && have < BEGINNING_MAX && end > offset.saturating_add(len) && end <= BEGINNING_MAX
        {
            return Wanted::Beginning(offset..end);
        }
        Wanted::Window(self.ahead.plan(offset, len, total))
    }
}

impl<S: ReadAt> Buffered<S> {
    /// Reads the beginning: 64 KiB, of a name that ends in `.gguf` 1 MiB.
    ///
    /// # Errors
    ///
    /// Those of the source.
    ///
    /// ```
    /// use apr_remote::Buffered;
    /// use read_at::ReadAt;
    ///
    /// let source = Buffered::open(vec![7; 100_000], "m.safetensors")?;
    /// let mut out = [0; 2];
    /// assert!(source.read_held(65_000, &mut out) && out == [7, 7]);
    /// assert!(!source.read_held(70_000, &mut out));
    /// source.read_exact_at(70_000, &mut out)?;
    /// assert!(source.read_held(99_998, &mut out), "read ahead");
    /// # Ok::<(), read_at::Error>(())
    /// ```
    pub fn open(source: S, file_name: &str) -> Result<Self, read_at::Error> {
        let mut beginning = buffer(first_read(file_name).min(source.total_len()))?;
        source.read_exact_at(0, &mut beginning)?;
        Ok(Self::new(source, beginning, Windows::default()))
    }

    pub(crate) fn new(source: S, beginning: Vec<u8>, windows: Windows) -> Self {
        let ahead = ReadAhead::new();
        let held = Held { beginning, window: Vec::new(), window_at: 0, ahead };
        Self { source, held: Arc::new(Mutex::new(held)), windows }
    }

    pub(crate) const fn source(&self) -> &S {
        &self.source
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Bytes in it are those of the file, whatever happened to another thread.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies what is in memory of the bytes from `offset` on, and says how many.
    pub(crate) fn copy(&self, offset: u64, out: &mut [u8]) -> usize {
        self.held().copy(offset, out)
    }

    /// Fills `out` with the bytes at `offset` if all of them are in memory; what is in it is unspecified otherwise.
    #[must_use]
    pub fn read_held(&self, offset: u64, out: &mut [u8]) -> bool {
        let held = self.held();
        let mut done = 0;
        while done < out.len() {
            match held.copy(offset.saturating_add(done as u64), out.get_mut(done..).unwrap_or_default()) {
                0 => return false,
                copied => done += copied,
            }
        }
        true
    }

    /// Requests what is wanted, keeps it, and copies as much as `out` takes; nothing is locked meanwhile.
    fn request(&self, wanted: Wanted, out: &mut [u8]) -> Result<usize, read_at::Error> {
        let (range, is_beginning) = match wanted {
            Wanted::Beginning(range) => (range, true),
            Wanted::Window(range) => (range, false),
        };
        let len = range.end - range.start;
        if !is_beginning && len == out.len() as u64 {
            self.source.read_exact_at(range.start, out)?;
            return Ok(out.len());
        }
        let mut bytes = buffer(len)?;
        self.source.read_exact_at(range.start, &mut bytes)?;
        let copied = bytes.len().min(out.len());
        if let Some((out, bytes)) = out.get_mut(..copied).zip(bytes.get(..copied)) {
            out.copy_from_slice(bytes);
        }
        let mut held = self.held();
        if !is_beginning {
            (held.window, held.window_at) = (bytes, range.start);
            drop(held);
            self.windows.add(&self.held);
        } else if held.beginning.len() as u64 == range.start {
            held.beginning.extend_from_slice(&bytes);
        }
        Ok(copied)
    }
}

impl<S: ReadAt> ReadAt for Buffered<S> {
    fn total_len(&self) -> u64 {
        self.source.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        let total = self.total_len();
        check_range(offset, out.len(), total)?;
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let rest = out.get_mut(done..).unwrap_or_default();
            let mut held = self.held();
            let copied = held.copy(at, rest);
            if copied > 0 {
                done += copied;
                continue;
            }
            let wanted = held.wanted(at, rest.len() as u64, total);
            drop(held);
            done += self.request(wanted, rest)?;
        }
        Ok(())
    }
}

/// # Errors
///
/// [`ErrorKind::OutOfMemory`].
pub(crate) fn buffer(len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(len).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
    bytes.resize(reserved.ok_or(ErrorKind::OutOfMemory { len })?, 0);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_sources_have_a_window_at_most() {
        let windows = Windows::default();
        let sources: Vec<_> =
            (0..20).map(|_| Buffered::new(vec![7; 1 << 20], Vec::new(), windows.clone())).collect();
        for source in &sources {
            source.read_exact_at(500_000, &mut [0; 8]).unwrap();
        }
        let has_window = |source: &&Buffered<Vec<u8>>| !source.held().window.is_empty();
        assert_eq!(sources.iter().filter(has_window).count(), WINDOWS);
        // The ones that were read last; what another one had is read again.
        assert!(sources[12..].iter().all(|source| has_window(&source)));
        let mut out = [0; 8];
        sources[0].read_exact_at(500_000, &mut out).unwrap();
        assert_eq!(out, [7; 8]);
        assert!(has_window(&&sources[0]) && !has_window(&&sources[12]));
    }
}
