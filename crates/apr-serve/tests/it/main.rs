//! The server over real sockets, from outside.

// Helpers are not seen as tests, but they fail like tests.
#![allow(clippy::unwrap_used)]

extern crate alloc;

#[cfg(all(feature = "arrow", feature = "msgpack"))]
mod binary;
#[cfg(all(feature = "arrow", feature = "msgpack"))]
mod categories;
mod client;
mod crowds;
mod endpoints;
mod hostile;
mod messages;
mod models;
#[cfg(feature = "private")]
mod private;
mod reload;
mod scanner;
mod stopping;
mod tables;
