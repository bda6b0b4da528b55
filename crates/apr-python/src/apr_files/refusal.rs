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
use crate::range_file::raised_by_source;

create_exception!(
    apr._native,
    AprError,
    PyException,
    "What is wrong with a model file, with what should become one, with a key, or with a question to a model.\n\n\
     The text says what, where and what to do. `code` is a stable identifier (`apr explain CODE` says more), `offset` the\n\
     byte concerned, `name` the tensor or metadata key concerned, `path` the file; each is None where there is none."
);

/// An error that can be made while other threads run, and raised afterwards.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// An error of a library.
    Library(Box<dyn Located + Send + Sync>),
    /// An error of the operating system.
    Io(io::Error),
    /// A part of a model that Python describes, and its place in the description.
    Part { place: String, error: Box<apr_models::Error> },
    /// A code of a library with a message of this crate's own.
    Said { code: &'static str, text: String },
}

impl<E: Located + Send + Sync + 'static> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Library(Box::new(error))
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
        if let Self::Library(error) = self
            && let Some(raised) = raised_by_source(py, &**error, path)
        {
            return raised;
        }
        let mut told = self.told();
        let wanted = match told.code {
            "gg-magic" => Some("a GGUF file"),
            "ac-sealed-magic" => Some("a sealed file"),
            code if code == "ac-magic" || code == "mo-foreign-format" || code.starts_with("st-header-") => {
                Some("a model file")
            }
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
        let read = self.read_error();
        if let Some(cause) = self.io_error().or(read.as_ref()) {
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
            Self::Library(error) => located(&**error),
            Self::Io(error) => bare("ac-io", error.to_string()),
            Self::Part { place, error } => {
                Told { name: Some(place.clone()), ..bare(error.code(), format!("{place}: {error}")) }
            }
            Self::Said { code, text } => bare(code, text.clone()),
        }
    }

    /// The operating system's error, if that is the cause.
    fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Library(error) => located_error::io_error(&**error),
            Self::Io(error) => Some(error),
            Self::Part { .. } | Self::Said { .. } => None,
        }
    }

    /// The error of a source that ended too early or is no file, as the operating system would report it.
    fn read_error(&self) -> Option<io::Error> {
        let Self::Library(error) = self else { return None };
        let kind = error.source()?.downcast_ref::<read_at::Error>()?.kind();
        (kind != read_at::ErrorKind::Source).then(|| read_at::Error::from(kind).into())
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

/// What to do about an error of this code with the arguments of this package; None where that is not said here.
#[pyfunction]
pub(crate) fn advice(code: &str) -> Option<&'static str> {
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
        "ac-expansion" | "ac-model-memory" => "from Python: no_size_limit=True",
        "ac-unbound" => "from Python: compat=True",
        "am-feature-not-finite" => "fill in the value, or leave the row out",
        "cli-table-cell" => "correct the cell, or train with --unknown-category ignore",
        "mo-no-model" => {
            "apr.open gives the tensors; models that predict are those of `apr train` and apr.sklearn.export, and a language \
             model runs in llama.cpp, Ollama or LM Studio"
        }
        "am-not-fitted" => "train it first",
        "am-unknown-model" => "apr.inspect shows what the file holds",
        "rm-http" => "use https://, or give allow_http=True",
        "rm-offline" => "unset HF_HUB_OFFLINE, or name a file of this machine",
        "rm-denied" | "rm-gated" => "set HF_TOKEN, or make a new signed URL",
        "rm-not-found" => "check the URL, and HF_TOKEN if the repository is private",
        "rm-scheme" => "give the file system or store that reads it as fs=",
        "cy-minisign-password" | "cy-open" => "give the password of the key's file as key_password=",
        _ => return None,
    })
}
