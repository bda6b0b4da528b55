//! Numbers as blocks of few bits, as ggml's reference writes and reads them.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

mod error;
mod format;

mod blocks;
mod dot;
mod each;
mod half_float;
mod importance;
mod lanes;
mod meter;
#[cfg(feature = "rayon")]
mod parallel;
mod path;
mod quantizer;
mod round;
mod rows;

pub use dot::{dot, dot_on};
pub use error::{Error, ErrorKind};
pub use format::{BlockFormat, GgmlType};
pub use meter::{ErrorMeter, ErrorReport, measure_error};
#[cfg(feature = "rayon")]
pub use parallel::dequantize_parallel;
pub use path::Path;
pub use quantizer::{NonFinite, Quantizer, dequantize, dequantize_on};
