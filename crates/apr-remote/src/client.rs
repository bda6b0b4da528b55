//! Requests with their redirects, tries and limits.

use alloc::sync::Arc;
use core::error::Error as StdError;
use core::fmt;
use core::ops::Range;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};

use crate::blocks::{BlockCache, Store};
use crate::buffered::Together;
use crate::cache::HubCache;
#[cfg(feature = "cloud")]
use crate::cloud::Stores;
use crate::counts::{Counters, Counts};
use crate::declared::Declared;
use crate::error::{Error, ErrorKind};
use crate::http::{Http, System};
use crate::hub::Hub;
use crate::pin::{Condition, Pin, Version, text, total_of};
use crate::plan;
use crate::retry::{Flow, Next, Pace, Schedule, Tries, allowed, is_temporary, retry_after};
use crate::sign::{REFUSAL_MAX, Sign, Signed, code_of, refusal};
use crate::transport::{Answer, Broken, Request, Transport};
use crate::url::Url;

/// Redirects of one request.
const REDIRECTS_MAX: u32 = 5;
/// Bytes that are read between two looks at the clock.
pub(crate) const STEP: usize = 256 << 10;

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
    /// What the hub's own programs have downloaded; it is read in place of requests.
    pub hub_cache: Option<HubCache>,
    /// What is read of files is kept there, and read from there by the next process.
    pub block_cache: Option<BlockCache>,
    /// File of certificates in PEM, in place of those of Mozilla's programme.
    pub certificates: Option<OsString>,
    /// Time that all requests of the client have, from when it was made.
    pub time_limit: Option<Duration>,
    /// Called before each further try.
    pub on_retry: Option<OnRetry>,
}

impl Options {
    /// With the variables that other programs use: those of [`Hub::from_environment`], HF_HUB_OFFLINE, SSL_CERT_FILE and HF_HUB_CACHE, and
    /// APR_NO_HUB_CACHE, APR_BLOCK_CACHE and APR_BLOCK_CACHE_SIZE.
    ///
    /// # Errors
    ///
    /// Those of [`Hub::from_environment`] and [`BlockCache::from_environment`].
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let is_offline = variable("HF_HUB_OFFLINE").is_some_and(|value| is_on(&value) == Some(true));
        Ok(Self {
            plain_http: PlainHttp::default(),
            network: if is_offline { Network::Off } else { Network::On },
            tries: Tries::default(),
            certificates: variable("SSL_CERT_FILE").filter(|path| !path.is_empty()),
            hub_cache: HubCache::from_environment(&variable),
            block_cache: BlockCache::if_asked_for(&variable)?,
            hub: Hub::from_environment(variable)?,
            time_limit: None,
            on_retry: None,
        })
    }
}

/// What a word in the environment says; nothing of other values.
pub(crate) fn is_on(value: &OsStr) -> Option<bool> {
    match value.to_str()?.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// A request that is tried again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Retry<'r> {
    /// The host that is asked.
    pub host: &'r str,
    /// Number of the try that follows, from 2.
    pub next: u32,
    /// Tries in all, without progress.
    pub limit: u32,
    /// Why the last one failed.
    pub cause: &'r (dyn StdError + Send + Sync),
}

/// Function that is called for further tries, on the thread that makes them.
#[derive(Clone)]
pub struct OnRetry(Arc<dyn Fn(&Retry<'_>) + Send + Sync>);

impl OnRetry {
    /// Calls `hear` before the pause of each further try.
    pub fn new(hear: impl Fn(&Retry<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }
}

impl fmt::Debug for OnRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnRetry").finish_non_exhaustive()
    }
}

/// Where a file is asked for, and where the redirects or the signature from there led.
#[derive(Debug)]
pub(crate) struct Route {
    /// Of an object, its URL without a signature.
    pub(crate) origin: Url,
    pub(crate) target: Mutex<Option<Signed>>,
    /// Of an object: what makes the target.
    pub(crate) signer: Option<Arc<dyn Sign>>,
}

impl Route {
    pub(crate) const fn new(origin: Url) -> Self {
        Self { origin, target: Mutex::new(None), signer: None }
    }

    /// To an object.
    #[cfg(any(test, feature = "cloud"))]
    pub(crate) fn signed(signer: Arc<dyn Sign>) -> Result<Self, Error> {
        let origin = signer.sign()?.url.without_query();
        Ok(Self { origin, target: Mutex::new(None), signer: Some(signer) })
    }

    /// Where a first request goes.
    fn source(&self) -> Result<Signed, Error> {
        self.signer.as_ref().map_or_else(|| Ok(self.origin.clone().into()), |signer| signer.sign())
    }

    pub(crate) const fn origin(&self) -> &Url {
        &self.origin
    }

    fn target(&self) -> Option<Signed> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_target(&self, target: Option<Signed>) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }
}

/// Why a try failed that is worth another one.
pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

/// A try that failed.
pub(crate) enum Failed {
    Again { error: Cause, after: Option<Duration> },
    Final(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// Sends requests. Its connections are kept and used again; threads can share it.
#[derive(Debug)]
pub struct Client {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) pace: Box<dyn Pace>,
    pub(crate) options: Options,
    pub(crate) blocks: Option<Arc<Store>>,
    pub(crate) counters: Arc<Counters>,
    /// By the clock of `pace`.
    made: Duration,
    pub(crate) together: Together,
    #[cfg(feature = "cloud")]
    pub(crate) stores: Stores,
}

impl Client {
    /// A client for these rules.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Certificates`], [`ErrorKind::BlockCache`].
    pub fn new(options: Options) -> Result<Arc<Self>, Error> {
        let http = Http::new(options.certificates.clone())?;
        Self::with(Box::new(http), Box::new(System::new()), options)
    }

    /// # Errors
    ///
    /// [`ErrorKind::BlockCache`].
    pub(crate) fn with(
        transport: Box<dyn Transport>,
        pace: Box<dyn Pace>,
        options: Options,
    ) -> Result<Arc<Self>, Error> {
        let counters = Arc::<Counters>::default();
        let store = |cache| Store::open(cache, Arc::clone(&counters)).map(Arc::new);
        let blocks = options.block_cache.as_ref().map(store).transpose()?;
        Ok(Arc::new(Self {
            made: pace.now(),
            transport,
            pace,
            options,
            blocks,
            counters,
            together: Together::default(),
            #[cfg(feature = "cloud")]
            stores: Stores::default(),
        }))
    }

    /// What requests have cost so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// Whether the block cache is in use.
    #[must_use]
    pub const fn has_block_cache(&self) -> bool {
        self.blocks.is_some()
    }

    /// Why nothing more is written to the block cache, if it is in use and the disk refuses it.
    #[must_use]
    pub fn block_cache_problem(&self) -> Option<&io::Error> {
        self.blocks.as_ref()?.problem()
    }

    /// The hub whose files are named by `hf://`.
    #[must_use]
    pub const fn hub(&self) -> &Hub {
        &self.options.hub
    }

    /// Fills `out` with the bytes at `offset` of the version that is pinned.
    pub(crate) fn fetch(
        &self,
        route: &Route,
        version: &Version,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let mut at = 0;
        while at < out.len() {
            let end = out.len().min(at + plan::BEGINNING_MAX as usize);
            let mut done = at;
            let piece = out.get_mut(..end).unwrap_or_default();
            self.tried(route, |got| {
                let rest = piece.get_mut(done..).unwrap_or_default();
                let start = offset + done as u64;
                let asked = start..start + rest.len() as u64;
                let (answer, _) = self.answer(route, &asked, version.condition(), |_| Ok(false))?;
                match answer.status {
                    206 => version.check(Pin::new(self.ranged(&answer, &asked)?, &answer.headers))?,
                    200 => {
                        return Err(Error::from(ErrorKind::Range { problem: "it is the whole file" }).into());
                    }
                    412 | 416 => return Err(Error::from(ErrorKind::Changed).into()),
                    _ => return Err(self.refused(answer, route)),
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
    pub(crate) fn tried<T>(
        &self,
        route: &Route,
        mut try_once: impl FnMut(&mut u64) -> Result<T, Failed>,
    ) -> Result<T, Error> {
        let mut schedule = Schedule::new(self.options.tries, self.pace.now(), self.counters.read());
        loop {
            let mut got = 0;
            let (error, after) = match try_once(&mut got) {
                Ok(done) => return Ok(done),
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Again { error, after }) => (error, after),
            };
            let host = || route.origin().host().to_owned();
            match schedule.failed(got, self.counters.read(), after, &*self.pace) {
                Next::Pause(pause) if self.time_left().is_some_and(|left| left <= pause) => {
                    return Err(Error::caused(self.timed_out(), error));
                }
                Next::Pause(pause) => {
                    self.counters.retries.fetch_add(1, Ordering::Relaxed);
                    self.tell_retry(route.origin().host(), schedule.tries(), &error);
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

    /// One GET and the redirects from it, as far as `is_enough` does not end it by what the hub declares.
    pub(crate) fn answer(
        &self,
        route: &Route,
        range: &Range<u64>,
        condition: Condition<'_>,
        mut is_enough: impl FnMut(&Declared) -> Result<bool, Error>,
    ) -> Result<(Answer, Declared), Failed> {
        let target = route.target();
        let is_redirected = target.is_some();
        let mut is_kept_target = is_redirected;
        let mut source = target.map_or_else(|| route.source(), Ok)?;
        let mut url = source.url.clone();
        let mut declared = Declared::default();
        let mut redirects = 0;
        let hub = &self.options.hub;
        // Not where a redirect from another server leads.
        let begins_at_hub = route.origin().is_same_origin(&hub.endpoint);
        loop {
            self.check(&url)?;
            let is_end = !is_redirected || is_kept_target || redirects > 0 || route.signer.is_some();
            let of_source = || source.bearer.as_ref().filter(|_| url.is_same_origin(&source.url)).cloned();
            let of_hub = if begins_at_hub { hub.authorization(&url)? } else { None };
            let request = Request {
                url: &url,
                range: Some(range.clone()),
                // What answers with a redirect has another ETag than the file.
                if_match: match condition {
                    Condition::Same(tag) if is_end => Some(tag),
                    _ => None,
                },
                if_none_match: match condition {
                    Condition::Other(tag) => Some(tag),
                    _ => None,
                },
                authorization: of_hub.or_else(of_source),
                content: None,
                allowed: allowed(range.end - range.start),
                left: self.time_left(),
            };
            self.counters.requests.fetch_add(1, Ordering::Relaxed);
            let answer = self.transport.send(&request).map_err(|broken| without_answer(&url, broken))?;
            if begins_at_hub && url.is_same_origin(&hub.endpoint) {
                declared.add(&answer);
                let is_file = matches!(answer.status, 200 | 206 | 301 | 302 | 303 | 307 | 308 | 416);
                if is_file && is_enough(&declared)? {
                    return Ok((answer, declared));
                }
            }
            match answer.status {
                301 | 302 | 303 | 307 | 308 => {
                    let problem = |problem| Error::from(ErrorKind::Redirect { problem });
                    if redirects == REDIRECTS_MAX {
                        return Err(problem("there are more than five").into());
                    }
                    let Some(location) = text(&answer.headers, "location") else {
                        return Err(match &route.signer {
                            Some(_) => self.refused(answer, route),
                            None => problem("the location is missing").into(),
                        });
                    };
                    url = url.join(location)?;
                    redirects += 1;
                }
                // A signed URL has expired: where it came from makes a new one.
                400 | 401 | 403 | 404 | 410 if is_kept_target => {
                    route.set_target(None);
                    source = route.source()?;
                    url = source.url.clone();
                    is_kept_target = false;
                }
                _ => {
                    if redirects > 0 || route.signer.is_some() {
                        let bearer = source.bearer.filter(|_| url.is_same_origin(&source.url));
                        route.set_target(Some(Signed { url, bearer }));
                    }
                    return Ok((answer, declared));
                }
            }
        }
    }

    /// # Errors
    ///
    /// [`ErrorKind::Offline`], [`ErrorKind::TimeLimit`].
    pub(crate) fn allowed(&self) -> Result<(), Error> {
        match self.options.network {
            Network::On if self.time_left() == Some(Duration::ZERO) => Err(self.timed_out().into()),
            Network::On => Ok(()),
            Network::Off => Err(ErrorKind::Offline.into()),
        }
    }

    /// Time left for all requests, if it is limited.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let limit = self.options.time_limit?;
        Some(limit.saturating_sub(self.pace.now().saturating_sub(self.made)))
    }

    pub(crate) fn timed_out(&self) -> ErrorKind {
        ErrorKind::TimeLimit { seconds: self.options.time_limit.unwrap_or_default().as_secs() }
    }

    fn tell_retry(&self, host: &str, tries: u32, cause: &Cause) {
        if let Some(on_retry) = &self.options.on_retry {
            (on_retry.0)(&Retry {
                host,
                next: tries.saturating_add(1),
                limit: self.options.tries.count,
                cause: &**cause,
            });
        }
    }

    pub(crate) fn check(&self, url: &Url) -> Result<(), Error> {
        self.allowed()?;
        if !url.is_secure() && !url.is_loopback() && self.options.plain_http == PlainHttp::Loopback {
            return Err(ErrorKind::PlainHttp { host: url.host().to_owned() }.into());
        }
        Ok(())
    }

    /// Checks a 206 and gives the length of the file.
    pub(crate) fn ranged(&self, answer: &Answer, asked: &Range<u64>) -> Result<u64, Error> {
        plain(answer)?;
        let total = total_of(text(&answer.headers, "content-range"), asked)?;
        let declared = text(&answer.headers, "content-length").map(str::parse::<u64>);
        match declared.is_none_or(|len| len == Ok(asked.end.min(total) - asked.start)) {
            true => Ok(total),
            false => Err(ErrorKind::Range { problem: "its Content-Length is not that of the range" }.into()),
        }
    }

    /// Reads a body: how many bytes arrived, and why no more did.
    pub(crate) fn fill(&self, answer: Answer, out: &mut [u8], time: Duration) -> (usize, io::Result<()>) {
        let is_measured = answer.headers.contains_key("content-length");
        let mut body = answer.body;
        let mut slow = self.slow(time);
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
            if let Some(error) = slow().filter(|_| arrived < out.len()) {
                return (arrived, Err(error));
            }
        }
        if is_measured {
            // The connection can be used again when its end was seen.
            let _ = body.read(&mut [0]);
        }
        (arrived, Ok(()))
    }

    /// Check to run after each read of a body that may take `time`: the reason to end it.
    pub(crate) fn slow(&self, time: Duration) -> impl FnMut() -> Option<io::Error> {
        let rate = self.options.tries.rate;
        let end = self.pace.now() + self.time_left().map_or(time, |left| left.min(time));
        let mut flow = Flow::new(rate, self.pace.now(), self.counters.read());
        move || {
            let now = self.pace.now();
            if flow.is_too_slow(now, self.counters.read()) {
                let problem = format!("fewer than {} kB/s arrived for 30 s", rate.div_ceil(1_000));
                return Some(io::Error::new(io::ErrorKind::TimedOut, problem));
            }
            (now > end).then(|| io::ErrorKind::TimedOut.into())
        }
    }

    /// The failure of a status.
    pub(crate) fn refused(&self, answer: Answer, route: &Route) -> Failed {
        let (host, status) = (route.origin().host().to_owned(), answer.status);
        let of_hub = text(&answer.headers, "x-error-code").unwrap_or_default();
        let kind = match status {
            _ if is_temporary(status) => {
                let after = text(&answer.headers, "retry-after");
                let after = after.and_then(|value| retry_after(value, text(&answer.headers, "date")));
                let error = Error::from(ErrorKind::Status { host, status });
                return Failed::Again { error: error.into(), after };
            }
            _ if route.signer.is_some() => {
                let mut body = Vec::new();
                let _ = answer.body.take(REFUSAL_MAX).read_to_end(&mut body);
                let bucket = route.signer.as_ref().map_or("", |signer| signer.bucket());
                refusal(status, code_of(&body), &host, bucket)
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

pub(crate) fn again(error: io::Error) -> Failed {
    Failed::Again { error: error.into(), after: None }
}

pub(crate) fn without_answer(url: &Url, broken: Broken) -> Failed {
    match broken {
        // No program of this machine listens there, and none will because it is asked again.
        Broken::Connection(error) if url.is_loopback() && is_refusal(&*error) => {
            Error::caused(ErrorKind::Refused { host: url.host().to_owned() }, error).into()
        }
        Broken::Connection(error) => Failed::Again { error, after: None },
        Broken::Settings(error) => error.into(),
        Broken::Request => Error::from(ErrorKind::Url { problem: "no request can be made of it" }).into(),
        Broken::Tls(error) => Error::caused(ErrorKind::Tls { host: url.host().to_owned() }, error).into(),
        Broken::Protocol(error) => {
            Error::caused(ErrorKind::Range { problem: "it is not HTTP" }, error).into()
        }
    }
}

fn is_refusal(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// # Errors
///
/// [`ErrorKind::Encoding`] for a compressed body.
pub(crate) fn plain(answer: &Answer) -> Result<(), Error> {
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
