//! The type of each tensor after quantization.
//!
//! [`Plan::new`] is a pure function. For a model of a known architecture it decides as llama-quantize does: the order of the
//! tensors, tensors that are kept, tensors with more bits, and the treatment of rows that are not a whole number of blocks. In
//! other models every matrix gets the target type.

mod facts;
mod kept;
mod mix;
mod plan;
mod reason;
mod role;
mod target;

pub use self::facts::ModelFacts;
pub use self::kept::Kept;
pub use self::plan::{
    Decision, ImportanceUse, Mixture, Options, OutputTensor, Override, Plan, Requantize, TensorSpec, Totals,
    writable_dtype,
};
pub use self::reason::Reason;
pub use self::role::Role;
pub use self::target::{FileType, Target};
