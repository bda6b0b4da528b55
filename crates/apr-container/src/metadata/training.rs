//! How a model was trained.

use alloc::string::String;

use super::record::record;

record! {
    /// What a model was trained on, and for how long.
    pub struct Training {
        /// Number of samples.
        pub samples: Option<u64>,
        /// Milliseconds it took.
        pub duration_ms: Option<u64>,
        /// Where the samples come from.
        pub source: Option<String>,
    }
}
