//! ONNX.
