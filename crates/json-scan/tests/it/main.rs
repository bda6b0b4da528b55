//! The scanner and the writer, compared with `serde_json`.

extern crate alloc;

mod scanning;
mod writing;
