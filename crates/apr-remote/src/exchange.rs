//! One request to a service, and its whole answer.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io::{self, Read as _};

use crate::client::{Client, Failed, plain, without_answer};
use crate::error::{Error, ErrorKind};
use crate::retry::allowed;
use crate::transport::Request;
use crate::url::Url;

/// Bytes that are read between two looks at the clock.
const PIECE_LEN: usize = 64 << 10;

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
            left: self.time_left(),
        };
        let failed = |failed| match failed {
            Failed::Final(error) => error,
            Failed::Again { error, .. } if self.time_left() == Some(Duration::ZERO) => {
                Error::caused(self.timed_out(), error)
            }
            Failed::Again { error, .. } => {
                Error::caused(ErrorKind::GaveUp { host: url.host().to_owned(), tries: 1 }, error)
            }
        };
        let broken = |error: io::Error| failed(crate::client::again(error));
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.transport.send(&request).map_err(|broken| failed(without_answer(url, broken)))?;
        plain(&answer)?;
        let (mut body, mut piece) = (Vec::new(), vec![0; PIECE_LEN]);
        let (mut from, mut slow) = (answer.body, self.slow(allowed(max_len)));
        loop {
            let read = match from.read(&mut piece) {
                Ok(0) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(broken)?,
            };
            self.counters.bytes.fetch_add(read as u64, Ordering::Relaxed);
            body.extend_from_slice(piece.get(..read).unwrap_or_default());
            if body.len() as u64 > max_len {
                return Err(ErrorKind::TooLong { limit: max_len }.into());
            }
            slow().map_or(Ok(()), |error| Err(broken(error)))?;
        }
        Ok(Exchanged { status: answer.status, body })
    }
}
