//! Parses tensor entries exactly as official writers write them, several bytes at a time.
//!
//! Nothing is refused here: an entry that differs from the form below, even by a space, is parsed by the general grammar, which
//! returns the same result or the error. Small builds have only the general grammar.
//!
//! ```text
//! :{"dtype":"BF16","shape":[4096,4096],"data_offsets":[0,33554432]}
//! ```

use json_scan::{HIGHS, ONES, Scanner, load};
use tensor_dtype::Dtype;

use crate::grammar::{Fields, Visit};

/// Reads an entry from the colon on, or nothing at all.
#[inline]
pub(crate) fn entry<'h>(scanner: &mut Scanner<'h>, visit: &mut impl Visit<'h>) -> Option<Fields<'h>> {
    if cfg!(apr_small) {
        return None;
    }
    visit.shape_begins();
    let text = scanner.rest();
    let at = |rest: &[u8]| scanner.pos() + text.len() - rest.len();

    let rest = text.as_bytes().strip_prefix(br#":{"dtype":""#)?;
    // The name with its closing quote, which distinguishes `F32` from `F32` followed by a zero byte.
    let word = load(rest, 0)?;
    let quotes = word ^ (ONES * u64::from(b'"'));
    let len = (quotes.wrapping_sub(ONES) & !quotes & HIGHS).trailing_zeros() / 8;
    let dtype = Dtype::from_quoted_word(word & (u64::MAX >> 56_u32.checked_sub(8 * len)?))?;

    let rest = rest.get(len as usize..)?.strip_prefix(br#"","shape":["#)?;
    let shape_start = text.len() - rest.len() - 1;
    let mut rest = rest;
    if rest.first() != Some(&b']') {
        loop {
            let (dim, behind) = integer(rest)?;
            visit.dim(dim, at(rest)).ok()?;
            rest = behind;
            match rest.split_first()? {
                (b',', behind) => rest = behind,
                _ => break,
            }
        }
    }
    let shape_end = text.len() - rest.len() + 1;
    let rest = rest.strip_prefix(br#"],"data_offsets":["#)?;
    let (begin, rest) = integer(rest)?;
    let (end, rest) = integer(rest.strip_prefix(b",")?)?;
    let rest = rest.strip_prefix(b"]}")?;

    let shape = text.get(shape_start..shape_end)?;
    let len = text.len() - rest.len();
    scanner.advance(len);
    Some(Fields { dtype, shape, offsets: (begin, end) })
}

/// Up to 16 digits without a leading zero, and what follows them.
#[inline]
fn integer(text: &[u8]) -> Option<(u64, &[u8])> {
    let (count, value) = leading_digits(load(text, 0)?);
    if count == 0 || (count > 1 && text.first() == Some(&b'0')) {
        return None;
    }
    if count < 8 {
        return Some((value, text.get(count..)?));
    }
    let text = text.get(8..)?;
    let (more, low) = leading_digits(load(text, 0)?);
    let scale = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000].get(more)?;
    Some((value * scale + low, text.get(more..)?))
}

/// How many of the eight characters are digits before the first that is not, and the number they form.
#[inline]
const fn leading_digits(word: u64) -> (usize, u64) {
    let digits = word ^ (ONES * b'0' as u64);
    let stops = (digits.wrapping_add(ONES * 0x76) | digits) & HIGHS;
    let count = stops.trailing_zeros() / 8;
    if count == 0 {
        return (0, 0);
    }
    // Bytes that are not digits are replaced with leading zeros; then adjacent digits are combined three times.
    let mut value = digits << (64 - 8 * count);
    value = (value.wrapping_mul((10 << 8) + 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    value = (value.wrapping_mul((100 << 16) + 1) >> 16) & 0x0000_ffff_0000_ffff;
    value = value.wrapping_mul((10_000 << 32) + 1) >> 32;
    (count as usize, value)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;
    use crate::error::ErrorKind;
    use crate::grammar::{Entry, Scan};

    /// Dimensions below a limit, with their byte offsets.
    struct Dims(Vec<(u64, usize)>);

    impl<'h> Visit<'h> for Dims {
        fn shape_begins(&mut self) {
            self.0.clear();
        }
        fn dim(&mut self, dim: u64, at: usize) -> Scan<()> {
            self.0.push((dim, at));
            if dim < 100 { Ok(()) } else { Err(ErrorKind::SizeOverflow.in_text(at)) }
        }
        fn tensor(&mut self, _: Entry<'h>) -> Scan<()> {
            Ok(())
        }
    }

    /// Type, shape, offsets, dimensions, and where reading ends.
    type Read<'h> = (Dtype, &'h str, (u64, u64), Vec<(u64, usize)>, usize);

    fn read(text: &str) -> Option<Read<'_>> {
        let mut scanner = Scanner::new(text, json_scan::Check::Values);
        scanner.advance(3);
        let mut dims = Dims(Vec::new());
        let fields = entry(&mut scanner, &mut dims);
        assert!(fields.is_some() || scanner.pos() == 3);
        fields.map(|fields| (fields.dtype, fields.shape, fields.offsets, dims.0, scanner.pos()))
    }

    #[test]
    fn canonical_entries_are_read() {
        let text = r#""a":{"dtype":"F8_E4M3","shape":[3,0,12],"data_offsets":[7,123456789]},"b"#;
        let dims = [(3, 32), (0, 34), (12, 36)].to_vec();
        assert_eq!(read(text), Some((Dtype::F8E4M3, "[3,0,12]", (7, 123_456_789), dims, text.len() - 3)));
        let text = r#""a":{"dtype":"I8","shape":[],"data_offsets":[0,1]}"#;
        assert_eq!(read(text), Some((Dtype::I8, "[]", (0, 1), Vec::new(), text.len())));
    }

    #[test]
    fn other_entries_are_left_alone() {
        let text = r#""a":{"dtype":"I8","shape":[],"data_offsets":[0,1]}"#;
        assert!(read(text).is_some());
        for at in 3..text.len() {
            // A space anywhere, a byte less, or the end.
            assert_eq!(read(&format!("{} {}", &text[..at], &text[at..])), None);
            assert_eq!(read(&format!("{}{}", &text[..at], &text[at + 1..])), None, "{at}");
            assert_eq!(read(&text[..at]), None);
        }
        for zeros in ["\0", "\0\0", "\0\0\0\0\0"] {
            assert_eq!(read(&text.replace("I8", &format!("I8{zeros}"))), None);
        }
        for other in ["\"F8_E4M3FNUZ\"", "\"f32\"", "\"\"", "\"I\\u0038\""] {
            assert_eq!(read(&text.replace("\"I8\"", other)), None);
        }
        // The general grammar reports what the visitor refuses.
        assert_eq!(read(&text.replace("[]", "[1,100]")), None);
    }

    #[test]
    fn integers_end_where_the_digits_do() {
        for value in [0, 7, 42, 1_234_567, 12_345_678, 123_456_789, 1_234_567_890_123_456] {
            for behind in ["]}", ",12345678", "]}              ", "x"] {
                let text = format!("{value}{behind}");
                assert_eq!(integer(text.as_bytes()), Some((value, behind.as_bytes())), "{text}");
            }
        }
        // The caller finds a digit where the number should end.
        assert_eq!(integer(b"12345678901234567"), Some((1_234_567_890_123_456, &b"7"[..])));
    }

    #[test]
    fn other_integers_are_left_alone() {
        for text in ["", "01234567", "00,00000", "-1,00000", ",1234567", "12345678"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_byte_that_is_no_digit_ends_a_number() {
        for byte in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
            let word = u64::from_le_bytes([b'1', b'2', b'3', byte, b'4', b'5', b'6', b'7']);
            assert_eq!(leading_digits(word), (3, 123));
        }
        assert_eq!(leading_digits(u64::from_le_bytes(*b"98765432")), (8, 98_765_432));
    }
}
