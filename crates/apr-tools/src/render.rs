//! How values become text: escaping, sizes, tables, trees and JSON.

pub(crate) mod escape;
pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod value;
pub(crate) mod width;
