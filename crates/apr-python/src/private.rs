//! Encrypted requests to a model: `docs/private-inference.md` specifies them; Python sends them.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use apr_container::{ReadOptions, authenticate};
use apr_crypto::inference::service::{ServiceRequest, ServiceResponse, context, signed_key};
use apr_crypto::inference::{Padding, PendingRequest, RequestOptions, decrypt_response, encrypt_for_model};
use apr_crypto::{OsRandom, RecipientPublic};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::apr_files::keys::{Keys, Opening, recipient_of};
use crate::apr_files::refusal::Refusal;
use crate::apr_files::source::Source;

/// What opens the response to a request.
#[pyclass(frozen, module = "apr._native")]
pub(crate) struct PrivateRequest {
    pending: PendingRequest,
}

/// The public key to encrypt requests to, as text: `key`; or the one in the metadata of `model`, or in `key_file`, whose signature must
/// be by one of the trusted keys.
#[pyfunction]
#[pyo3(signature = (*, key=None, model=None, key_file=None, signature=None, verify_key=None, trusted_keys=None))]
pub(crate) fn inference_key(
    py: Python<'_>,
    key: Option<&Bound<'_, PyAny>>,
    model: Option<&Bound<'_, PyAny>>,
    key_file: Option<&str>,
    signature: Option<&str>,
    verify_key: Option<&Bound<'_, PyAny>>,
    trusted_keys: Option<PathBuf>,
) -> PyResult<String> {
    if let Some(key) = key {
        return recipient_of(key).map(|key| key.to_string());
    }
    let opening = Opening {
        password: None,
        identity: None,
        key_password: None,
        verify_key,
        trusted_keys,
        any_signer: false,
    };
    let keys = Keys::new(py, opening)?;
    let source = model.map(Source::here).transpose()?;
    let found = || -> Result<RecipientPublic, Refusal> {
        let Some(source) = &source else {
            let (file, signature) = (key_file.unwrap_or_default(), signature.unwrap_or_default());
            return Ok(signed_key(file, signature, keys.access().trust())?);
        };
        let file = source.read()?;
        let metadata = authenticate(&file, &keys.access(), &ReadOptions::STRICT)?;
        Ok(*metadata.inference_key()?.public())
    };
    let path = source.as_ref().and_then(Source::path);
    found().map(|key| key.to_string()).map_err(|refusal| refusal.raise(py, path))
}

/// The encrypted request for `body`, and what opens its response. `key` is the text of a public key; `session` is that of the server.
#[pyfunction]
pub(crate) fn private_request<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyAny>,
    session: &str,
    query: &str,
    media_type: &str,
    body: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, PrivateRequest)> {
    let key = recipient_of(key)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let options = RequestOptions::default().sent_at(now).with_padding(Padding::PowerOfTwo);
    let encrypted = ServiceRequest { query, media_type, accept: "", body }.to_vec().and_then(|content| {
        encrypt_for_model(&mut OsRandom, &key, context(session).as_bytes(), &content, &options)
    });
    let (request, pending) = encrypted.map_err(|error| Refusal::from(error).raise(py, None))?;
    Ok((PyBytes::new(py, &request), PrivateRequest { pending }))
}

#[pymethods]
impl PrivateRequest {
    /// Status, media type and body of the response.
    fn open<'py>(&self, py: Python<'py>, response: &[u8]) -> PyResult<(u16, String, Bound<'py, PyBytes>)> {
        let raise = |error| Refusal::from(error).raise(py, None);
        let opened = decrypt_response(&self.pending, response).map_err(raise)?;
        let ServiceResponse { status, media_type, body, .. } =
            ServiceResponse::from_bytes(&opened).map_err(raise)?;
        Ok((status, media_type.to_owned(), PyBytes::new(py, body)))
    }
}
