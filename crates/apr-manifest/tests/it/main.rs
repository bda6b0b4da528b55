//! apr-manifest from outside.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod bounds;
mod files;
mod folder;
mod folders;
mod vectors;
