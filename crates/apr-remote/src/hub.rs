//! Files of the Hugging Face hub: addresses, token, headers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::cache::COMMIT_LEN;
use crate::error::{Error, ErrorKind};
use crate::pin::is_hex;
use crate::url::{Url, check_relative, encoded};

/// Where the hub is unless HF_ENDPOINT says otherwise.
const ENDPOINT: &str = "https://huggingface.co";
/// Longest token that is read.
const TOKEN_LEN_MAX: u64 = 4096;

/// A file of the hub, or a repository: `hf://ORG/NAME[@REVISION][/PATH]`, `hf://datasets/ORG/NAME...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubPath {
    is_dataset: bool,
    repository: String,
    revision: String,
    path: String,
}

impl HubPath {
    /// Parses the text after `hf://`. The revision is a branch, a tag, a commit, or `refs/pr/N`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Url`].
    ///
    /// ```
    /// use apr_remote::HubPath;
    ///
    /// let file = HubPath::parse("org/name@v1.0/sub/model.gguf")?;
    /// assert_eq!((file.repository(), file.revision(), file.path()), ("org/name", "v1.0", "sub/model.gguf"));
    /// assert_eq!(HubPath::parse("org/name@refs/pr/3/a")?.revision(), "refs/pr/3");
    /// assert_eq!(HubPath::parse("org/name")?.revision(), "main");
    /// # Ok::<(), apr_remote::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, Error> {
        let problem = |problem| Error::from(ErrorKind::Url { problem });
        let (is_dataset, rest) = match text.strip_prefix("datasets/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut parts = rest.split('/');
        let (org, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (name, revision) = match name.split_once('@') {
            Some((name, revision)) => (name, Some(revision)),
            None => (name, None),
        };
        let is_word = |word: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !word.is_empty() && !word.starts_with('.') && word.bytes().all(is_allowed)
        };
        if !is_word(org) || !is_word(name) {
            return Err(problem("it does not name ORG/NAME"));
        }
        let mut revision = revision.unwrap_or("main").replace("%2F", "/").replace("%2f", "/");
        if revision == "refs" {
            // The names of pull requests and of converted data have slashes.
            for _ in 0..2 {
                let part = parts.next().ok_or_else(|| problem("the revision ends after refs/"))?;
                revision = format!("{revision}/{part}");
            }
        }
        let path: Vec<&str> = parts.collect();
        let is_plain = |part: &&str| !matches!(*part, "" | "." | "..");
        if revision.is_empty() || !revision.split('/').all(|part| is_plain(&part)) {
            return Err(problem("the revision is empty or has `..`"));
        }
        let path = path.as_slice();
        if !matches!(path, [] | [""]) && !path.iter().all(is_plain) {
            return Err(problem("the path has empty parts or `..`"));
        }
        Ok(Self { is_dataset, repository: format!("{org}/{name}"), revision, path: path.join("/") })
    }

    /// `ORG/NAME`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub(crate) const fn is_dataset(&self) -> bool {
        self.is_dataset
    }

    /// The revision; `main` if none was given.
    #[must_use]
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The file in the repository; empty for the repository itself.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Another file of the repository.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// The file of this relative name in the folder of this file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Outside`] for an absolute name, a URL, or one with `..`.
    pub(crate) fn beside(&self, name: &str) -> Result<Self, Error> {
        check_relative(name)?;
        let folder = self.path.rfind('/').map_or("", |end| &self.path[..=end]);
        Ok(self.with_path(&format!("{folder}{name}")))
    }

    /// The commit that it names; `None` of a branch or tag.
    pub(crate) fn commit(&self) -> Option<&str> {
        Some(self.revision.as_str()).filter(|revision| is_hex(revision, COMMIT_LEN))
    }

    /// The same file at a commit.
    #[must_use]
    pub fn at_commit(&self, commit: &str) -> Self {
        Self { revision: commit.to_owned(), ..self.clone() }
    }

    /// The URL that resolves to the file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Url`] if the endpoint is none.
    pub fn url(&self, endpoint: &Url) -> Result<Url, Error> {
        let kind = if self.is_dataset { "datasets/" } else { "" };
        // A slash would begin the path.
        let revision = encoded(&self.revision, true).replace('/', "%2F");
        let path = encoded(&self.path, true);
        Url::parse(&format!("{}/{kind}{}/resolve/{revision}/{path}", base(endpoint), self.repository))
    }

    /// The URL of a JSON object about the revision: `sha`, the commit, and in `siblings` its files, each with `rfilename`, `size` and, if
    /// it is a large one, `lfs.sha256`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Url`] if the endpoint is none.
    pub fn listing(&self, endpoint: &Url) -> Result<Url, Error> {
        let kind = if self.is_dataset { "datasets" } else { "models" };
        let revision = encoded(&self.revision, true).replace('/', "%2F");
        Url::parse(&format!(
            "{}/api/{kind}/{}/revision/{revision}?blobs=true",
            base(endpoint),
            self.repository
        ))
    }
}

/// As [`parse`](HubPath::parse) reads it, with `hf://` before it.
impl core::fmt::Display for HubPath {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let kind = if self.is_dataset { "datasets/" } else { "" };
        // Other slashes would begin the path.
        let revision = match self.revision.strip_prefix("refs/") {
            Some(_) => self.revision.clone(),
            None => self.revision.replace('/', "%2F"),
        };
        write!(f, "hf://{kind}{}@{revision}", self.repository)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

/// The folder of the hub's own programs: HF_HOME, by default in the user's folder of caches.
pub(crate) fn home(given: impl Fn(&'static str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(home) = given("HF_HOME") {
        return Some(home.into());
    }
    Some(user_caches(given)?.join("huggingface"))
}

/// The folder in which programs keep the user's caches.
pub(crate) fn user_caches(given: impl Fn(&'static str) -> Option<OsString>) -> Option<PathBuf> {
    // As its specification says, a relative path is ignored.
    let named = given("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.has_root());
    let user = || given("HOME").or_else(|| given("USERPROFILE"));
    named.or_else(|| Some(PathBuf::from(user()?).join(".cache")))
}

/// The token in a file; `None` if it cannot be read.
fn token_in(path: &Path) -> Result<Option<Zeroizing<String>>, NoText> {
    // Of this length from the start: growing would leave copies.
    let mut text = Zeroizing::new(String::with_capacity(TOKEN_LEN_MAX as usize));
    let Ok(file) = std::fs::File::open(path) else { return Ok(None) };
    match std::io::Read::read_to_string(&mut std::io::Read::take(file, TOKEN_LEN_MAX), &mut text) {
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(NoText),
        Err(_) => Ok(None),
    }
}

/// A file that is not Unicode.
struct NoText;

/// The token that the environment names, trimmed, or where one was found that cannot be part of a request.
fn token(
    given: impl Fn(&'static str) -> Option<OsString>,
) -> Result<Option<Zeroizing<String>>, &'static str> {
    let (origin, token) = if let Some(text) = given("HF_TOKEN") {
        ("HF_TOKEN", text.into_string().map(|text| Some(Zeroizing::new(text))).map_err(|_| NoText))
    } else if let Some(path) = given("HF_TOKEN_PATH") {
        ("the file HF_TOKEN_PATH", token_in(path.as_ref()))
    } else {
        let path = home(given).map(|home| home.join("token"));
        ("the file `token` in HF_HOME", path.map_or(Ok(None), |path| token_in(&path)))
    };
    let token = token.map_err(|NoText| origin)?;
    let token = token.map(|token| Zeroizing::new(token.trim().to_owned()));
    match token.as_ref().is_none_or(|token| token.bytes().all(|byte| byte.is_ascii_graphic())) {
        true => Ok(token),
        false => Err(origin),
    }
}

fn base(endpoint: &Url) -> String {
    endpoint.to_string().trim_end_matches('/').to_owned()
}

/// The hub that the environment names, and the token for it.
#[derive(Clone)]
pub struct Hub {
    pub(crate) endpoint: Url,
    /// Or where the one was found that cannot be part of a request. Wiped when it is dropped; the environment and the headers of requests
    /// have copies.
    pub(crate) token: Result<Option<Zeroizing<String>>, &'static str>,
}

impl Hub {
    /// From the variables that the hub's own programs use: HF_ENDPOINT; HF_TOKEN, else the file HF_TOKEN_PATH, else `token` in HF_HOME.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Endpoint`] if HF_ENDPOINT is no URL.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let given = |name| variable(name).filter(|value| !value.is_empty());
        let endpoint = given("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.into());
        // Not Unicode, it is no URL either.
        let endpoint = Url::parse(&endpoint.to_string_lossy())
            .map_err(|error| Error::caused(ErrorKind::Endpoint, error))?;
        let token = token(given).map(|token| token.filter(|token| !token.is_empty()));
        Ok(Self { endpoint, token })
    }

    /// Where it is.
    #[must_use]
    pub const fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// The value of `Authorization` for a request to `url`: to the hub's own host, and to no other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Token`] if a token cannot be part of a request.
    pub(crate) fn authorization(&self, url: &Url) -> Result<Option<Zeroizing<String>>, Error> {
        if !url.is_same_origin(&self.endpoint) {
            return Ok(None);
        }
        let token = self.token.as_ref().map_err(|origin| ErrorKind::Token { origin })?;
        Ok(token.as_ref().map(|token| Zeroizing::new(["Bearer ", token].concat())))
    }
}

impl core::fmt::Debug for Hub {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hub").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_hub() {
        let endpoint = Url::parse(ENDPOINT).unwrap();
        for (text, url) in [
            ("o/n/a b.gguf", "https://huggingface.co/o/n/resolve/main/a%20b.gguf"),
            ("o/n@refs/pr/3/x", "https://huggingface.co/o/n/resolve/refs%2Fpr%2F3/x"),
            ("o/n@a%2Fb/x/y", "https://huggingface.co/o/n/resolve/a%2Fb/x/y"),
            ("datasets/o/n@v1/x", "https://huggingface.co/datasets/o/n/resolve/v1/x"),
        ] {
            let path = HubPath::parse(text).unwrap();
            assert_eq!(path.url(&endpoint).unwrap().full(), url);
            let again = path.to_string();
            assert_eq!(HubPath::parse(again.strip_prefix("hf://").unwrap()).unwrap(), path, "{again}");
        }
        let listing = HubPath::parse("o/n").unwrap().listing(&endpoint).unwrap();
        assert_eq!(listing.full(), "https://huggingface.co/api/models/o/n/revision/main?blobs=true");
        for text in ["", "o", "o/", "o/n@/x", "o/n@refs", "o/n/../x", "o/n//x", "../n/x", "o n/x", "o/n@../x"]
        {
            assert_eq!(HubPath::parse(text).unwrap_err().code(), "rm-url", "{text}");
        }
    }

    #[test]
    fn the_token_is_for_the_endpoint_alone() {
        let hub = Hub::from_environment(|name| (name == "HF_TOKEN").then(|| "secret\n".into())).unwrap();
        let at = |text| hub.authorization(&Url::parse(text).unwrap()).unwrap();
        assert_eq!(at("https://huggingface.co/o/n").unwrap().as_str(), "Bearer secret");
        for other in [
            "https://cdn.huggingface.co/",
            "http://huggingface.co/",
            "https://huggingface.co:444/",
            "https://huggingface.co.example/",
        ] {
            assert_eq!(at(other), None, "{other}");
        }
        assert!(!format!("{hub:?}").contains("secret"));
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_refused_and_not_shown() {
        let of = |text: &'static str, url: &str| {
            let hub = Hub::from_environment(|name| (name == "HF_TOKEN").then(|| text.into())).unwrap();
            hub.authorization(&Url::parse(url).unwrap())
        };
        for text in ["sec\nret", "sec ret", "secr\u{E9}t"] {
            let error = of(text, ENDPOINT).unwrap_err();
            assert_eq!((error.code(), error.to_string().contains("HF_TOKEN")), ("rm-token", true));
            assert!(!format!("{error} {error:?}").contains("sec"));
            assert!(of(text, "https://other.example/").unwrap().is_none());
        }
        assert_eq!(of(" secret\r\n", ENDPOINT).unwrap().unwrap().as_str(), "Bearer secret");
        assert!(of(" \n", ENDPOINT).unwrap().is_none());
    }

    #[test]
    fn an_endpoint_that_is_no_url_is_named() {
        let hub = Hub::from_environment(|name| (name == "HF_ENDPOINT").then(|| "hub.example".into()));
        assert_eq!(hub.unwrap_err().code(), "rm-endpoint");
    }
}
