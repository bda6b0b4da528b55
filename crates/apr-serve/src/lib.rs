#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! Endpoints, formats, limits and metrics are specified in `docs/serve.md`. One thread per core accepts, parses and predicts; a request takes no
//! lock. [`Server::serve_watched`] replaces the model when its file changes.
//!
//! # Untrusted input
//!
//! Every byte of a request is untrusted. Bodies, rows, answers, headers, connections, time and memory are bounded by [`Options`];
//! an invalid request gets a status, a stable code and the offset in the body.

#![forbid(unsafe_code)]

extern crate alloc;

mod codes;
mod error;
mod options;

mod accept;
mod admit;
mod answer;
#[cfg(feature = "arrow")]
mod arrow;
mod body;
mod budget;
mod categories;
mod connection;
mod connections;
mod csv;
mod features;
mod json;
mod link;
mod log;
mod media;
mod metrics;
mod model;
#[cfg(feature = "msgpack")]
mod msgpack;
mod predict;
#[cfg(feature = "private")]
mod private;
mod raw;
mod refusal;
mod request;
mod route;
mod server;
mod slot;
mod succession;
mod watch;
mod worker;
mod write;

pub use crate::admit::is_host;
pub use crate::codes::TABLE;
pub use crate::error::{Error, ErrorKind};
pub use crate::log::Logged;
pub use crate::model::Model;
pub use crate::options::{Options, Signals};
#[cfg(feature = "private")]
pub use crate::private::Private;
pub use crate::server::{Handle, Server};
pub use crate::succession::{Rollback, Signed, Succession};
pub use crate::watch::{Event, Shape, Watch};
