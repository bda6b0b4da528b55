//! Dynamically typed values of hyperparameters, metrics and custom entries.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::map::Map;

/// One MessagePack value.
///
/// Equal values are written as equal bytes: integers in their shortest form, maps by key. An integer that fits an
/// `i64` is read as [`Int`](Self::Int) whatever form it was written in.
///
/// `Display` is JSON text of one line: numbers that JSON lacks are `null`, bytes are lists of numbers, characters that
/// could steer a terminal are escaped.
///
/// # Examples
///
/// ```
/// use apr_container::Value;
///
/// let grid = Value::from(vec![Value::from(0.5), Value::from("auto"), Value::from(3)]);
/// assert_eq!(grid.to_string(), r#"[0.5,"auto",3]"#);
/// assert_eq!(grid.as_array().and_then(|values| values[2].as_u64()), Some(3));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Null.
    #[default]
    Nil,
    /// A Boolean value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above [`i64::MAX`].
    UInt(u64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A string.
    String(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Bytes of an application's own type; negative numbers are MessagePack's, -1 is a time.
    Ext(i8, Vec<u8>),
    /// A list.
    Array(Vec<Self>),
    /// Values by key.
    Map(Map<Self>),
}

impl Value {
    /// The string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The Boolean value.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if it fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::UInt(value) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The integer, if it is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(value) => u64::try_from(*value).ok(),
            Self::UInt(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, of either width; an integer as the nearest number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::UInt(value) => Some(*value as f64),
            Self::F32(value) => Some(f64::from(*value)),
            Self::F64(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The list.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The values by key.
    #[must_use]
    pub const fn as_map(&self) -> Option<&Map<Self>> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Name of the type, for messages.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "truth value",
            Self::Int(_) | Self::UInt(_) => "integer",
            Self::F32(_) | Self::F64(_) => "number",
            Self::String(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Ext(..) => "extension",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Self::UInt(value), Self::Int)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<Vec<Self>> for Value {
    fn from(values: Vec<Self>) -> Self {
        Self::Array(values)
    }
}

/// JSON numbers become [`Int`](Value::Int), [`UInt`](Value::UInt) or [`F64`](Value::F64).
#[cfg(feature = "serde_json")]
impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Self::Nil,
            Json::Bool(value) => value.into(),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => value.into(),
                (None, Some(value), _) => value.into(),
                (None, None, value) => value.map_or(Self::Nil, Self::F64),
            },
            Json::String(value) => value.into(),
            Json::Array(values) => values.into_iter().map(Self::from).collect::<Vec<_>>().into(),
            Json::Object(members) => {
                let members = members.into_iter().map(|(key, value)| (key, Self::from(value)));
                members.collect::<Map<_>>().into()
            }
        }
    }
}

impl From<Map<Self>> for Value {
    fn from(entries: Map<Self>) -> Self {
        Self::Map(entries)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn integers_keep_their_value_in_either_variant() {
        assert_eq!(Value::from(5_u64), Value::Int(5));
        assert_eq!(Value::from(u64::MAX), Value::UInt(u64::MAX));
        assert_eq!(Value::from(usize::MAX), Value::from(usize::MAX as u64));
        assert_eq!((Value::from(-1).as_i64(), Value::from(-1).as_u64()), (Some(-1), None));
        assert_eq!((Value::UInt(7).as_i64(), Value::UInt(u64::MAX).as_i64()), (Some(7), None));
        assert_eq!(Value::UInt(u64::MAX).as_u64(), Some(u64::MAX));
        assert_eq!(Value::from(3_u32).as_f64(), Some(3.0));
        assert_eq!(Value::UInt(1 << 63).as_f64(), Some(9_223_372_036_854_775_808.0));
    }

    #[test]
    fn accessors_answer_for_their_own_type_only() {
        let values = [
            Value::Nil,
            Value::from(true),
            Value::from(1_i64),
            Value::UInt(u64::MAX),
            Value::from(0.5_f32),
            Value::from(0.5),
            Value::from("a"),
            Value::Bytes(vec![1]),
            Value::Ext(1, vec![]),
            Value::from(vec![Value::Nil]),
            Value::from(Map::new()),
        ];
        let count = |test: &dyn Fn(&Value) -> bool| values.iter().filter(|value| test(value)).count();
        assert_eq!(count(&|value| value.as_bool().is_some()), 1);
        assert_eq!(count(&|value| value.as_str().is_some()), 1);
        assert_eq!(count(&|value| value.as_i64().is_some()), 1);
        assert_eq!(count(&|value| value.as_u64().is_some()), 2);
        assert_eq!(count(&|value| value.as_f64().is_some()), 4);
        assert_eq!(count(&|value| value.as_bytes().is_some()), 1);
        assert_eq!(count(&|value| value.as_array().is_some()), 1);
        assert_eq!(count(&|value| value.as_map().is_some()), 1);
        assert_eq!(Value::from(String::from("a")).as_str(), Some("a"));
        let mut names: Vec<_> = values.iter().map(Value::type_name).collect();
        names.dedup();
        assert_eq!(names.len(), 9);
    }
}
