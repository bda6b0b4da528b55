//! TensorFlow Lite.
