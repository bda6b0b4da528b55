//! One shape for the errors of a library: a kind, its stable code, a message, what it means, what to do about it, where it is, and
//! what caused it.
//!
//! [`errors!`] declares an enum of kinds and the error type around it. Everything about a kind is written in one place:
//!
//! ```
//! use located_error::{Category, Subject};
//!
//! const FETCH: &str = "fetch the file again";
//!
//! located_error::errors! {
//!     /// Why a file was refused.
//!     #[derive(Clone, PartialEq, Eq)]
//!     pub struct Error;
//!
//!     /// What was wrong.
//!     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
//!     pub enum ErrorKind {
//!         /// The file ends inside a field. A download or copy was interrupted.
//!         Truncated {
//!             /// Bytes that the field takes.
//!             expected: u64,
//!             /// Bytes that the file still has.
//!             found: u64,
//!         } = "xy-truncated" (Invalid), "truncated: expected {expected} bytes, found {found}" => FETCH;
//!         /// The file does not begin with the signature of the format.
//!         Magic {
//!             /// Its first two bytes.
//!             found: [u8; 2],
//!         } = "xy-magic" (Invalid), "not an XY file: it begins with {:02x}{:02x}", found[0], found[1]
//!             => "check that this is the right file";
//!     }
//! }
//!
//! let error = Error::from(ErrorKind::Truncated { expected: 44, found: 0 }).at(8).of(Subject::tensor("w"));
//! assert_eq!(error.to_string(), "truncated: expected 44 bytes, found 0, tensor \"w\", at byte 8");
//! assert_eq!((error.code(), error.offset()), ("xy-truncated", Some(8)));
//! assert_eq!(error.subject().map(Subject::name), Some("w"));
//!
//! let entry = error.entry().expect("every kind has an entry");
//! assert_eq!((entry.category, entry.remedy), (Category::Invalid, "fetch the file again"));
//! assert_eq!(entry.meaning, "The file ends inside a field. A download or copy was interrupted.");
//! assert_eq!(ErrorKind::TABLE.len(), 2);
//! ```
//!
//! The doc comment of a kind is its [meaning](Entry::meaning), so that the documentation of the crate and `apr explain` show the same
//! sentences. Meanings and remedies occur in `ErrorKind::TABLE` alone: a program that never looks at the table does not contain them.
//!
//! [`Located`] is what a front end needs to know of any of these errors.
//!
//! The crate is `no_std` with `alloc`, has no dependencies and no unsafe code.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod context;
mod entry;
mod located;
mod macros;
mod subject;
mod text;

#[doc(hidden)]
pub use alloc::boxed::Box as __Box;

pub use self::context::{AnyCause, Cause, Context, NoCause};
pub use self::entry::{Category, Entry, problems};
pub use self::located::{Located, Location};
pub use self::subject::Subject;
pub use self::text::{bounded, cut};
