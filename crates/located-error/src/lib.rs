#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! The doc comment of a kind is its [meaning](Entry::meaning), so that the documentation of the crate and `apr explain` show the same
//! sentences. Meanings and remedies occur in `ErrorKind::TABLE` alone: a program that never looks at the table does not contain them.
//!
//! [`Located`] is what a front end needs to know of any of these errors.
//!
//! The crate is `no_std` without unsafe code. Without the feature `alloc` there are the kinds ([`kinds!`]) and their tables, for
//! crates that do not allocate.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(feature = "alloc")]
mod context;
mod entry;
mod located;
mod macros;
pub mod remedy;
#[cfg(feature = "alloc")]
mod subject;
#[cfg(feature = "alloc")]
mod text;

#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use alloc::boxed::Box as __Box;

#[cfg(feature = "alloc")]
pub use self::context::{AnyCause, Cause, Context, NoCause};
#[cfg(feature = "alloc")]
pub use self::entry::problems;
pub use self::entry::{Category, Entry};
#[cfg(feature = "std")]
pub use self::located::io_error;
pub use self::located::{Located, Location};
#[cfg(feature = "alloc")]
pub use self::subject::Subject;
#[cfg(feature = "alloc")]
pub use self::text::{bounded, cut};
