//! Which model another was distilled from.

use alloc::string::String;
use alloc::vec::Vec;

use super::record::{choice, record};

choice! {
    /// How knowledge was passed on.
    pub enum DistillationMethod {
        /// From the teacher's answers.
        #[default]
        Standard,
        /// Layer by layer.
        Progressive,
        /// From several teachers.
        Ensemble,
    }
}

record! {
    /// Where a student model's knowledge comes from. Nobody vouches for it in a file that is not signed.
    pub struct DistillationInfo {
        /// How it was passed on.
        pub method: DistillationMethod,
        /// From whom.
        pub teacher: Teacher,
        /// Settings of the training.
        pub params: DistillationParams,
        /// Which layer learned from which, empty if that was not recorded.
        pub layer_mapping: Vec<LayerMapping>,
    }
}

record! {
    /// A model that taught, or several as one.
    pub struct Teacher {
        /// Digest of its file.
        pub hash: String,
        /// Signature of its file.
        pub signature: Option<String>,
        /// Name of its type, for example `NeuralSequential`.
        pub model_type: String,
        /// Number of its parameters.
        pub param_count: u64,
        /// The members, if it is several.
        pub ensemble_teachers: Vec<Teacher>,
    }
}

record! {
    /// Settings of a distillation.
    pub struct DistillationParams {
        /// Divides the logits before the softmax.
        pub temperature: f32,
        /// Weight of the teacher's answers against the true labels.
        pub alpha: f32,
        /// Weight of the layers' likeness.
        pub beta: Option<f32>,
        /// Passes over the samples.
        pub epochs: u32,
        /// Loss at the end.
        pub final_loss: Option<f32>,
    }
}

record! {
    /// A layer and the one it learned from, both counted from 0.
    pub struct LayerMapping {
        /// Of the student.
        pub student_layer: u64,
        /// Of the teacher.
        pub teacher_layer: u64,
        /// Weight of this pair.
        pub weight: f32,
    }
}
