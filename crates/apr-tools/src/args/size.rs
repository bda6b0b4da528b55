//! Sizes on the command line.

use crate::error::{CODE_USAGE, Failure};

/// Reads `5GB`, `500 MB`, `2GiB`, `1.5kB` or a plain number of bytes. `kB` and its like are decimal.
///
/// # Errors
///
/// A usage failure if the text is not a positive size.
pub(crate) fn parse_size(text: &str) -> Result<u64, Failure> {
    let refused = || {
        Failure::new(CODE_USAGE, format!("`{text}` is not a size"))
            .help("write a number of bytes with an optional unit, for example 5GB, 500MB, 2GiB or 1000000")
    };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(refused()),
    };
    let size = if number.contains('.') {
        let value: f64 = number.parse().map_err(|_| refused())?;
        // The cast saturates; sizes this large are no limit at all.
        (value * scale as f64) as u64
    } else {
        let whole: u64 = number.parse().map_err(|_| refused())?;
        whole.checked_mul(scale).ok_or_else(refused)?
    };
    if size == 0 { Err(refused()) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_families() {
        for (text, bytes) in [
            ("5GB", 5_000_000_000),
            ("5gb", 5_000_000_000),
            ("2GiB", 2 << 30),
            ("500 MB", 500_000_000),
            ("1.5kB", 1500),
            ("600", 600),
            ("1B", 1),
        ] {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "0", "GB", "-1", "5XB", "1e3", "1..2", "99999999999999999999TB", "\u{1b}"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
