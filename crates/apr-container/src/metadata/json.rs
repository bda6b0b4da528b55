//! Values as JSON text.

use core::fmt::{self, Write as _};

use json_scan::{Escape, JsonStr};

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
            Self::String(text) => JsonStr(text, Escape::Hazards).fmt(f),
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
                    JsonStr(key, Escape::Hazards).fmt(f)?;
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
