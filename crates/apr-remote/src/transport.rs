//! One request and its answer.

use core::error::Error as StdError;
use core::ops::Range;
use core::time::Duration;
use std::io::Read;

use ureq::http::HeaderMap;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::url::Url;

/// A GET, or a POST if it has content.
pub(crate) struct Request<'r> {
    pub(crate) url: &'r Url,
    /// `None` for all of it.
    pub(crate) range: Option<Range<u64>>,
    pub(crate) if_match: Option<&'r str>,
    /// Of what is known: a 304 says that it is still there.
    pub(crate) if_none_match: Option<&'r str>,
    /// A credential.
    pub(crate) authorization: Option<Zeroizing<String>>,
    /// Media type and body of a POST.
    pub(crate) content: Option<(&'r str, &'r [u8])>,
    /// The longest time that the body may take.
    pub(crate) allowed: Duration,
    /// The longest time that all of it may take.
    pub(crate) left: Option<Duration>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Box<dyn Read + Send>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection: it is tried again.
    Connection(Box<dyn StdError + Send + Sync>),
    /// The environment does not allow the request.
    Settings(Error),
    /// The request cannot be written. What it is about would show the query of the URL.
    Request,
    /// The certificate or the protocol: trying again changes nothing.
    Tls(Box<dyn StdError + Send + Sync>),
    /// The answer is not HTTP.
    Protocol(Box<dyn StdError + Send + Sync>),
}

/// What sends requests: the network, or a simulation of one.
pub(crate) trait Transport: core::fmt::Debug + Send + Sync {
    /// Sends a request and gives the answer to it, following no redirect.
    fn send(&self, request: &Request<'_>) -> Result<Answer, Broken>;
}
