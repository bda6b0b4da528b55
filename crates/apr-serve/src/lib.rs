//! An HTTP/1.1 server that answers about samples: one model, `POST /predict`, and what operating it needs.
//!
//! ```
//! use apr_models::{AnyModel, LinearRegression, Vector};
//! use apr_serve::{Model, Options, Server};
//!
//! // Or `Model::from_bytes(include_bytes!("model.apr"))`.
//! let line = LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?;
//! let server = Server::bind("127.0.0.1:0", Options::default())?;
//! println!("listening on http://{}", server.local_addr());
//! # server.handle().stop();
//! server.serve(Model::new(AnyModel::from(line))?)?; // until SIGTERM or SIGINT
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Endpoints, formats, limits and metrics are specified in `docs/serve.md`. One thread a core accepts, parses and predicts; nothing is
//! locked on the way of a request. [`Server::serve_watched`] replaces the model when its file changes.
//!
//! # Untrusted input
//!
//! Every byte of a request is a stranger's. Bodies, rows, answers, headers, connections, time and memory are bounded by [`Options`];
//! what is wrong is answered with a status, a stable code and the place in the body.

#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod options;

mod admit;
mod answer;
mod body;
mod connection;
mod connections;
mod csv;
mod features;
mod json;
mod log;
mod metrics;
mod model;
mod predict;
mod raw;
mod refusal;
mod route;
mod server;
mod slot;
mod succession;
mod watch;
mod worker;
mod write;

pub use crate::admit::is_host;
pub use crate::error::{CODES, Error, ErrorKind};
pub use crate::log::Logged;
pub use crate::model::Model;
pub use crate::options::{Options, Signals};
pub use crate::server::{Handle, Server};
pub use crate::succession::{Rollback, Signed, Succession};
pub use crate::watch::{Event, Shape, Watch};
