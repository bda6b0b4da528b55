//! Refusals, as JavaScript gets them.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};

use crate::json::Json;

/// What is wrong: a stable code, a sentence, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable identifier, for example `ac-checksum`; those of this package begin with `aw-`.
    pub code: &'static str,
    /// A sentence.
    pub message: String,
    /// Byte of the file.
    pub offset: Option<u64>,
    /// The tensor concerned.
    pub tensor: Option<String>,
    /// The key of the metadata concerned.
    pub key: Option<String>,
}

impl Failure {
    /// Without a place.
    #[must_use]
    pub fn new(code: &'static str, message: impl ToString) -> Self {
        Self { code, message: message.to_string(), offset: None, tensor: None, key: None }
    }

    /// A question that no caller of the package's own asks.
    pub(crate) fn message() -> Self {
        Self::new("aw-message", "a message to the module that it does not understand")
    }

    /// What this build of the module is without.
    #[allow(dead_code, reason = "a build with every feature lacks nothing")]
    pub(crate) fn lacks(what: &str) -> Self {
        Self::new(
            "aw-feature",
            what.to_owned() + " is not in this build: import \"apr-wasm\" instead of \"apr-wasm/core\"",
        )
    }

    pub(crate) fn to_json(&self) -> String {
        let mut json = Json::object();
        json.text("code", self.code);
        json.text("message", &self.message);
        if let Some(offset) = self.offset {
            json.number("offset", offset);
        }
        if let Some(tensor) = &self.tensor {
            json.text("tensor", tensor);
        }
        if let Some(key) = &self.key {
            json.text("key", key);
        }
        json.finish()
    }
}

impl From<st_core::Error> for Failure {
    fn from(error: st_core::Error) -> Self {
        let tensor = error.tensor().map(str::to_owned);
        Self { offset: error.offset(), tensor, ..Self::new(error.code(), &error) }
    }
}

impl From<apr_container::Error> for Failure {
    fn from(error: apr_container::Error) -> Self {
        let key = error.name().map(str::to_owned);
        Self { offset: error.offset(), key, ..Self::new(error.code(), &error) }
    }
}

impl From<apr_models::Error> for Failure {
    fn from(error: apr_models::Error) -> Self {
        let offset = match error.kind() {
            apr_models::ErrorKind::Format(inner) => inner.offset(),
            apr_models::ErrorKind::Container(inner) => inner.offset(),
            _ => None,
        };
        let tensor = error.tensor().map(str::to_owned);
        Self { offset, tensor, ..Self::new(error.code(), &error) }
    }
}

#[cfg(feature = "gguf")]
impl From<gguf_core::Error> for Failure {
    fn from(error: gguf_core::Error) -> Self {
        let mut failure = Self { offset: error.offset(), ..Self::new(error.code(), &error) };
        match error.subject() {
            Some(gguf_core::Subject::Key(key)) => failure.key = Some(key.to_string()),
            Some(gguf_core::Subject::Tensor(name)) => failure.tensor = Some(name.to_string()),
            _ => {}
        }
        failure
    }
}

#[cfg(feature = "quantize")]
impl From<apr_quant::Error> for Failure {
    fn from(error: apr_quant::Error) -> Self {
        Self::new(error.code(), &error)
    }
}

#[cfg(feature = "crypto")]
impl From<apr_crypto::Error> for Failure {
    fn from(error: apr_crypto::Error) -> Self {
        Self::new(error.code(), &error)
    }
}
