//! Numbers in text, as Python and C read them.

#[cfg(any(apr_small, test))]
mod decimal;

use alloc::vec::Vec;

/// An integer in text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Integer {
    Bool(bool),
    Small(i64),
    /// Two's complement, little-endian.
    Big(Vec<u8>),
}

/// What may be before the digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Octal {
    /// `010` is 8, as C's `strtol` has it.
    ByZero,
    Refused,
}

/// The argument of `GET` and `PUT`: a decimal number that fits 63 bits.
pub(crate) fn index(text: &[u8]) -> Option<u64> {
    let (negative, digits) = sign(before_nul(text).trim_ascii());
    let magnitude = magnitude(digits, 10)?;
    let value = small(&magnitude, negative)?;
    u64::try_from(value).ok()
}

/// The argument of `INT`.
pub(crate) fn int(text: &[u8]) -> Option<Integer> {
    if text.first() == Some(&0) {
        return Some(if text.len() == 2 { Integer::Bool(false) } else { Integer::Small(0) });
    }
    match integer(before_nul(text), Octal::ByZero)? {
        Integer::Small(value @ 0..=1) if text.len() == 2 => Some(Integer::Bool(value == 1)),
        other => Some(other),
    }
}

/// The argument of `LONG`: a final `L` is optional.
pub(crate) fn long(text: &[u8]) -> Option<Integer> {
    integer(before_nul(text.strip_suffix(b"L").unwrap_or(text)), Octal::Refused)
}

/// The argument of `FLOAT`.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    let digits: Vec<u8> = before_nul(text).iter().copied().filter(|byte| *byte != b'_').collect();
    let digits = core::str::from_utf8(digits.trim_ascii()).ok()?;
    #[cfg(apr_small)]
    return decimal::parse(digits);
    #[cfg(not(apr_small))]
    digits.parse().ok()
}

/// Two's complement as 64 bits, if it fits.
pub(crate) fn from_le(bytes: &[u8]) -> Option<i64> {
    let fill = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
    let (low, high) = bytes.split_at_checked(8).unwrap_or((bytes, &[]));
    let mut out = [fill; 8];
    out.iter_mut().zip(low).for_each(|(out, byte)| *out = *byte);
    let value = i64::from_le_bytes(out);
    (high.iter().all(|byte| *byte == fill) && (high.is_empty() || (value < 0) == (fill != 0)))
        .then_some(value)
}

/// C's strings end at a NUL.
fn before_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    }
}

fn integer(text: &[u8], octal: Octal) -> Option<Integer> {
    let trimmed = trim(text);
    let (negative, digits) = sign(trimmed);
    let magnitude = match digits {
        [b'0', b'x' | b'X', digits @ ..] => magnitude(after_prefix(digits), 16)?,
        [b'0', b'o' | b'O', digits @ ..] => magnitude(after_prefix(digits), 8)?,
        [b'0', b'b' | b'B', digits @ ..] => magnitude(after_prefix(digits), 2)?,
        [b'0', rest @ ..] if rest.iter().any(|byte| !matches!(byte, b'0' | b'_')) => {
            let magnitude = magnitude(rest, 8).filter(|_| octal == Octal::ByZero)?;
            small(&magnitude, negative)?;
            magnitude
        }
        digits => magnitude(digits, 10)?,
    };
    Some(match small(&magnitude, negative) {
        Some(value) => Integer::Small(value),
        None => Integer::Big(twos_complement(magnitude, negative)),
    })
}

/// Without white space of C around it, which has the vertical tab, too.
fn trim(mut text: &[u8]) -> &[u8] {
    let space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 11;
    while let [first, rest @ ..] = text
        && space(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && space(last)
    {
        text = rest;
    }
    text
}

/// `0x_ff` is a number of Python.
fn after_prefix(digits: &[u8]) -> &[u8] {
    digits.strip_prefix(b"_").unwrap_or(digits)
}

/// Little-endian words of digits, between which single underscores may be.
fn magnitude(digits: &[u8], base: u32) -> Option<Vec<u32>> {
    let mut words: Vec<u32> = Vec::new();
    // Several digits at a time: a step passes over all words.
    let (mut pending, mut scale) = (0_u32, 1_u32);
    let mut after_digit = false;
    for byte in digits {
        if *byte == b'_' && after_digit {
            after_digit = false;
            continue;
        }
        let digit = char::from(*byte).to_digit(base)?;
        after_digit = true;
        if let Some(next) = scale.checked_mul(base) {
            (pending, scale) = (pending * base + digit, next);
        } else {
            multiply_add(&mut words, scale, pending);
            (pending, scale) = (digit, base);
        }
    }
    multiply_add(&mut words, scale, pending);
    after_digit.then_some(words)
}

fn multiply_add(words: &mut Vec<u32>, scale: u32, add: u32) {
    let mut carry = u64::from(add);
    for word in &mut *words {
        let value = u64::from(*word) * u64::from(scale) + carry;
        *word = value as u32; // The low half.
        carry = value >> 32;
    }
    if carry > 0 {
        words.push(carry as u32); // Below 2^32: the product of two words and a carry is below 2^64.
    }
}

fn small(words: &[u32], negative: bool) -> Option<i64> {
    let value = match words {
        [] => 0,
        [low] => i128::from(*low),
        [low, high] => (i128::from(*high) << 32) | i128::from(*low),
        _ => return None,
    };
    i64::try_from(if negative { -value } else { value }).ok()
}

fn twos_complement(words: Vec<u32>, negative: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.push(0);
    if negative {
        let mut carry = true;
        for byte in &mut bytes {
            let (value, overflow) = (!*byte).overflowing_add(carry.into());
            (*byte, carry) = (value, overflow);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn integers_are_those_of_either_unpickler() {
        for (text, value) in [
            (b"12".as_slice(), Some(Integer::Small(12))),
            (b"01", Some(Integer::Bool(true))),
            (b"00", Some(Integer::Bool(false))),
            (b"1", Some(Integer::Small(1))),
            (b"010", Some(Integer::Small(8))),
            (b"0x1F", Some(Integer::Small(31))),
            (b" -1_000 ", Some(Integer::Small(-1000))),
            (b"5\0junk", Some(Integer::Small(5))),
            (b"\0", Some(Integer::Small(0))),
            (b"9223372036854775808", Some(Integer::Big(vec![0, 0, 0, 0, 0, 0, 0, 0x80, 0]))),
            (b"-9223372036854775808", Some(Integer::Small(i64::MIN))),
            (b"", None),
            (b"1__0", None),
            (b"1_", None),
            (b"09", None),
            (b"x", None),
        ] {
            assert_eq!(int(text), value, "{}", text.escape_ascii());
        }
        assert_eq!((long(b"7L"), long(b"010L")), (Some(Integer::Small(7)), None));
        assert_eq!((index(b"+7"), index(b"-1"), index(b"9223372036854775808")), (Some(7), None, None));
        assert_eq!(
            (float(b"1_0.5e1"), float(b"-inf"), float(b"x")),
            (Some(105.0), Some(f64::NEG_INFINITY), None)
        );
    }

    #[test]
    fn large_integers_are_exact() {
        // -(10^30), as Python's int.to_bytes has it.
        let expected = (-(10_i128.pow(30))).to_le_bytes();
        let Some(Integer::Big(bytes)) = long(b"-1000000000000000000000000000000L") else {
            panic!("a big one")
        };
        assert!(bytes.starts_with(&expected[..13]) && bytes[13..].iter().all(|byte| *byte == 0xff));
        assert_eq!(from_le(&[0xff; 9]), Some(-1));
        assert_eq!((from_le(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0]), from_le(&[0x80, 0])), (None, Some(128)));
        assert_eq!((from_le(&[]), from_le(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff])), (Some(0), None));
    }
}
