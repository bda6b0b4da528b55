//! Reports: what commands print, as JSON.

pub(crate) mod json;
