//! Arguments that several commands share.

pub(crate) mod glob;
