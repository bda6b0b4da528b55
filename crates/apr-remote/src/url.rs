//! URLs of files.

use core::fmt::{self, Write as _};

use crate::error::{Error, ErrorKind};

/// A URL of a file over HTTP.
///
/// `Display` and `Debug` leave out the query: of a signed URL it is the credential.
///
/// ```
/// use apr_remote::Url;
///
/// let url = Url::parse("https://host.example/models/m.safetensors?signature=secret")?;
/// assert_eq!(url.to_string(), "https://host.example/models/m.safetensors");
/// assert_eq!(url.file_name(), "m.safetensors");
/// assert_eq!(url.beside("n.safetensors")?.to_string(), "https://host.example/models/n.safetensors");
/// assert!(Url::parse("https://user:password@host.example/").is_err());
/// # Ok::<(), apr_remote::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    is_secure: bool,
    /// Lower case.
    host: String,
    port: u16,
    /// Begins with a slash.
    path: String,
    query: Option<String>,
}

impl Url {
    /// Parses `https://` and `http://`. A fragment is dropped; bytes that URLs may not have are percent-encoded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Url`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| problem("the scheme is missing"))?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(problem("the scheme is neither https nor http")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, place) = rest.split_at(end);
        if authority.contains('@') {
            return Err(problem("it has a user name or password"));
        }
        let (host, port) = host_and_port(authority)?;
        let (path, query) = match place.split_once('?') {
            Some((path, query)) => (path, Some(encoded(query, false))),
            None => (place, None),
        };
        let path = if path.is_empty() { "/".to_owned() } else { encoded(path, false) };
        let port = port.unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self { is_secure, host, port, path, query })
    }

    /// Where a redirect leads from here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Redirect`].
    pub(crate) fn join(&self, location: &str) -> Result<Self, Error> {
        let scheme = if self.is_secure { "https" } else { "http" };
        let absolute = if location.contains("://") && !location.starts_with(['/', '?']) {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{scheme}:{location}")
        } else if location.starts_with('/') {
            format!("{scheme}://{}{location}", self.authority())
        } else {
            return Err(ErrorKind::Redirect { problem: "the location is relative" }.into());
        };
        let url = Self::parse(&absolute).map_err(|error| {
            Error::caused(ErrorKind::Redirect { problem: "the location is no URL" }, error)
        })?;
        match self.is_secure && !url.is_secure {
            true => Err(ErrorKind::Redirect { problem: "it leads from https to http" }.into()),
            false => Ok(url),
        }
    }

    /// The file of this relative name in the folder of this file, on the same host, without the query.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Outside`] for an absolute name, a URL, or one with `..`.
    pub fn beside(&self, name: &str) -> Result<Self, Error> {
        check_relative(name)?;
        let folder = self.path.rfind('/').map_or("/", |end| &self.path[..=end]);
        Ok(Self { path: format!("{folder}{}", encoded(name, true)), query: None, ..self.clone() })
    }

    /// The host, in lower case.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The last component of the path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the protocol is https.
    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost"
            || address.parse::<core::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        (self.is_secure, &self.host, self.port) == (other.is_secure, &other.host, other.port)
    }

    /// Without what may be a signature.
    #[cfg(any(test, feature = "cloud"))]
    pub(crate) fn without_query(&self) -> Self {
        Self { query: None, ..self.clone() }
    }

    /// What may be a signature.
    pub(crate) fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// With its query, for the request alone.
    pub(crate) fn full(&self) -> String {
        match &self.query {
            Some(query) => format!("{self}?{query}"),
            None => self.to_string(),
        }
    }

    fn authority(&self) -> String {
        match (self.is_secure, self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// # Errors
///
/// [`ErrorKind::Outside`] for a name that leads out of a folder.
pub(crate) fn check_relative(name: &str) -> Result<(), Error> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let is_below = !name.contains(['\\', ':']) && name.split('/').all(is_plain);
    if is_below { Ok(()) } else { Err(ErrorKind::Outside.into()) }
}

fn problem(problem: &'static str) -> Error {
    ErrorKind::Url { problem }.into()
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), Error> {
    let (host, port) = match authority.rfind(':') {
        // Colons inside brackets are those of an address.
        Some(colon) if !authority[colon..].contains(']') => {
            (&authority[..colon], Some(&authority[colon + 1..]))
        }
        _ => (authority, None),
    };
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_host = match is_address {
        true => host[1..host.len() - 1].parse::<core::net::Ipv6Addr>().is_ok(),
        false => !host.is_empty() && host.bytes().all(is_allowed),
    };
    if !is_host {
        return Err(problem("the host is missing or not ASCII"));
    }
    let port = match port {
        None | Some("") => None,
        Some(port) => Some(port.parse().map_err(|_| problem("the port is not a number up to 65535"))?),
    };
    Ok((host.to_ascii_lowercase(), port))
}

/// Percent-encodes what a URL may not have; of a file name also the bytes that would end the path.
pub(crate) fn encoded(text: &str, is_name: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_other = !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(&byte);
        if is_other || is_name && b"%?#".contains(&byte) {
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(byte.into());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn queries_are_never_shown() {
        let url = Url::parse("https://h.example/a?X-Amz-Signature=secret#part").unwrap();
        assert!(!format!("{url} {url:?}").contains("secret"));
        assert_eq!(url.full(), "https://h.example/a?X-Amz-Signature=secret");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "https://",
            "ftp://h/a",
            "https://a b/c",
            "https://h:99999/",
            "https://u@h/",
            "https://[::1/a",
            "h/a",
        ] {
            assert_eq!(Url::parse(text).unwrap_err().code(), "rm-url", "{text}");
        }
    }

    #[test]
    fn redirects_never_leave_https() {
        let from = Url::parse("https://h.example/a/b?q").unwrap();
        assert_eq!(from.join("/c?d").unwrap().full(), "https://h.example/c?d");
        assert_eq!(from.join("//o.example/c").unwrap().full(), "https://o.example/c");
        assert_eq!(from.join("HTTPS://O.example:8443").unwrap().full(), "https://o.example:8443/");
        for location in ["http://h.example/a", "ftp://h.example/a", "c", "https://"] {
            assert_eq!(from.join(location).unwrap_err().code(), "rm-redirect", "{location}");
        }
        assert!(Url::parse("http://h.example/").unwrap().join("https://h.example/").is_ok());
    }

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for (text, is_loopback) in [
            ("http://localhost:1/", true),
            ("http://127.8.9.1/", true),
            ("http://[::1]:80/", true),
            ("http://127.0.0.1.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(Url::parse(text).unwrap().is_loopback(), is_loopback, "{text}");
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        let index = Url::parse("https://h.example/m/model.safetensors.index.json?token=x").unwrap();
        assert_eq!(index.beside("part 1#.st").unwrap().full(), "https://h.example/m/part%201%23.st");
        assert_eq!(index.beside("sub/a").unwrap().full(), "https://h.example/m/sub/a");
        for name in ["", "/etc/passwd", "../x", "a/../b", "https://o.example/x", "a\\b", "a//b", "."] {
            assert_eq!(index.beside(name).unwrap_err().code(), "rm-outside", "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_parses_or_is_refused_and_what_parses_parses_again(text in "\\PC{0,40}", base in any::<bool>()) {
            let text = if base { format!("https://h.example/{text}") } else { text };
            if let Ok(url) = Url::parse(&text) {
                prop_assert_eq!(Url::parse(&url.full()).unwrap(), url);
            }
        }

        #[test]
        fn files_beside_have_the_same_origin(name in "\\PC{0,30}") {
            let index = Url::parse("https://h.example/m/i.json").unwrap();
            if let Ok(url) = index.beside(&name) {
                prop_assert!(url.is_same_origin(&index) && url.full().starts_with("https://h.example/m/"));
            }
        }
    }
}
