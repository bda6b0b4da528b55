//! Refusals, as JavaScript gets them.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};

use located_error::{Located, Subject};

use crate::json::Json;

/// What is wrong.
///
/// One pointer long: results are returned from every step, and what fails is rare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(Box<Reason>);

/// A stable code, a sentence, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason {
    /// For example `ac-checksum`; those of this package begin with `aw-`.
    code: &'static str,
    message: String,
    /// Byte of the file.
    offset: Option<u64>,
    /// The tensor concerned.
    tensor: Option<String>,
    /// The key of the metadata concerned.
    key: Option<String>,
    /// The format that the file has instead.
    format: Option<foreign_format::Format>,
}

impl Failure {
    /// Without a place.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Reason {
            code,
            message: message.into(),
            offset: None,
            tensor: None,
            key: None,
            format: None,
        }))
    }

    /// What one of the crates below refuses.
    fn told(code: &'static str, error: &(impl core::fmt::Display + ?Sized)) -> Self {
        Self::new(code, error.to_string())
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    fn at(mut self, offset: Option<u64>) -> Self {
        self.0.offset = offset;
        self
    }

    fn of_tensor(mut self, tensor: Option<&str>) -> Self {
        self.0.tensor = tensor.map(str::to_owned);
        self
    }

    fn of_key(mut self, key: Option<&str>) -> Self {
        self.0.key = key.map(str::to_owned);
        self
    }

    /// A file of a format that is known and not read.
    pub(crate) fn foreign(format: foreign_format::Format) -> Self {
        let message = format!("this is {}, not safetensors, .apr or GGUF", format.title());
        let mut failure = Self::new("aw-foreign-format", message);
        failure.0.format = Some(format);
        failure
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
        let Reason { code, message, offset, tensor, key, format } = &*self.0;
        json.text("code", code);
        json.text("message", message);
        if let Some(offset) = *offset {
            json.number("offset", offset);
        }
        if let Some(tensor) = tensor {
            json.text("tensor", tensor);
        }
        if let Some(key) = key {
            json.text("key", key);
        }
        if let Some(format) = format {
            json.text("format", format.name());
            json.text("help", format.help());
        }
        json.finish()
    }
}

impl From<read_at::Error> for Failure {
    fn from(error: read_at::Error) -> Self {
        match error.kind() {
            read_at::ErrorKind::OutOfMemory { .. } => {
                Self::new("aw-memory", "no memory for these bytes of the file")
            }
            _ => Self::message(),
        }
    }
}

/// An error of a library. Through a trait object, so that the module has this function once.
fn located(error: &dyn Located) -> Failure {
    let location = error.location();
    let failure = Failure::told(error.code(), error).at(location.offset);
    match location.subject {
        Some(Subject::Tensor(name)) => failure.of_tensor(Some(name)),
        Some(subject) => failure.of_key(Some(subject.name())),
        None => failure,
    }
}

macro_rules! from_located {
    ($($(#[$cfg:meta])* $error:ty $(as $common:ty)?;)*) => {$(
        $(#[$cfg])*
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                located(&$(<$common>::from)?(error))
            }
        }
    )*};
}

from_located! {
    // Those of files as one type.
    st_core::Error as model_file::Error;
    #[cfg(feature = "apr")]
    apr_container::Error as model_file::Error;
    #[cfg(feature = "apr")]
    apr_models::Error as model_file::Error;
    #[cfg(feature = "crypto")]
    apr_sealed::Error as model_file::Error;
    #[cfg(feature = "gguf")]
    gguf_core::Error as model_file::Error;
    #[cfg(feature = "quantize")]
    apr_quant::Error;
    #[cfg(feature = "crypto")]
    apr_crypto::Error;
    #[cfg(feature = "scan")]
    model_scan::Error;
}

impl From<model_file::Error> for Failure {
    fn from(error: model_file::Error) -> Self {
        use model_file::ErrorKind;
        match error.kind() {
            ErrorKind::ForeignFormat { found } => {
                found.foreign().map_or_else(|| located(&error), Self::foreign)
            }
            #[cfg(feature = "apr")]
            ErrorKind::ForeignPayload { .. } => {
                Self::new("aw-foreign-payload", "the payload is of a type of its maker's own")
            }
            ErrorKind::OutOfMemory { .. } => crate::values::too_many(),
            _ => located(&error),
        }
    }
}
