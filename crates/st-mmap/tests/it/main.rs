//! The public API on real files.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

extern crate alloc;

mod checkpoints;
mod entry_points;
mod folder_index;
mod saving;
mod scratch;
mod sharded;
