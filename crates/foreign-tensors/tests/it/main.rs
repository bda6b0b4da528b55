//! Every vector of foreign formats: names, types, shapes and digests of tensors, or a refusal.

mod flax;
mod hdf5;
mod joblib;
mod mutants;
mod numpy;
mod onnx;
mod tensorflow;
mod tflite;
mod torch;
mod vectors;
