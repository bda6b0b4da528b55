//! Tables as other programs write them, and broken ones.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

extern crate alloc;

mod ald;
mod arrow_rs;
mod broken;
mod crafted;
mod memory;
mod pyarrow;
mod write;

use std::path::PathBuf;

use apr_table::{Error, Table};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).unwrap()
}

/// Opens a file by its name.
fn open(name: &str) -> Result<Table<'static>, Error> {
    match name.ends_with(".parquet") {
        true => Table::parquet(std::fs::File::open(data(name)).unwrap()),
        false => Table::arrow(std::io::Cursor::new(bytes(name))),
    }
}
