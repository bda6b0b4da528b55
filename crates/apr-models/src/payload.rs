//! What the payload layouts of several models have in common.

pub(crate) mod fields;
pub(crate) mod header;
pub(crate) mod values;
