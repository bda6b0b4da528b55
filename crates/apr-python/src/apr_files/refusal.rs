//! Errors of files and predictions, as one Python class.

use alloc::boxed::Box;
use std::io;
use std::path::Path;

use located_error::Located;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::error::of_system;
use crate::foreign::{self, Refused};

create_exception!(
    apr._native,
    AprError,
    PyException,
    "What is wrong with a model file, with what should become one, with a key, or with a question to a model.\n\n\
     The text says what, where and what to do. `code` is a stable identifier (`apr explain CODE` says more), `offset` the\n\
     byte concerned, `name` the tensor or metadata key concerned, `path` the file; each is None where there is none."
);

/// A refusal that can be made while other threads run, and raised afterwards.
#[derive(Debug)]
pub(crate) enum Refusal {
    Container(apr_container::Error),
    Sealed(apr_sealed::Error),
    Model(apr_models::Error),
    Key(apr_crypto::Error),
    File(durable_file::Error),
    Format(st_core::Error),
    Mapped(st_mmap::Error),
    Gguf(gguf_core::Error),
    Quant(apr_quant::Error),
    Io(io::Error),
    /// A part of a model that Python describes, and its place in the description.
    Part {
        place: String,
        error: Box<apr_models::Error>,
    },
    /// A kind of a lower crate, with a subject that only this crate knows.
    Said {
        code: &'static str,
        text: String,
    },
}

macro_rules! from {
    ($($variant:ident($error:ty);)*) => {
        $(impl From<$error> for Refusal {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

from! {
    Container(apr_container::Error);
    Sealed(apr_sealed::Error);
    Model(apr_models::Error);
    Key(apr_crypto::Error);
    File(durable_file::Error);
    Format(st_core::Error);
    Mapped(st_mmap::Error);
    Gguf(gguf_core::Error);
    Quant(apr_quant::Error);
    Io(io::Error);
}

impl From<model_file::Error> for Refusal {
    fn from(error: model_file::Error) -> Self {
        use model_file::ErrorKind;
        let (code, text) = (error.code(), error.to_string());
        match error.into_kind() {
            ErrorKind::SafeTensors(error) => Self::Format(error),
            ErrorKind::Apr(error) => Self::Container(error),
            ErrorKind::Gguf(error) => Self::Gguf(error),
            ErrorKind::Sealed(error) => Self::Sealed(error),
            ErrorKind::Model(error) => Self::Model(error),
            ErrorKind::File(error) => Self::File(error),
            ErrorKind::Files(error) => Self::Mapped(error),
            ErrorKind::Read(error) if error.kind() == read_at::ErrorKind::Source => {
                let cause = error.into_source().and_then(|source| source.downcast::<io::Error>().ok());
                cause.map_or(Self::Said { code, text }, |error| Self::Io(*error))
            }
            ErrorKind::Read(error) => Self::Io(error.into()),
            _ => Self::Said { code, text },
        }
    }
}

/// The fields of an error.
struct Told<'e> {
    code: &'e str,
    text: String,
    offset: Option<u64>,
    name: Option<String>,
}

impl Refusal {
    /// Of a model without the requested output.
    pub(crate) fn no_answer(text: String) -> Self {
        Self::Said { code: "am-no-predictions", text }
    }

    /// Of the part at `place` in a description.
    pub(crate) fn of_part(place: &str, error: apr_models::Error) -> Self {
        Self::Part { place: place.to_owned(), error: Box::new(error) }
    }

    /// As Python's error. What the system refuses is an `OSError` of the fitting class.
    pub(crate) fn raise(&self, py: Python<'_>, path: Option<&Path>) -> PyErr {
        self.raise_of(py, path, path.map(Refused::File))
    }

    /// The same of a file, with its format if that is the cause.
    pub(crate) fn raise_of(
        &self,
        py: Python<'_>,
        path: Option<&Path>,
        refused: Option<Refused<'_>>,
    ) -> PyErr {
        let mut told = self.told();
        let wanted = match told.code {
            "gg-magic" => Some("a GGUF file"),
            "ac-sealed-magic" => Some("a sealed file"),
            code if code == "ac-magic" || code.starts_with("st-header-") => Some("a model file"),
            _ => None,
        };
        if let (Some(wanted), Some(refused)) = (wanted, refused)
            && let Some(named) = foreign::named(refused, wanted)
        {
            told.text = format!("this {named}");
        }
        let file = path.map(|path| path.display().to_string());
        // Errors of files name theirs themselves.
        let place = match &file {
            Some(file) if !told.text.contains(file.as_str()) => format!("{file}: "),
            _ => String::new(),
        };
        if let Some(cause) = self.io_error() {
            return of_system(py, cause, format!("{place}{}", told.text), path);
        }
        let error = match advice(told.code) {
            Some(advice) => AprError::new_err(format!("{place}{}: {advice} ({})", told.text, told.code)),
            None => AprError::new_err(format!("{place}{} ({})", told.text, told.code)),
        };
        let value = error.value(py);
        // Attributes of an exception of our own: setting them can only fail for want of memory.
        let _ = value.setattr("code", told.code);
        let _ = value.setattr("offset", told.offset);
        let _ = value.setattr("name", told.name);
        let _ = value.setattr("path", file);
        error
    }

    fn told(&self) -> Told<'_> {
        let bare = |code, text: String| Told { code, text, offset: None, name: None };
        match self {
            Self::Container(error) => located(error),
            Self::Model(error) => match error.kind() {
                apr_models::ErrorKind::Container(inner) => located(inner),
                _ => {
                    Told { name: error.tensor().map(str::to_owned), ..bare(error.code(), error.to_string()) }
                }
            },
            Self::Sealed(error) => located(error),
            Self::Key(error) => located(error),
            Self::File(error) => located(error),
            Self::Format(error) => located(error),
            Self::Mapped(error) => located(error),
            Self::Gguf(error) => located(error),
            Self::Quant(error) => located(error),
            Self::Io(error) => bare("ac-io", error.to_string()),
            Self::Part { place, error } => {
                Told { name: Some(place.clone()), ..bare(error.code(), format!("{place}: {error}")) }
            }
            Self::Said { code, text } => bare(code, text.clone()),
        }
    }

    /// The system's own reason, if it is one.
    fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Io(error) => Some(error),
            Self::File(error) => error.io_error(),
            Self::Mapped(error) => error.io_error(),
            Self::Container(error) => io_of_container(error),
            Self::Model(error) => match error.kind() {
                apr_models::ErrorKind::Container(inner) => io_of_container(inner),
                apr_models::ErrorKind::File(inner) => inner.io_error(),
                _ => None,
            },
            Self::Sealed(error) => match error.kind() {
                apr_sealed::ErrorKind::Io { error: cause } => Some(cause),
                apr_sealed::ErrorKind::File(cause) => cause.io_error(),
                _ => None,
            },
            Self::Key(error) => core::error::Error::source(error)?.downcast_ref(),
            Self::Format(_) | Self::Gguf(_) | Self::Quant(_) | Self::Part { .. } | Self::Said { .. } => None,
        }
    }
}

/// The fields of a library's error.
fn located(error: &dyn Located) -> Told<'_> {
    let location = error.location();
    Told {
        code: error.code(),
        text: error.to_string(),
        offset: location.offset,
        name: location.subject.map(|subject| subject.name().to_owned()),
    }
}

fn io_of_container(error: &apr_container::Error) -> Option<&io::Error> {
    match error.kind() {
        apr_container::ErrorKind::Io { error: cause } => Some(cause),
        apr_container::ErrorKind::File(cause) => cause.io_error(),
        _ => None,
    }
}

/// What to do about it with the arguments of this package.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "ac-encrypted" => "give password= or identity=",
        "ac-signed" => {
            "give verify_key=, or allow_unverified=True to use the file without verifying its signature"
        }
        "ac-not-encrypted" => {
            "ask who gave you the file; without password= and identity= it is taken as it is"
        }
        "ac-not-signed" => "ask its maker for a signed one; without verify_key= it is taken as it is",
        "ac-untrusted-signer" => {
            "compare the fingerprint in apr.inspect(file)[\"signature\"] with the maker's"
        }
        "ac-signature" | "ac-checksum" | "ac-rebound" => "get the file from its maker again",
        "ac-decryption" => "check the key; if it is the right one, get the file from its maker again",
        "ac-expansion" | "ac-model-memory" => "from Python: trusted=True",
        "ac-unbound" => "from Python: compat=True",
        "am-not-fitted" => "train it first",
        "am-unknown-model" => "apr.inspect shows what the file holds",
        "cy-minisign-password" | "cy-open" => "give the password of the key's file as key_password=",
        _ => return None,
    })
}
