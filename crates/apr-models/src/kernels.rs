//! The arithmetic that models share, each kernel once: generic over the width of floats and over where values are stored.
//!
//! Stand-alone models and the steps of pipelines agree with different reference implementations to the last bit. Where the
//! references differ, the rule is a parameter of the kernel.

pub(crate) mod activations;
pub(crate) mod exponential;
pub(crate) mod gaussian;
pub(crate) mod neighbours;
pub(crate) mod products;
pub(crate) mod svm;
pub(crate) mod terms;
pub(crate) mod tiles;
pub(crate) mod training;
pub(crate) mod trees;
pub(crate) mod vectors;
pub(crate) mod weighted;
