#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;

mod error;
mod hub;
mod pin;
mod plan;
mod retry;
mod url;

pub use crate::error::{Error, ErrorKind, remote_error};
pub use crate::hub::{Hub, HubPath};
pub use crate::plan::coalesced;
pub use crate::retry::Tries;
pub use crate::url::Url;
