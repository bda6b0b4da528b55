//! Numbers in Python's notation.

use alloc::format;
use alloc::string::{String, ToString};

/// Whether a text is a decimal integer in its one spelling.
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let spelled_once = match digits.as_bytes() {
        [] => false,
        [b'0'] => digits.len() == text.len(),
        [first, ..] => *first != b'0',
    };
    spelled_once && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A float as `repr` writes it: the shortest digits that are read back as the same number.
pub(crate) fn float_text(value: f64) -> String {
    shortest(value, ".0")
}

/// The number in a text; forms that only Python knows (underscores, white space) are none.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// A complex number as `str` writes it.
pub(crate) fn complex_text(re: f64, im: f64) -> String {
    let imaginary = shortest(im, "");
    if re == 0.0 && re.is_sign_positive() {
        return format!("{imaginary}j");
    }
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    format!("({}{sign}{imaginary}j)", shortest(re, ""))
}

/// The real and the imaginary part in a text.
pub(crate) fn parse_complex(text: &str) -> Option<(f64, f64)> {
    let inner = match text.strip_prefix('(') {
        Some(rest) => rest.strip_suffix(')')?,
        None => text,
    };
    let Some(inner) = inner.strip_suffix('j') else {
        return Some((parse_float(inner)?, 0.0));
    };
    // The sign between the parts is the last one that belongs to no exponent.
    let bytes = inner.as_bytes();
    let between = (1..bytes.len())
        .rev()
        .find(|&at| matches!(bytes[at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E'));
    match between {
        Some(at) => Some((parse_float(&inner[..at])?, parse_float(&inner[at..])?)),
        None => Some((0.0, parse_float(inner)?)),
    }
}

/// Python's shortest form; `whole` follows a number without a fraction.
fn shortest(value: f64, whole: &str) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the format's exponent is a number");
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { plain + whole };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let table: [(f64, &str); 16] = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (2.0, "2.0"),
            (0.001, "0.001"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (5e-324, "5e-324"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in table {
            assert_eq!(float_text(value), text);
            let read = parse_float(text).unwrap();
            assert!(read.to_bits() == value.to_bits() || value.is_nan());
        }
        for bad in ["", " 1", "1_0", "0x1", "one", "1e"] {
            assert_eq!(parse_float(bad), None, "{bad}");
        }
    }

    #[test]
    fn complex_numbers_are_written_as_python_writes_them() {
        let table = [
            (1.0, 2.0, "(1+2j)"),
            (0.0, -1.5, "-1.5j"),
            (-0.0, 1.0, "(-0+1j)"),
            (1e16, -1e-7, "(1e+16-1e-07j)"),
            (1.0, f64::INFINITY, "(1+infj)"),
            (f64::NEG_INFINITY, f64::NEG_INFINITY, "(-inf-infj)"),
            (0.0, 0.0, "0j"),
            (9001.0, 3.25, "(9001+3.25j)"),
        ];
        for (re, im, text) in table {
            assert_eq!(complex_text(re, im), text);
            let (read_re, read_im) = parse_complex(text).unwrap();
            assert_eq!((read_re.to_bits(), read_im.to_bits()), (re.to_bits(), im.to_bits()), "{text}");
        }
        assert_eq!(complex_text(f64::NAN, f64::NAN), "(nan+nanj)");
        assert_eq!(parse_complex("2.5"), Some((2.5, 0.0)));
        for bad in ["", "j", "()", "(1+2j", "1+2", "1+2j)", "(1 + 2j)", "1+2j3j"] {
            assert_eq!(parse_complex(bad), None, "{bad}");
        }
    }

    #[test]
    fn integers_have_one_spelling() {
        for good in ["0", "7", "-7", "100000000000000000000000000000000000000000"] {
            assert!(is_integer(good), "{good}");
        }
        for bad in ["", "-", "-0", "007", "+1", "1.0", " 1", "1_0", "٣"] {
            assert!(!is_integer(bad), "{bad}");
        }
    }
}
