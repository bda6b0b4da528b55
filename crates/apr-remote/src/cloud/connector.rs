//! Requests of `object_store` over our connections.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::RefCell;
use core::fmt;
use core::net::IpAddr;
use core::pin::Pin;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

use crate::client::PlainHttp;
use crate::counts::Counters;
use crate::error::{Error, ErrorKind};
use crate::http::{Http, Times};
use crate::retry::allowed;
use crate::sign::{code_of, refusal};
use crate::transport::Broken;
use crate::url::Url;

/// Time for a connection to the service that gives credentials to a machine: elsewhere there is none, and nothing answers.
const SERVICE: Duration = Duration::from_secs(1);
/// Time for a store to put the parts of an object together: several minutes for the largest.
const COMPLETION: Duration = Duration::from_secs(15 * 60);

/// Makes connections.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    http: Arc<Http>,
    plain_http: PlainHttp,
    counters: Arc<Counters>,
    /// Whether an upload is not completed where an object is.
    is_new_only: bool,
}

impl Connector {
    pub(super) const fn new(
        http: Arc<Http>,
        plain_http: PlainHttp,
        counters: Arc<Counters>,
        is_new_only: bool,
    ) -> Self {
        Self { http, plain_http, counters, is_new_only }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Connector {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        // It waits for the network: each future has a thread of its own.
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let answered = self.exchange(Request::from_parts(parts, body));
            answered.map_err(|Stop { kind, error }| {
                let shown = io::Error::other(error.to_string());
                SEEN.with_borrow_mut(|seen| seen.outcome = Some(Outcome::Broken(error)));
                HttpError::new(kind, shown)
            })
        })
    }
}

/// Whether a request puts the parts of an upload together.
fn is_completion(method: &Method, query: &str) -> bool {
    let has = |wanted: &str| query.split('&').any(|part| part.starts_with(wanted));
    match *method {
        Method::POST => has("uploadId="),
        Method::PUT => has("comp=blocklist"),
        _ => false,
    }
}

/// Whether a request stores an object only where there is none.
fn is_guarded(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::PUT
        && ["if-none-match", "x-goog-if-generation-match"].iter().any(|name| headers.contains_key(*name))
}

/// Takes a token away that is empty: what is no token is refused also where none is needed.
fn drop_empty_token(headers: &mut HeaderMap) {
    if headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().trim_ascii() == b"Bearer") {
        headers.remove(AUTHORIZATION);
    }
}

/// Whether a host gives credentials to the machine or container that asks, over plain HTTP: at an address that is on no other network.
fn is_service(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse() {
        // Of instances, of containers, and of pods.
        Ok(IpAddr::V4(address)) => {
            matches!(address.octets(), [169, 254, 169, 254] | [169, 254, 170, 2 | 23])
        }
        // Amazon's.
        Ok(IpAddr::V6(address)) => matches!(address.segments(), [0xfd00, 0xec2, ..]),
        Err(_) => host == "metadata.google.internal",
    }
}

/// Why there is no answer, and whether it is tried again.
struct Stop {
    kind: HttpErrorKind,
    error: Error,
}

impl Stop {
    /// Of a request that may have arrived.
    fn noted(self) -> Self {
        let is_unclear = self.kind == HttpErrorKind::Interrupted;
        SEEN.with_borrow_mut(|seen| seen.is_unclear |= is_unclear);
        self
    }

    /// Of a request that can be repeated: it changes nothing if an earlier one has arrived.
    fn guarded(self) -> Self {
        match self.noted() {
            Self { kind: HttpErrorKind::Interrupted, error } => Self { kind: HttpErrorKind::Connect, error },
            other => other,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self { kind: HttpErrorKind::Unknown, error }
    }
}

impl Connector {
    fn exchange(&self, mut request: Request<Bytes>) -> Result<HttpResponse, Stop> {
        let url = Url::parse(&request.uri().to_string())?;
        let host = url.host().to_owned();
        let is_service = is_service(&host);
        let is_plain = !url.is_secure() && !url.is_loopback();
        if is_plain && !is_service && self.plain_http == PlainHttp::Loopback {
            return Err(Error::from(ErrorKind::PlainHttp { host }).into());
        }
        let is_completion = is_completion(request.method(), request.uri().query().unwrap_or_default());
        let is_guarded = is_guarded(request.method(), request.headers());
        if self.is_new_only && is_completion {
            // Not among the headers that have to be signed.
            request.headers_mut().insert("if-none-match", HeaderValue::from_static("*"));
        }
        drop_empty_token(request.headers_mut());
        let allowed = allowed(request.body().len() as u64);
        let times = Times {
            connect: if is_service { Some(SERVICE) } else { None },
            body: if is_completion { allowed.max(COMPLETION) } else { allowed },
        };
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let (tries, is_retry) = SEEN.with_borrow_mut(|seen| {
            seen.tries += 1;
            seen.is_completion = is_completion;
            (seen.tries, seen.outcome.is_some())
        });
        if is_retry {
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
        }
        let answer = self
            .http
            .exchange(request, &url, times)
            .map_err(|broken| stop(broken, host.clone(), tries, is_service))
            .map_err(|stop| match (is_guarded, is_completion) {
                (true, _) => stop.guarded(),
                (false, true) => stop.noted(),
                (false, false) => stop,
            })?;
        self.counters.bytes.fetch_add(answer.body().len() as u64, Ordering::Relaxed);
        let status = answer.status();
        if !status.is_success() {
            SEEN.with_borrow_mut(|seen| seen.is_unclear |= status.is_server_error());
            let code = code_of(answer.body()).map(str::to_owned);
            let outcome = Outcome::Refused { status, code, host, tries };
            SEEN.with_borrow_mut(|seen| seen.outcome = Some(outcome));
        }
        Ok(answer.map(Into::into))
    }
}

fn stop(broken: Broken, host: String, tries: u32, is_service: bool) -> Stop {
    match broken {
        Broken::Connection(_) if is_service => {
            let problem =
                "there are none in the environment, and this machine has no service that gives them";
            Error::from(ErrorKind::Credentials { problem: problem.to_owned() }).into()
        }
        Broken::Connection(error) => {
            let is_connect = match error.downcast_ref::<ureq::Error>() {
                Some(error) => matches!(error, ureq::Error::HostNotFound | ureq::Error::ConnectionFailed),
                None => error
                    .downcast_ref::<io::Error>()
                    .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused),
            };
            // What may have arrived is repeated if that changes nothing.
            let kind = if is_connect { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
            Stop { kind, error: Error::caused(ErrorKind::GaveUp { host, tries }, error) }
        }
        Broken::Settings(error) => error.into(),
        Broken::Request => Error::from(ErrorKind::Url { problem: "no request can be made of it" }).into(),
        Broken::Tls(error) => Error::caused(ErrorKind::Tls { host }, error).into(),
        Broken::Protocol(error) => {
            Error::caused(ErrorKind::Range { problem: "it is not HTTP" }, error).into()
        }
    }
}

/// What happened to the requests of this thread since it began to wait.
#[derive(Debug, Default)]
struct Seen {
    tries: u32,
    outcome: Option<Outcome>,
    /// Whether a request may have arrived to which there was no answer.
    is_unclear: bool,
    is_completion: bool,
}

#[derive(Debug)]
enum Outcome {
    Refused { status: StatusCode, code: Option<String>, host: String, tries: u32 },
    Broken(Error),
}

thread_local! {
    /// Errors of `object_store` are texts, which may have URLs in them.
    static SEEN: RefCell<Seen> = RefCell::default();
}

/// Why an object may be the one that was sent.
#[derive(Debug)]
pub(super) struct AnswerLost;

impl fmt::Display for AnswerLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer to an earlier try was lost: it may be the object that was sent")
    }
}

impl core::error::Error for AnswerLost {}

/// What an answer without success means.
fn refused(status: u16, code: Option<&str>, host: String, tries: u32, bucket: &str) -> ErrorKind {
    if crate::retry::is_temporary(status) {
        ErrorKind::GaveUp { host, tries }
    } else if is_service(&host) {
        let problem = format!(
            "there are none in the environment, and the service of this machine gives none (status {status})"
        );
        ErrorKind::Credentials { problem }
    } else {
        refusal(status, code, &host, bucket)
    }
}

/// Waits for requests to a bucket on this thread, and names what is wrong with them.
pub(super) fn wait<T>(
    bucket: &str,
    request: impl Future<Output = object_store::Result<T>>,
) -> Result<T, Error> {
    SEEN.take();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Error::caused(ErrorKind::OutOfMemory { len: 0 }, error))?;
    let error = match runtime.block_on(request) {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    let host = || bucket.to_owned();
    let Seen { outcome, is_unclear, is_completion, .. } = SEEN.take();
    let exists = || match is_unclear {
        true => Error::caused(ErrorKind::Exists, AnswerLost),
        false => ErrorKind::Exists.into(),
    };
    Err(match (outcome, error) {
        (Some(Outcome::Broken(error)), _) => error,
        (Some(Outcome::Refused { status, code, host, tries }), _) => {
            match refused(status.as_u16(), code.as_deref(), host, tries, bucket) {
                ErrorKind::Exists => exists(),
                // An upload that was completed is none any more.
                kind @ ErrorKind::NotFound { .. } if is_completion && is_unclear => {
                    Error::caused(kind, AnswerLost)
                }
                kind => kind.into(),
            }
        }
        (None, object_store::Error::AlreadyExists { .. }) => exists(),
        (None, object_store::Error::NotFound { .. }) => ErrorKind::NotFound { host: host() }.into(),
        (None, object_store::Error::InvalidPath { .. }) => {
            let problem = "a key there has empty parts, `.`, `..` or control characters".to_owned();
            ErrorKind::Listing { problem }.into()
        }
        (None, _) => {
            ErrorKind::Range { problem: "the object store gave another answer than its protocol has" }.into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_told_from_parts() {
        for (method, query, expected) in [
            (Method::POST, "uploadId=1", true),
            (Method::POST, "uploads", false),
            (Method::PUT, "partNumber=1&uploadId=1", false),
            (Method::PUT, "comp=blocklist", true),
            (Method::PUT, "comp=block&blockid=1", false),
            (Method::DELETE, "uploadId=1", false),
        ] {
            assert_eq!(is_completion(&method, query), expected, "{method} {query}");
        }
    }

    #[test]
    fn a_token_is_sent_unless_it_is_empty() {
        for (value, is_sent) in
            [("Bearer ", false), ("Bearer", false), ("Bearer x", true), ("AWS4-HMAC", true)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            drop_empty_token(&mut headers);
            assert_eq!(headers.contains_key(AUTHORIZATION), is_sent, "{value}");
        }
    }

    #[test]
    fn a_service_that_gives_no_credentials_is_no_missing_object() {
        for (host, status, code) in [
            ("169.254.169.254", 403, "rm-credentials"),
            ("169.254.170.2", 404, "rm-credentials"),
            ("metadata.google.internal", 404, "rm-credentials"),
            ("169.254.169.254", 503, "rm-gave-up"),
            ("storage.googleapis.com", 403, "rm-denied"),
            ("storage.googleapis.com", 404, "rm-not-found"),
        ] {
            let kind = refused(status, None, host.to_owned(), 1, "b");
            assert_eq!(Error::from(kind).code(), code, "{host} {status}");
        }
    }

    #[test]
    fn services_are_at_addresses_of_their_own() {
        for host in ["169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "metadata.google.internal"] {
            assert!(is_service(host), "{host}");
        }
        for host in [
            "169.255.0.1",
            "169.254.0.1",
            "metadata",
            "10.0.0.1",
            "[fd00::1]",
            "169.254.169.254.example",
            "s3.amazonaws.com",
        ] {
            assert!(!is_service(host), "{host}");
        }
    }
}
