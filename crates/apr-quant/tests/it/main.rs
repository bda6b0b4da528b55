//! apr-quant from outside.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod goldens;
mod importance;
mod lengths;
mod dispatch;
mod refusals;
mod together;
