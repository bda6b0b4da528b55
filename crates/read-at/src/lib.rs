#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "std")]
mod any_source;
mod cached_pages;
mod error;
#[cfg(feature = "std")]
mod file_source;
mod source;
mod window;

#[cfg(feature = "std")]
pub use crate::any_source::{AnySource, SharedSource};
pub use crate::cached_pages::CachedPages;
pub use crate::error::{Error, ErrorKind, missing_range};
#[cfg(feature = "std")]
pub use crate::file_source::FileSource;
pub use crate::source::{ReadAt, check_range};
pub use crate::window::Window;
