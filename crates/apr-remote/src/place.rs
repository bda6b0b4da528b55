//! What URLs name.

use crate::error::{Error, ErrorKind};
use crate::hub::HubPath;
use crate::url::Url;

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file over HTTP.
    Url(Url),
    /// A file of the hub, or a repository.
    Hub(HubPath),
}

impl Place {
    /// The URL that `text` is; `None` of what is no URL but a path.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Url`]; [`ErrorKind::Scheme`] for object stores.
    ///
    /// ```
    /// use apr_remote::Place;
    ///
    /// assert!(Place::parse("models/m.gguf").is_none());
    /// assert!(matches!(Place::parse("hf://org/name"), Some(Ok(Place::Hub(_)))));
    /// assert_eq!(Place::parse("s3://bucket/key").unwrap().unwrap_err().code(), "rm-scheme");
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Result<Self, Error>> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        Some(match scheme.as_str() {
            "http" | "https" => Url::parse(text).map(Self::Url),
            "hf" => HubPath::parse(rest).map(Self::Hub),
            "s3" | "gs" | "az" => Err(ErrorKind::Scheme { scheme }.into()),
            _ => return None,
        })
    }
}
