//! Bytes at an offset: the input of every reader that does not need a whole file in memory.
//!
//! A reader takes any [`ReadAt`]. This crate implements it for byte slices and vectors, for an open file ([`FileSource`], feature
//! `std`), for a range of another source ([`Window`]), for the parts of a remote file that have arrived ([`CachedPages`]), and for
//! references and smart pointers to a source.
//!
//! ```
//! use read_at::{ErrorKind, ReadAt, Window};
//!
//! let payload = Window::new(b"header|payload".as_slice(), 7, 7)?;
//! let mut out = [0; 3];
//! payload.read_exact_at(4, &mut out)?;
//! assert_eq!(&out, b"oad");
//!
//! let error = payload.read_exact_at(5, &mut out).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::OutOfRange { offset: 5, len: 3, available: 7 });
//! # Ok::<(), read_at::Error>(())
//! ```
//!
//! # Features
//!
//! - `std` (default): [`FileSource`]. Without it, the crate needs `alloc` only.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod cached_pages;
mod error;
#[cfg(feature = "std")]
mod file_source;
mod source;
mod window;

pub use crate::cached_pages::CachedPages;
pub use crate::error::{Error, ErrorKind, missing_range};
#[cfg(feature = "std")]
pub use crate::file_source::FileSource;
pub use crate::source::{ReadAt, check_range};
pub use crate::window::Window;
