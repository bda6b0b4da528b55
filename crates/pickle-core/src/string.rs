//! Strings in text, and UTF-8 as Python's `surrogatepass` reads it.

use alloc::vec::Vec;

/// Bytes of the longest character.
pub(crate) const LONGEST_CHARACTER: usize = 4;

/// How many of the bytes are whole characters of UTF-8, surrogates included; what is left is the beginning of one. `None` if there is none.
pub(crate) fn valid_utf8(bytes: &[u8]) -> Option<usize> {
    let mut valid = 0;
    loop {
        let rest = bytes.get(valid..)?;
        let Err(error) = core::str::from_utf8(rest) else { return Some(bytes.len()) };
        valid += error.valid_up_to();
        match (bytes.get(valid..)?, error.error_len()) {
            ([0xed, 0xa0..=0xbf, 0x80..=0xbf, ..], _) => valid += 3,
            (_, None) | ([0xed, 0xa0..=0xbf], _) => return Some(valid),
            _ => return None,
        }
    }
}

/// `codecs.escape_decode`: what is between the quotes of `STRING`.
pub(crate) fn decode_escapes(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match rest.next()? {
            b'\n' => {}
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            quoted @ (b'\\' | b'\'' | b'"') => out.push(quoted),
            b'x' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = (digit()? << 4) | digit()?;
                out.push(value as u8); // Below 256: two digits.
            }
            first @ b'0'..=b'7' => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|next| matches!(next, b'0'..=b'7')) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                out.push((value & 0xff) as u8);
            }
            unknown => out.extend([b'\\', unknown]),
        }
    }
    Some(out)
}

/// The codec `raw-unicode-escape`: Latin-1 with `\u` and four hexadecimal digits or `\U` and eight, as UTF-8 in which surrogates may occur.
pub(crate) fn decode_raw_unicode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            push(&mut out, byte.into())?;
            continue;
        }
        let digits = match rest.next() {
            Some(b'u') => 4,
            Some(b'U') => 8,
            other => {
                out.push(b'\\');
                other.map_or(Some(()), |other| push(&mut out, other.into()))?;
                continue;
            }
        };
        let mut value = 0_u32;
        for _ in 0..digits {
            value = (value << 4) | char::from(rest.next()?).to_digit(16)?;
        }
        push(&mut out, value)?;
    }
    Some(out)
}

fn push(out: &mut Vec<u8>, code_point: u32) -> Option<()> {
    if let Some(character) = char::from_u32(code_point) {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else if code_point <= 0xffff {
        let low = |shift: u32| 0x80 | ((code_point >> shift) & 0x3f) as u8;
        out.extend([0xe0 | (code_point >> 12) as u8, low(6), low(0)]); // A surrogate.
    } else {
        return None;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_are_characters_and_halves_are_left() {
        for (bytes, valid) in [
            (b"ab".as_slice(), Some(2)),
            (b"a\xed\xa0\x80b", Some(5)),
            (b"a\xed\xa0", Some(1)),
            (b"a\xc3", Some(1)),
            (b"a\xf0\x9f\x98", Some(1)),
            (b"a\xff", None),
            (b"\xed\xa0\x20", None),
            (b"\xc0\x80", None),
        ] {
            assert_eq!(valid_utf8(bytes), valid, "{bytes:x?}");
        }
    }

    #[test]
    fn escapes_are_those_of_python() {
        assert_eq!(decode_escapes(br"\x6f\163\q\\\'\n\4004"), Some(b"os\\q\\'\n\x004".to_vec()));
        assert_eq!((decode_escapes(br"\x6"), decode_escapes(br"\")), (None, None));
        assert_eq!(decode_raw_unicode(br"\u006fs\U0001f600\q\\u0041\"), Some("os😀\\q\\\\u0041\\".into()));
        assert_eq!(decode_raw_unicode(b"\xe9"), Some("é".into()));
        assert_eq!(decode_raw_unicode(br"\ud800"), Some(b"\xed\xa0\x80".to_vec()));
        assert_eq!((decode_raw_unicode(br"\u00"), decode_raw_unicode(br"\U00110000")), (None, None));
    }
}
