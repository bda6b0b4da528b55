//! A file over HTTP as a source.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::ops::Range;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use read_at::{ReadAt, check_range};

use crate::client::{Beginning, Client, Declared, Route};
use crate::error::{Error, ErrorKind};
use crate::pin::Pin;
use crate::plan::{BEGINNING_MAX, COPIED_AT_ONCE, ReadAhead, next_end, pieces};
use crate::url::Url;

/// Files of a client whose last piece read ahead stays in memory.
const WINDOWS: usize = 8;

/// One version of a file over HTTP. Threads can share it; at most 24 MiB of it are in memory.
///
/// The beginning is kept. Beyond it, a read at an arbitrary offset requests 64 KiB or what is asked for; a reader that goes on from
/// there causes longer requests, up to 8 MiB. Of many files of one client, the eight read last have such a piece.
#[derive(Debug)]
pub struct RemoteFile {
    client: Arc<Client>,
    route: Route,
    pin: Pin,
    declared: Declared,
    held: Arc<Mutex<Held>>,
}

/// The bytes in memory.
#[derive(Debug)]
pub(crate) struct Held {
    beginning: Vec<u8>,
    window: Vec<u8>,
    window_at: u64,
    ahead: ReadAhead,
}

/// The files whose windows are in memory, the one that was read last at the end.
#[derive(Debug, Default)]
pub(crate) struct Windows(Mutex<VecDeque<Weak<Mutex<Held>>>>);

impl Windows {
    /// Notes that a file has a new window: that of another one goes, if there are too many.
    fn add(&self, held: &Arc<Mutex<Held>>) {
        let own = Arc::downgrade(held);
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| !file.ptr_eq(&own));
        files.push_back(own);
        let oldest = if files.len() > WINDOWS { files.pop_front() } else { None };
        drop(files);
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

impl RemoteFile {
    pub(crate) fn new(client: Arc<Client>, route: Route, beginning: Beginning) -> Self {
        let Beginning { pin, bytes, declared } = beginning;
        let held = Held { beginning: bytes, window: Vec::new(), window_at: 0, ahead: ReadAhead::default() };
        Self { client, route, pin, declared, held: Arc::new(Mutex::new(held)) }
    }

    /// Where it was asked for; of a file of the hub, at its commit.
    #[must_use]
    pub const fn url(&self) -> &Url {
        self.route.origin()
    }

    /// SHA-256 of the content, in lower case, as the hub declares it for large files.
    #[must_use]
    pub fn sha256_declared(&self) -> Option<&str> {
        self.declared.sha256.as_deref()
    }

    /// The commit of the hub that it belongs to.
    #[must_use]
    pub fn commit(&self) -> Option<&str> {
        self.declared.commit.as_deref()
    }

    /// What tells this version of the file from others: its ETag, or its date; `None` if the server sent neither.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.pin.etag.as_deref().or(self.pin.modified.as_deref())
    }

    /// Compares a digest in lower-case hexadecimal digits with [`sha256_declared`](Self::sha256_declared).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Digest`]; none if nothing is declared.
    pub fn check_sha256(&self, found: &str) -> Result<(), Error> {
        match self.sha256_declared() {
            Some(expected) if expected != found => {
                Err(ErrorKind::Digest { expected: expected.to_owned(), found: found.to_owned() }.into())
            }
            _ => Ok(()),
        }
    }

    /// Reads a range with several requests at once, and passes it to `take` in order, in pieces of 4 MiB. At most twice as many pieces as
    /// requests are in memory.
    ///
    /// # Errors
    ///
    /// Those of reading and of `take`; what was passed before is the beginning of the range.
    pub fn read_in_order<E: From<Error>>(
        &self,
        range: Range<u64>,
        in_flight: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let pieces: Vec<_> = pieces(range, COPIED_AT_ONCE).collect();
        let in_flight = in_flight.clamp(1, pieces.len().max(1));
        thread::scope(|scope| {
            // Each thread has every n-th piece, and is one piece ahead at most.
            let threads = (0..in_flight).map(|first| {
                let (sender, receiver) = sync_channel(1);
                let pieces = pieces.iter().skip(first).step_by(in_flight);
                scope.spawn(move || {
                    for piece in pieces {
                        let read = self.read_range(piece.clone());
                        let is_end = read.is_err();
                        if sender.send(read).is_err() || is_end {
                            return;
                        }
                    }
                });
                receiver
            });
            let threads: Vec<_> = threads.collect();
            let in_turn = threads.iter().cycle().zip(&pieces);
            in_turn.filter_map(|(thread, _)| thread.recv().ok()).try_for_each(|read| take(&read?))
        })
    }

    fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = buffer(range.end - range.start)?;
        let have = self.held().copy(range.start, &mut bytes);
        let rest = bytes.get_mut(have..).unwrap_or_default();
        self.client.fetch(&self.route, &self.pin, range.start + have as u64, rest)?;
        Ok(bytes)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Bytes in it are those of the file, whatever happened to another thread.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests what is wanted, keeps it, and copies as much as `out` takes; nothing is locked meanwhile.
    fn request(&self, wanted: Wanted, out: &mut [u8]) -> Result<usize, Error> {
        let (range, is_beginning) = match wanted {
            Wanted::Beginning(range) => (range, true),
            Wanted::Window(range) => (range, false),
        };
        let len = range.end - range.start;
        if !is_beginning && len == out.len() as u64 {
            self.client.fetch(&self.route, &self.pin, range.start, out)?;
            return Ok(out.len());
        }
        let mut bytes = buffer(len)?;
        self.client.fetch(&self.route, &self.pin, range.start, &mut bytes)?;
        let copied = bytes.len().min(out.len());
        if let Some((out, bytes)) = out.get_mut(..copied).zip(bytes.get(..copied)) {
            out.copy_from_slice(bytes);
        }
        let mut held = self.held();
        if !is_beginning {
            (held.window, held.window_at) = (bytes, range.start);
            drop(held);
            self.client.windows.add(&self.held);
        } else if held.beginning.len() as u64 == range.start {
            held.beginning.extend_from_slice(&bytes);
        }
        Ok(copied)
    }
}

impl ReadAt for RemoteFile {
    fn total_len(&self) -> u64 {
        self.pin.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        check_range(offset, out.len(), self.pin.len)?;
        let mut done = 0;
        let mut is_hit = true;
        while done < out.len() {
            let at = offset + done as u64;
            let rest = out.get_mut(done..).unwrap_or_default();
            let mut held = self.held();
            let copied = held.copy(at, rest);
            if copied > 0 {
                done += copied;
                continue;
            }
            is_hit = false;
            let wanted = held.wanted(at, rest.len() as u64, self.pin.len);
            drop(held);
            done += self.request(wanted, rest)?;
        }
        if is_hit {
            self.client.counters.hit();
        }
        Ok(())
    }
}

fn buffer(len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(len).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
    bytes.resize(reserved.ok_or(ErrorKind::OutOfMemory { len })?, 0);
    Ok(bytes)
}
