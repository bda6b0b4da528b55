//! Headers of tar archives: 512 bytes, with numbers in text or in base 256.

/// A number as `tarfile` reads it: with white space, a sign, a prefix and underscores as Python has them in octal numbers.
pub(super) fn number(field: &[u8]) -> Option<i128> {
    if let [marker @ (0x80 | 0xff), digits @ ..] = field {
        let value = digits.iter().fold(0_i128, |value, byte| (value << 8) | i128::from(*byte));
        let negative = i128::from(*marker & 1) << (8 * digits.len());
        return Some(value - negative);
    }
    let text = core::str::from_utf8(text(field)).ok()?.trim_matches(|character: char| {
        character.is_ascii_whitespace() || ('\x0b'..='\x1f').contains(&character)
    });
    if text.is_empty() {
        return Some(0);
    }
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let digits = match digits {
        [b'0', b'o' | b'O', b'_', digits @ ..] | [b'0', b'o' | b'O', digits @ ..] => digits,
        digits => digits,
    };
    let groups = digits.split(|byte| *byte == b'_');
    let mut value = 0_i128;
    for group in groups {
        if group.is_empty() {
            return None;
        }
        for digit in group {
            let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
            value = value * 8 + i128::from(digit);
        }
    }
    Some(if negative { -value } else { value })
}

/// A text up to its end, which is a zero or that of the field.
pub(super) fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether a block is a tar header: by its checksum, since the oldest kind has no magic number and PyTorch reads that, too.
pub(crate) fn is_tar(block: &[u8]) -> bool {
    let Some(declared) = block.get(148..156).filter(|_| block.len() == 512).and_then(number) else {
        return false;
    };
    // The field itself counts as spaces; some writers took bytes as signed.
    let field = |idx: usize| (148..156).contains(&idx);
    let sum = |value: fn(u8) -> i128| -> i128 {
        block.iter().enumerate().map(|(idx, byte)| if field(idx) { 32 } else { value(*byte) }).sum()
    };
    declared == sum(i128::from) || declared == sum(|byte| byte.cast_signed().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        for (field, expected) in [
            (b"00000000017\0".as_slice(), Some(15)),
            (b"  17 \0 12", Some(15)),
            (b"\t\x0b17\r", Some(15)),
            (b"17", Some(15)),
            (b"\0garbage", Some(0)),
            (b"    ", Some(0)),
            (b"+17", Some(15)),
            (b"-17", Some(-15)),
            (b"0o17", Some(15)),
            (b"0O_17", Some(15)),
            (b"-0o1_7", Some(-15)),
            (b"1_7", Some(15)),
            (b"0", Some(0)),
            (b"0o", None),
            (b"1__7", None),
            (b"_17", None),
            (b"17_", None),
            (b"18", None),
            (b"1/", None),
            (b"1 7", None),
            (b"-", None),
            (b"+-1", None),
            (b"\xe917", None),
            (b"\x80\0\0\x01\x02", Some(258)),
            (b"\x80\x80\0\0\0", Some(1 << 31)),
            (b"\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x81\0\0\0\x01", None),
            (b"77777777777", Some((1 << 33) - 1)),
        ] {
            assert_eq!(number(field), expected, "{}", field.escape_ascii());
        }
    }
}
