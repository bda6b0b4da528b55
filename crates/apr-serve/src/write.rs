//! Writes JSON to memory.

use core::fmt::Display;
use std::io::Write as _;

use apr_models::Float;
use json_scan::{Escape, push_string_bytes};

/// A string literal.
pub(crate) fn string(text: &str, out: &mut Vec<u8>) {
    push_string_bytes(out, text, Escape::Minimal);
}

/// A whole number, or a truth value.
pub(crate) fn plain(value: impl Display, out: &mut Vec<u8>) {
    let _ = write!(out, "{value}");
}

/// A number in as few digits as give its 32 bits back; what JSON cannot express becomes `"inf"`, `"-inf"` or `"nan"`.
pub(crate) fn narrow(value: f32, out: &mut Vec<u8>) {
    if value.is_finite() {
        let _ = write!(out, "{value:?}");
    } else {
        not_finite(value.into(), out);
    }
}

/// As [`narrow`], of 64 bits.
pub(crate) fn wide(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        let _ = write!(out, "{value:?}");
    } else {
        not_finite(value, out);
    }
}

/// A float in as few digits as give its bits back.
pub(crate) fn float(value: Float, out: &mut Vec<u8>) {
    match value {
        Float::F32(value) => narrow(value, out),
        Float::F64(value) => wide(value, out),
    }
}

fn not_finite(value: f64, out: &mut Vec<u8>) {
    let text: &[u8] = match value {
        value if value.is_nan() => b"\"nan\"",
        value if value > 0.0 => b"\"inf\"",
        _ => b"\"-inf\"",
    };
    out.extend_from_slice(text);
}

/// `write` for each part, with commas between.
pub(crate) fn list<T>(
    parts: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    for (number, part) in parts.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(part, out);
    }
}

/// An array of string literals.
pub(crate) fn strings(texts: &[String], out: &mut Vec<u8>) {
    out.push(b'[');
    list(texts, out, |text, out| string(text, out));
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_numbers_are_read_back() {
        let text = "q\" b\\ \n\r\t\u{0}\u{1b}\u{7f}\u{9b}é漢😀";
        let mut out = Vec::new();
        string(text, &mut out);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        for value in [0.0_f32, -0.5, 1e-7, 3.4e38, 1e16, 0.1] {
            let mut out = Vec::new();
            narrow(value, &mut out);
            assert_eq!(serde_json::from_slice::<f32>(&out).unwrap().to_bits(), value.to_bits());
            out.clear();
            wide(value.into(), &mut out);
            assert_eq!(serde_json::from_slice::<f64>(&out).unwrap(), f64::from(value));
        }
        let mut out = Vec::new();
        list([f32::NAN, f32::INFINITY, f32::NEG_INFINITY], &mut out, narrow);
        assert_eq!(out, b"\"nan\",\"inf\",\"-inf\"");
    }
}
