//! Kinds of errors of a server that does not start.

use core::fmt;
use std::io;

use located_error::{Entry, Located, Location};

use crate::codes::TABLE;

/// Why a server cannot start, or had to stop.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    cause: io::Error,
}

/// What could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The address cannot be listened on.
    Bind {
        /// As it was given, where it is known.
        addr: Box<str>,
    },
    /// The operating system gives no thread, clock or signal handler.
    Start,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, cause: io::Error) -> Self {
        Self { kind, cause }
    }

    pub(crate) fn start(cause: io::Error) -> Self {
        Self::new(ErrorKind::Start, cause)
    }

    /// What could not be done.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// What the operating system said.
    #[must_use]
    pub const fn io_error(&self) -> &io::Error {
        &self.cause
    }

    /// Stable identifier of the kind.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.kind {
            ErrorKind::Bind { .. } => "sv-bind",
            ErrorKind::Start => "sv-start",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { addr } => write!(f, "cannot listen on {addr}"),
            Self::Start => f.write_str("cannot start the server"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.cause)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl Located for Error {
    fn code(&self) -> &'static str {
        Self::code(self)
    }

    fn message(&self) -> &dyn fmt::Display {
        &self.kind
    }

    fn location(&self) -> Location<'_> {
        Location::default()
    }

    fn entry(&self) -> Option<&'static Entry> {
        TABLE.iter().find(|entry| entry.code == self.code())
    }
}
