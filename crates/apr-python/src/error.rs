//! Python exceptions: the class and message of the official package, then subject, position and code.

use alloc::borrow::Cow;
use std::io;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileExistsError, PyOSError};
use pyo3::prelude::*;
use st_core::Subject;

use crate::foreign::{self, Refused};
use crate::range_file::raised_by_source;

/// The number by which C knows that there is no such file.
const ENOENT: i32 = 2;

/// The number by which C knows that there is such a file.
const EEXIST: i32 = 17;

create_exception!(
    apr._native,
    SafetensorError,
    PyException,
    "What is wrong with a safetensors file or with what should become one.\n\n\
     `code` is a stable identifier (`apr explain CODE` says more), `offset` the byte concerned, `tensor` the name of the\n\
     tensor concerned; each is None where there is none."
);

/// A [`SafetensorError`] without a place.
pub(crate) fn refused(text: impl Into<String>) -> PyErr {
    SafetensorError::new_err(text.into())
}

/// The same of a tensor, with the code of the library that has one for it.
pub(crate) fn refused_tensor(code: Option<&str>, text: &str, tensor: &str) -> PyErr {
    Python::attach(|py| with_place(py, text, code, None, Some(tensor)))
}

/// A tensor that a file does not have.
pub(crate) fn no_tensor(name: &str) -> PyErr {
    refused_tensor(Some("st-not-found"), &format!("File does not contain tensor {name}"), name)
}

/// What every [`SafetensorError`] has, also one that Python makes.
pub(crate) fn set_defaults(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<SafetensorError>();
    ["code", "offset", "tensor"].into_iter().try_for_each(|name| class.setattr(name, py.None()))
}

/// An error of the format, as `prefix: wording of the official package (details)`.
pub(crate) fn of_format(py: Python<'_>, prefix: &str, error: &st_core::Error) -> PyErr {
    let own = error.to_string();
    let wording = match official_wording(error) {
        None => own,
        Some(official) if own.starts_with(&*official) => own,
        Some(official) => format!("{official} ({own})"),
    };
    with_place(
        py,
        &format!("{prefix}: {wording}"),
        Some(error.code()),
        error.offset(),
        error.subject().map(Subject::name),
    )
}

/// The same of a file that was read: one of another format is named, in the place of the details.
pub(crate) fn of_content(py: Python<'_>, prefix: &str, error: &st_core::Error, file: Refused<'_>) -> PyErr {
    let Some(named) = foreign::named(file, "a safetensors file") else {
        return of_format(py, prefix, error);
    };
    let wording = official_wording(error).unwrap_or_else(|| error.to_string().into());
    // Of several files, the one.
    let subject = match file {
        Refused::File(path) | Refused::Known(_, path) => path.display().to_string(),
        Refused::Memory(_) => "this".to_owned(),
    };
    let text = format!("{prefix}: {wording}: {subject} {named}");
    with_place(py, &text, Some(error.code()), error.offset(), error.subject().map(Subject::name))
}

/// An error of a file: what Python raised while it was read, or an `AprError` of the network. The system's become `OSError`s, a missing file is named as the official package does.
pub(crate) fn of_file(py: Python<'_>, prefix: &str, error: &st_mmap::Error) -> PyErr {
    if let Some(raised) = raised_by_source(py, error, error.path()) {
        return raised;
    }
    if let st_mmap::ErrorKind::Format(format) = error.kind() {
        return match error.path() {
            Some(path) => of_content(py, prefix, format, Refused::File(path)),
            None => of_format(py, prefix, format),
        };
    }
    let text = format!("{prefix}: {error}");
    match error.io_error() {
        Some(cause) => of_system(py, cause, text, error.path()),
        None => match error.kind() {
            st_mmap::ErrorKind::File(file) => of_folder(py, file, text),
            _ => {
                with_place(py, &text, Some(error.code()), error.offset(), error.subject().map(Subject::name))
            }
        },
    }
}

/// What the system refused, in the class that Python has for it, for example PermissionError: its number, its text with ours
/// behind it, and the file. A file that does not exist has the same text in every function.
pub(crate) fn of_system(py: Python<'_>, cause: &io::Error, text: String, path: Option<&Path>) -> PyErr {
    let Some(number) = cause.raw_os_error() else {
        return io::Error::new(cause.kind(), text).into();
    };
    let path = path.map(|path| path.as_os_str().to_owned());
    let system = cause.to_string();
    let system = system.strip_suffix(&format!(" (os error {number})")).unwrap_or(&system);
    if cause.kind() == io::ErrorKind::NotFound && path.is_some() {
        let class = py.import("apr._refusals").and_then(|module| module.getattr("MissingFile"));
        let made = class.and_then(|class| class.call1((ENOENT, system, path)));
        return made.map_or_else(|error| error, PyErr::from_value);
    }
    let text = format!("{system} ({text})");
    // Where the system's numbers are not those of C, they are an argument of their own.
    if cfg!(windows) {
        PyOSError::new_err((0, text, path, number))
    } else {
        PyOSError::new_err((number, text, path))
    }
}

/// What is in the way in a file system without that the system said so, with the code of the library beside the class.
fn of_folder(py: Python<'_>, error: &durable_file::Error, text: String) -> PyErr {
    let raised = match error.kind() {
        durable_file::ErrorKind::Exists => PyFileExistsError::new_err((
            EEXIST,
            format!("File exists ({text})"),
            error.path().as_os_str().to_owned(),
        )),
        _ => PyOSError::new_err(text),
    };
    // An exception of Python takes attributes: setting one can only fail for want of memory.
    let _ = raised.value(py).setattr("code", error.code());
    raised
}

fn with_place(
    py: Python<'_>,
    text: &str,
    code: Option<&str>,
    offset: Option<u64>,
    tensor: Option<&str>,
) -> PyErr {
    let error = SafetensorError::new_err(text.to_owned());
    let value = error.value(py);
    // Attributes of an exception of our own: setting them can only fail for want of memory.
    let _ = value.setattr("code", code);
    let _ = value.setattr("offset", offset);
    let _ = value.setattr("tensor", tensor);
    error
}

/// The words by which programs know the refusals of `safetensors` 0.8.0.
fn official_wording(error: &st_core::Error) -> Option<Cow<'static, str>> {
    use st_core::ErrorKind as Kind;
    let official = match error.kind() {
        Kind::HeaderTooSmall { .. } => "header too small",
        Kind::HeaderTooLarge { .. } => "header too large",
        Kind::InvalidHeaderLength { .. } => "invalid header length",
        Kind::InvalidUtf8 => "invalid UTF-8 in header",
        Kind::InvalidOffsets { .. } => {
            return Some(
                format!(
                    "invalid offset for tensor `{}`",
                    error.subject().map(Subject::name).unwrap_or_default()
                )
                .into(),
            );
        }
        Kind::SizeOverflow => "overflow computing buffer size from shape and/or element type",
        Kind::PartialByte { .. } => {
            "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, this is invalid."
        }
        Kind::SizeMismatch { .. } => "invalid shape, data type, or offset for tensor",
        Kind::IncompleteFile { .. } => "incomplete metadata, file not fully covered",
        kind if kind.code().starts_with("st-json-")
            || kind.code().starts_with("st-entry-")
            || kind.code().starts_with("st-metadata-")
            || kind.code() == "st-dtype" =>
        {
            "invalid JSON in header"
        }
        _ => return None,
    };
    Some(official.into())
}
