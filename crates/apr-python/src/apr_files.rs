//! `.apr` files: models that predict, what files say about themselves, and the keys that both may need.
//!
//! `docs/python.md` specifies what Python sees. Nothing is decided here about formats: what a file may be and whom it
//! is opened for is said by the crates below.

mod answers;
pub(crate) mod inspect;
mod keys;
pub(crate) mod load;
mod model;
mod pipelines;
pub(crate) mod refusal;
mod samples;
pub(crate) mod save;
pub(crate) mod seal;
pub(crate) mod sealed;
mod source;
mod values;

pub(crate) use self::load::Loaded;
pub(crate) use self::model::Model;
pub(crate) use self::refusal::{AprError, Refusal};
pub(crate) use self::save::{Saving, to_bytes};
pub(crate) use self::sealed::SealedFile;
pub(crate) use self::values::metadata_of;
