//! Numbers as blocks of few bits, as ggml's reference writes and reads them.

#![no_std]
#![forbid(unsafe_code)]

mod error;
mod format;

pub use error::{Error, ErrorKind};
pub use format::{BlockFormat, GgmlType};
