//! The scanner and the writer, compared with `serde_json`.

mod scanning;
mod writing;
