//! What an error holds besides its kind.

use alloc::boxed::Box;
use core::error::Error;
use core::fmt;

use crate::located::Location;
use crate::subject::Subject;

/// The content of an error type that [`errors!`](crate::errors) declares. Errors are one pointer to it: results are returned from every
/// step of a reader, and few of them fail.
#[derive(Clone, PartialEq, Eq)]
pub struct Context<K, C = NoCause> {
    /// What was wrong.
    pub kind: K,
    /// Bytes from the start of the file.
    pub offset: Option<u64>,
    /// Line of a text, from 1.
    pub line: Option<u32>,
    /// The tensor, key or field concerned.
    pub subject: Option<Subject>,
    /// The file or folder, as the caller named it.
    #[cfg(feature = "std")]
    pub path: Option<Box<std::path::Path>>,
    /// The error of another library that led to this one.
    pub cause: Option<C>,
}

impl<K, C> Context<K, C> {
    /// A kind without a location.
    #[must_use]
    pub const fn new(kind: K) -> Self {
        Self {
            kind,
            offset: None,
            line: None,
            subject: None,
            #[cfg(feature = "std")]
            path: None,
            cause: None,
        }
    }

    /// Where the error is; what is not known here, by the `inner` error that the kind wraps.
    #[must_use]
    pub fn location<'e>(&'e self, inner: Location<'e>) -> Location<'e> {
        Location {
            offset: self.offset.or(inner.offset),
            line: self.line.or(inner.line),
            subject: self.subject.as_ref().or(inner.subject),
            #[cfg(feature = "std")]
            path: self.path.as_deref().or(inner.path),
        }
    }
}

/// `Error { kind: .., offset: .. }`, with the parts that are known.
impl<K: fmt::Debug, C: fmt::Debug> fmt::Debug for Context<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Error");
        fields.field("kind", &self.kind);
        if let Some(offset) = &self.offset {
            fields.field("offset", offset);
        }
        if let Some(line) = &self.line {
            fields.field("line", line);
        }
        if let Some(subject) = &self.subject {
            fields.field("subject", subject);
        }
        #[cfg(feature = "std")]
        if let Some(path) = &self.path {
            fields.field("path", path);
        }
        if let Some(cause) = &self.cause {
            fields.field("cause", cause);
        }
        fields.finish()
    }
}

/// The message and the location that this context itself knows: the text of a wrapped error has its own.
impl<K: fmt::Display, C> fmt::Display for Context<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.location(Location::default()).write(&self.kind, f)
    }
}

/// A type for the errors that [`Context::cause`] holds.
pub trait Cause {
    /// For [`Error::source`].
    fn as_error(&self) -> &(dyn Error + 'static);
}

/// The cause of errors that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCause {}

impl Cause for NoCause {
    fn as_error(&self) -> &(dyn Error + 'static) {
        match *self {}
    }
}

/// A cause of any type.
pub type AnyCause = Box<dyn Error + Send + Sync>;

impl Cause for AnyCause {
    fn as_error(&self) -> &(dyn Error + 'static) {
        &**self
    }
}

#[cfg(feature = "std")]
impl Cause for std::io::Error {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }
}
