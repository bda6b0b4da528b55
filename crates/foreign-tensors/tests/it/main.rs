//! Every vector of foreign formats: names, types, shapes and digests of tensors, or a refusal.

mod hdf5;
mod joblib;
mod numpy;
mod onnx;
mod tensorflow;
mod tflite;
mod torch;
mod flax;
mod vectors;
