//! The public API against a real file system.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

mod abandoning;
mod child;
mod creating;
#[cfg(unix)]
mod modes;
mod names;
mod reading;
mod replacing;
mod scratch;
#[cfg(unix)]
mod special;
mod staged;
mod sweeping;
#[cfg(unix)]
mod symlinks;
mod writers;
