//! Conversion of the libraries' errors to failures.

use core::error::Error;
use std::io;

use located_error::Located;

use super::{Failure, Place};
use crate::terminal::escape;

/// Upper limit of a decompressed payload, which no option raises.
const MOST_EXPANDED: u64 = 1 << 30;

/// An error of a library: offset, subject, line, file and cause have lines of their own.
fn located(error: &impl Located) -> Failure {
    let location = error.location();
    let failure = Failure::new(error.code(), error.message().to_string()).at(location.offset);
    let failure = failure.about(location.subject);
    let failure = match location.line {
        Some(line) => failure.placed(Place::line(line.into())),
        None => failure,
    };
    let failure = match location.path {
        Some(path) => failure.in_file(path),
        None => failure,
    };
    match error.source() {
        Some(cause) => failure.because(cause.to_string()),
        None => failure,
    }
}

macro_rules! from_located {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                located(&error)
            }
        }
    )*};
}

from_located!(st_core::Error, apr_convert::Error, gguf_core::Error, apr_crypto::Error);

#[cfg(feature = "serve")]
from_located!(apr_serve::Error);

impl From<&durable_file::Error> for Failure {
    fn from(error: &durable_file::Error) -> Self {
        let mut failure = located(error);
        if error.io_error().is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound) {
            failure.0.what = "there is no such file or folder".to_owned();
            failure.0.why = None;
        }
        failure
    }
}

impl From<durable_file::Error> for Failure {
    fn from(error: durable_file::Error) -> Self {
        Self::from(&error)
    }
}

impl From<st_mmap::Error> for Failure {
    fn from(error: st_mmap::Error) -> Self {
        let failure = match error.kind() {
            st_mmap::ErrorKind::File(inner) => Self::from(inner),
            _ => located(&error),
        };
        failure.of_tensor(error.subject().and_then(located_error::Subject::as_tensor))
    }
}

/// Text of a signature that is present and was not verified.
const UNCHECKED: &str = "the file is signed and its signature was not verified";

impl From<&apr_container::Error> for Failure {
    fn from(error: &apr_container::Error) -> Self {
        use apr_container::ErrorKind;
        if let ErrorKind::Io { error: inner } = error.kind()
            && let Some(sealed) = sealed_error(inner)
        {
            return Self::from(sealed);
        }
        let failure = match error.kind() {
            ErrorKind::File(inner) => Self::from(inner),
            // The library's names of limits are not options; the help names the option.
            kind @ (ErrorKind::Expansion { .. }
            | ErrorKind::ModelMemory { .. }
            | ErrorKind::MetadataTooDense { .. }) => {
                let what = kind.to_string();
                Self::new(error.code(), what.split("; raise `").next().unwrap_or_default())
            }
            ErrorKind::SignatureUnchecked => Self::new(error.code(), UNCHECKED),
            kind => Self::new(error.code(), kind.to_string()),
        };
        let failure = failure.about(error.subject()).at(error.offset());
        match error.kind() {
            ErrorKind::Expansion { allowed: MOST_EXPANDED.., .. } => failure
                .help("no reader takes a compressed payload beyond 1 GiB: store it without compression"),
            _ => failure,
        }
    }
}

impl From<apr_container::Error> for Failure {
    fn from(error: apr_container::Error) -> Self {
        Self::from(&error)
    }
}

/// The error of a sealed file inside an error of reading.
fn sealed_error(error: &io::Error) -> Option<&apr_sealed::Error> {
    error.get_ref()?.downcast_ref()
}

impl From<&apr_sealed::Error> for Failure {
    fn from(error: &apr_sealed::Error) -> Self {
        use apr_sealed::ErrorKind;
        let failure = match error.kind() {
            ErrorKind::File(inner) => Self::from(inner),
            ErrorKind::SignatureUnchecked => Self::new(error.code(), UNCHECKED),
            kind => Self::new(error.code(), kind.to_string()),
        };
        failure.about(error.subject()).at(error.offset())
    }
}

impl From<apr_sealed::Error> for Failure {
    fn from(error: apr_sealed::Error) -> Self {
        Self::from(&error)
    }
}

impl From<apr_manifest::Error> for Failure {
    fn from(error: apr_manifest::Error) -> Self {
        let failure = match error.kind() {
            apr_manifest::ErrorKind::File(inner) => Self::from(inner),
            _ => located(&error),
        };
        let differences = error.differences();
        let lists = [
            ("changed", differences.changed()),
            ("missing", differences.missing()),
            ("not on the list", differences.extra()),
        ];
        let lists = lists.iter().filter(|(_, names)| !names.is_empty());
        let named: Vec<String> =
            lists.map(|(what, names)| format!("{what}: {}", escape::some_of(names))).collect();
        if named.is_empty() { failure } else { failure.because(named.join("; ")) }
    }
}

impl From<apr_models::Error> for Failure {
    fn from(error: apr_models::Error) -> Self {
        let failure = Self::new(error.code(), error.to_string()).of_tensor(error.tensor());
        match Error::source(&error) {
            Some(cause) => failure.because(cause.to_string()),
            None => failure,
        }
    }
}
