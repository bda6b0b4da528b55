//! How files are opened: in the cache of the hub, or by a first request.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use std::io;

use read_at::ReadAt as _;

use crate::blocks::Blocks;
use crate::cache::{Cached, CachedFile};
use crate::client::{Client, Failed, Network, Route, STEP, again, plain};
use crate::declared::Declared;
use crate::error::{Error, ErrorKind};
use crate::file::RemoteFile;
use crate::hub::HubPath;
use crate::kept::Kept;
use crate::object::ObjectPath;
use crate::pin::{Condition, Pin, text, total_of_unsatisfied};
use crate::place::Place;
use crate::plan;
use crate::retry::allowed;
use crate::transport::Answer;

/// Longest file that is read as a whole from a server that ignores ranges.
const WHOLE_MAX: u64 = 64 << 20;
/// Files of a repository that hold a model, in the order in which they are looked for.
const MODELS: [&str; 2] = ["model.safetensors.index.json", "model.safetensors"];

/// The beginning of a file, as far as it arrived.
pub(crate) struct Beginning {
    pub(crate) pin: Pin,
    pub(crate) bytes: Vec<u8>,
    pub(crate) declared: Declared,
    pub(crate) origin: Origin,
}

/// Where the beginning of a file comes from.
pub(crate) enum Origin {
    /// The answer to a range.
    Ranges,
    /// A server that ignores ranges, or nowhere: the file is empty.
    Whole,
    /// The block cache; the server of the bytes has said that the version is the same.
    Unchanged(Blocks),
    /// The block cache, for a commit of the hub.
    Recorded(Blocks),
}

/// What the first request for a file has found.
enum Found {
    Beginning(Beginning),
    /// The answer has named the commit, and the cache has the file of it.
    Cached(Cached, Declared),
}

impl Client {
    /// Opens a file: one request for its beginning, and one for each redirect. None for a file of the hub that is in its cache or the
    /// block cache, if its commit is known.
    ///
    /// # Errors
    ///
    /// Every kind but [`ErrorKind::Digest`] and [`ErrorKind::Outside`].
    pub fn open(self: &Arc<Self>, place: &Place) -> Result<RemoteFile, Error> {
        let endpoint = &self.options.hub.endpoint;
        let (route, hub) = match place {
            Place::Url(url) => (Route::new(url.clone()), None),
            Place::Hub(path) => (Route::new(path.url(endpoint)?), Some(path)),
            Place::Object(object) => return self.open_object(object),
        };
        if let Some(file) = hub.map(|path| self.without_request(path)).transpose()?.flatten() {
            return Ok(file);
        }
        let first = plan::first_read(route.origin().file_name());
        let found = self.begin(&route, first, hub)?;
        let declared = match &found {
            Found::Beginning(beginning) => &beginning.declared,
            Found::Cached(_, declared) => declared,
        };
        // A branch moves while its files are read, a commit does not.
        let fixed = hub.map(|path| match &declared.commit {
            Some(commit) => path.at_commit(commit),
            None => path.clone(),
        });
        let url = fixed
            .as_ref()
            .map(|path| path.url(endpoint))
            .transpose()?
            .unwrap_or_else(|| route.origin.clone());
        match (found, fixed) {
            (Found::Beginning(beginning), fixed) => {
                let place = fixed.map_or_else(|| Place::Url(url.clone()), Place::Hub);
                let route = Route { origin: url, ..route };
                Ok(RemoteFile::new(Arc::clone(self), route, beginning, place))
            }
            (Found::Cached(cached, declared), Some(path)) => {
                Ok(RemoteFile::cached(Arc::clone(self), path, url, cached, Some(declared)))
            }
            // The cache has files of the hub alone.
            (Found::Cached(..), None) => Err(ErrorKind::NotFound { host: url.host().to_owned() }.into()),
        }
    }

    fn open_object(self: &Arc<Self>, object: &ObjectPath) -> Result<RemoteFile, Error> {
        let (route, first) = (self.object(object)?, plan::first_read(object.key()));
        let beginning = match self.begin(&route, first, None) {
            Ok(Found::Beginning(beginning)) => beginning,
            // The cache has files of the hub alone.
            Ok(Found::Cached(..)) => {
                return Err(ErrorKind::NotFound { host: object.bucket().to_owned() }.into());
            }
            // Not every store says in the answer that the object is empty.
            Err(error) if matches!(error.kind(), ErrorKind::Status { status: 416, .. }) => {
                match self.object_len(object)? {
                    Some(0) => {
                        let (pin, declared) = (Pin::default(), Declared::default());
                        Beginning { pin, bytes: Vec::new(), declared, origin: Origin::Whole }
                    }
                    _ => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        Ok(RemoteFile::new(Arc::clone(self), route, beginning, Place::Object(object.clone())))
    }

    /// The file in the cache of the hub or in the block cache, if its commit is known without a request.
    fn without_request(self: &Arc<Self>, path: &HubPath) -> Result<Option<RemoteFile>, Error> {
        let Some(commit) = self.known_commit(path)? else { return Ok(None) };
        let path = path.at_commit(&commit);
        let url = path.url(&self.options.hub.endpoint)?;
        if let Some(cached) = self.in_cache(&path)? {
            return Ok(Some(RemoteFile::cached(Arc::clone(self), path, url, cached, None)));
        }
        let first = plan::first_read(url.file_name());
        let Some(kept) = self.kept_at_commit(&path, None, first) else { return Ok(None) };
        let beginning = kept.beginning(Origin::Recorded);
        Ok(Some(RemoteFile::new(Arc::clone(self), Route::new(url), beginning, Place::Hub(path))))
    }

    /// The commit that a revision is; of a branch or tag, without the network, that of the cache.
    fn known_commit(&self, path: &HubPath) -> Result<Option<String>, Error> {
        match (path.commit(), &self.options.hub_cache, self.options.network) {
            (Some(commit), ..) => Ok(Some(commit.to_owned())),
            (None, Some(cache), Network::Off) => cache.commit(path),
            _ => Ok(None),
        }
    }

    /// What the cache of the hub has of a file at a commit.
    fn in_cache(&self, path: &HubPath) -> Result<Option<Cached>, Error> {
        match (&self.options.hub_cache, path.commit()) {
            (Some(cache), Some(commit)) => cache.open(path, commit),
            _ => Ok(None),
        }
    }

    /// Without the network, the files of a repository that are in the cache of the hub, with the commit; `None` if requests are sent, or
    /// none is there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cache`], [`ErrorKind::CacheRead`].
    pub fn cached_files(&self, repository: &HubPath) -> Result<Option<(HubPath, Vec<CachedFile>)>, Error> {
        let Some(cache) = self.options.hub_cache.as_ref().filter(|_| self.options.network == Network::Off)
        else {
            return Ok(None);
        };
        let Some(commit) = self.known_commit(repository)? else { return Ok(None) };
        let at = repository.at_commit(&commit);
        let Some(paths) = cache.list(&at, &commit)? else { return Ok(None) };
        let mut files = Vec::new();
        for path in paths {
            if let Some(file) = cache.open(&at.with_path(&path), &commit)? {
                let sha256 = file.sha256_by_name().map(str::to_owned);
                files.push(CachedFile { path, len: file.source.total_len(), sha256 });
            }
        }
        Ok(Some((at, files)))
    }

    /// SHA-256 as the hub declares it for a file that was opened without a request: one request.
    pub(crate) fn sha256_of_hub(&self, path: &HubPath) -> Result<Option<String>, Error> {
        let route = Route::new(path.url(&self.options.hub.endpoint)?);
        self.tried(&route, |_| {
            let (answer, declared) = self.answer(&route, &(0..1), Condition::Always, |_| Ok(true))?;
            match answer.status {
                200 | 206 | 301 | 302 | 303 | 307 | 308 | 416 => Ok(declared.sha256),
                _ => Err(self.refused(answer, &route)),
            }
        })
    }

    /// Opens a file, or the model of a repository or prefix that is named without a file: `model.safetensors.index.json`, or
    /// `model.safetensors` if there is none.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_model(self: &Arc<Self>, place: &Place) -> Result<RemoteFile, Error> {
        let [index, single] = match place {
            Place::Hub(path) if path.path().is_empty() => {
                let models = MODELS.map(|name| path.with_path(name));
                for path in &models {
                    if let Some(file) = self.without_request(path)? {
                        return Ok(file);
                    }
                }
                models.map(Place::Hub)
            }
            Place::Object(object) if object.is_prefix() => {
                MODELS.map(|name| Place::Object(object.with_key(&format!("{}{name}", object.key()))))
            }
            _ => return self.open(place),
        };
        match self.open(&index) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound { .. }) => self.open(&single),
            opened => opened,
        }
    }

    /// Reads the first `len` bytes, or less, of a file of which nothing is known; of one of the hub that is in the cache, what the answer
    /// declares. What the block cache has is not read again.
    fn begin(&self, route: &Route, len: u64, hub: Option<&HubPath>) -> Result<Found, Error> {
        let mut known = if hub.is_none() { self.kept(route, len) } else { None };
        self.tried(route, |got| {
            let (mut cached, mut kept) = (None, None);
            let tag = known.as_ref().and_then(|kept| kept.known.pin.etag.as_deref());
            let condition = tag.map_or(Condition::Always, Condition::Other);
            let (answer, declared) = self.answer(route, &(0..len), condition, |declared| {
                if let Some((path, commit)) = hub.zip(declared.commit.as_deref()) {
                    let path = path.at_commit(commit);
                    cached = self.in_cache(&path)?;
                    if cached.is_none() {
                        kept = self.kept_at_commit(&path, Some(declared), len);
                    }
                }
                Ok(cached.is_some() || kept.is_some())
            })?;
            if let Some(kept) = kept {
                let beginning = kept.beginning(Origin::Recorded);
                return Ok(Found::Beginning(Beginning { declared, ..beginning }));
            }
            if let Some(cached) = cached {
                let len = match answer.status {
                    206 => Some(self.ranged(&answer, &(0..len))?),
                    _ => declared.size,
                };
                if len.is_some_and(|len| len != cached.source.total_len()) {
                    let problem = "its length is not the one that the hub declares";
                    return Err(Error::from(ErrorKind::Cache { problem }).into());
                }
                return Ok(Found::Cached(cached, declared));
            }
            let pin = match answer.status {
                206 => Pin::new(self.ranged(&answer, &(0..len))?, &answer.headers),
                416 if total_of_unsatisfied(text(&answer.headers, "content-range")) == Some(0) => {
                    declared.check_len(0)?;
                    let pin = Pin::new(0, &answer.headers);
                    let origin = Origin::Whole;
                    return Ok(Found::Beginning(Beginning { pin, bytes: Vec::new(), declared, origin }));
                }
                304 if known.is_some() => {
                    let is_same = |kept: &Kept| kept.known.pin.has_etag_of(&answer.headers);
                    // Without the tag it proves nothing: all of it is asked for.
                    let kept = known.take().filter(is_same);
                    let kept = kept.ok_or_else(|| again(io::ErrorKind::InvalidData.into()))?;
                    return Ok(Found::Beginning(kept.beginning(Origin::Unchanged)));
                }
                200 => {
                    let beginning = self.whole(answer, declared)?;
                    beginning.declared.check_len(beginning.pin.len)?;
                    return Ok(Found::Beginning(beginning));
                }
                _ => return Err(self.refused(answer, route)),
            };
            declared.check_len(pin.len)?;
            let mut bytes = vec![0; len.min(pin.len) as usize];
            let (arrived, end) = self.fill(answer, &mut bytes, allowed(len));
            *got = arrived as u64;
            match end {
                Err(error) if arrived == 0 => Err(again(error)),
                // The rest is read when it is needed.
                _ => {
                    bytes.truncate(arrived);
                    Ok(Found::Beginning(Beginning { pin, bytes, declared, origin: Origin::Ranges }))
                }
            }
        })
    }

    /// All of a file, from a server that ignores ranges.
    fn whole(&self, answer: Answer, declared: Declared) -> Result<Beginning, Failed> {
        plain(&answer)?;
        let too_long = || Error::from(ErrorKind::NoRanges { limit: WHOLE_MAX });
        let len = text(&answer.headers, "content-length").and_then(|len| len.parse::<u64>().ok());
        if len.is_some_and(|len| len > WHOLE_MAX) {
            return Err(too_long().into());
        }
        let headers = answer.headers.clone();
        let mut bytes = Vec::new();
        let mut body = answer.body;
        let mut slow = self.slow(allowed(len.unwrap_or(WHOLE_MAX)));
        let mut step = vec![0; STEP];
        loop {
            let read = match body.read(&mut step) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(again(error));
                }
            };
            self.counters.bytes.fetch_add(read as u64, Ordering::Relaxed);
            if let Some(error) = slow() {
                return Err(again(error));
            }
            bytes.extend_from_slice(step.get(..read).unwrap_or_default());
            if bytes.len() as u64 > WHOLE_MAX {
                return Err(too_long().into());
            }
        }
        if len.is_some_and(|len| len != bytes.len() as u64) {
            return Err(again(io::ErrorKind::UnexpectedEof.into()));
        }
        let pin = Pin::new(bytes.len() as u64, &headers);
        Ok(Beginning { pin, bytes, declared, origin: Origin::Whole })
    }
}
