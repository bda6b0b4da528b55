//! What a front end needs to know of an error.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;
use core::fmt;
#[cfg(feature = "std")]
use std::path::Path;

#[cfg(feature = "std")]
use json_scan::Visible;

use crate::entry::Entry;
#[cfg(feature = "alloc")]
use crate::subject::Subject;

/// Where an error is. Each part is present where it is known.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Location<'e> {
    /// Bytes from the start of the file.
    pub offset: Option<u64>,
    /// Line of a text, from 1.
    pub line: Option<u32>,
    /// The tensor, key or field concerned.
    #[cfg(feature = "alloc")]
    pub subject: Option<&'e Subject>,
    /// The file or folder, as the caller named it.
    #[cfg(feature = "std")]
    pub path: Option<&'e Path>,
    #[cfg(not(feature = "alloc"))]
    pub(crate) lifetime: core::marker::PhantomData<&'e ()>,
}

#[cfg(feature = "alloc")]
impl Location<'_> {
    /// The message with this location: `m.bin: message, tensor "w", in line 3, at byte 8`.
    pub(crate) fn write(&self, message: &dyn fmt::Display, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "std")]
        if let Some(path) = self.path {
            write!(f, "{}: ", Visible(&path.to_string_lossy()))?;
        }
        message.fmt(f)?;
        if let Some(subject) = self.subject {
            write!(f, ", {subject}")?;
        }
        if let Some(line) = self.line {
            write!(f, ", in line {line}")?;
        }
        match self.offset {
            Some(offset) => write!(f, ", at byte {offset}"),
            None => Ok(()),
        }
    }
}

/// An error with a stable code and a location: every type that [`errors!`](crate::errors) declares, and a box of one.
pub trait Located: core::error::Error {
    /// Stable identifier, for example `st-offsets`.
    fn code(&self) -> &'static str;

    /// What was wrong, without the location.
    fn message(&self) -> &dyn fmt::Display;

    /// Where it is.
    fn location(&self) -> Location<'_>;

    /// Meaning and remedy; none for an error of a library that is not known here.
    ///
    /// Not for `dyn Located`, which would keep the texts of every crate in a program that shows none.
    fn entry(&self) -> Option<&'static Entry>
    where
        Self: Sized;
}

/// The operating system's error among the sources of `error`.
#[cfg(feature = "std")]
#[must_use]
pub fn io_error<'e>(error: &'e (dyn core::error::Error + 'static)) -> Option<&'e std::io::Error> {
    core::iter::successors(error.source(), |error| error.source())
        .find_map(<dyn core::error::Error>::downcast_ref)
}

#[cfg(feature = "alloc")]
impl<E: Located> Located for Box<E> {
    fn code(&self) -> &'static str {
        E::code(self)
    }

    fn message(&self) -> &dyn fmt::Display {
        E::message(self)
    }

    fn location(&self) -> Location<'_> {
        E::location(self)
    }

    fn entry(&self) -> Option<&'static Entry> {
        E::entry(self)
    }
}
