//! Numbers in cells.

pub(crate) use apr_models::Accepts;

use crate::terminal::escape;

/// How other programs write that a value is missing.
pub(crate) const MISSING: [&str; 7] = ["na", "n/a", "nan", "null", "none", "nil", "?"];

#[cfg(feature = "tables")]
pub(crate) use apr_table::Value;
/// A number, whatever tables it may come from.
#[cfg(not(feature = "tables"))]
pub(crate) trait Value: Copy {}

/// A number of a sample: `f32` or `f64`.
pub(crate) trait Number: Value + From<f32> {
    /// The accepted number in a cell, or what is wrong with it. If missing values are accepted, a cell may be empty or one of [`MISSING`].
    fn parse(cell: &str, accepts: Accepts) -> Result<Self, String>;
}

macro_rules! number {
    ($type:ty, $bits:literal) => {
        #[cfg(not(feature = "tables"))]
        impl Value for $type {}

        impl Number for $type {
            fn parse(cell: &str, accepts: Accepts) -> Result<Self, String> {
                let text = cell.trim();
                if accepts != Accepts::Finite && is_missing(text) {
                    return Ok(<$type>::NAN);
                }
                if text.is_empty() {
                    return Err("the cell is empty".to_owned());
                }
                let shown = escape::cut(text, 60);
                match text.parse::<$type>() {
                    Ok(value) if value.is_finite() => Ok(value),
                    // Digits that come out infinite were a number once.
                    Ok(_) if text.bytes().any(|byte| byte.is_ascii_digit()) => {
                        Err(format!(concat!("`{}` is beyond what a ", $bits, "-bit float can hold"), shown))
                    }
                    Ok(value) if accepts == Accepts::Anything => Ok(value),
                    Ok(_) => Err(format!("`{shown}` is not a finite number")),
                    Err(_) => Err(format!("`{shown}` is not a number")),
                }
            }
        }
    };
}

number!(f32, "32");
number!(f64, "64");

/// The finite number in a cell, or what is wrong with it.
pub(crate) fn number(cell: &str) -> Result<f32, String> {
    f32::parse(cell, Accepts::Finite)
}

/// Whether a cell says that there is no value.
pub(crate) fn is_missing(cell: &str) -> bool {
    cell.is_empty() || MISSING.iter().any(|missing| cell.eq_ignore_ascii_case(missing))
}
