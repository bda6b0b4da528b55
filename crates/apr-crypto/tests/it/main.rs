//! apr-crypto from outside.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod apr_files;
#[cfg(unix)]
mod key_files;
mod secrets;
mod sources;
mod together;
