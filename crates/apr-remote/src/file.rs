//! A file over HTTP as a source.

use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use read_at::{ReadAt, SharedSource, check_range};

use crate::blocks::Blocks;
use crate::buffered::Buffered;
use crate::cache::Cached;
use crate::client::{Client, Network, Route};
use crate::declared::Declared;
use crate::error::{Error, ErrorKind};
use crate::hub::HubPath;
use crate::open::{Beginning, Origin};
use crate::pieces::{Limits, in_order};
use crate::pin::Version;
use crate::place::Place;
use crate::plan::COPIED_AT_ONCE;
use crate::url::Url;

/// Bytes of the beginning that are passed on at once.
const HELD_LEN: usize = 1 << 20;

/// One version of a file over HTTP, or of the hub's cache. Threads can share it.
///
/// The beginning (16 MiB at most) is kept, as by [`Buffered`]. A reader that goes on, reads more than 8 MiB, or says what it
/// [will read](ReadAt::will_read) is served by pieces of 8 MiB, of which 8 are requested at once, in order; the files of one client have 8
/// pieces together, and one more each if there are several files. Of the eight files read last, the piece and the range that were read last
/// are kept too: 24 MiB, and 64 MiB of what is requested ahead.
#[derive(Debug)]
pub struct RemoteFile {
    client: Arc<Client>,
    /// Of a file of the hub, at its commit.
    place: Place,
    declared: Declared,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Requested(Buffered<Pinned>),
    Cached(InCache),
}

/// A file that the hub's own programs have downloaded.
#[derive(Debug)]
struct InCache {
    file: Arc<Cached>,
    /// Where it would be asked for.
    url: Url,
    /// Whether the hub was asked about it.
    is_asked: bool,
}

/// The requests for one version of a file.
#[derive(Debug)]
struct Pinned {
    client: Arc<Client>,
    route: Route,
    version: Version,
    /// Those in the block cache, if it is in use.
    blocks: Option<Blocks>,
    /// Whether it is copied to another place, so that blocks are not kept too.
    is_copied: AtomicBool,
}

impl Pinned {
    fn fetch(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let fetched = self.client.fetch(&self.route, &self.version, offset, out);
        if let (Some(blocks), Err(ErrorKind::Changed)) = (&self.blocks, fetched.as_ref().map_err(Error::kind))
        {
            blocks.forget();
        }
        fetched
    }
}

impl ReadAt for Pinned {
    fn total_len(&self) -> u64 {
        self.version.pin().len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        let Some(blocks) = &self.blocks else { return Ok(self.fetch(offset, out)?) };
        let missing = blocks.copy(offset, out);
        let at = offset + missing.start as u64;
        let rest = out.get_mut(missing).unwrap_or_default();
        if !rest.is_empty() {
            self.fetch(at, rest)?;
            if !self.is_copied.load(Ordering::Relaxed) {
                blocks.keep(at, rest);
            }
        }
        Ok(())
    }
}

impl RemoteFile {
    pub(crate) fn new(client: Arc<Client>, route: Route, beginning: Beginning, place: Place) -> Self {
        let asked = match beginning.origin {
            Origin::Ranges => client.keep(&place, &route, &beginning),
            _ => None,
        };
        let Beginning { pin, bytes, declared, origin } = beginning;
        let (version, blocks) = match origin {
            Origin::Ranges | Origin::Whole => (Version::seen(pin), asked),
            Origin::Unchanged(blocks) => (Version::seen(pin), Some(blocks)),
            Origin::Recorded(blocks) => (Version::recorded(pin), Some(blocks)),
        };
        let together = client.together.clone();
        let is_copied = AtomicBool::new(false);
        let pinned = Pinned { client: Arc::clone(&client), route, version, blocks, is_copied };
        Self {
            client,
            place,
            declared,
            bytes: Bytes::Requested(Buffered::new(pinned, bytes, Some(together))),
        }
    }

    /// A file of the cache; `declared` is the answer of the hub, if it was asked.
    pub(crate) fn cached(
        client: Arc<Client>,
        hub: HubPath,
        url: Url,
        file: Cached,
        declared: Option<Declared>,
    ) -> Self {
        client.counters.cached();
        let is_asked = declared.is_some();
        let declared = declared.unwrap_or_else(|| Declared {
            commit: hub.commit().map(str::to_owned),
            sha256: file.sha256_by_name().map(str::to_owned),
            size: None,
        });
        let bytes = Bytes::Cached(InCache { file: Arc::new(file), url, is_asked });
        Self { client, place: Place::Hub(hub), declared, bytes }
    }

    /// Where it was asked for, or would be; of a file of the hub, at its commit.
    #[must_use]
    pub fn url(&self) -> &Url {
        match &self.bytes {
            Bytes::Requested(bytes) => bytes.source().route.origin(),
            Bytes::Cached(cached) => &cached.url,
        }
    }

    /// What it is; of the hub, at its commit.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Its URL as messages show it: of an object `s3://BUCKET/KEY`, of others where it was asked for, without a query.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.place {
            Place::Object(object) => object.to_string(),
            _ => self.url().to_string(),
        }
    }

    /// Whether it is read from the cache of the hub.
    #[must_use]
    pub const fn is_cached(&self) -> bool {
        matches!(self.bytes, Bytes::Cached(_))
    }

    /// Whether blocks of it are read from the block cache.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        matches!(&self.bytes, Bytes::Requested(bytes) if bytes.source().blocks.is_some())
    }

    /// SHA-256 of the content, in lower case, as the hub declares it for large files; of a file of the cache about which the hub was not
    /// asked, as its name says it.
    #[must_use]
    pub fn sha256_declared(&self) -> Option<&str> {
        self.declared.sha256.as_deref()
    }

    /// The same, and the hub is asked if it was not yet and requests are sent.
    ///
    /// # Errors
    ///
    /// Those of requests.
    pub fn sha256_of_hub(&self) -> Result<Option<String>, Error> {
        match (&self.bytes, &self.place) {
            (Bytes::Cached(InCache { is_asked: false, .. }), Place::Hub(path))
                if self.client.options.network == Network::On =>
            {
                self.client.sha256_of_hub(path)
            }
            _ => Ok(self.declared.sha256.clone()),
        }
    }

    /// The commit of the hub that it belongs to.
    #[must_use]
    pub fn commit(&self) -> Option<&str> {
        self.declared.commit.as_deref()
    }

    /// What tells this version of the file from others: its ETag, or its date; of the cache, the name of its content. `None` if there is
    /// none.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        match &self.bytes {
            Bytes::Requested(bytes) => {
                let pin = bytes.source().version.pin();
                pin.etag.as_deref().or(pin.modified.as_deref())
            }
            Bytes::Cached(cached) => cached.file.blob.as_deref(),
        }
    }

    /// Reads a range with several requests at once, and passes it to `take` in order, in pieces of 4 MiB at most. At most twice as many
    /// pieces as requests are in memory. The block cache is read, not written.
    ///
    /// # Errors
    ///
    /// Those of reading and of `take`; what was passed before is the beginning of the range.
    pub fn read_in_order<E: From<read_at::Error>>(
        &self,
        range: Range<u64>,
        in_flight: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = range.start;
        if let Bytes::Requested(held) = &self.bytes {
            held.source().is_copied.store(true, Ordering::Relaxed);
            let mut piece = vec![0; HELD_LEN];
            loop {
                let len = usize::try_from(range.end.saturating_sub(start)).unwrap_or(HELD_LEN).min(HELD_LEN);
                match held.copy(start, piece.get_mut(..len).unwrap_or_default()) {
                    0 => break,
                    copied => {
                        take(piece.get(..copied).unwrap_or_default())?;
                        start += copied as u64;
                    }
                }
            }
        }
        let in_flight = in_flight.max(1);
        let limits = Limits { len: COPIED_AT_ONCE, in_flight, kept: 2 * in_flight };
        let source: Arc<dyn SharedSource> = match &self.bytes {
            Bytes::Requested(held) => Arc::<Pinned>::clone(held.source()),
            Bytes::Cached(cached) => Arc::<Cached>::clone(&cached.file),
        };
        in_order(source, start..range.end.max(start), limits, take)
    }

    /// Fills `out` with the bytes at `offset` if no request is needed for them, as of a file of the cache; what is in it is unspecified otherwise.
    #[must_use]
    pub fn read_held(&self, offset: u64, out: &mut [u8]) -> bool {
        match &self.bytes {
            Bytes::Requested(bytes) => {
                let is_held = bytes.read_held(offset, out);
                if is_held {
                    self.client.counters.hit();
                }
                is_held
            }
            Bytes::Cached(cached) => cached.file.read_exact_at(offset, out).is_ok(),
        }
    }
}

impl ReadAt for RemoteFile {
    fn total_len(&self) -> u64 {
        match &self.bytes {
            Bytes::Requested(bytes) => bytes.total_len(),
            Bytes::Cached(cached) => cached.file.total_len(),
        }
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        check_range(offset, out.len(), self.total_len())?;
        if self.read_held(offset, out) {
            return Ok(());
        }
        match &self.bytes {
            Bytes::Requested(bytes) => bytes.read_exact_at(offset, out),
            Bytes::Cached(cached) => cached.file.read_exact_at(offset, out),
        }
    }
    fn will_read(&self, range: Range<u64>) {
        if let Bytes::Requested(bytes) = &self.bytes {
            bytes.will_read(range);
        }
    }
}
