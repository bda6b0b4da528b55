//! String literals of JSON, and what they say.

use alloc::borrow::Cow;
use alloc::string::String;

/// What a sound string literal says; `None` for another value and for half a surrogate pair.
pub(crate) fn string(literal: &str) -> Option<Cow<'_, str>> {
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::new();
    while let Some(plain) = rest.bytes().position(|byte| byte == b'\\') {
        let (before, escape) = rest.split_at_checked(plain)?;
        out.push_str(before);
        let (says, len) = escaped(escape.as_bytes())?;
        out.push(says);
        rest = escape.get(len..)?;
    }
    // What an escape stands for is a character at least.
    if out.is_empty() {
        return Some(Cow::Borrowed(rest));
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// The character that an escape sequence stands for, and its length.
fn escaped(escape: &[u8]) -> Option<(char, usize)> {
    let says = match escape.get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = hex4(escape.get(2..)?)?;
            if high >> 10 != 0xD800 >> 10 {
                return Some((char::from_u32(high)?, 6));
            }
            let low = escape.get(6..)?.strip_prefix(b"\\u").and_then(hex4)?.checked_sub(0xDC00)?;
            let pair = (low < 0x400).then_some(0x1_0000 + ((high - 0xD800) << 10 | low))?;
            return Some((char::from_u32(pair)?, 12));
        }
        &itself => char::from(itself),
    };
    Some((says, 2))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    let digits = digits.first_chunk::<4>()?;
    digits.iter().try_fold(0, |code, &byte| Some(code << 4 | char::from(byte).to_digit(16)?))
}

/// Appends a string literal.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        let short = match character {
            '"' | '\\' => character,
            '\u{8}' => 'b',
            '\u{c}' => 'f',
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\0'..='\x1F' => {
                let code = character as u32;
                out.push_str("\\u00");
                out.extend([code >> 4, code & 15].iter().filter_map(|&digit| char::from_digit(digit, 16)));
                continue;
            }
            _ => {
                out.push(character);
                continue;
            }
        };
        out.push('\\');
        out.push(short);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_and_pairs_are_resolved() {
        let literals = [r#""""#, r#""a\"\\\/\b\f\n\r\t""#, r#""\u00e9\ud83d\ude00z""#, r#""\u0000""#];
        for literal in literals {
            let expected: String = serde_json::from_str(literal).unwrap();
            assert_eq!(string(literal).as_deref(), Some(&*expected), "{literal}");
        }
        for literal in
            [r#""\ud800""#, r#""\ud800\n""#, r#""\ud800\u0041""#, r#""\udc00""#, r#""\ud800\ud800""#, "1"]
        {
            assert_eq!(string(literal), None, "{literal}");
        }
    }

    proptest! {
        #[test]
        fn literals_are_those_of_serde_json(text in any::<String>()) {
            let mut out = String::new();
            push_string(&mut out, &text);
            prop_assert_eq!(&out, &serde_json::to_string(&text).unwrap());
            prop_assert_eq!(string(&out), Some(text.as_str().into()));
        }

        #[test]
        fn code_units_are_resolved_as_serde_json_does(units in prop::collection::vec(
            prop_oneof![any::<u16>(), 0xD800_u16..0xE000], 0..5,
        )) {
            let literal = format!("\"{}\"", units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
            let expected: Option<String> = serde_json::from_str(&literal).ok();
            prop_assert_eq!(string(&literal).map(Cow::into_owned), expected);
        }
    }
}
