//! A file over HTTP as a source.

use alloc::sync::Arc;
use core::ops::Range;
use std::sync::mpsc::sync_channel;
use std::thread;

use read_at::{ReadAt, check_range};

use crate::buffered::{Buffered, buffer};
use crate::client::{Beginning, Client, Declared, Route};
use crate::error::{Error, ErrorKind};
use crate::pin::Pin;
use crate::plan::{COPIED_AT_ONCE, pieces};
use crate::url::Url;

/// One version of a file over HTTP. Threads can share it; at most 24 MiB of it are in memory, as [`Buffered`] keeps them.
#[derive(Debug)]
pub struct RemoteFile {
    bytes: Buffered<Pinned>,
}

/// The requests for one version of a file.
#[derive(Debug)]
struct Pinned {
    client: Arc<Client>,
    route: Route,
    pin: Pin,
    declared: Declared,
}

impl ReadAt for Pinned {
    fn total_len(&self) -> u64 {
        self.pin.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        Ok(self.client.fetch(&self.route, &self.pin, offset, out)?)
    }
}

impl RemoteFile {
    pub(crate) fn new(client: Arc<Client>, route: Route, beginning: Beginning) -> Self {
        let Beginning { pin, bytes, declared } = beginning;
        let windows = client.windows.clone();
        Self { bytes: Buffered::new(Pinned { client, route, pin, declared }, bytes, windows) }
    }

    const fn pinned(&self) -> &Pinned {
        self.bytes.source()
    }

    /// Where it was asked for; of a file of the hub, at its commit.
    #[must_use]
    pub const fn url(&self) -> &Url {
        self.pinned().route.origin()
    }

    /// SHA-256 of the content, in lower case, as the hub declares it for large files.
    #[must_use]
    pub fn sha256_declared(&self) -> Option<&str> {
        self.pinned().declared.sha256.as_deref()
    }

    /// The commit of the hub that it belongs to.
    #[must_use]
    pub fn commit(&self) -> Option<&str> {
        self.pinned().declared.commit.as_deref()
    }

    /// What tells this version of the file from others: its ETag, or its date; `None` if the server sent neither.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.pinned().pin.etag.as_deref().or(self.pinned().pin.modified.as_deref())
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
        let have = self.bytes.copy(range.start, &mut bytes);
        let rest = bytes.get_mut(have..).unwrap_or_default();
        let Pinned { client, route, pin, .. } = self.pinned();
        client.fetch(route, pin, range.start + have as u64, rest)?;
        Ok(bytes)
    }

    /// Fills `out` with the bytes at `offset` if no request is needed for them; what is in it is unspecified otherwise.
    #[must_use]
    pub fn read_held(&self, offset: u64, out: &mut [u8]) -> bool {
        let is_held = self.bytes.read_held(offset, out);
        if is_held {
            self.pinned().client.counters.hit();
        }
        is_held
    }
}

impl ReadAt for RemoteFile {
    fn total_len(&self) -> u64 {
        self.pinned().pin.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        check_range(offset, out.len(), self.total_len())?;
        if self.read_held(offset, out) {
            return Ok(());
        }
        self.bytes.read_exact_at(offset, out)
    }
}
