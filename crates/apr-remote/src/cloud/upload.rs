//! Objects that are written as a stream.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::{fmt, mem};
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutMode, PutPayload};

use super::connector::AnswerLost;
use super::{Store, path};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::object::{ObjectPath, Protocol, Replace};

/// Bytes of a part at least.
const PART_LEN: u64 = 8 << 20;
/// Bytes of a part at most, where the length of the object is not known before.
const PART_LEN_MAX: u64 = 64 << 20;
/// Parts of an object at most, and how many of them have one length where the length of the object is not known.
const PARTS_MAX: u64 = 10_000;
const PARTS_OF_LEN: u64 = 1_000;
/// Parts that are sent at once.
const AT_ONCE: usize = 4;

/// An object that is being written. It appears when [`finish`](Self::finish) succeeds, as a whole; when this is dropped before, nothing does.
///
/// At most 5 parts of 8 MiB are in memory, of objects of more than 78 GiB longer ones: 4 are sent at once.
pub struct Upload {
    store: Arc<Store>,
    path: Path,
    replace: Replace,
    /// Bytes of the object, if they are known.
    expected: Option<u64>,
    written: u64,
    /// What was written last.
    part: Vec<u8>,
    sent: Vec<PartId>,
    sending: VecDeque<JoinHandle<Result<PartId, Error>>>,
    /// Whether something of it is missing.
    is_broken: bool,
    aborter: Aborter,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected, written, .. } = self;
        let mut shown = f.debug_struct("Upload");
        shown.field("path", path).field("expected", expected).field("written", written);
        shown.finish_non_exhaustive()
    }
}

/// Aborts an upload, from any thread.
#[derive(Clone, Debug)]
pub struct Aborter {
    store: Arc<Store>,
    path: Path,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Of an upload that has begun and is not completed.
    id: Option<String>,
    is_aborted: bool,
}

impl Aborter {
    /// The parts that were sent are dropped by the store. An upload that is complete, or was never begun, is left as it is.
    pub fn abort(&self) {
        let id = {
            let mut state = self.state();
            state.is_aborted = true;
            state.id.take()
        };
        if let Some(id) = id {
            self.drop_parts(&id);
        }
    }

    fn drop_parts(&self, id: &String) {
        // The store drops them by a rule of the bucket, if not now.
        let _ = self.store.wait(self.store.parts.abort_multipart(&self.path, id));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the upload, unless it was aborted meanwhile.
    fn begin(&self) -> Result<String, Error> {
        let id = self.store.wait(self.store.parts.create_multipart(&self.path))?;
        let mut state = self.state();
        if state.is_aborted {
            drop(state);
            self.drop_parts(&id);
            return Err(ErrorKind::NotFound { host: self.store.bucket.clone() }.into());
        }
        state.id = Some(id.clone());
        Ok(id)
    }
}

impl Client {
    /// Begins an object. `len` is its length, if it is known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exists`], [`ErrorKind::ObjectLimit`], and those of [`object_len`](Self::object_len).
    pub fn upload(&self, object: &ObjectPath, replace: Replace, len: Option<u64>) -> Result<Upload, Error> {
        let store = self.store(object, replace)?;
        let path = path(object)?;
        if len.is_some_and(|len| len > PARTS_MAX * PART_LEN_MAX) {
            return Err(ErrorKind::ObjectLimit { limit: PARTS_MAX * PART_LEN_MAX }.into());
        }
        // Also with Replace::Always: whether the bucket is there is known before anything is computed.
        if store.len(&path)?.is_some() && replace == Replace::Never {
            return Err(ErrorKind::Exists.into());
        }
        let aborter = Aborter { store: Arc::clone(&store), path: path.clone(), state: Arc::default() };
        Ok(Upload {
            store,
            path,
            replace,
            expected: len,
            written: 0,
            part: Vec::new(),
            sent: Vec::new(),
            sending: VecDeque::new(),
            is_broken: false,
            aborter,
        })
    }
}

/// Bytes of the part of this number.
fn part_len(expected: Option<u64>, idx: u64) -> u64 {
    match expected {
        // All the same: there are stores that want it so.
        Some(len) => len.div_ceil(PARTS_MAX).next_multiple_of(1 << 20).max(PART_LEN),
        None => (PART_LEN << (idx / PARTS_OF_LEN).min(8)).min(PART_LEN_MAX),
    }
}

impl Upload {
    /// What ends it early.
    #[must_use]
    pub fn aborter(&self) -> Aborter {
        self.aborter.clone()
    }

    fn n_parts(&self) -> u64 {
        (self.sent.len() + self.sending.len()) as u64
    }

    /// Sends the part on a thread of its own, once there are few enough of them.
    fn send_part(&mut self) -> Result<(), Error> {
        let idx = self.n_parts();
        if idx >= PARTS_MAX {
            return Err(ErrorKind::ObjectLimit { limit: self.written }.into());
        }
        let begun = self.aborter.state().id.clone();
        let id = match begun {
            Some(id) => id,
            None if idx > 0 => return Err(ErrorKind::NotFound { host: self.store.bucket.clone() }.into()),
            None => self.aborter.begin()?,
        };
        if self.sending.len() >= AT_ONCE {
            self.join_first()?;
        }
        let payload = PutPayload::from(mem::take(&mut self.part));
        let (store, path) = (Arc::clone(&self.store), self.path.clone());
        let send = move || store.wait(store.parts.put_part(&path, &id, idx as usize, payload));
        let thread = thread::Builder::new().name("upload".to_owned()).spawn(send);
        self.sending.push_back(thread.map_err(no_thread)?);
        Ok(())
    }

    /// Waits for the part that has been sent for the longest time.
    fn join_first(&mut self) -> Result<(), Error> {
        let Some(thread) = self.sending.pop_front() else { return Ok(()) };
        let part = thread.join().map_err(|_| no_thread(io::Error::other("it has panicked")))?;
        self.sent.push(part?);
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let wanted = part_len(self.expected, self.n_parts());
        if self.part.len() as u64 >= wanted {
            self.send_part()?;
        }
        let wanted = part_len(self.expected, self.n_parts()) as usize;
        if self.part.capacity() == 0 {
            let no_memory = |_| Error::from(ErrorKind::OutOfMemory { len: wanted as u64 });
            // What is short is not made long.
            let first = if self.written == 0 { bytes.len().min(wanted) } else { wanted };
            self.part.try_reserve(first).map_err(no_memory)?;
        }
        let taken = bytes.get(..wanted.saturating_sub(self.part.len()).min(bytes.len())).unwrap_or_default();
        self.part.extend_from_slice(taken);
        self.written += taken.len() as u64;
        Ok(taken.len())
    }

    /// Completes the object, and gives its length, which the store has confirmed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exists`] if there is one in the meantime, [`ErrorKind::Uploaded`], and those of requests.
    pub fn finish(mut self) -> Result<u64, Error> {
        if self.is_broken {
            return Err(ErrorKind::NotFound { host: self.store.bucket.clone() }.into());
        }
        if let Some(expected) = self.expected.filter(|expected| *expected != self.written) {
            return Err(of_len(expected, self.written));
        }
        if self.n_parts() == 0 {
            let mode = match self.replace {
                Replace::Never => PutMode::Create,
                Replace::Always => PutMode::Overwrite,
            };
            let payload = PutPayload::from(mem::take(&mut self.part));
            let put = self.store.objects.put_opts(&self.path, payload.clone(), mode.into());
            match self.store.wait(put) {
                // An earlier try has stored it.
                Err(error) if is_answer_lost(&error) && self.is_stored(&payload) => {}
                put => drop(put?),
            }
        } else {
            self.send_part()?;
            while !self.sending.is_empty() {
                self.join_first()?;
            }
            self.complete()?;
        }
        match self.store.len(&self.path)? {
            Some(len) if len == self.written => Ok(len),
            found => Err(of_len(self.written, found.unwrap_or(0))),
        }
    }

    /// Whether the object has these bytes.
    fn is_stored(&self, payload: &PutPayload) -> bool {
        let read = self.store.wait(async { self.store.objects.get(&self.path).await?.bytes().await });
        read.is_ok_and(|bytes| payload.iter().flatten().eq(bytes.iter()))
    }

    fn complete(&mut self) -> Result<(), Error> {
        let is_checked = self.replace == Replace::Never && self.store.protocol != Protocol::S3;
        if is_checked && self.store.len(&self.path)?.is_some() {
            return Err(ErrorKind::Exists.into());
        }
        let gone = || Error::from(ErrorKind::NotFound { host: self.store.bucket.clone() });
        // From here on the object is there or not, whatever ends the program.
        let id = self.aborter.state().id.take().ok_or_else(gone)?;
        let parts = mem::take(&mut self.sent);
        let done = self.store.wait(self.store.parts.complete_multipart(&self.path, &id, parts));
        let Err(error) = done else { return Ok(()) };
        self.aborter.state().id = Some(id);
        let is_unclear = is_answer_lost(&error);
        let again = || ErrorKind::GaveUp { host: self.store.bucket.clone(), tries: 1 };
        let kind = match (self.replace, error.kind()) {
            (Replace::Never, ErrorKind::NotFound { .. }) if is_unclear => ErrorKind::Exists,
            (Replace::Always, ErrorKind::NotFound { .. }) if is_unclear => again(),
            // Azure drops the parts of an upload when another one is completed: of an object that may be replaced, that is no answer.
            (Replace::Always, ErrorKind::Exists) => again(),
            _ => return Err(error),
        };
        Err(if is_unclear { Error::caused(kind, AnswerLost) } else { kind.into() })
    }
}

fn is_answer_lost(error: &Error) -> bool {
    matches!(core::error::Error::source(error), Some(cause) if cause.is::<AnswerLost>())
}

fn of_len(expected: u64, found: u64) -> Error {
    ErrorKind::Uploaded { expected, found }.into()
}

fn no_thread(error: io::Error) -> Error {
    Error::caused(ErrorKind::OutOfMemory { len: PART_LEN }, error)
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let added = self.add(bytes);
        self.is_broken |= added.is_err();
        added.map_err(io::Error::other)
    }

    /// Parts are sent when they are full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Parts that arrive after the end of an upload may stay.
        for thread in self.sending.drain(..) {
            let _ = thread.join();
        }
        self.aborter.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_parts_are_enough() {
        for len in [0, 1, PART_LEN, PARTS_MAX * PART_LEN, PARTS_MAX * PART_LEN + 1, PARTS_MAX * PART_LEN_MAX]
        {
            let part = part_len(Some(len), 0);
            assert!(len.div_ceil(part) <= PARTS_MAX && (PART_LEN..=PART_LEN_MAX).contains(&part), "{len}");
        }
        assert_eq!(part_len(None, 0), PART_LEN);
        assert_eq!(part_len(None, 2_500), 4 * PART_LEN);
        assert_eq!(part_len(None, PARTS_MAX - 1), PART_LEN_MAX);
        let most: u64 = (0..PARTS_MAX).map(|idx| part_len(None, idx)).sum();
        assert!(most > 400 << 30);
    }
}
