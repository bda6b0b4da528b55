//! Encrypted requests to a model's owner and responses to the client: `docs/private-inference.md`.
//!
//! Both are protected in transit. The owner decrypts the request, since the model runs on its content. The model's public key
//! has to be authenticated; for `.apr` files by `apr_container::authenticate`.
//!
//! ```
//! use apr_crypto::inference::{
//!     Padding, ReplayGuard, RequestOptions, decrypt_request, decrypt_response, encrypt_for_model, encrypt_response,
//! };
//! use apr_crypto::{OsRandom, RecipientSecret};
//!
//! # fn now() -> u64 { 1_795_241_427 }
//! let rng = &mut OsRandom;
//! let owner = RecipientSecret::generate(rng)?;
//! let context = b"example.org risk model 3";
//!
//! // The client.
//! let options = RequestOptions::default().sent_at(now()).with_padding(Padding::PowerOfTwo);
//! let (request, pending) = encrypt_for_model(rng, &owner.public(), context, b"37.2 0.8", &options)?;
//!
//! // The owner of the model.
//! let mut guard = ReplayGuard::new(100_000, 300);
//! let asked = decrypt_request(&owner, context, &request)?;
//! guard.admit(asked.token(), now())?;
//! assert_eq!(asked.input(), b"37.2 0.8");
//! let response = encrypt_response(rng, &asked, b"0.93", Padding::PowerOfTwo)?;
//!
//! // The client again.
//! assert_eq!(decrypt_response(&pending, &response)?, b"0.93");
//! // A recorded request that an attacker replays.
//! let again = decrypt_request(&owner, context, &request)?;
//! assert_eq!(guard.admit(again.token(), now()).unwrap_err().code(), "cy-replay");
//! # Ok::<(), apr_crypto::Error>(())
//! ```

mod message;
mod replay;
pub mod service;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

pub use self::message::Padding;
pub use self::replay::{ReplayGuard, ReplayToken};
use crate::encrypt::aead::AesKey;
use crate::encrypt::recipient::{Agreement, EphemeralPublic, RecipientPublic, RecipientSecret};
use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::redacted;
use message::{Body, Draft};

/// What a request begins with: name of the format, its version.
const REQUEST_MAGIC: [u8; 8] = *b"apr-ask\x01";
/// What a response begins with.
const RESPONSE_MAGIC: [u8; 8] = *b"apr-ans\x01";

/// What the keys of the two directions are for; the context follows.
const REQUEST_INFO: &[u8] = b"apr-inference-v1 request\0";
const RESPONSE_INFO: &[u8] = b"apr-inference-v1 response\0";

const REQUEST: &str = "an encrypted request of this version";
const RESPONSE: &str = "an encrypted response of this version";

/// What a client may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// When the request is made, in seconds since 1970. A server that forgets old requests needs it. Default: not said.
    pub sent_at: Option<u64>,
    /// How the length of the input is hidden. Default: it is not.
    pub padding: Padding,
}

impl RequestOptions {
    /// With this time, in seconds since 1970.
    #[must_use]
    pub const fn sent_at(mut self, seconds: u64) -> Self {
        self.sent_at = Some(seconds);
        self
    }

    /// With the length hidden like this.
    #[must_use]
    pub const fn with_padding(mut self, padding: Padding) -> Self {
        self.padding = padding;
        self
    }
}

/// Encrypts an input to the owner of a model, and keeps what opens the response. `context` is what both sides agree on
/// beside the key, for example the model's name and version; a server with another one cannot open the request.
///
/// # Errors
///
/// [`ErrorKind::Randomness`]; [`ErrorKind::OutOfMemory`]; [`ErrorKind::TooLong`] beyond 64 GiB.
pub fn encrypt_for_model(
    rng: &mut (impl Rng + ?Sized),
    model: &RecipientPublic,
    context: &[u8],
    input: &[u8],
    options: &RequestOptions,
) -> Result<(Vec<u8>, PendingRequest), Error> {
    let (ephemeral, agreement) = model.agree(rng)?;
    let token = ReplayToken::generate(rng, options.sent_at)?;
    let draft = Draft {
        front: &[&REQUEST_MAGIC, &ephemeral.to_bytes()],
        fields: &token.to_bytes(),
        content: input,
        padding: options.padding,
    };
    let request = draft.seal(rng, &direction(&agreement, REQUEST_INFO, context), &REQUEST_MAGIC)?;
    let bound = bound_to(&request);
    Ok((request, PendingRequest { key: direction(&agreement, RESPONSE_INFO, context), bound }))
}

/// What a client keeps until the response comes: its key, and which request it is to.
///
/// ```compile_fail,E0599
/// # use apr_crypto::inference::{RequestOptions, encrypt_for_model};
/// # let rng = &mut apr_crypto::OsRandom;
/// # let owner = apr_crypto::RecipientSecret::generate(rng).unwrap().public();
/// let (_, pending) = encrypt_for_model(rng, &owner, b"", b"", &RequestOptions::default()).unwrap();
/// let copy = pending.clone();
/// ```
pub struct PendingRequest {
    key: AesKey,
    bound: [u8; BOUND_LEN],
}

redacted!(PendingRequest);

/// A request that its model's owner opened. The input is wiped when it is dropped.
///
/// [`ReplayGuard::admit`] checks whether it is a replay.
pub struct Request {
    body: Body,
    token: ReplayToken,
    key: AesKey,
    bound: [u8; BOUND_LEN],
}

impl Request {
    /// The input of the model.
    #[must_use]
    pub fn input(&self) -> &[u8] {
        self.body.content()
    }

    /// What tells this request from every other.
    #[must_use]
    pub const fn token(&self) -> &ReplayToken {
        &self.token
    }
}

redacted!(Request);

/// Opens a request to the model whose secret key this is.
///
/// # Errors
///
/// [`ErrorKind::Message`] for what is no request; [`ErrorKind::WeakKey`], [`ErrorKind::InvalidKey`] for its ephemeral key;
/// [`ErrorKind::Open`] if it is for another key or context or was changed; [`ErrorKind::OutOfMemory`].
pub fn decrypt_request(secret: &RecipientSecret, context: &[u8], request: &[u8]) -> Result<Request, Error> {
    let wrong = ErrorKind::Message { expected: REQUEST };
    let rest = request.strip_prefix(&REQUEST_MAGIC).ok_or(wrong)?;
    let (ephemeral, sealed) = rest.split_first_chunk::<{ RecipientPublic::LEN }>().ok_or(wrong)?;
    if sealed.len() < AesKey::OVERHEAD {
        return Err(wrong.into());
    }
    let agreement = secret.agree(&EphemeralPublic::from_file(*ephemeral)?)?;
    let opened = direction(&agreement, REQUEST_INFO, context).open(&REQUEST_MAGIC, sealed)?;
    let body = Body::new(opened, ReplayToken::LEN).ok_or(wrong)?;
    let token = body.fields().first_chunk().map(ReplayToken::from_bytes).ok_or(wrong)?;
    Ok(Request { body, token, key: direction(&agreement, RESPONSE_INFO, context), bound: bound_to(request) })
}

/// Encrypts the response to one request, for the client that made it.
///
/// # Errors
///
/// As [`encrypt_for_model`].
pub fn encrypt_response(
    rng: &mut (impl Rng + ?Sized),
    request: &Request,
    output: &[u8],
    padding: Padding,
) -> Result<Vec<u8>, Error> {
    Draft { front: &[&RESPONSE_MAGIC], fields: &[], content: output, padding }.seal(
        rng,
        &request.key,
        &request.bound,
    )
}

/// Opens the response to a request. That it opens shows that the owner of the model's key made it, for this request.
///
/// # Errors
///
/// [`ErrorKind::Message`] for what is no response; [`ErrorKind::Open`] if it is to another request, from another sender,
/// or was modified; the request can still be answered then. [`ErrorKind::OutOfMemory`].
pub fn decrypt_response(pending: &PendingRequest, response: &[u8]) -> Result<Vec<u8>, Error> {
    let wrong = ErrorKind::Message { expected: RESPONSE };
    let sealed = response.strip_prefix(&RESPONSE_MAGIC).ok_or(wrong)?;
    if sealed.len() < AesKey::OVERHEAD {
        return Err(wrong.into());
    }
    let body = Body::new(pending.key.open(&pending.bound, sealed)?, 0).ok_or(wrong)?;
    let mut output = crate::encrypt::aead::try_with_capacity(body.content().len())?;
    output.extend_from_slice(body.content());
    Ok(output)
}

/// The key of one direction.
fn direction(agreement: &Agreement, info: &[u8], context: &[u8]) -> AesKey {
    agreement.aes_key(&[info, context].concat())
}

const BOUND_LEN: usize = RESPONSE_MAGIC.len() + 32;

/// What a response is authenticated with: what it begins with, and the request it is to.
fn bound_to(request: &[u8]) -> [u8; BOUND_LEN] {
    let mut bound = [0; BOUND_LEN];
    let (magic, digest) = bound.split_at_mut(RESPONSE_MAGIC.len());
    magic.copy_from_slice(&RESPONSE_MAGIC);
    digest.copy_from_slice(&Sha256::digest(request));
    bound
}
