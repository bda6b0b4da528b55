//! JSON (RFC 8259) without a tree: a scanner for readers that know the shape of their text, and the escaping of strings for writers.
//!
//! [`Scanner`] moves over a text once, does not recurse and does not allocate. It borrows strings as [`RawStr`], which are unescaped
//! on demand. Each [`Error`] has the byte offset where the text stops being JSON. What keys mean, which of them may be missing and
//! which error codes a format has is left to the caller: the grammar of a format is written over the scanner.
//!
//! [`push_string`] and [`JsonStr`] write strings, [`Writer`] whole values. [`Quoted`] and [`Visible`] show untrusted strings to people.
//!
//! ```
//! use json_scan::{Check, Error, Scanner};
//!
//! let mut scanner = Scanner::new(r#"{"name": "caf\u00e9", "sizes": [1, 2]}"#, Check::Values);
//! let (mut name, mut total) = (String::new(), 0);
//! scanner.members(|scanner, key, _| {
//!     if key.is("name") {
//!         name = scanner.string()?.unescape().into_owned();
//!     } else {
//!         scanner.items(|scanner, _| {
//!             total += scanner.integer()?;
//!             Ok::<_, Error>(())
//!         })?;
//!     }
//!     Ok::<_, Error>(())
//! })?;
//! scanner.finish()?;
//! assert_eq!((&*name, total), ("café", 3));
//! # Ok::<(), Error>(())
//! ```

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
pub use crate::escape::{Escape, JsonStr, Quoted, Visible, is_hazard, push_string, push_string_bytes};
pub use crate::scanner::{Check, Scanner, value};
pub use crate::string::{RawStr, unescape};
pub use crate::word::{HIGHS, ONES, load};
pub use crate::writer::Writer;
