//! A range in pieces, of which several are requested at once and which are taken in order.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use read_at::{Error, ReadAt as _, SharedSource};

use crate::buffered::buffer;
use crate::plan::{AHEAD_MAX, LONGEST, SHORTEST};

/// Requests at once, by default.
pub(crate) const AT_ONCE: usize = 8;

/// How many pieces are requested and kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a piece.
    pub(crate) len: u64,
    pub(crate) in_flight: usize,
    /// Pieces that were requested and not taken.
    pub(crate) kept: usize,
}

impl Limits {
    /// Those of reading ahead.
    pub(crate) const AHEAD: Self = Self { len: LONGEST, in_flight: AT_ONCE, kept: AT_ONCE };
}

/// The pieces of the files of one client: each file that is read has its share of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool(Arc<Pooled>);

#[derive(Debug, Default)]
struct Pooled {
    pieces: AtomicUsize,
    /// Pieces that were taken so far.
    taken: AtomicU64,
    files: Mutex<Vec<Weak<Shared>>>,
}

/// A file of which nothing was taken while so many pieces of others were gives its pieces back.
const LEFT: u64 = 16;

impl Pool {
    fn add(&self, file: &Arc<Shared>) {
        let mut files = self.0.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(file));
    }

    /// How many files are read; those that were left are stopped.
    fn n_read(&self) -> usize {
        let files = self.0.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files: Vec<_> = files.iter().filter_map(Weak::upgrade).collect();
        let now = self.0.taken.load(Ordering::Relaxed);
        let is_read = |file: &&Arc<Shared>| {
            let is_left = now.saturating_sub(file.last.load(Ordering::Relaxed)) > LEFT;
            if is_left {
                // Another thread that has it reads it.
                if let Ok(mut state) = file.state.try_lock() {
                    file.stop(&mut state);
                }
            }
            file.is_read.load(Ordering::Relaxed)
        };
        files.iter().filter(is_read).count()
    }

    fn count(&self) -> Arc<Counted> {
        self.0.pieces.fetch_add(1, Ordering::Relaxed);
        Arc::new(Counted(self.clone()))
    }
}

/// A piece that the pool counts while it is requested, or waits for its reader.
#[derive(Debug)]
struct Counted(Pool);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.pieces.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How far the pieces reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To the end of the range.
    Exact,
    /// Beyond it, by twice of what the reader has read without a gap, up to 64 MiB.
    Growing {
        /// Bytes that it has read before the range.
        run: u64,
    },
}

/// Pieces that threads request, until this is dropped: the requests that were sent then end by themselves.
#[derive(Debug)]
pub(crate) struct Pieces(Arc<Shared>);

impl Drop for Pieces {
    fn drop(&mut self) {
        self.0.stop(&mut self.0.state());
    }
}

/// What the reader and the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    source: Arc<dyn SharedSource>,
    limits: Limits,
    pool: Pool,
    state: Mutex<State>,
    /// Whether something is requested, or waits for its reader.
    is_read: AtomicBool,
    /// How many pieces the pool had given when one was last taken from here.
    last: AtomicU64,
}

#[derive(Debug)]
struct State {
    start: u64,
    /// The first byte that was not requested.
    next: u64,
    end: u64,
    reach: Reach,
    /// In order; the first is taken next.
    slots: VecDeque<Slot>,
    threads: usize,
    is_stopped: bool,
}

/// A piece that was requested.
#[derive(Debug)]
struct Slot {
    range: Range<u64>,
    bytes: Receiver<Result<Vec<u8>, Error>>,
    counted: Arc<Counted>,
}

/// A piece that a thread requests.
struct Job {
    range: Range<u64>,
    to: SyncSender<Result<Vec<u8>, Error>>,
    counted: Arc<Counted>,
}

impl Pieces {
    /// Begins to request a range.
    pub(crate) fn begin(
        source: Arc<dyn SharedSource>,
        range: Range<u64>,
        reach: Reach,
        limits: Limits,
        pool: &Pool,
    ) -> Self {
        let Range { start, end } = range;
        let state =
            State { start, next: start, end, reach, slots: VecDeque::new(), threads: 0, is_stopped: false };
        let shared = Arc::new(Shared {
            source,
            limits,
            pool: pool.clone(),
            state: Mutex::new(state),
            is_read: AtomicBool::new(false),
            last: AtomicU64::new(pool.0.taken.load(Ordering::Relaxed)),
        });
        pool.add(&shared);
        shared.request(&mut shared.state());
        Self(shared)
    }

    /// To take pieces while this is locked.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, state: &mut State) {
        state.is_stopped = true;
        state.slots = VecDeque::new();
        self.is_read.store(false, Ordering::Relaxed);
    }

    /// Says that the reader goes on with a range, if it begins where the pieces end.
    pub(crate) fn go_on(self: &Arc<Self>, range: &Range<u64>) -> bool {
        let mut state = self.state();
        let first = state.slots.front().map_or(state.next, |slot| slot.range.start);
        let is_next = first <= range.start && range.start <= state.end.saturating_add(SHORTEST);
        if !is_next || state.is_stopped {
            return false;
        }
        if state.reach == Reach::Exact && range.end > state.end {
            state.reach = Reach::Growing { run: state.end - state.start };
        }
        state.end = state.end.max(range.end);
        self.request(&mut state);
        true
    }

    /// The piece with the byte at `at`, where it begins; `None` if it is not among them. Pieces before it are dropped.
    pub(crate) fn take(self: &Arc<Self>, at: u64) -> Option<(u64, Result<Vec<u8>, Error>)> {
        let mut state = self.state();
        if state.is_stopped || at >= state.end {
            return None;
        }
        if state.slots.front().map_or(state.next, |slot| slot.range.start) > at {
            return None;
        }
        while state.slots.front().is_some_and(|slot| slot.range.end <= at) {
            state.slots.pop_front();
        }
        if state.slots.is_empty() {
            state.next = state.next.max(at);
            self.request(&mut state);
        }
        let Slot { range, bytes, counted } = state.slots.pop_front()?;
        if let Reach::Growing { run } = &mut state.reach {
            let ahead = run.saturating_mul(2).min(AHEAD_MAX);
            *run = run.saturating_add(range.end - range.start);
            state.end = state.end.max(range.end.saturating_add(ahead).min(self.source.total_len()));
        }
        let taken = self.pool.0.taken.fetch_add(1, Ordering::Relaxed);
        self.last.store(taken, Ordering::Relaxed);
        // It is the reader's own from here on.
        drop(counted);
        self.request(&mut state);
        if state.slots.is_empty() {
            self.is_read.store(false, Ordering::Relaxed);
        }
        drop(state);
        // None if the thread has ended without an answer.
        Some((range.start, bytes.recv().ok()?))
    }

    /// Starts threads for what can be requested now.
    fn request(self: &Arc<Self>, state: &mut State) {
        while state.threads < self.limits.in_flight {
            let Some(job) = self.claim(state) else { return };
            let shared = Arc::clone(self);
            let started = thread::Builder::new().name("apr-remote".into()).spawn(move || shared.work(job));
            if started.is_err() {
                // The reader finds none, and requests it itself.
                let slot = state.slots.pop_back();
                state.next = slot.map_or(state.next, |slot| slot.range.start);
                return;
            }
            state.threads += 1;
        }
    }

    /// The next piece, if there is space for one.
    fn claim(&self, state: &mut State) -> Option<Job> {
        let left = state.end.saturating_sub(state.next);
        if state.is_stopped || left == 0 {
            return None;
        }
        if !state.slots.is_empty() {
            let share = (self.limits.kept / self.pool.n_read().max(1)).max(1);
            let is_full = self.pool.0.pieces.load(Ordering::Relaxed) >= self.limits.kept;
            // What a growing range has beyond whole pieces grows before it is requested.
            let is_part =
                state.reach != Reach::Exact && left < self.limits.len && state.end < self.source.total_len();
            if state.slots.len() >= share || is_full || is_part {
                return None;
            }
        }
        // The rest is not worth a request.
        let len = if left < self.limits.len + SHORTEST { left } else { self.limits.len };
        let range = state.next..state.next + len;
        state.next = range.end;
        self.is_read.store(true, Ordering::Relaxed);
        let ((to, bytes), counted) = (sync_channel(1), self.pool.count());
        state.slots.push_back(Slot { range: range.clone(), bytes, counted: Arc::clone(&counted) });
        Some(Job { range, to, counted })
    }

    /// Requests pieces until there is none.
    fn work(&self, mut job: Job) {
        loop {
            let Job { range, to, counted } = job;
            let read = self.read(&range);
            let is_end = read.is_err();
            // No one waits for what was skipped.
            let _ = to.send(read);
            drop(counted);
            let mut state = self.state();
            if is_end {
                state.end = state.next;
                state.reach = Reach::Exact;
            }
            match self.claim(&mut state) {
                Some(next) => job = next,
                None => {
                    state.threads -= 1;
                    return;
                }
            }
        }
    }

    fn read(&self, range: &Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = buffer(range.end - range.start)?;
        self.source.read_exact_at(range.start, &mut bytes)?;
        Ok(bytes)
    }
}

/// Passes a range to `take` in order, in the pieces in which it is requested.
///
/// # Errors
///
/// Those of the source and of `take`; what was passed before is the beginning of the range.
pub(crate) fn in_order<E: From<Error>>(
    source: Arc<dyn SharedSource>,
    range: Range<u64>,
    limits: Limits,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = range.start;
    let pieces = Pieces::begin(Arc::clone(&source), range.clone(), Reach::Exact, limits, &Pool::default());
    while at < range.end {
        let bytes = match pieces.0.take(at) {
            Some((_, bytes)) => bytes?,
            // No thread could be started.
            None => pieces.0.read(&(at..range.end.min(at + limits.len)))?,
        };
        take(&bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}
