//! The crate through its public API.

#![allow(clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod edits;
mod hostile;
mod known_keys;
mod round_trip;
mod shards;
