//! Errors of sources.

use alloc::boxed::Box;
use core::fmt;
use core::ops::Range;

/// Why bytes could not be read, and the error of the source where it has one of its own.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    source: Option<Box<dyn core::error::Error + Send + Sync>>,
}

/// What was wrong. Quantities are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The range is not within the source.
    OutOfRange {
        /// First byte of the range.
        offset: u64,
        /// Length of the range.
        len: u64,
        /// Length of the source.
        available: u64,
    },
    /// The range is within the source but has not arrived yet: provide it and read again.
    Missing {
        /// First missing byte.
        offset: u64,
        /// Number of missing bytes.
        len: u64,
    },
    /// The file is a directory, pipe or device.
    NotRegular,
    /// Memory for the bytes could not be allocated.
    OutOfMemory {
        /// Requested bytes.
        len: u64,
    },
    /// The source failed; [`source`](core::error::Error::source) has its error.
    Source,
}

impl Error {
    /// An error of a source, with its cause.
    ///
    /// ```
    /// use read_at::{Error, ErrorKind};
    ///
    /// let error = Error::from_source(core::fmt::Error);
    /// assert_eq!(error.kind(), ErrorKind::Source);
    /// assert!(core::error::Error::source(&error).is_some());
    /// ```
    #[must_use]
    #[cold]
    pub fn from_source(source: impl core::error::Error + Send + Sync + 'static) -> Self {
        Self { kind: ErrorKind::Source, source: Some(Box::new(source)) }
    }

    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error of the source, for crates that wrap it in an error of their own.
    #[must_use]
    pub fn into_source(self) -> Option<Box<dyn core::error::Error + Send + Sync>> {
        self.source
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, source: None }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { offset, len, available } => {
                write!(f, "{len} bytes at byte offset {offset} are out of range: the source has {available}")
            }
            Self::Missing { offset, len } => {
                write!(f, "{len} bytes at byte offset {offset} are not available yet")
            }
            Self::NotRegular => f.write_str("not a regular file"),
            Self::OutOfMemory { len } => write!(f, "cannot allocate {len} bytes"),
            Self::Source => f.write_str("cannot read from the source"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::OutOfRange { .. } => std::io::ErrorKind::UnexpectedEof,
            ErrorKind::Missing { .. } => std::io::ErrorKind::WouldBlock,
            ErrorKind::NotRegular => std::io::ErrorKind::InvalidInput,
            ErrorKind::OutOfMemory { .. } => std::io::ErrorKind::OutOfMemory,
            ErrorKind::Source => std::io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The range of bytes whose absence caused `error`, if that was the cause: the [`ErrorKind::Missing`] found first in its chain of
/// sources. Offsets are those of the source that lacks the bytes, not of a [`Window`](crate::Window) over it.
///
/// A driver that fetches remote bytes calls a reader, asks this function about its error, fetches the range and calls the reader again.
#[must_use]
pub fn missing_range(error: &(dyn core::error::Error + 'static)) -> Option<Range<u64>> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(Error { kind: ErrorKind::Missing { offset, len }, .. }) = error.downcast_ref() {
            return Some(*offset..offset.saturating_add(*len));
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_missing_range_is_found_below_other_errors() {
        let error = Error::from_source(Error::from(ErrorKind::Missing { offset: 10, len: 5 }));
        assert_eq!(missing_range(&error), Some(10..15));
        assert_eq!(missing_range(&Error::from_source(fmt::Error)), None);
    }

    #[test]
    fn messages_are_one_line_in_lower_case() {
        for kind in [
            ErrorKind::OutOfRange { offset: 1, len: 2, available: 3 },
            ErrorKind::Missing { offset: 1, len: 2 },
            ErrorKind::NotRegular,
            ErrorKind::OutOfMemory { len: 1 },
            ErrorKind::Source,
        ] {
            let text = Error::from(kind).to_string();
            assert!(!text.ends_with('.') && !text.contains('\n') && text.len() > 8, "{text}");
            assert!(!text.starts_with(char::is_uppercase), "{text}");
        }
    }
}
