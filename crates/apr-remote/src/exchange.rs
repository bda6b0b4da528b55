//! One request to a service, and its whole answer.

use core::sync::atomic::Ordering;
use std::io::{self, Read as _};

use crate::client::{Client, Failed, plain, without_answer};
use crate::error::{Error, ErrorKind};
use crate::retry::allowed;
use crate::transport::Request;
use crate::url::Url;

/// The answer of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchanged {
    /// Its status, whatever it is.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

impl Client {
    /// Sends a GET, or a POST of content with this media type, and reads an answer of at most `max_len` bytes. No redirect is followed,
    /// nothing is tried again, and no credential is sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Offline`], [`ErrorKind::PlainHttp`], [`ErrorKind::Tls`]; [`ErrorKind::GaveUp`] if the connection fails;
    /// [`ErrorKind::Encoding`]; [`ErrorKind::TooLong`] for a longer answer.
    pub fn exchange(
        &self,
        url: &Url,
        content: Option<(&str, &[u8])>,
        max_len: u64,
    ) -> Result<Exchanged, Error> {
        self.check(url)?;
        let request = Request {
            url,
            range: None,
            if_match: None,
            if_none_match: None,
            authorization: None,
            content,
            allowed: allowed(max_len),
        };
        let failed = |failed| match failed {
            Failed::Final(error) => error,
            Failed::Again { error, .. } => {
                Error::caused(ErrorKind::GaveUp { host: url.host().to_owned(), tries: 1 }, error)
            }
        };
        let broken = |error: io::Error| failed(crate::client::again(error));
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.transport.send(&request).map_err(|broken| failed(without_answer(url, broken)))?;
        plain(&answer)?;
        let mut body = Vec::new();
        answer.body.take(max_len.saturating_add(1)).read_to_end(&mut body).map_err(broken)?;
        self.counters.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        if body.len() as u64 > max_len {
            return Err(ErrorKind::TooLong { limit: max_len }.into());
        }
        Ok(Exchanged { status: answer.status, body })
    }
}
