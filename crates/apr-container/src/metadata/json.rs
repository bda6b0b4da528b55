//! Values as JSON text.

use core::fmt::{self, Write as _};

use super::value::Value;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::UInt(value) => write!(f, "{value}"),
            // `Debug` of a float is its shortest exact text, with an exponent where that is shorter.
            Self::F32(value) if value.is_finite() => write!(f, "{value:?}"),
            Self::F64(value) if value.is_finite() => write!(f, "{value:?}"),
            Self::F32(_) | Self::F64(_) => f.write_str("null"),
            Self::String(text) => write_text(f, text),
            Self::Bytes(bytes) => write_list(f, bytes, |f, byte| write!(f, "{byte}")),
            Self::Ext(number, bytes) => {
                write!(f, "{{\"type\":{number},\"bytes\":")?;
                write_list(f, bytes, |f, byte| write!(f, "{byte}"))?;
                f.write_char('}')
            }
            Self::Array(values) => write_list(f, values, |f, value| fmt::Display::fmt(value, f)),
            Self::Map(entries) => {
                f.write_char('{')?;
                for (idx, (key, value)) in entries.iter().enumerate() {
                    if idx > 0 {
                        f.write_char(',')?;
                    }
                    write_text(f, key)?;
                    f.write_char(':')?;
                    fmt::Display::fmt(value, f)?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    values: &[T],
    write_one: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_char('[')?;
    for (idx, value) in values.iter().enumerate() {
        if idx > 0 {
            f.write_char(',')?;
        }
        write_one(f, value)?;
    }
    f.write_char(']')
}

/// In quotation marks, and such that it cannot steer a terminal.
pub(crate) fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for char in text.chars() {
        match char {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            // Control characters, and those that reorder or hide what follows them on a screen.
            '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' => {
                char.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))?;
            }
            _ => f.write_char(char)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn text_is_json_whatever_the_value() {
        let map = [
            ("a\"b", Value::F64(f64::NAN)),
            ("\u{202e}x", Value::from(1e300)),
            ("\u{61c}\u{e0041}", Value::from(1e301)),
            ("l", Value::Bytes(vec![0, 255])),
        ];
        let value = Value::from(vec![
            Value::Nil,
            Value::from(false),
            Value::from(-3),
            Value::UInt(u64::MAX),
            Value::F32(0.1),
            Value::F32(f32::INFINITY),
            Value::from("\\ \n\t\u{1b}[2J\u{9b}é"),
            Value::Ext(-1, vec![7]),
            Value::from(vec![]),
            Value::Map(map.map(|(key, value)| (key.into(), value)).into()),
        ]);
        let text = value.to_string();
        assert_eq!(
            text,
            "[null,false,-3,18446744073709551615,0.1,null,\"\\\\ \\n\\t\\u001b[2J\\u009bé\",\
             {\"type\":-1,\"bytes\":[7]},[],{\"a\\\"b\":null,\"l\":[0,255],\"\\u061c\\udb40\\udc41\":1e301,\
             \"\\u202ex\":1e300}]"
        );
        assert!(serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok());
    }
}
