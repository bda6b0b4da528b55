//! The proxies that the environment names.

use std::ffi::OsString;

use ureq::{Proxy, ProxyProtocol};

use crate::error::ErrorKind;

/// Variables with the proxy for `https://` URLs, the first one that is set.
const SECURE: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];
/// Those for `http://` URLs.
const PLAIN: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The proxy for URLs of one scheme, if there is one.
///
/// # Errors
///
/// [`ErrorKind::Proxy`]: what cannot be used is not left out, because the connection would be a direct one.
pub(crate) fn of_environment(
    is_secure: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<Proxy>, ErrorKind> {
    let given = |name: &'static str| Some((name, variable(name).filter(|value| !value.is_empty())?));
    let mut names = if is_secure { SECURE.iter() } else { PLAIN.iter() };
    let Some((name, value)) = names.find_map(|name| given(name)) else { return Ok(None) };
    let wrong = |problem| ErrorKind::Proxy { variable: name, problem };
    let no_url = || wrong("it is no URL of a proxy");
    let value = value.into_string().map_err(|_| no_url())?;
    let proxy = Proxy::new(&value).map_err(|_| no_url())?;
    let authority = proxy.uri().authority().ok_or_else(no_url)?;
    let begin = authority.as_str().rfind('@').map_or(0, |at| at + 1);
    let port = authority.as_str().get(begin + authority.host().len()..).unwrap_or_default();
    if authority.host().is_empty() || !matches!(port, "" | ":") && authority.port_u16().is_none() {
        return Err(no_url());
    }
    if !matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https) {
        return Err(wrong("proxies of this protocol are not supported"));
    }
    let mut builder = Proxy::builder(proxy.protocol()).host(proxy.host()).port(proxy.port());
    if let Some(name) = proxy.username() {
        builder = builder.username(name).password(proxy.password().unwrap_or_default());
    }
    let direct = given("NO_PROXY").or_else(|| given("no_proxy"));
    let direct = direct.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default();
    for host in direct.split(',').map(str::trim) {
        builder = builder.no_proxy(host);
    }
    builder.build().map(Some).map_err(|_| no_url())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(is_secure: bool, set: &[(&str, &str)]) -> Result<Option<Proxy>, ErrorKind> {
        of_environment(is_secure, |name| Some(set.iter().find(|(known, _)| *known == name)?.1.into()))
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_not_shown() {
        for value in [
            "socks5://user:secret@127.0.0.1:1",
            "http://[::1",
            "htp://user:secret@h",
            "/secret",
            "http://h:99999",
            "http://",
            " http://h",
            "http://user:%ff@h",
        ] {
            let error = of(true, &[("HTTPS_PROXY", value), ("ALL_PROXY", "http://h")]).unwrap_err();
            let shown = format!("{error:?} {error}");
            assert!(shown.contains("HTTPS_PROXY") && !shown.contains("secret"), "{value}: {shown}");
        }
        assert!(of(false, &[("HTTP_PROXY", "")]).unwrap().is_none());
        assert!(of(false, &[]).unwrap().is_none());
    }

    #[test]
    fn each_scheme_has_a_proxy_of_its_own() {
        let host = |is_secure, set: &[_]| of(is_secure, set).unwrap().map(|proxy| proxy.host().to_owned());
        let some = |host: &str| Some(host.to_owned());
        let all = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://p"), ("ALL_PROXY", "http://a")];
        assert_eq!((host(true, &all), host(false, &all)), (some("s"), some("p")));
        assert_eq!((host(true, &all[..1]), host(false, &all[..1])), (some("s"), None));
        assert_eq!((host(true, &all[2..]), host(false, &all[2..])), (some("a"), some("a")));
        assert_eq!(host(true, &[("http_proxy", "p:3128")]), some("p"));
    }

    #[test]
    fn credentials_ports_and_exceptions_are_kept() {
        let set =
            [("HTTPS_PROXY", "https://us%40er:pa%3Ass@[::1]:81/"), ("no_proxy", "a.example, .b.example")];
        let proxy = of(true, &set).unwrap().unwrap();
        assert_eq!((proxy.protocol(), proxy.host(), proxy.port()), (ProxyProtocol::Https, "[::1]", 81));
        assert_eq!((proxy.username(), proxy.password()), (Some("us@er"), Some("pa:ss")));
        for (url, is_direct) in
            [("https://a.example/x", true), ("https://c.b.example/x", true), ("https://c.example/x", false)]
        {
            assert_eq!(proxy.is_no_proxy(&url.parse().unwrap()), is_direct, "{url}");
        }
    }
}
