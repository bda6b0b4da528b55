//! Objects of object stores.

use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::url::check_relative;

/// The protocol of an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// `s3://`: Amazon S3, and other servers of this protocol.
    S3,
    /// `gs://`: Google Cloud Storage.
    Google,
    /// `az://`: Azure Blob Storage.
    Azure,
}

impl Protocol {
    pub(crate) fn of_scheme(scheme: &str) -> Option<Self> {
        [Self::S3, Self::Google, Self::Azure].into_iter().find(|protocol| protocol.scheme() == scheme)
    }

    /// As URLs begin, without `://`.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

/// An object, or the objects below a prefix: `s3://BUCKET/KEY`, `gs://BUCKET/KEY`, `az://CONTAINER/KEY`.
///
/// A key is written as it is, without percent-encoding. One that is empty or ends with a slash names all objects below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPath {
    protocol: Protocol,
    bucket: String,
    key: String,
}

impl ObjectPath {
    /// Parses the text after `://`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Url`].
    ///
    /// ```
    /// use apr_remote::{ObjectPath, Protocol};
    ///
    /// let object = ObjectPath::parse(Protocol::S3, "models/llama/model.safetensors")?;
    /// assert_eq!((object.bucket(), object.key()), ("models", "llama/model.safetensors"));
    /// assert_eq!(object.to_string(), "s3://models/llama/model.safetensors");
    /// assert!(ObjectPath::parse(Protocol::S3, "models/llama/")?.is_prefix());
    /// assert!(ObjectPath::parse(Protocol::S3, "models/../other").is_err());
    /// # Ok::<(), apr_remote::Error>(())
    /// ```
    pub fn parse(protocol: Protocol, text: &str) -> Result<Self, Error> {
        let problem = |problem| Err(ErrorKind::Url { problem }.into());
        let (bucket, key) = text.split_once('/').unwrap_or((text, ""));
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if bucket.is_empty() || bucket.starts_with('.') || !bucket.bytes().all(is_allowed) {
            return problem("it names no bucket");
        }
        let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
        let parts = key.strip_suffix('/').unwrap_or(key);
        if !key.is_empty() && !parts.split('/').all(is_plain) {
            return problem("the key has empty parts, `..` or control characters");
        }
        Ok(Self { protocol, bucket: bucket.to_owned(), key: key.to_owned() })
    }

    /// The protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The bucket; of Azure, the container.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The key, or the prefix.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether it names all objects below it.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// Another object of the bucket.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// The object of this relative name below the prefix.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Outside`] for an absolute name, a URL, or one with `..`.
    pub fn below(&self, name: &str) -> Result<Self, Error> {
        check_relative(name)?;
        let slash = if self.is_prefix() { "" } else { "/" };
        Ok(self.with_key(&format!("{}{slash}{name}", self.key)))
    }

    /// The object of this relative name beside the object.
    ///
    /// # Errors
    ///
    /// Those of [`below`](Self::below).
    pub(crate) fn beside(&self, name: &str) -> Result<Self, Error> {
        self.with_key(self.key.rfind('/').map_or("", |end| &self.key[..=end])).below(name)
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/{}", self.protocol.scheme(), self.bucket, self.key)
    }
}

/// An object below a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// The object.
    pub path: ObjectPath,
    /// Bytes.
    pub len: u64,
    /// What tells this version from others, as the header `ETag` has it, if the store says it.
    pub etag: Option<String>,
}

/// What happens where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Replace {
    /// The new one is refused. On `s3://`, of several writers at once one succeeds; elsewhere that is so for objects of at most 8 MiB.
    Never,
    /// The new one takes its place.
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_their_bucket() {
        for text in
            ["", "/k", "b b/k", "b/a//k", "b//k", "b/../k", "b/k/.", "b/a\nk", "u@b/k", "b:9/k", ".b/k"]
        {
            assert_eq!(ObjectPath::parse(Protocol::S3, text).unwrap_err().code(), "rm-url", "{text:?}");
        }
        for text in ["b", "b/", "b/k", "b/k/", "b/k l#?%.gguf", "a.b-c_9/ä"] {
            let object = ObjectPath::parse(Protocol::Azure, text).unwrap();
            let again = object.to_string();
            assert_eq!(
                ObjectPath::parse(Protocol::Azure, again.strip_prefix("az://").unwrap()).unwrap(),
                object
            );
        }
    }

    #[test]
    fn names_are_below_a_prefix_and_beside_an_object() {
        let object = |text| ObjectPath::parse(Protocol::S3, text).unwrap();
        for (text, below, beside) in [
            ("b", "n", "n"),
            ("b/k", "k/n", "n"),
            ("b/k/", "k/n", "k/n"),
            ("b/k/i.json", "k/i.json/n", "k/n"),
        ] {
            assert_eq!(object(text).below("n").unwrap().key(), below, "{text}");
            assert_eq!(object(text).beside("n").unwrap().key(), beside, "{text}");
        }
        for name in ["", "..", "../x", "/x", "a//b", "s3://b/x"] {
            assert_eq!(object("b/k").below(name).unwrap_err().code(), "rm-outside", "{name}");
        }
    }
}
