//! What URLs name.

use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::hub::HubPath;
use crate::object::{ObjectPath, Protocol};
use crate::url::Url;

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file over HTTP.
    Url(Url),
    /// A file of the hub, or a repository.
    Hub(HubPath),
    /// An object of an object store, or the objects below a prefix.
    Object(ObjectPath),
}

impl Place {
    /// The URL that `text` is; `None` of what is no URL but a path.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Url`]; [`ErrorKind::Scheme`] for object stores, without the feature `cloud`.
    ///
    /// ```
    /// use apr_remote::Place;
    ///
    /// assert!(Place::parse("models/m.gguf").is_none());
    /// assert!(matches!(Place::parse("hf://org/name"), Some(Ok(Place::Hub(_)))));
    /// match Place::parse("s3://bucket/key").unwrap() {
    ///     Ok(place) => assert!(cfg!(feature = "cloud") && matches!(place, Place::Object(_))),
    ///     Err(error) => assert_eq!(error.code(), "rm-scheme"),
    /// }
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Result<Self, Error>> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        Some(match scheme.as_str() {
            "http" | "https" => Url::parse(text).map(Self::Url),
            "hf" => HubPath::parse(rest).map(Self::Hub),
            scheme => {
                let protocol = Protocol::of_scheme(scheme)?;
                match cfg!(feature = "cloud") {
                    true => ObjectPath::parse(protocol, rest).map(Self::Object),
                    false => Err(ErrorKind::Scheme { scheme: protocol.scheme() }.into()),
                }
            }
        })
    }

    /// The file of this relative name in the folder of this file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Outside`] for an absolute name, a URL, or one with `..`.
    pub fn beside(&self, name: &str) -> Result<Self, Error> {
        match self {
            Self::Url(file) => file.beside(name).map(Self::Url),
            Self::Hub(file) => file.beside(name).map(Self::Hub),
            Self::Object(file) => file.beside(name).map(Self::Object),
        }
    }
}

/// As [`parse`](Place::parse) reads it, without the query.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(file) => file.fmt(f),
            Self::Hub(file) => file.fmt(f),
            Self::Object(file) => file.fmt(f),
        }
    }
}
