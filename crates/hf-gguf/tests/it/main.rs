//! The crate from outside.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

extern crate alloc;

mod adapters;
mod blocks;
mod changed;
mod folder;
mod folders;
mod refusals;
mod remarks;
mod restore;
mod tokenizers;
