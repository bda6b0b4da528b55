//! The terminal: output streams, escaping, sizes, tables, trees and charts.

mod console;

pub(crate) mod chart;
pub(crate) mod escape;
pub(crate) mod human;
pub(crate) mod number;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod suggest;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod value;
pub(crate) mod width;

#[cfg(feature = "remote")]
pub(crate) use self::console::Narration;
pub(crate) use self::console::{Console, Data, OutputFormat, Verbosity};
pub(crate) use self::progress::{Busy, Parts, Progress};
pub(crate) use self::style::{ColorChoice, Style};
