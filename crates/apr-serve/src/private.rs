//! `/private`: requests that are encrypted to the owner of the model. `docs/private-inference.md` is the specification.

use core::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use apr_crypto::inference::service::{
    MEDIA_TYPE, REQUEST_OVERHEAD, ServiceRequest, ServiceResponse, context,
};
use apr_crypto::inference::{Padding, ReplayGuard, Request, decrypt_request, encrypt_response};
use apr_crypto::{AnyPublicKey, Error, ErrorKind, OsRandom, RecipientPublic, RecipientSecret, Rng as _};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};

use crate::body::{self, Answer};
use crate::budget::Reserved;
use crate::connections::Phase;
use crate::link::Link;
use crate::media;
use crate::predict::{self, Answered};
use crate::refusal::Refusal;
use crate::request::Ask;
use crate::route::{Reply, ask_of, media_type_of, with_body};
use crate::slot::Served;
use crate::worker::Worker;
use crate::write;

/// Seconds by which a request may be older or newer than the server's clock.
const WINDOW: u64 = 300;
/// Requests that are remembered for that time: some 50 MB.
const CAPACITY: usize = 1_000_000;

/// The key of a model's owner, and what the server needs beside it to answer encrypted requests.
///
/// Each value is a session of its own: requests that were made for another one, recorded before a restart or for another server with
/// the same key, do not open.
pub struct Private {
    secret: RecipientSecret,
    public: RecipientPublic,
    session: String,
    context: String,
    signed_key: Option<[String; 2]>,
    guard: Mutex<ReplayGuard>,
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Private {
    /// A new session with this key. A request may be 300 seconds older or newer than the clock, and a million of them are remembered
    /// until they are too old.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`].
    pub fn new(secret: RecipientSecret) -> Result<Self, Error> {
        let mut id = [0; 16];
        OsRandom.fill(&mut id)?;
        let session = base16ct::lower::encode_string(&id);
        Ok(Self {
            public: secret.public(),
            secret,
            context: context(&session),
            session,
            signed_key: None,
            guard: Mutex::new(ReplayGuard::new(CAPACITY, WINDOW)),
        })
    }

    /// Accepts requests of other ages, and remembers another number of them.
    #[must_use]
    pub fn with_guard(mut self, guard: ReplayGuard) -> Self {
        self.guard = Mutex::new(guard);
        self
    }

    /// Offers clients the file of the public key with a signature, for those who trust its signer
    /// ([`signed_key`](apr_crypto::inference::service::signed_key)).
    ///
    /// # Errors
    ///
    /// If the file holds no public key; [`ErrorKind::KeyMismatch`] if it is another one.
    pub fn with_signed_key(mut self, file: String, signature: String) -> Result<Self, Error> {
        if AnyPublicKey::from_text(&file)?.key.into_recipient()? != self.public {
            return Err(ErrorKind::KeyMismatch.into());
        }
        self.signed_key = Some([file, signature]);
        Ok(self)
    }

    /// The response of `GET /private`.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"schema\":\"apr.serve.private/1\",\"session\":".to_vec();
        write::string(&self.session, &mut out);
        out.extend_from_slice(b",\"key\":");
        write::string(&self.public.to_string(), &mut out);
        for (name, idx) in [("key_file", 0), ("signature", 1)] {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            match &self.signed_key {
                Some(texts) => write::string(&texts[idx], &mut out),
                None => out.extend_from_slice(b"null"),
            }
        }
        out.extend_from_slice(b"}\n");
        out
    }

    /// Opens a request, once.
    ///
    /// # Errors
    ///
    /// One refusal for everything that does not open, so that it says nothing about the key; those of the guard.
    fn open(&self, body: &[u8]) -> Result<Request, Refusal> {
        let request =
            decrypt_request(&self.secret, self.context.as_bytes(), body).map_err(|_| not_opened())?;
        // Without a clock, every request is stale.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.admit(request.token(), now).map_err(|error| {
            let again = "encrypt a new request, by a clock that is right";
            match error.kind() {
                ErrorKind::ReplayGuardFull { .. } => Refusal::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    error.code(),
                    &error,
                    "try again in some minutes",
                ),
                // The request's own time was encrypted.
                ErrorKind::Stale { earliest, latest, .. } => {
                    let what = format_args!("the request is not of the time from {earliest} to {latest}")
                        .to_string();
                    Refusal::new(StatusCode::CONFLICT, error.code(), what, again)
                }
                _ => Refusal::new(StatusCode::CONFLICT, error.code(), &error, again),
            }
        })?;
        Ok(request)
    }
}

/// Answers an encrypted request.
///
/// # Errors
///
/// If the request is no encrypted request of this session. What is wrong with its content is in the encrypted response.
pub(crate) async fn answer(
    worker: &Worker,
    link: &Link,
    request: hyper::Request<Incoming>,
) -> Result<Reply, Refusal> {
    let began = Instant::now();
    check_head(request.headers(), request.uri().query())?;
    let shared = &worker.shared;
    let mut reserved = Reserved::none(&shared.budget);
    let max_len = shared.options.max_body.saturating_add(REQUEST_OVERHEAD);
    let body = body::collect(request.into_body(), max_len, &mut reserved).await?;
    worker.counters().received(body.len());
    link.enter(Phase::Work);
    // As it came, and decrypted.
    let request_len = body.len();
    reserved.at_least(2 * request_len)?;
    let opened = shared.private.as_ref().ok_or_else(not_opened)?.open(&body)?;
    drop(body);
    let served = shared.slot.current();
    let answered = predict(worker, &served, opened.input(), began + shared.options.request_time).await;
    let (told, response);
    let n_rows = match &answered {
        Ok((ask, Answered { body, n_rows, raw, .. })) => {
            response = ServiceResponse {
                status: StatusCode::OK.as_u16(),
                n_columns: raw.map_or(0, |(_, n_columns)| n_columns as u32),
                media_type: media_type_of(*ask, raw.map(|(kind, _)| kind)),
                model: &served.tag,
                body,
            };
            *n_rows
        }
        Err(refusal) => {
            shared.rare.error(refusal.code);
            told = refusal.to_json();
            let status = refusal.status.as_u16();
            response = ServiceResponse { status, media_type: media::JSON, body: &told, ..Default::default() };
            0
        }
    };
    // The decrypted request, which has the key of the response; the response with its head, and encrypted with padding that may double it.
    reserved.at_least(request_len.saturating_add(3 * response.body.len()))?;
    let cannot = |error| Refusal::busy(format_args!("the response cannot be encrypted: {error}"));
    let content = response.to_vec().map_err(cannot)?;
    let is_answered = answered.is_ok();
    drop(answered);
    let sealed = encrypt_response(&mut OsRandom, &opened, &content, Padding::PowerOfTwo).map_err(cannot)?;
    if is_answered {
        worker.counters().predicted(n_rows, sealed.len(), began.elapsed());
    }
    Ok(Reply { response: with_body(MEDIA_TYPE, Answer::new(sealed, reserved)), n_rows })
}

/// Predicts the rows inside a request.
async fn predict(
    worker: &Worker,
    served: &Served,
    content: &[u8],
    end: Instant,
) -> Result<(Ask, Answered), Refusal> {
    let ServiceRequest { query, media_type, accept, body } = ServiceRequest::from_bytes(content)
        .map_err(|error| Refusal::of_body("sv-body", error, "docs/private-inference.md has the layout"))?;
    if body.len() > worker.shared.options.max_body {
        return Err(body::too_long(worker.shared.options.max_body));
    }
    let ask = ask_of(query, None, Some(media_type).filter(|text| !text.is_empty()), [accept])?;
    Ok((ask, predict::answer(worker, served, body, ask, end).await?))
}

/// One refusal for whatever does not open.
fn not_opened() -> Refusal {
    let what = "the request was not encrypted to the key and the session of this server, or was modified";
    Refusal::of_body("sv-private", what, "GET /private says the session; encrypt the request again")
}

/// Checks the plaintext part of a request: of the query and the media type there is one form each.
fn check_head(headers: &HeaderMap, query: Option<&str>) -> Result<(), Refusal> {
    if query.is_some_and(|query| !query.is_empty()) {
        let what = "the query of an encrypted request is inside it";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "sv-query", what, "encrypt it with the rows"));
    }
    media::check_plain(headers)?;
    let is_private =
        |value: &header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(MEDIA_TYPE.as_bytes());
    match headers.get(header::CONTENT_TYPE) {
        Some(value) if !is_private(value) => {
            let what = "the body is not an encrypted request";
            let help = "send application/vnd.apr.private, or plain rows to /predict";
            Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "sv-media-type", what, help))
        }
        _ => Ok(()),
    }
}
