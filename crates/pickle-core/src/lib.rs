#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
pub mod joblib;
mod limits;
mod machine;
mod memo;
mod number;
mod opcode;
pub mod python2;
mod reader;
mod string;
mod tree;

pub use crate::error::{Error, ErrorKind};
pub use crate::limits::Limits;
pub use crate::machine::{Event, EventKind, Framing, Machine};
pub use crate::opcode::Opcode;
pub use crate::tree::{
    Construct, Entries, Global, Items, Object, Span, Tree, Update, Updates, Value, ValueId,
};
