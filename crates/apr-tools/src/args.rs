//! Arguments that several commands share: structs that commands flatten into their own.

pub(crate) mod glob;
mod layout;
mod listed;
mod reading;
mod size;
mod writing;

pub(crate) use self::layout::{CompressionArg, DequantizeArg, LayoutArgs};
pub(crate) use self::listed::Listed;
pub(crate) use self::reading::{CompatArg, PartArgs, PayloadArgs, TrustedArg, VoidArg};
pub(crate) use self::size::parse_size;
pub(crate) use self::writing::{DryRunArg, ForceArg, WriteArgs};

/// Help of an input of any format.
pub(crate) const INPUT_HELP: &str = "A model file of any format that `apr` reads, an index of shards, a folder with one, or `-` for standard input";
