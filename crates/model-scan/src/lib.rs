#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod allowed;
mod arguments;
mod bypasses;
mod denied;
mod document;
mod file;
mod findings;
mod graph;
mod hdf5;
mod hidden;
mod json;
mod keras;
mod kept;
mod legacy;
mod lines;
mod numpy;
mod onnx;
mod places;
mod problem;
mod reader;
mod report;
#[cfg(feature = "serde")]
mod rows;
mod rules;
mod script;
mod settings;
mod states;
mod stream;
mod targets;
mod template;
mod wire;
mod yaml;

pub use pickle_core::Error;

pub use crate::file::{Contradiction, FileReport, Format, Part, Remark, scan_file, scan_named};
pub use crate::findings::Found;
pub use crate::problem::{Problem, Verdict};
pub use crate::report::{Finding, Name, Options, Origin, Report, Standing};
#[cfg(feature = "serde")]
pub use crate::rows::{FileRow, SCHEMA, ScanRow};
pub use crate::stream::scan;
