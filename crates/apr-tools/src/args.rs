//! Arguments that several commands share: structs that commands flatten into their own.

pub(crate) mod glob;
pub(crate) mod slice;
mod layout;
mod listed;
mod reading;
mod size;
mod writing;

pub(crate) use self::layout::{CompressionArg, DequantizeArg, LayoutArgs};
pub(crate) use self::listed::Listed;
pub(crate) use self::reading::{CompatArg, ForeignArgs, PayloadArgs, SizeLimitArg};
pub(crate) use self::size::parse_size;
pub(crate) use self::writing::{DryRunArg, ForceArg, WriteArgs};

/// Help of an input of any format.
pub(crate) const INPUT_HELP: &str = "A model file of any format that `apr` reads, an index of shards, a folder with one, a URL, or `-` for standard input";

/// A share of rows: above 0 and below 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if 0.0 < share && share < 1.0 => Ok(share),
        _ => Err("a number between 0 and 1, such as 0.2".to_owned()),
    }
}

/// A fraction: from 0 to 1.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err("a number from 0 to 1, such as 0.7".to_owned()),
    }
}

/// A finite number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number above 0".to_owned()),
    }
}
