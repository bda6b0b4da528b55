//! Code shared by the payload layouts of several models.

pub(crate) mod fields;
pub(crate) mod header;
pub(crate) mod values;
