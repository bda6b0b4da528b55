//! Which tensor becomes what.
//!
//! [`Plan::new`] is a pure function. On a model of a known architecture it decides as llama-quantize does: the order of the tensors, what is
//! left alone, which tensors get more bits, and what happens to rows that are no whole number of blocks. On anything else
//! every matrix becomes the target.

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
    Decision, Mixture, Options, OutputTensor, Override, Plan, Requantize, TensorSpec, Totals, writable_dtype,
};
pub use self::reason::Reason;
pub use self::role::Role;
pub use self::target::{FileType, Target};
