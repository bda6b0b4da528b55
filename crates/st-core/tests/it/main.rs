//! st-core from outside.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod file;
mod refusals;
mod reading;
mod views;
mod slices;
mod writing;
mod shards;
mod repair;

use file::file;
