#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;

mod blocks;
mod buffered;
mod cache;
mod client;
#[cfg(feature = "cloud")]
mod cloud;
mod counts;
mod declared;
mod error;
mod exchange;
mod file;
mod folder;
mod http;
mod hub;
mod kept;
#[cfg(not(feature = "cloud"))]
mod no_cloud;
mod object;
mod open;
mod pieces;
mod pin;
mod place;
mod plan;
mod proxy;
mod retry;
mod sign;
#[cfg(test)]
mod simulation;
mod transport;
mod url;

pub use crate::blocks::{BlockCache, CachedObject, Removed};
pub use crate::buffered::Buffered;
pub use crate::cache::{CachedFile, HubCache};
pub use crate::client::{Client, Network, OnRetry, Options, PlainHttp, Retry};
#[cfg(feature = "cloud")]
pub use crate::cloud::{Aborter, Upload};
pub use crate::counts::Counts;
pub use crate::error::{Error, ErrorKind, remote_error};
pub use crate::exchange::Exchanged;
pub use crate::file::RemoteFile;
pub use crate::folder::{Folder, at_once};
pub use crate::hub::{Hub, HubPath};
#[cfg(not(feature = "cloud"))]
pub use crate::no_cloud::{Aborter, Upload};
pub use crate::object::{ListedObject, ObjectPath, Protocol, Replace};
pub use crate::place::Place;
pub use crate::retry::Tries;
pub use crate::url::Url;
