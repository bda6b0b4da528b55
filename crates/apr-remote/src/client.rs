//! Requests with their redirects, tries and limits.

use alloc::sync::Arc;
use core::error::Error as StdError;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::ffi::OsString;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::buffered::Windows;
use crate::error::{Error, ErrorKind};
use crate::file::RemoteFile;
use crate::http::{Http, System};
use crate::hub::Hub;
use crate::pin::{Pin, text, total_of, total_of_unsatisfied};
use crate::place::Place;
use crate::plan;
use crate::retry::{Next, Pace, Schedule, Tries, allowed, is_temporary, retry_after};
use crate::transport::{Answer, Broken, Request, Transport};
use crate::url::Url;

/// Redirects of one request.
const REDIRECTS_MAX: u32 = 5;
/// Longest file that is read as a whole from a server that ignores ranges.
const WHOLE_MAX: u64 = 64 << 20;
/// Files of a repository that hold a model, in the order in which they are looked for.
const MODELS: [&str; 2] = ["model.safetensors.index.json", "model.safetensors"];
/// Bytes that are read between two looks at the clock.
const STEP: usize = 256 << 10;

/// Whether plain HTTP is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// For addresses of this machine alone.
    #[default]
    Loopback,
    /// For any host.
    Anywhere,
}

/// Whether requests are sent at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// They are.
    #[default]
    On,
    /// Each is refused.
    Off,
}

/// Rules and limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether plain HTTP is used.
    pub plain_http: PlainHttp,
    /// Whether requests are sent.
    pub network: Network,
    /// How often and how long a read is tried.
    pub tries: Tries,
    /// The hub and the token for it.
    pub hub: Hub,
    /// File of certificates in PEM, in place of those of Mozilla's programme.
    pub certificates: Option<OsString>,
}

impl Options {
    /// With the variables that other programs use: those of [`Hub::from_environment`], HF_HUB_OFFLINE and SSL_CERT_FILE.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Endpoint`] if HF_ENDPOINT is no URL.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let is_offline = variable("HF_HUB_OFFLINE")
            .and_then(|value| value.into_string().ok())
            .is_some_and(|value| ["1", "on", "yes", "true"].contains(&value.to_ascii_lowercase().as_str()));
        Ok(Self {
            plain_http: PlainHttp::default(),
            network: if is_offline { Network::Off } else { Network::On },
            tries: Tries::default(),
            certificates: variable("SSL_CERT_FILE").filter(|path| !path.is_empty()),
            hub: Hub::from_environment(variable)?,
        })
    }
}

/// What requests have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests, those of redirects and further tries included.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Tries after one that failed.
    pub retries: u64,
    /// Reads that needed no request.
    pub hits: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
    hits: AtomicU64,
}

impl Counters {
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }
}

/// What an answer of the hub declares about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) commit: Option<String>,
    /// SHA-256 of the content, in lower case.
    pub(crate) sha256: Option<String>,
    size: Option<u64>,
}

impl Declared {
    fn add(&mut self, answer: &Answer) {
        let given = |name| text(&answer.headers, name);
        let is_hex = |digits: &&str, len| {
            digits.len() == len && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let commit = given("x-repo-commit").filter(|commit| is_hex(commit, 40));
        let sha256 =
            given("x-linked-etag").map(|tag| tag.trim_matches('"')).filter(|digits| is_hex(digits, 64));
        let size = given("x-linked-size").and_then(|size| size.parse().ok());
        self.commit = commit.map(str::to_owned).or(self.commit.take());
        self.sha256 = sha256.map(str::to_owned).or(self.sha256.take());
        self.size = size.or(self.size);
    }

    /// # Errors
    ///
    /// [`ErrorKind::Range`] if another length is declared.
    fn check_len(&self, len: u64) -> Result<(), Error> {
        match self.size {
            Some(size) if size != len => {
                Err(ErrorKind::Range { problem: "its length is not the one that the hub declares" }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Where a file is asked for, and where the redirects from there led.
#[derive(Debug)]
pub(crate) struct Route {
    origin: Url,
    target: Mutex<Option<Url>>,
}

impl Route {
    pub(crate) const fn new(origin: Url) -> Self {
        Self { origin, target: Mutex::new(None) }
    }

    pub(crate) const fn origin(&self) -> &Url {
        &self.origin
    }

    fn target(&self) -> Option<Url> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_target(&self, url: Option<Url>) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = url;
    }
}

/// Why a try failed that is worth another one.
type Cause = Box<dyn StdError + Send + Sync>;

/// A try that failed.
enum Failed {
    Again { error: Cause, after: Option<Duration> },
    Final(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// The beginning of a file, as far as it arrived.
pub(crate) struct Beginning {
    pub(crate) pin: Pin,
    pub(crate) bytes: Vec<u8>,
    pub(crate) declared: Declared,
}

/// Sends requests. Its connections are kept and used again; threads can share it.
#[derive(Debug)]
pub struct Client {
    transport: Box<dyn Transport>,
    pace: Box<dyn Pace>,
    options: Options,
    pub(crate) counters: Counters,
    pub(crate) windows: Windows,
}

impl Client {
    /// A client for these rules.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Certificates`].
    pub fn new(options: Options) -> Result<Arc<Self>, Error> {
        let http = Http::new(options.certificates.clone())?;
        Ok(Self::with(Box::new(http), Box::new(System::new()), options))
    }

    pub(crate) fn with(transport: Box<dyn Transport>, pace: Box<dyn Pace>, options: Options) -> Arc<Self> {
        let (counters, windows) = Default::default();
        Arc::new(Self { transport, pace, options, counters, windows })
    }

    /// Opens a file: one request for its beginning, and one for each redirect.
    ///
    /// # Errors
    ///
    /// Every kind but [`ErrorKind::Digest`] and [`ErrorKind::Outside`].
    pub fn open(self: &Arc<Self>, place: &Place) -> Result<RemoteFile, Error> {
        let url = match place {
            Place::Url(url) => url.clone(),
            Place::Hub(path) => path.url(&self.options.hub.endpoint)?,
        };
        let route = Route::new(url);
        let first = plan::first_read(route.origin().file_name());
        let beginning = self.begin(&route, first)?;
        // A branch moves while its files are read, a commit does not.
        let fixed = match (place, &beginning.declared.commit) {
            (Place::Hub(path), Some(commit)) => path.at_commit(commit).url(&self.options.hub.endpoint)?,
            _ => route.origin,
        };
        let route = Route { origin: fixed, target: route.target };
        Ok(RemoteFile::new(Arc::clone(self), route, beginning))
    }

    /// Opens a file, or the model of a repository that is named without a file: `model.safetensors.index.json`, or
    /// `model.safetensors` if there is none.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_model(self: &Arc<Self>, place: &Place) -> Result<RemoteFile, Error> {
        let Place::Hub(path) = place else { return self.open(place) };
        if !path.path().is_empty() {
            return self.open(place);
        }
        let [index, single] = MODELS.map(|name| Place::Hub(path.with_path(name)));
        match self.open(&index) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound { .. }) => self.open(&single),
            opened => opened,
        }
    }

    /// What requests have cost so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { requests, bytes, retries, hits } = &self.counters;
        Counts { requests: of(requests), bytes: of(bytes), retries: of(retries), hits: of(hits) }
    }

    /// The hub whose files are named by `hf://`.
    #[must_use]
    pub const fn hub(&self) -> &Hub {
        &self.options.hub
    }

    /// Reads the first `len` bytes, or less, of a file of which nothing is known.
    fn begin(&self, route: &Route, len: u64) -> Result<Beginning, Error> {
        self.tried(route, |got| {
            let (answer, declared) = self.answer(route, &(0..len), None)?;
            let pin = match answer.status {
                206 => Pin::new(self.ranged(&answer, &(0..len))?, &answer.headers),
                416 if total_of_unsatisfied(text(&answer.headers, "content-range")) == Some(0) => {
                    declared.check_len(0)?;
                    return Ok(Beginning { pin: Pin::new(0, &answer.headers), bytes: Vec::new(), declared });
                }
                200 => {
                    let beginning = self.whole(answer, declared)?;
                    beginning.declared.check_len(beginning.pin.len)?;
                    return Ok(beginning);
                }
                _ => return Err(self.refused(&answer, route)),
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
                    Ok(Beginning { pin, bytes, declared })
                }
            }
        })
    }

    /// Fills `out` with the bytes at `offset` of the version that is pinned.
    pub(crate) fn fetch(&self, route: &Route, pin: &Pin, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let mut at = 0;
        while at < out.len() {
            let end = out.len().min(at + plan::BEGINNING_MAX as usize);
            let mut done = at;
            let piece = out.get_mut(..end).unwrap_or_default();
            self.tried(route, |got| {
                let rest = piece.get_mut(done..).unwrap_or_default();
                let start = offset + done as u64;
                let asked = start..start + rest.len() as u64;
                let (answer, _) = self.answer(route, &asked, Some(pin))?;
                match answer.status {
                    206 => pin.check(&Pin::new(self.ranged(&answer, &asked)?, &answer.headers))?,
                    200 => {
                        return Err(Error::from(ErrorKind::Range { problem: "it is the whole file" }).into());
                    }
                    412 | 416 => return Err(Error::from(ErrorKind::Changed).into()),
                    _ => return Err(self.refused(&answer, route)),
                }
                let (arrived, end) = self.fill(answer, rest, allowed(asked.end - asked.start));
                done += arrived;
                *got = arrived as u64;
                end.map_err(again)
            })?;
            at = end;
        }
        Ok(())
    }

    /// Tries until it succeeds, or the tries are used up; `try_once` says how many bytes it got.
    fn tried<T>(
        &self,
        route: &Route,
        mut try_once: impl FnMut(&mut u64) -> Result<T, Failed>,
    ) -> Result<T, Error> {
        let mut schedule = Schedule::new(self.options.tries, self.pace.now());
        loop {
            let mut got = 0;
            let (error, after) = match try_once(&mut got) {
                Ok(done) => return Ok(done),
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Again { error, after }) => (error, after),
            };
            let host = || route.origin().host().to_owned();
            match schedule.failed(got, after, &*self.pace) {
                Next::Pause(pause) => {
                    self.counters.retries.fetch_add(1, Ordering::Relaxed);
                    self.pace.sleep(pause);
                }
                Next::TooLong(pause) => {
                    return Err(Error::caused(
                        ErrorKind::Pause { host: host(), seconds: pause.as_secs() },
                        error,
                    ));
                }
                Next::GiveUp { tries } => {
                    return Err(Error::caused(ErrorKind::GaveUp { host: host(), tries }, error));
                }
            }
        }
    }

    /// One GET and the redirects from it.
    fn answer(
        &self,
        route: &Route,
        range: &Range<u64>,
        pin: Option<&Pin>,
    ) -> Result<(Answer, Declared), Failed> {
        let target = route.target();
        let is_redirected = target.is_some();
        let mut is_kept_target = is_redirected;
        let mut url = target.unwrap_or_else(|| route.origin().clone());
        let mut declared = Declared::default();
        let mut redirects = 0;
        let hub = &self.options.hub;
        // Not where a redirect from another server leads.
        let begins_at_hub = route.origin().is_same_origin(&hub.endpoint);
        loop {
            self.check(&url)?;
            let is_end = !is_redirected || is_kept_target || redirects > 0;
            let request = Request {
                url: &url,
                range: Some(range.clone()),
                // What answers with a redirect has another ETag than the file.
                if_match: pin.and_then(|pin| pin.etag.as_deref()).filter(|_| is_end),
                authorization: hub.authorization(&url).filter(|_| begins_at_hub),
                allowed: allowed(range.end - range.start),
            };
            self.counters.requests.fetch_add(1, Ordering::Relaxed);
            let answer = self.transport.get(&request).map_err(|broken| without_answer(&url, broken))?;
            if begins_at_hub && url.is_same_origin(&hub.endpoint) {
                declared.add(&answer);
            }
            match answer.status {
                301 | 302 | 303 | 307 | 308 => {
                    let problem = |problem| Error::from(ErrorKind::Redirect { problem });
                    if redirects == REDIRECTS_MAX {
                        return Err(problem("there are more than five").into());
                    }
                    let location = text(&answer.headers, "location")
                        .ok_or_else(|| problem("the location is missing"))?;
                    url = url.join(location)?;
                    redirects += 1;
                }
                // A signed URL has expired: where it came from makes a new one.
                400 | 401 | 403 | 404 | 410 if is_kept_target => {
                    route.set_target(None);
                    url = route.origin().clone();
                    is_kept_target = false;
                }
                _ => {
                    if redirects > 0 {
                        route.set_target(Some(url));
                    }
                    return Ok((answer, declared));
                }
            }
        }
    }

    fn check(&self, url: &Url) -> Result<(), Error> {
        if self.options.network == Network::Off {
            return Err(ErrorKind::Offline.into());
        }
        if !url.is_secure() && !url.is_loopback() && self.options.plain_http == PlainHttp::Loopback {
            return Err(ErrorKind::PlainHttp { host: url.host().to_owned() }.into());
        }
        Ok(())
    }

    /// Checks a 206 and gives the length of the file.
    fn ranged(&self, answer: &Answer, asked: &Range<u64>) -> Result<u64, Error> {
        plain(answer)?;
        let total = total_of(text(&answer.headers, "content-range"), asked)?;
        let declared = text(&answer.headers, "content-length").map(str::parse::<u64>);
        match declared.is_none_or(|len| len == Ok(asked.end.min(total) - asked.start)) {
            true => Ok(total),
            false => Err(ErrorKind::Range { problem: "its Content-Length is not that of the range" }.into()),
        }
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
        let end = self.pace.now() + allowed(len.unwrap_or(WHOLE_MAX));
        let mut step = vec![0; STEP];
        loop {
            let read = match body.read(&mut step) {
                Ok(0) => break,
                Ok(_) if self.pace.now() > end => Err(io::ErrorKind::TimedOut.into()),
                read => read,
            };
            let read = match read {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(again(error));
                }
            };
            self.counters.bytes.fetch_add(read as u64, Ordering::Relaxed);
            bytes.extend_from_slice(step.get(..read).unwrap_or_default());
            if bytes.len() as u64 > WHOLE_MAX {
                return Err(too_long().into());
            }
        }
        if len.is_some_and(|len| len != bytes.len() as u64) {
            return Err(again(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Beginning { pin: Pin::new(bytes.len() as u64, &headers), bytes, declared })
    }

    /// Reads a body: how many bytes arrived, and why no more did.
    fn fill(&self, answer: Answer, out: &mut [u8], time: Duration) -> (usize, io::Result<()>) {
        let is_measured = answer.headers.contains_key("content-length");
        let mut body = answer.body;
        let end = self.pace.now() + time;
        let mut arrived = 0;
        while arrived < out.len() {
            let step = out.len().min(arrived + STEP);
            match body.read(out.get_mut(arrived..step).unwrap_or_default()) {
                Ok(0) => return (arrived, Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => {
                    arrived += read;
                    self.counters.bytes.fetch_add(read as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (arrived, Err(error)),
            }
            if arrived < out.len() && self.pace.now() > end {
                return (arrived, Err(io::ErrorKind::TimedOut.into()));
            }
        }
        if is_measured {
            // The connection can be used again when its end was seen.
            let _ = body.read(&mut [0]);
        }
        (arrived, Ok(()))
    }

    /// The failure of a status.
    fn refused(&self, answer: &Answer, route: &Route) -> Failed {
        let (host, status) = (route.origin().host().to_owned(), answer.status);
        let of_hub = text(&answer.headers, "x-error-code").unwrap_or_default();
        let kind = match status {
            _ if is_temporary(status) => {
                let after = text(&answer.headers, "retry-after");
                let after = after.and_then(|value| retry_after(value, text(&answer.headers, "date")));
                let error = Error::from(ErrorKind::Status { host, status });
                return Failed::Again { error: error.into(), after };
            }
            401 | 403 if of_hub == "GatedRepo" => ErrorKind::Gated,
            401 | 403 if of_hub == "RepoNotFound" => ErrorKind::NotFound { host },
            404 | 410 => ErrorKind::NotFound { host },
            401 | 403 => ErrorKind::Denied { host, status },
            _ => ErrorKind::Status { host, status },
        };
        Failed::Final(kind.into())
    }
}

fn again(error: io::Error) -> Failed {
    Failed::Again { error: error.into(), after: None }
}

fn without_answer(url: &Url, broken: Broken) -> Failed {
    match broken {
        Broken::Connection(error) => Failed::Again { error, after: None },
        Broken::Request => Error::from(ErrorKind::Url { problem: "no request can be made of it" }).into(),
        Broken::Tls(error) => Error::caused(ErrorKind::Tls { host: url.host().to_owned() }, error).into(),
        Broken::Protocol(error) => {
            Error::caused(ErrorKind::Range { problem: "it is not HTTP" }, error).into()
        }
    }
}

/// # Errors
///
/// [`ErrorKind::Encoding`] for a compressed body.
fn plain(answer: &Answer) -> Result<(), Error> {
    match text(&answer.headers, "content-encoding") {
        None | Some("identity" | "") => Ok(()),
        Some(_) => Err(ErrorKind::Encoding.into()),
    }
}

#[cfg(test)]
impl Client {
    pub(crate) fn set_network(&mut self, network: Network) {
        self.options.network = network;
    }
}
