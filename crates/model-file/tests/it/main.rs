//! The shared vectors through `model-file`.

mod compatibility;
mod sealed;
mod vectors;
