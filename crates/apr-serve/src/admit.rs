//! Checks of requests: HTTP/1.1 requires a Host field, a web page must not reach a local server under another host name (DNS
//! rebinding), and requests of pages from other sites are refused.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Version};

use crate::refusal::Refusal;

/// The header with the site of a request (Fetch Metadata, section 2.1).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The host names of the server.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Lower case, without a trailing dot.
    names: Vec<String>,
    /// Host fields with its own port, as clients on the same machine write them.
    own: [String; 2],
    /// Whether it accepts any host name.
    any: bool,
}

impl Hosts {
    /// The checks of a server that listens on `addr`. On a loopback address, or if names are given, it accepts these names and
    /// those of the loopback interface; elsewhere under any.
    pub(crate) fn new(addr: SocketAddr, names: &[String]) -> Self {
        let names: Vec<String> =
            names.iter().map(|name| without_dot(name.as_bytes()).to_ascii_lowercase()).map(text).collect();
        let is_local = addr.ip().to_canonical().is_loopback();
        let localhost = format!("localhost:{}", addr.port());
        let own = [if is_local { addr.to_string() } else { localhost.clone() }, localhost];
        Self { any: names.is_empty() && !is_local, own, names }
    }

    /// Checks host and origin of the request.
    ///
    /// # Errors
    ///
    /// 400 for a missing, repeated or malformed Host field, 421 for the name of another server, 403 for a page of another site, 501
    /// for a transfer coding that is not known.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let fields = Fields::of(request.headers());
        if fields.n_codings > 0 && !fields.is_chunked {
            let what = "the body has a transfer coding other than chunked";
            let help = "send the body as it is, with Content-Length";
            return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, "sv-body", what, help).closing());
        }
        let target = request.uri();
        // What most clients send; it need not be taken apart.
        let is_own = fields.n_hosts == 1
            && target.authority().is_none()
            && fields.host.is_some_and(|host| self.own.iter().any(|own| host == own.as_bytes()));
        if !is_own {
            let host = host_of(request, &fields)?;
            let is_https = target.scheme_str().is_some_and(|scheme| !scheme.eq_ignore_ascii_case("http"));
            if is_https || host.is_some_and(|host| !self.answers_to(host)) {
                let what = "this server does not answer under the name in the Host field";
                let help =
                    "ask for it as localhost, 127.0.0.1 or [::1], or start the server with --allow-host NAME";
                return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "sv-host", what, help));
            }
        }
        if fields.names_site && is_of_another_site(request.method(), request.headers()) {
            let what = "a web page of another site sent this request";
            let help = "ask from a page of this server, or from a program that is not a browser";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "sv-cross-site", what, help).closing());
        }
        Ok(())
    }

    fn answers_to(&self, host: &[u8]) -> bool {
        if self.any {
            return true;
        }
        let host = without_dot(host);
        if host.eq_ignore_ascii_case(b"localhost")
            || self.names.iter().any(|name| host.eq_ignore_ascii_case(name.as_bytes()))
        {
            return true;
        }
        let literal = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
        let address = core::str::from_utf8(literal).ok().and_then(|text| text.parse::<IpAddr>().ok());
        address.is_some_and(|address| address.to_canonical().is_loopback())
    }
}

/// The header fields that the checks need, found in one pass: separate look-ups cost more.
#[derive(Debug, Default)]
struct Fields<'r> {
    n_hosts: usize,
    host: Option<&'r [u8]>,
    n_codings: usize,
    /// Whether the one transfer coding is `chunked`.
    is_chunked: bool,
    /// Whether a browser states the site of the request.
    names_site: bool,
}

impl<'r> Fields<'r> {
    fn of(headers: &'r HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            if name == header::HOST {
                fields.n_hosts += 1;
                fields.host = Some(value.as_bytes());
            } else if name == header::TRANSFER_ENCODING {
                fields.n_codings += 1;
                fields.is_chunked =
                    fields.n_codings == 1 && value.as_bytes().eq_ignore_ascii_case(b"chunked");
            } else if name == SITE {
                fields.names_site = true;
            }
        }
        fields
    }
}

/// Whether this is a host, as [`Options::allowed_hosts`](crate::Options::allowed_hosts) takes one: a name or an address, without a port.
#[must_use]
pub fn is_host(text: &str) -> bool {
    host(text.as_bytes()) == Some(text.as_bytes())
}

/// The host that a request is for: of the request target if that has one, else of the Host field. `None` in HTTP/1.0 alone.
///
/// # Errors
///
/// If HTTP/1.1 has no Host field, or there are several, or one is malformed (RFC 9112, section 3.2).
fn host_of<'r, B>(request: &'r Request<B>, fields: &Fields<'r>) -> Result<Option<&'r [u8]>, Refusal> {
    let malformed = |what: &str| {
        let help = "send HTTP/1.1 as RFC 9112 describes it, with one field `Host: NAME`";
        Refusal::new(StatusCode::BAD_REQUEST, "sv-request", what, help).closing()
    };
    let named = match (fields.n_hosts, fields.host) {
        (0, _) if request.version() == Version::HTTP_10 => None,
        (0, _) | (_, None) => return Err(malformed("the request has no Host field")),
        (1, Some(field)) => match host(field) {
            Some(host) => Some(host),
            None => return Err(malformed("the Host field is neither a name nor an address")),
        },
        _ => return Err(malformed("the request has more than one Host field")),
    };
    // RFC 9112, section 3.2.2: a host in the request target counts, and the field does not.
    match request.uri().authority() {
        // Section 3.2.3: a target that is only a host is for CONNECT.
        Some(_) if request.uri().scheme().is_none() && request.method() != Method::CONNECT => {
            Err(malformed("the request target does not begin with `/`"))
        }
        Some(authority) => match host(authority.as_str().as_bytes()) {
            Some(host) => Ok(Some(host)),
            None => Err(malformed("the request target has no host that is a name or an address")),
        },
        None => Ok(named),
    }
}

/// The host in `uri-host [ ":" port ]` (RFC 3986, section 3.2.2).
fn host(text: &[u8]) -> Option<&[u8]> {
    let end = if text.first() == Some(&b'[') {
        let end = text.iter().position(|&byte| byte == b']')?;
        core::str::from_utf8(text.get(1..end)?).ok()?.parse::<Ipv6Addr>().ok()?;
        end + 1
    } else {
        let end = text.iter().position(|&byte| byte == b':').unwrap_or(text.len());
        // Unreserved characters, those of percent-encoding, and sub-delimiters.
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(byte);
        text.get(..end).filter(|name| !name.is_empty() && name.iter().all(is_name))?;
        end
    };
    let (host, port) = text.split_at_checked(end)?;
    match port.split_first() {
        None => Some(host),
        Some((b':', digits)) => {
            let is_port = digits.iter().all(u8::is_ascii_digit)
                && (digits.is_empty()
                    || core::str::from_utf8(digits).is_ok_and(|text| text.parse::<u16>().is_ok()));
            is_port.then_some(host)
        }
        Some(_) => None,
    }
}

fn without_dot(host: &[u8]) -> &[u8] {
    host.strip_suffix(b".").unwrap_or(host)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a browser states that a page of another origin sent the request. Following a link to this server is permitted: the
/// response is shown, and no page can read it. Programs that are not browsers do not send these fields.
fn is_of_another_site(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &'static str, value: &[u8]| headers.get(name).map(HeaderValue::as_bytes) == Some(value);
    let Some(site) = headers.get(SITE) else { return false };
    let is_navigation = (method == Method::GET || method == Method::HEAD)
        && is("sec-fetch-mode", b"navigate")
        && is("sec-fetch-dest", b"document");
    [&b"cross-site"[..], b"same-site"].contains(&site.as_bytes()) && !is_navigation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses_with_a_port() {
        for (text, expected) in [
            ("localhost", Some("localhost")),
            ("LocalHost.:8080", Some("LocalHost.")),
            ("127.0.0.1:1", Some("127.0.0.1")),
            ("[::1]:8080", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("a:", Some("a")),
            ("", None),
            (":80", None),
            ("a:b", None),
            ("a:65536", None),
            ("a:80:80", None),
            ("::1", None),
            ("[::1", None),
            ("[localhost]", None),
            ("[::1]x", None),
            ("user@localhost", None),
            ("a b", None),
            ("a/b", None),
            ("a\\b", None),
            ("\u{e9}", None),
        ] {
            assert_eq!(host(text.as_bytes()), expected.map(str::as_bytes), "{text}");
        }
        assert!(is_host("model.example.com") && is_host("[::1]"));
        assert!(!is_host("localhost:80") && !is_host("http://localhost"));
    }

    #[test]
    fn a_loopback_server_answers_to_loopback_names_and_those_allowed() {
        let allowed = ["Model.Example.".to_owned()];
        let of = |addr: &str, names: &[String]| Hosts::new(addr.parse().expect("an address"), names);
        for (hosts, own, other) in [
            (of("127.0.0.1:80", &[]), false, false),
            (of("[::1]:80", &[]), false, false),
            (of("[::ffff:127.0.0.1]:80", &[]), false, false),
            (of("127.0.0.1:80", &allowed), true, false),
            (of("0.0.0.0:80", &allowed), true, false),
            (of("0.0.0.0:80", &[]), true, true),
        ] {
            for name in ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]"] {
                assert!(hosts.answers_to(name.as_bytes()), "{name}");
            }
            assert_eq!(hosts.answers_to(b"MODEL.example"), own, "{hosts:?}");
            for name in
                ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0"]
            {
                assert_eq!(hosts.answers_to(name.as_bytes()), other, "{name} {hosts:?}");
            }
        }
    }
}
