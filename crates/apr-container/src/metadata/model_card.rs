//! Model cards.

use alloc::string::String;
use alloc::vec::Vec;

use super::record::record;
use super::time::unix_seconds;
use super::value::Value;
use crate::map::Map;

record! {
    /// A description of a model for people.
    pub struct ModelCard {
        /// Identifier of the model.
        pub model_id: String,
        /// Display name.
        pub name: String,
        /// Version of the model.
        pub version: String,
        /// Author.
        pub author: Option<String>,
        /// Time of creation, as ISO 8601.
        pub created_at: String,
        /// Library that created it, with its version.
        pub framework_version: String,
        /// Compiler of that library.
        pub rust_version: Option<String>,
        /// Description.
        pub description: Option<String>,
        /// License.
        pub license: Option<String>,
        /// What it was trained on.
        pub training_data: Option<TrainingData>,
        /// Hyperparameters of the training.
        pub hyperparameters: Map<Value>,
        /// Metrics of the model.
        pub metrics: Map<Value>,
        /// Architecture.
        pub architecture: Option<String>,
        /// Number of its parameters.
        pub param_count: Option<u64>,
        /// Target hardware, for example `cpu`.
        pub target_hardware: Vec<String>,
    }
}

impl ModelCard {
    /// Seconds since 1970 of [`created_at`](Self::created_at), `None` if that is not a time, or before 1970.
    #[must_use]
    pub fn created_at_unix(&self) -> Option<u64> {
        unix_seconds(&self.created_at)
    }
}

record! {
    /// What a model was trained on.
    pub struct TrainingData {
        /// Name of the data set.
        pub name: String,
        /// Number of samples.
        pub samples: Option<u64>,
        /// Digest of the data set.
        pub hash: Option<String>,
    }
}
