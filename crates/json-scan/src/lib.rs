#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod escape;
mod nesting;
mod number;
mod scanner;
mod string;
mod word;
mod writer;

pub use crate::error::{Error, ErrorKind};
pub use crate::escape::{
    Escape, JsonEscape, JsonStr, Quoted, Visible, is_hazard, push_string, push_string_bytes,
};
pub use crate::scanner::{Check, Scanner, value};
pub use crate::string::{RawStr, unescape};
pub use crate::word::{HIGHS, ONES, load};
pub use crate::writer::Writer;
