//! Every vector, through the public interfaces of the crates it concerns.

#![allow(clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod apr;
mod apr_damage;
mod apr_page;
mod apr_protected;
mod entry_points;
mod dtypes;
mod facts;
mod gguf;
mod matrix;
mod mutations;
mod protection;
mod shards;
mod sidecars;
mod slices;
