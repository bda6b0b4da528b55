//! The public API, over the vectors and against damaged files.

extern crate alloc;

mod refusals;
mod round_trip;
mod serde_types;
mod vectors;

use st_structures::{SCHEMA_KEY, VERSION_KEY};

/// A file with this schema and a `U8` tensor `0` of three bytes.
fn file(schema: &str, version: &str) -> Vec<u8> {
    let metadata = [(SCHEMA_KEY, schema), (VERSION_KEY, version)];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let options = st_core::WriteOptions { metadata: Some(metadata), ..Default::default() };
    let tensor = st_core::TensorView::new(st_core::Dtype::U8, &[3], b"abc").expect("three bytes");
    st_core::to_vec(&[("0", tensor)], &options).expect("a sound file")
}
