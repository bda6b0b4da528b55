//! Keys of JSON text and their values, wherever the text is: in a file of its own, or in attributes of HDF5.
//!
//! There is no tree, because there may be bytes of other kinds around the text: each quotation mark may begin a key. What is found is a
//! superset of the keys that a reader of JSON finds.

use alloc::string::String;

use pickle_core::Error;

use crate::reader::Reader;
use crate::template;

/// Longest key.
const MAX_KEY: usize = 64;
/// Longest value of a string; of a longer one, the beginning is kept, which is longer than this.
const MAX_VALUE: usize = template::MAX;

/// The value of a key, as far as it is needed.
pub(crate) enum Value {
    String(String),
    /// `{}`, `[]`, `null`, `false` and the like.
    Nothing,
    Other,
}

/// Calls `visit` with offset, key and value of every key that is one of `wanted`.
pub(crate) fn keys(
    reader: &mut Reader<'_>,
    wanted: &[&str],
    mut visit: impl FnMut(u64, &str, &Value),
) -> Result<(), Error> {
    let mut at = 0;
    while let Some(quote) = reader.find(at, b'"')? {
        at = quote + 1;
        let (mut end, mut key) = (at, String::new());
        if !string(reader, &mut end, &mut key, MAX_KEY)? || !wanted.contains(&key.as_str()) {
            continue;
        }
        skip_space(reader, &mut end)?;
        if reader.byte(end)? != Some(b':') {
            continue;
        }
        end += 1;
        skip_space(reader, &mut end)?;
        let value = value(reader, end)?;
        visit(quote, &key, &value);
    }
    Ok(())
}

fn value(reader: &mut Reader<'_>, mut at: u64) -> Result<Value, Error> {
    let first = reader.byte(at)?;
    at += 1;
    Ok(match first {
        Some(b'"') => {
            let mut text = String::new();
            string(reader, &mut at, &mut text, MAX_VALUE)?;
            Value::String(text)
        }
        Some(b'{' | b'[') => {
            skip_space(reader, &mut at)?;
            if matches!(reader.byte(at)?, Some(b'}' | b']')) { Value::Nothing } else { Value::Other }
        }
        Some(b'n' | b'f') => Value::Nothing,
        _ => Value::Other,
    })
}

fn skip_space(reader: &mut Reader<'_>, at: &mut u64) -> Result<(), Error> {
    while matches!(reader.byte(*at)?, Some(b' ' | b'\t' | b'\r' | b'\n')) {
        *at += 1;
    }
    Ok(())
}

/// Decodes a string after its quotation mark into `text`, and says whether it ends before it has `max` bytes.
pub(crate) fn string(
    reader: &mut Reader<'_>,
    at: &mut u64,
    text: &mut String,
    max: usize,
) -> Result<bool, Error> {
    while text.len() <= max {
        let Some(byte) = reader.byte(*at)? else { return Ok(false) };
        *at += 1;
        let character = match byte {
            b'"' => return Ok(true),
            b'\\' => {
                let Some(escape) = reader.byte(*at)? else { return Ok(false) };
                *at += 1;
                match escape {
                    b'n' => '\n',
                    b't' => '\t',
                    b'r' => '\r',
                    b'b' => '\u{8}',
                    b'f' => '\u{c}',
                    b'u' => code(reader, at)?,
                    other => char::from(other),
                }
            }
            // One character for each byte beyond ASCII: no name that is looked for has one.
            other => char::from(other),
        };
        text.push(character);
    }
    Ok(false)
}

/// Four hexadecimal digits.
fn code(reader: &mut Reader<'_>, at: &mut u64) -> Result<char, Error> {
    let mut code = 0;
    for _ in 0..4 {
        let Some(digit) = reader.byte(*at)?.and_then(|byte| char::from(byte).to_digit(16)) else {
            return Ok(char::REPLACEMENT_CHARACTER);
        };
        *at += 1;
        code = code * 16 + digit;
    }
    Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn keys_are_found_between_other_bytes() {
        let text = b"\xff\"\0\"a\" \"\\u0061\" :\n\"x\\ny\" \"a\": {} \"a\":[1] \"a\":null \"a\":false \"a\":true \"b\":1 \"a\" 5 \"a\":\"cut";
        let mut found = Vec::new();
        let text = text.as_slice();
        let mut reader = Reader::new(&text);
        keys(&mut reader, &["a"], |at, key, value| {
            found.push(match value {
                Value::String(text) => format!("{at} {key} {text}"),
                Value::Nothing => format!("{at} {key} nothing"),
                Value::Other => format!("{at} {key} other"),
            });
        })
        .expect("in memory");
        assert_eq!(
            found,
            [
                "7 a x\ny",
                "25 a nothing",
                "33 a other",
                "41 a nothing",
                "50 a nothing",
                "60 a other",
                "81 a cut"
            ]
        );
    }
}
