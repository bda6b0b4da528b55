//! Serialization of metadata.

use alloc::string::String;

use apr_container::Value;
use serde::Serialize;
use serde::ser::{SerializeMap as _, SerializeSeq as _, SerializeStruct as _, Serializer};

use crate::description::MetadataValue;

/// Entries as a map.
pub(crate) fn entries<S: Serializer>(
    entries: &[(String, MetadataValue)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(entries.len()))?;
    for (key, value) in entries {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

impl Serialize for MetadataValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => Tree(value).serialize(serializer),
            Self::Json(text) => text.serialize(serializer),
            Self::Array { element_type, len, first } => {
                let mut array = serializer.serialize_struct("array", 3)?;
                array.serialize_field("type", element_type)?;
                array.serialize_field("length", len)?;
                array.serialize_field("first", &List(first))?;
                array.end()
            }
        }
    }
}

struct Tree<'v>(&'v Value);

struct List<'v>(&'v [Value]);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        self.0.iter().try_for_each(|value| list.serialize_element(&Tree(value)))?;
        list.end()
    }
}

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::UInt(value) => serializer.serialize_u64(*value),
            Value::F32(value) => serializer.serialize_f32(*value),
            Value::F64(value) => serializer.serialize_f64(*value),
            Value::String(value) => serializer.serialize_str(value),
            Value::Bytes(bytes) | Value::Ext(_, bytes) => bytes.serialize(serializer),
            Value::Array(values) => List(values).serialize(serializer),
            Value::Map(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(key, value)| map.serialize_entry(key, &Tree(value)))?;
                map.end()
            }
            _ => serializer.serialize_unit(),
        }
    }
}
