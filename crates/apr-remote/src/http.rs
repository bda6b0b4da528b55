//! The network, the clock, and random numbers.

use core::hash::{BuildHasher as _, Hasher as _};
use core::time::Duration;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::time::Instant;

#[cfg(feature = "cloud")]
use bytes::Bytes;
use ureq::Agent;
use ureq::http::{HeaderValue, Response};
#[cfg(feature = "cloud")]
use ureq::http::{Method, Request as HttpRequest};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::error::{Error, ErrorKind};
use crate::proxy;
use crate::retry::{Pace, allowed};
use crate::transport::{Answer, Broken, Request, Transport};
use crate::url::Url;

/// Time for a connection, and for the network to bring anything.
const STALL: Duration = Duration::from_secs(30);

/// Connections of `ureq`.
#[derive(Debug)]
pub(crate) struct Http {
    /// For `https://` and `http://`; why there is none is known when one is needed.
    secure: Result<Agent, ErrorKind>,
    plain: Result<Agent, ErrorKind>,
    /// Never through a proxy.
    loopback: Agent,
}

impl Http {
    /// Certificates are those of SSL_CERT_FILE, else of Mozilla's programme; proxies those of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY.
    /// A proxy that cannot be used ends the first request that needs it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Certificates`].
    pub(crate) fn new(certificates: Option<OsString>) -> Result<Self, Error> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = certificates {
            let text = fs::read(path).map_err(|error| Error::caused(ErrorKind::Certificates, error))?;
            let found = parse_pem(&text).filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            });
            let found: Vec<_> = found.collect();
            if found.is_empty() {
                return Err(ErrorKind::Certificates.into());
            }
            tls = tls.root_certs(RootCerts::new_with_certs(&found));
        }
        let tls = tls.build();
        let agent = |proxy| {
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .proxy(proxy)
                .tls_config(tls.clone())
                .timeout_resolve(Some(STALL))
                .timeout_connect(Some(STALL))
                .timeout_recv_response(Some(STALL))
                .timeout_per_read(Some(STALL))
                .user_agent(concat!("apr/", env!("CARGO_PKG_VERSION")));
            Agent::new_with_config(config.build())
        };
        let of = |is_secure| proxy::of_environment(is_secure, |name| std::env::var_os(name)).map(agent);
        Ok(Self { secure: of(true), plain: of(false), loopback: agent(None) })
    }

    /// What reaches a URL.
    fn agent(&self, url: &Url) -> Result<&Agent, Broken> {
        let agent = match (url.is_loopback(), url.is_secure()) {
            (true, _) => return Ok(&self.loopback),
            (false, true) => &self.secure,
            (false, false) => &self.plain,
        };
        agent.as_ref().map_err(|kind| Broken::Settings(kind.clone().into()))
    }
}

/// Limits of an exchange.
#[cfg(feature = "cloud")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// For the connection, if it is not that of files.
    pub(crate) connect: Option<Duration>,
    /// For what is sent, and for the answer.
    pub(crate) body: Duration,
}

/// Longest answer about an object, such as a page of a list.
#[cfg(feature = "cloud")]
const ANSWER_MAX: u64 = 32 << 20;

#[cfg(feature = "cloud")]
impl Http {
    /// Sends a request with its body, and reads the answer.
    pub(crate) fn exchange(
        &self,
        request: HttpRequest<Bytes>,
        url: &Url,
        times: Times,
    ) -> Result<Response<Bytes>, Broken> {
        // What has a time of its own for the connection is near, and not behind a proxy.
        let agent = if times.connect.is_some() { &self.loopback } else { self.agent(url)? };
        let (parts, body) = request.into_parts();
        let has_body = !matches!(parts.method, Method::GET | Method::HEAD | Method::DELETE);
        let answer = match has_body {
            true => agent.run(timed(agent, HttpRequest::from_parts(parts, &*body), times)),
            false => agent.run(timed(agent, HttpRequest::from_parts(parts, ()), times)),
        };
        let (parts, body) = answer.map_err(broken)?.into_parts();
        let bytes = body.into_with_config().limit(ANSWER_MAX).read_to_vec().map_err(broken)?;
        Ok(Response::from_parts(parts, bytes.into()))
    }
}

#[cfg(feature = "cloud")]
fn timed<B: ureq::AsSendBody>(agent: &Agent, request: HttpRequest<B>, times: Times) -> HttpRequest<B> {
    let config = agent.configure_request(request);
    let config = config.timeout_send_body(Some(times.body)).timeout_per_write(Some(STALL));
    // A server answers when it has stored what was sent.
    let config = config.timeout_recv_response(Some(times.body)).timeout_per_read(Some(times.body));
    let config = config.timeout_recv_body(Some(times.body));
    match times.connect {
        Some(_) => config.timeout_connect(times.connect).build(),
        None => config.build(),
    }
}

impl Transport for Http {
    fn send(&self, request: &Request<'_>) -> Result<Answer, Broken> {
        let agent = self.agent(request.url)?;
        if let Some((media_type, body)) = request.content {
            let post = agent.post(request.url.full()).header("accept-encoding", "identity");
            let post = post.header("content-type", media_type).config();
            let sending = Some(allowed(body.len() as u64));
            let post = post.timeout_send_body(sending).timeout_recv_body(Some(request.allowed));
            let post = post.timeout_global(request.left).build();
            return Ok(answer(post.send(body).map_err(broken)?));
        }
        // A proxy would compress, and the range would be one of other bytes.
        let mut get = agent.get(request.url.full()).header("accept-encoding", "identity");
        if let Some(range) = &request.range {
            get = get.header("range", format!("bytes={}-{}", range.start, range.end - 1));
        }
        if let Some(tag) = request.if_match {
            get = get.header("if-match", tag);
        }
        if let Some(tag) = request.if_none_match {
            get = get.header("if-none-match", tag);
        }
        if let Some(value) = &request.authorization {
            let mut value = HeaderValue::from_str(value).map_err(|_| Broken::Request)?;
            // It is not shown in debug output.
            value.set_sensitive(true);
            get = get.header("authorization", value);
        }
        let get = get.config().timeout_recv_body(Some(request.allowed)).timeout_global(request.left).build();
        Ok(answer(get.call().map_err(broken)?))
    }
}

fn answer(response: Response<ureq::Body>) -> Answer {
    let (parts, body) = response.into_parts();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body: Box::new(body.into_reader()) }
}

fn broken(error: ureq::Error) -> Broken {
    match error {
        ureq::Error::Io(error) => of_io(error),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::TlsRequired => Broken::Tls(error.into()),
        // They would show the query.
        ureq::Error::Http(_) | ureq::Error::BadUri(_) => Broken::Request,
        ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => Broken::Protocol(error.into()),
        error => Broken::Connection(error.into()),
    }
}

/// Certificates are refused inside an error of the system.
fn of_io(error: io::Error) -> Broken {
    match error.kind() {
        io::ErrorKind::InvalidData => Broken::Tls(error.into()),
        _ => Broken::Connection(error.into()),
    }
}

/// The clock of the machine, and random numbers of the standard library's hash maps.
#[derive(Debug)]
pub(crate) struct System {
    start: Instant,
    random: RandomState,
}

impl System {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), random: RandomState::new() }
    }
}

impl Pace for System {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, pause: Duration) {
        std::thread::sleep(pause);
    }

    fn random(&self) -> u64 {
        let mut hash = self.random.build_hasher();
        hash.write_u128(self.now().as_nanos());
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_not_tried_again() {
        assert!(matches!(broken(ureq::Error::BadUri("secret".into())), Broken::Request));
        assert!(matches!(broken(ureq::Error::HostNotFound), Broken::Connection(_)));
        assert!(matches!(of_io(io::ErrorKind::InvalidData.into()), Broken::Tls(_)));
        assert!(matches!(of_io(io::ErrorKind::ConnectionReset.into()), Broken::Connection(_)));
    }
}
