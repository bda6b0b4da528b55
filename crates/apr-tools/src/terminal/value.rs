//! Values of metadata as JSON and as lines of text.

use apr_container::Value;
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::escape::{cut, escaped};
use crate::report::{Each, Narrow, Number, OneLine};

/// A value as it is: bytes are lists of numbers, an extension is an object of `ext` and `bytes`.
pub(crate) struct Json<'a>(pub(crate) &'a Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_flat = |values: &[Value]| {
            !values.iter().any(|value| matches!(value, Value::Array(_) | Value::Map(_) | Value::Ext(..)))
        };
        match self.0 {
            Value::Nil => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::UInt(value) => serializer.serialize_u64(*value),
            Value::F32(value) => Narrow(*value).serialize(serializer),
            Value::F64(value) => Number(*value).serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => serializer.collect_seq(bytes),
            Value::Ext(number, bytes) => {
                let mut object = serializer.serialize_map(Some(2))?;
                object.serialize_entry("ext", number)?;
                object.serialize_entry("bytes", &Each(|| bytes))?;
                object.end()
            }
            Value::Array(values) if is_flat(values) => {
                OneLine(&values.iter().map(Json).collect::<Vec<_>>()).serialize(serializer)
            }
            Value::Array(values) => serializer.collect_seq(values.iter().map(Json)),
            Value::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(key, value)| (key, Json(value))))
            }
            // Values of later versions of the library.
            other => serializer.serialize_str(&other.to_string()),
        }
    }
}

/// One line: text as it is, other values as JSON; escaped, and cut if `max` is given.
pub(crate) fn line(value: &Value, max: Option<usize>) -> String {
    let json;
    let text = match value {
        Value::String(text) => text,
        // In JSON, numbers that are not finite are null.
        Value::F64(number) if !number.is_finite() => return number.to_string(),
        Value::F32(number) if !number.is_finite() => return number.to_string(),
        value => {
            json = value.to_string();
            &json
        }
    };
    match max {
        Some(max) => cut(text, max),
        None => escaped(text),
    }
}

#[cfg(test)]
mod tests {

    use apr_container::Map;

    use super::*;

    fn json(value: &Value) -> String {
        serde_json::to_string(&Json(value)).unwrap()
    }

    #[test]
    fn every_value_is_json() {
        let map = Map::from([("k\u{1b}".to_owned(), Value::F64(f64::NAN)), ("n".to_owned(), Value::Int(-3))]);
        let value = Value::Array(vec![
            Value::Nil,
            Value::UInt(u64::MAX),
            Value::F32(0.1),
            Value::Bytes(vec![0, 255]),
            Value::Ext(-1, vec![7]),
            Value::Map(map),
        ]);
        let text = json(&value);
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            parsed,
            serde_json::json!([null, u64::MAX, 0.1, [0, 255], {"ext": -1, "bytes": [7]}, {"k\u{1b}": "nan", "n": -3}])
        );
        assert!(text.contains("0.1,") && !text.contains('\u{1b}'));
    }

    #[test]
    fn lines_are_escaped_and_cut() {
        assert_eq!(line(&Value::Map(Map::new()), None), "{}");
        assert_eq!(line(&Value::F64(f64::INFINITY), None), "inf");
        assert_eq!(line(&"abc\u{1b}".into(), Some(2)), "ab... (+2 characters)");
    }
}
