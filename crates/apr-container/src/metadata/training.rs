//! How a model was trained.

use alloc::string::String;

use super::record::record;

record! {
    /// The training of a model.
    pub struct Training {
        /// Number of samples.
        pub samples: Option<u64>,
        /// Duration in milliseconds.
        pub duration_ms: Option<u64>,
        /// Source of the samples.
        pub source: Option<String>,
    }
}
