//! Checkpoints of TensorFlow and SavedModel.
