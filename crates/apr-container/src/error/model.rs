//! Errors of models, whose types are not known here.

use alloc::boxed::Box;

/// What a model's constructor says of decoded parts.
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
