#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "ald")]
pub mod ald;
mod batch;
mod cells;
mod error;
mod messages;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
mod unpanicked;
mod value;
mod write;

pub use self::batch::{Batch, CellError, Problem};
pub use self::cells::{CellType, Cells, ColumnSpec, Texts, Values};
pub use self::error::{Error, ErrorKind};
pub use self::table::Table;
pub use self::unpanicked::catches_panics;
pub use self::value::{Accepted, Value};
pub use self::write::{TableFormat, TableWriter};
