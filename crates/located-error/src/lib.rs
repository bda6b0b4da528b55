#![doc = include_str!("../README.md")]
//!
//! # Overview
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
