//! Provenance of distilled models.

use alloc::string::String;
use alloc::vec::Vec;

use super::record::{choice, record};

choice! {
    /// Distillation method.
    pub enum DistillationMethod {
        /// From the teacher's outputs.
        #[default]
        Standard,
        /// Layer by layer.
        Progressive,
        /// From several teachers.
        Ensemble,
    }
}

record! {
    /// The teacher and the method of a distilled model. Not authenticated in a file that is not signed.
    pub struct DistillationInfo {
        /// The method.
        pub method: DistillationMethod,
        /// The teacher.
        pub teacher: Teacher,
        /// Settings of the training.
        pub params: DistillationParams,
        /// Pairs of student and teacher layers, empty if they were not recorded.
        pub layer_mapping: Vec<LayerMapping>,
    }
}

record! {
    /// The teacher model, or an ensemble of several.
    pub struct Teacher {
        /// Digest of its file.
        pub hash: String,
        /// Signature of its file.
        pub signature: Option<String>,
        /// Name of its type, for example `NeuralSequential`.
        pub model_type: String,
        /// Number of its parameters.
        pub param_count: u64,
        /// The members of an ensemble.
        pub ensemble_teachers: Vec<Teacher>,
    }
}

record! {
    /// Settings of a distillation.
    pub struct DistillationParams {
        /// Divides the logits before the softmax.
        pub temperature: f32,
        /// Weight of the teacher's outputs relative to the true labels.
        pub alpha: f32,
        /// Weight of the similarity of layers.
        pub beta: Option<f32>,
        /// Epochs.
        pub epochs: u32,
        /// Final loss.
        pub final_loss: Option<f32>,
    }
}

record! {
    /// Indices of a student layer and its teacher layer.
    pub struct LayerMapping {
        /// Of the student.
        pub student_layer: u64,
        /// Of the teacher.
        pub teacher_layer: u64,
        /// Weight of this pair.
        pub weight: f32,
    }
}
