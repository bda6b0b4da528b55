#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;

mod allowed;
mod arguments;
mod denied;
mod file;
mod legacy;
mod numpy;
mod problem;
mod report;
mod rules;
mod stream;

pub use pickle_core::Error;

pub use crate::file::{Contradiction, FileReport, Format, Part, Unopened, scan_file};
pub use crate::problem::{Problem, Verdict};
pub use crate::report::{Finding, Name, Options, Origin, Report, Standing};
pub use crate::stream::scan;
