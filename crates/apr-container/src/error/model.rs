//! Errors of models, whose types this crate does not know.

use alloc::boxed::Box;
use core::error::Error;
use core::fmt;

use located_error::{Entry, Located, Location};

/// The error of a model's constructor about decoded values.
#[derive(Debug)]
pub struct ModelError(pub(super) Box<dyn Located + Send + Sync>);

impl ModelError {
    /// The constructor's error.
    #[must_use]
    pub fn get(&self) -> &(dyn Located + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text of the constructor's error is this one's.
impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl Located for ModelError {
    fn code(&self) -> &'static str {
        self.0.code()
    }

    fn message(&self) -> &dyn fmt::Display {
        self.0.message()
    }

    fn location(&self) -> Location<'_> {
        self.0.location()
    }

    fn entry(&self) -> Option<&'static Entry> {
        None
    }
}
