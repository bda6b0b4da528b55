//! A source whose reads are expensive, read in few and long pieces.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use read_at::{ReadAt, SharedSource, check_range};

use crate::error::{Error, ErrorKind};
use crate::pieces::{self, Limits, Pieces, Pool, Reach};
use crate::plan::{HINTED_MIN, LONGEST, Planned, ReadAhead, first_read, next_end};

/// Keeps the beginning of a source, and reads ahead beyond it. Threads can share it; at most 24 MiB of the source are in memory.
///
/// A read at an arbitrary offset requests 64 KiB or what is asked for; a reader that goes on from there causes longer requests, up to
/// 8 MiB, one after the other. Files over HTTP are read by several requests at once, see [`RemoteFile`](crate::RemoteFile).
#[derive(Debug)]
pub struct Buffered<S> {
    source: Arc<S>,
    held: Arc<Mutex<Held>>,
    /// Of a source of which several ranges can be read at once.
    shared: Option<Together>,
}

/// What the files of one client share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Together {
    windows: Windows,
    pool: Pool,
}

/// The bytes in memory.
#[derive(Debug)]
pub(crate) struct Held {
    beginning: Vec<u8>,
    window: Vec<u8>,
    window_at: u64,
    ahead: ReadAhead,
    /// What is requested ahead, and the piece that was taken last.
    pieces: Option<Pieces>,
    piece: Vec<u8>,
    piece_at: u64,
    /// Short ranges that were read last, in places far from each other, such as hashes of a tree.
    short: VecDeque<(u64, Vec<u8>)>,
    /// Short ranges that will be read: not more than these is requested.
    exact: VecDeque<Range<u64>>,
}

/// Bytes of a short range at most.
const SHORT_LEN: u64 = 128 << 10;
/// Short ranges that are kept, and such ranges that will be read.
const SHORT_MAX: usize = 16;
const EXACT_MAX: usize = 64;

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
            let mut oldest = oldest.lock().unwrap_or_else(PoisonError::into_inner);
            (oldest.window, oldest.piece, oldest.pieces) = (Vec::new(), Vec::new(), None);
            oldest.short.clear();
        }
    }
}

/// What has to be requested.
enum Wanted {
    /// The rest of a header whose length is not known.
    Beginning(Range<u64>),
    Window(Planned),
}

/// Copies what `bytes`, which begin at `at`, have from `offset` on.
fn copied(bytes: &[u8], at: u64, offset: u64, out: &mut [u8]) -> Option<usize> {
    let rest = offset.checked_sub(at).and_then(|skip| bytes.get(usize::try_from(skip).ok()?..))?;
    let len = rest.len().min(out.len());
    out.get_mut(..len)?.copy_from_slice(rest.get(..len)?);
    Some(len).filter(|len| *len > 0)
}

impl Held {
    /// What is here, and where it begins.
    fn parts(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let long: [(&[u8], u64); 3] =
            [(&self.beginning, 0), (&self.piece, self.piece_at), (&self.window, self.window_at)];
        long.into_iter().chain(self.short.iter().map(|(at, bytes)| (bytes.as_slice(), *at)))
    }

    /// Copies what is here of the bytes from `offset` on, and says how many.
    fn copy(&self, offset: u64, out: &mut [u8]) -> usize {
        self.parts().find_map(|(bytes, at)| copied(bytes, at, offset, out)).unwrap_or(0)
    }

    /// The first byte from `offset` on that is not here.
    fn end_from(&self, mut offset: u64) -> u64 {
        for (bytes, at) in self.parts() {
            let end = at.saturating_add(bytes.len() as u64);
            if (at..end).contains(&offset) {
                offset = end;
            }
        }
        offset
    }

    fn wanted(&mut self, offset: u64, len: u64, total: u64) -> Wanted {
        let end = next_end(&self.beginning, offset.saturating_add(len), total);
        if let Some(end) = end.filter(|_| offset == self.beginning.len() as u64) {
            return Wanted::Beginning(offset..end);
        }
        let exact = self.exact.iter().position(|range| range.contains(&offset) && range.end - offset >= len);
        if let Some(range) = exact.and_then(|idx| self.exact.remove(idx)) {
            return Wanted::Window(Planned { range, run: 0 });
        }
        Wanted::Window(self.ahead.plan(offset, len, total))
    }
}

impl<S: SharedSource + 'static> Buffered<S> {
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
        Ok(Self::new(source, beginning, None))
    }

    /// `shared` for a source of which several ranges are requested at once.
    pub(crate) fn new(source: S, beginning: Vec<u8>, shared: Option<Together>) -> Self {
        let held = Held {
            beginning,
            window: Vec::new(),
            window_at: 0,
            ahead: ReadAhead::new(),
            pieces: None,
            piece: Vec::new(),
            piece_at: 0,
            short: VecDeque::new(),
            exact: VecDeque::new(),
        };
        Self { source: Arc::new(source), held: Arc::new(Mutex::new(held)), shared }
    }

    pub(crate) const fn source(&self) -> &Arc<S> {
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

    fn pieces(&self, range: Range<u64>, reach: Reach, pool: &Pool) -> Pieces {
        Pieces::begin(Arc::<S>::clone(&self.source), range, reach, Limits::AHEAD, pool)
    }

    /// Begins to request several pieces at once, if so much is wanted, or a reader has gone on for so long.
    fn begin(&self, wanted: &Wanted, len: u64) -> Option<Arc<pieces::Shared>> {
        let (Wanted::Window(planned), Some(Together { pool, .. })) = (wanted, &self.shared) else {
            return None;
        };
        let total = self.source.total_len();
        let pieces = match (planned.is_run(), len > LONGEST) {
            (true, _) => self.pieces(planned.ahead(total), Reach::Growing { run: planned.run }, pool),
            (false, true) => self.pieces(planned.range.clone(), Reach::Exact, pool),
            (false, false) => return None,
        };
        let shared = pieces.shared();
        self.held().pieces = Some(pieces);
        Some(shared)
    }

    /// Takes the piece with the byte at `at` from those that are requested ahead, keeps it, and copies as much as `out` takes. `None` if it
    /// is not among them.
    fn take(
        &self,
        pieces: &Arc<pieces::Shared>,
        at: u64,
        out: &mut [u8],
    ) -> Option<Result<usize, read_at::Error>> {
        let (start, bytes) = pieces.take(at)?;
        let mut held = self.held();
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                held.pieces = None;
                return Some(Err(error));
            }
        };
        let len = copied(&bytes, start, at, out)?;
        (held.piece, held.piece_at) = (bytes, start);
        drop(held);
        self.note_use();
        Some(Ok(len))
    }

    /// Others that have read before give their bytes back.
    fn note_use(&self) {
        if let Some(Together { windows, .. }) = &self.shared {
            windows.add(&self.held);
        }
    }

    /// Requests what is wanted, keeps it, and copies as much as `out` takes of the bytes from `at` on, which are among it; nothing is locked
    /// meanwhile.
    fn request(&self, wanted: Wanted, at: u64, out: &mut [u8]) -> Result<usize, read_at::Error> {
        let (range, is_beginning) = match wanted {
            Wanted::Beginning(range) => (range, true),
            Wanted::Window(planned) => (planned.range, false),
        };
        let len = range.end - range.start;
        if !is_beginning && range.start == at && len == out.len() as u64 && len > SHORT_LEN {
            self.source.read_exact_at(range.start, out)?;
            return Ok(out.len());
        }
        let mut bytes = buffer(len)?;
        self.source.read_exact_at(range.start, &mut bytes)?;
        let copied = copied(&bytes, range.start, at, out).unwrap_or(0);
        let mut held = self.held();
        if !is_beginning {
            if len > SHORT_LEN {
                (held.window, held.window_at) = (bytes, range.start);
            } else {
                held.short.push_front((range.start, bytes));
                held.short.truncate(SHORT_MAX);
            }
            drop(held);
            self.note_use();
        } else if held.beginning.len() as u64 == range.start {
            held.beginning.extend_from_slice(&bytes);
        }
        Ok(copied)
    }
}

impl<S: SharedSource + 'static> ReadAt for Buffered<S> {
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
            let held = self.held();
            let copied = held.copy(at, rest);
            if copied > 0 {
                done += copied;
                continue;
            }
            let pieces = held.pieces.as_ref().map(Pieces::shared);
            drop(held);
            if let Some(taken) = pieces.and_then(|pieces| self.take(&pieces, at, rest)) {
                done += taken?;
                continue;
            }
            let wanted = self.held().wanted(at, rest.len() as u64, total);
            let pieces = self.begin(&wanted, rest.len() as u64);
            done += match pieces.and_then(|pieces| self.take(&pieces, at, rest)) {
                Some(taken) => taken?,
                None => self.request(wanted, at, rest)?,
            };
        }
        Ok(())
    }

    fn will_read(&self, range: Range<u64>) {
        let Some(Together { pool, .. }) = &self.shared else { return };
        let mut held = self.held();
        let start = held.end_from(range.start);
        let mut range = start..range.end.min(self.total_len());
        if range.is_empty() || held.pieces.as_ref().is_some_and(|pieces| pieces.shared().go_on(&range)) {
            return;
        }
        if range.end - range.start < HINTED_MIN {
            // Ranges that touch each other are one request.
            held.exact.retain(|other| {
                let both = other.start.min(range.start)..other.end.max(range.end);
                let is_one = other.start <= range.end
                    && range.start <= other.end
                    && both.end - both.start < HINTED_MIN;
                if is_one {
                    range = both;
                }
                !is_one
            });
            held.exact.push_front(range);
            held.exact.truncate(EXACT_MAX);
        } else {
            held.pieces = Some(self.pieces(range, Reach::Exact, pool));
        }
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
mod tests;
