//! Model files: loading, prediction, saving, `inspect`, sealed files, and keys.
//!
//! `docs/python.md` specifies the Python API. This module has no format logic: the crates below read, check and decrypt files.

mod answers;
pub(crate) mod inspect;
pub(crate) mod keys;
pub(crate) mod load;
mod loaded;
mod method;
pub(crate) mod model;
mod pipelines;
pub(crate) mod refusal;
mod samples;
pub(crate) mod save;
pub(crate) mod seal;
pub(crate) mod sealed;
pub(crate) mod source;
mod table_rows;
mod values;

pub(crate) use self::loaded::Loaded;
pub(crate) use self::model::Model;
pub(crate) use self::refusal::{AprError, Refusal};
pub(crate) use self::save::{Saving, to_bytes};
pub(crate) use self::sealed::SealedFile;
pub(crate) use self::values::metadata_of;
