//! Runs the program itself, as users do.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

extern crate alloc;

mod contract;
mod examples;
mod hostile;
mod inputs;
mod outputs;
mod sandbox;
mod snapshots;
mod vectors;
