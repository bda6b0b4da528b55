//! st-core from outside.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod refusals;
mod reading;
mod views;
mod slices;
mod writing;
mod shards;
mod properties;

/// A file: the length of `header`, the header, the data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}
