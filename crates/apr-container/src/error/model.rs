//! Errors of models, whose types this crate does not know.

use alloc::boxed::Box;
use core::fmt;

use located_error::{Entry, Located, Location};

/// The error of a model's constructor about decoded values.
#[derive(Debug)]
pub struct ModelError {
    pub(super) code: &'static str,
    pub(super) source: Box<dyn core::error::Error + Send + Sync>,
}

impl ModelError {
    /// The constructor's error.
    #[must_use]
    pub fn get(&self) -> &(dyn core::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// The text of the constructor's error is this one's.
impl core::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.source.source()
    }
}

impl Located for ModelError {
    fn code(&self) -> &'static str {
        self.code
    }

    fn message(&self) -> &dyn fmt::Display {
        self
    }

    fn location(&self) -> Location<'_> {
        Location::default()
    }

    fn entry(&self) -> Option<&'static Entry> {
        None
    }
}
