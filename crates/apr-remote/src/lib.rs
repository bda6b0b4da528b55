#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;

mod error;
mod hub;
mod url;

pub use crate::error::{Error, ErrorKind, remote_error};
pub use crate::hub::{Hub, HubPath};
pub use crate::url::Url;
