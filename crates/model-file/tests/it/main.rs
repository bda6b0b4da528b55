//! The shared vectors through `model-file`.

mod sealed;
mod vectors;
