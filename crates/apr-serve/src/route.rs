//! Routes a request to its handler.

use alloc::sync::Arc;
use core::convert::Infallible;
use std::time::Instant;

use apr_models::OutputKind;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};

use crate::body::{self, Answer};
use crate::budget::Reserved;
use crate::connections::Phase;
use crate::link::Link;
use crate::log::{Log, Logged};
use crate::media::{self, CLASSES, FLOATS, JSON};
use crate::metrics::{self, Endpoint};
use crate::predict::{self, Answered};
#[cfg(feature = "private")]
use crate::private::{self, Private};
use crate::refusal::Refusal;
use crate::request::{AnswerForm, Ask, Form, RawKind};
use crate::worker::Worker;

/// Values of a row of a raw body, in requests and responses.
const COLUMNS: HeaderName = HeaderName::from_static("apr-columns");

/// The model of an answer whose body has no place for it.
#[cfg(feature = "arrow")]
const MODEL: HeaderName = HeaderName::from_static("apr-model");

/// Responds to a request; an error is a response, too.
///
/// # Errors
///
/// None.
pub(crate) async fn respond(
    worker: Arc<Worker>,
    link: Arc<Link>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    link.enter(Phase::Body);
    let begun = worker.shared.log.is_some().then(|| Begun::new(&request));
    let endpoint = match request.uri().path() {
        "/predict" => Endpoint::Predict,
        "/health" => Endpoint::Health,
        "/metrics" => Endpoint::Metrics,
        "/model" => Endpoint::Model,
        #[cfg(feature = "private")]
        "/private" if worker.shared.private.is_some() => Endpoint::Private,
        _ => Endpoint::Other,
    };
    let outcome = match worker.shared.hosts.check(&request) {
        Ok(()) => answer(&worker, &link, endpoint, request).await,
        Err(refusal) => Err(refusal),
    };
    let Reply { mut response, n_rows } =
        outcome.unwrap_or_else(|refusal| refuse(&worker, endpoint, &refusal).into());
    // Responses hold names from the model's file; no browser shall take them for a page.
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    worker.counters().request(endpoint, response.status());
    if let (Some(log), Some(begun)) = (&worker.shared.log, begun) {
        begun.log(log, response.status(), n_rows);
    }
    link.enter(Phase::Answered);
    Ok(response)
}

/// A response, and the number of rows predicted.
pub(crate) struct Reply {
    pub(crate) response: Response<Answer>,
    pub(crate) n_rows: usize,
}

impl From<Response<Answer>> for Reply {
    fn from(response: Response<Answer>) -> Self {
        Self { response, n_rows: 0 }
    }
}

/// The log entry of a request.
struct Begun {
    method: Method,
    target: Uri,
    at: Instant,
}

impl Begun {
    fn new<B>(request: &Request<B>) -> Self {
        Self { method: request.method().clone(), target: request.uri().clone(), at: Instant::now() }
    }

    fn log(&self, log: &Log, status: StatusCode, n_rows: usize) {
        log.write(Logged {
            method: self.method.as_str(),
            target: self.target.path_and_query().map_or("-", |target| target.as_str()),
            status: status.as_u16(),
            elapsed: self.at.elapsed(),
            n_rows,
        });
    }
}

async fn answer(
    worker: &Worker,
    link: &Link,
    endpoint: Endpoint,
    request: Request<Incoming>,
) -> Result<Reply, Refusal> {
    match endpoint {
        // RFC 9110, section 9.3.7: the server as a whole.
        Endpoint::Other if request.method() == Method::OPTIONS && request.uri().path() == "*" => {
            Ok(options(endpoint).into())
        }
        Endpoint::Other => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "sv-path",
            "not found",
            "the paths are /predict, /model, /health and /metrics; with an inference key also /private",
        )),
        _ if request.method() == Method::OPTIONS => Ok(options(endpoint).into()),
        Endpoint::Predict if request.method() == Method::POST => predict(worker, link, request).await,
        Endpoint::Predict => Err(wrong_method(endpoint)),
        #[cfg(feature = "private")]
        Endpoint::Private if request.method() == Method::POST => private::answer(worker, link, request).await,
        _ if request.method() == Method::GET || request.method() == Method::HEAD => {
            Ok(tell(worker, endpoint).into())
        }
        _ => Err(wrong_method(endpoint)),
    }
}

fn allowed(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Predict => "POST, OPTIONS",
        Endpoint::Other | Endpoint::Private => "GET, HEAD, POST, OPTIONS",
        _ => "GET, HEAD, OPTIONS",
    }
}

fn wrong_method(endpoint: Endpoint) -> Refusal {
    let (what, help) = match endpoint {
        Endpoint::Predict => ("method not allowed: use POST", "POST rows to this path"),
        Endpoint::Private => {
            ("method not allowed: use GET or POST", "GET the session, POST encrypted requests")
        }
        _ => ("method not allowed: use GET", "GET this path"),
    };
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "sv-method", what, help)
}

fn options(endpoint: Endpoint) -> Response<Answer> {
    let mut response = Response::new(Answer::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed(endpoint)));
    response
}

pub(crate) fn with_body(content_type: &'static str, body: impl Into<Answer>) -> Response<Answer> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn refuse(worker: &Worker, endpoint: Endpoint, refusal: &Refusal) -> Response<Answer> {
    worker.shared.rare.error(refusal.code);
    let mut response = with_body(JSON, refusal.to_json());
    *response.status_mut() = refusal.status;
    let headers = response.headers_mut();
    match refusal.status {
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(header::ALLOW, HeaderValue::from_static(allowed(endpoint)));
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            if let Ok(accepted) = HeaderValue::try_from(media::accepted()) {
                headers.insert(header::ACCEPT, accepted);
            }
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    if refusal.closes {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Status, model and metrics of the server.
fn tell(worker: &Worker, endpoint: Endpoint) -> Response<Answer> {
    let shared = &worker.shared;
    match endpoint {
        #[cfg(feature = "private")]
        Endpoint::Private => {
            with_body(JSON, shared.private.as_ref().map(Private::to_json).unwrap_or_default())
        }
        Endpoint::Model => with_body(JSON, shared.slot.current().to_json()),
        Endpoint::Metrics => with_body(
            "text/plain; version=0.0.4; charset=utf-8",
            metrics::to_text(&shared.counters, &shared.rare, shared.state()),
        ),
        _ if shared.is_draining() => {
            let mut response = with_body(JSON, b"{\"status\":\"draining\"}\n".to_vec());
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        }
        _ => with_body(JSON, b"{\"status\":\"ready\"}\n".to_vec()),
    }
}

async fn predict(worker: &Worker, link: &Link, request: Request<Incoming>) -> Result<Reply, Refusal> {
    let began = Instant::now();
    let ask = ask(&request)?;
    let options = &worker.shared.options;
    let mut reserved = Reserved::none(&worker.shared.budget);
    let body = body::collect(request.into_body(), options.max_body, &mut reserved).await?;
    worker.counters().received(body.len());
    link.enter(Phase::Work);
    let served = worker.shared.slot.current();
    let end = began + options.request_time;
    let Answered { body, n_rows, raw, reserved } = predict::answer(worker, &served, &body, ask, end).await?;
    worker.counters().predicted(n_rows, body.len(), began.elapsed());
    let media_type = media_type_of(ask, raw.map(|(kind, _)| kind));
    let mut response = with_body(media_type, Answer::new(body, reserved));
    if let Some((_, n_columns)) = raw {
        response.headers_mut().insert(COLUMNS, HeaderValue::from(n_columns));
    }
    #[cfg(feature = "arrow")]
    if media_type == media::ARROW
        && let Ok(tag) = HeaderValue::from_str(&served.tag)
    {
        response.headers_mut().insert(MODEL, tag);
    }
    Ok(Reply { response, n_rows })
}

/// The media type of an answer.
pub(crate) const fn media_type_of(ask: Ask, raw: Option<RawKind>) -> &'static str {
    match (raw, ask.answer) {
        (Some(RawKind::Floats), _) => FLOATS,
        (Some(RawKind::Classes), _) => CLASSES,
        (None, AnswerForm::Json) => JSON,
        #[cfg(feature = "msgpack")]
        (None, AnswerForm::MessagePack) => media::MESSAGE_PACK,
        #[cfg(feature = "arrow")]
        (None, AnswerForm::Arrow) => media::ARROW,
    }
}

/// The requested output.
fn ask(request: &Request<Incoming>) -> Result<Ask, Refusal> {
    let headers = request.headers();
    media::check_plain(headers)?;
    let media_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ask_of(request.uri().query().unwrap_or_default(), columns_of(headers)?, media_type, accept)
}

/// The output that a query and media types request.
pub(crate) fn ask_of<'v>(
    query: &str,
    mut n_columns: Option<usize>,
    media_type: Option<&str>,
    accept: impl IntoIterator<Item = &'v str>,
) -> Result<Ask, Refusal> {
    let mut output = None;
    let unknown = |part: &str| {
        let what = format_args!("unknown query parameter `{part}`").to_string();
        Refusal::new(
            StatusCode::BAD_REQUEST,
            "sv-query",
            what,
            "the query parameters are ?proba=true and ?columns=N",
        )
    };
    let twice = |part: &str| {
        let what = format_args!("`{part}`, but that was given before").to_string();
        let help = "give ?proba once, and the columns as ?columns=N or in the header apr-columns";
        Refusal::new(StatusCode::BAD_REQUEST, "sv-query", what, help)
    };
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("proba", _)) if output.is_some() => return Err(twice(part)),
            Some(("columns", _)) if n_columns.is_some() => return Err(twice(part)),
            Some(("proba", value)) => {
                output = Some(match value {
                    "true" | "1" => OutputKind::Probabilities,
                    "false" | "0" => OutputKind::Predictions,
                    _ => return Err(unknown(part)),
                });
            }
            Some(("columns", value)) => {
                n_columns = Some(number(value).ok_or_else(|| unknown(part))?);
            }
            _ => return Err(unknown(part)),
        }
    }
    let form = media_type.map_or(Ok(Form::Json), |media_type| media::form(media_type, n_columns))?;
    Ok(Ask { form, answer: media::answer_form(accept), output: output.unwrap_or_default() })
}

fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&number| number > 0)
}

fn columns_of(headers: &HeaderMap) -> Result<Option<usize>, Refusal> {
    let Some(value) = headers.get(COLUMNS) else { return Ok(None) };
    value.to_str().ok().and_then(number).map(Some).ok_or_else(|| {
        let what = "the header apr-columns is not a number of columns";
        Refusal::new(StatusCode::BAD_REQUEST, "sv-query", what, "give a whole number from 1 on")
    })
}
