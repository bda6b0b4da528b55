//! Types of columns.

use arrow_ipc::convert::try_schema_from_ipc_buffer;
use base64ct::{Base64, Encoding as _};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::file::metadata::FileMetaData;
use parquet::schema::types::Type as Field;

use crate::batch::unsupported;

/// The metadata with the schema of the Arrow table that a file was written from: an IPC message in base64.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// A type that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Boolean,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    Text,
    /// Nulls alone.
    Null,
}

/// The types of the columns, of those that are not read their names; nothing if the file contradicts itself.
pub(crate) fn of(metadata: &FileMetaData) -> Option<Vec<Result<Type, &'static str>>> {
    let fields = metadata.schema().get_fields();
    let mut types: Vec<_> = fields.iter().map(|field| of_field(field).ok_or_else(|| name(field))).collect();
    let entries = metadata.key_value_metadata().into_iter().flatten();
    let written = entries.filter(|entry| entry.key == ARROW_SCHEMA).find_map(|entry| entry.value.as_deref());
    if let Some(written) = written {
        let message = Base64::decode_vec(written).ok()?;
        let schema = try_schema_from_ipc_buffer(&message).ok()?;
        // Durations are integers but for this.
        for (column_type, field) in types.iter_mut().zip(schema.fields()) {
            if let (Ok(_), Some(found)) = (&column_type, unsupported(field.data_type())) {
                *column_type = Err(found);
            }
        }
    }
    Some(types)
}

/// The name of a type that is not read.
fn name(field: &Field) -> &'static str {
    let info = field.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Decimal(..)), _) | (_, ConvertedType::DECIMAL) => "decimal",
        (Some(LogicalType::Timestamp(..)), _)
        | (_, ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS) => "timestamp",
        (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => "date",
        (Some(LogicalType::Time(..)), _) | (_, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS) => {
            "time"
        }
        (Some(LogicalType::Map), _) | (_, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) => "map",
        (Some(LogicalType::List), _) | (_, ConvertedType::LIST) => "list",
        (Some(LogicalType::Enum), _) | (_, ConvertedType::ENUM) => "enum",
        (Some(LogicalType::Uuid), _) => "UUID",
        (Some(LogicalType::Bson), _) | (_, ConvertedType::BSON) => "BSON",
        (_, ConvertedType::INTERVAL) => "interval",
        _ if info.has_repetition() && info.repetition() == Repetition::REPEATED => "list",
        _ if !field.is_primitive() => "struct",
        _ => match field.get_physical_type() {
            Physical::INT96 => "int96",
            Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => "binary",
            _ => "another kind of number",
        },
    }
}

/// The type of a column by the rules of
/// <https://github.com/apache/parquet-format/blob/master/LogicalTypes.md>.
fn of_field(field: &Field) -> Option<Type> {
    let info = field.get_basic_info();
    if !field.is_primitive() || info.has_repetition() && info.repetition() == Repetition::REPEATED {
        return None;
    }
    let converted = info.converted_type();
    match (field.get_physical_type(), info.logical_type_ref()) {
        (_, Some(LogicalType::Unknown)) => Some(Type::Null),
        (Physical::BOOLEAN, None) => Some(Type::Boolean),
        (Physical::FLOAT, None) => Some(Type::F32),
        (Physical::DOUBLE, None) => Some(Type::F64),
        (Physical::INT32, Some(LogicalType::Integer(integer))) if integer.bit_width <= 32 => {
            Some(if integer.is_signed { Type::I32 } else { Type::U32 })
        }
        (Physical::INT64, Some(LogicalType::Integer(integer))) if integer.bit_width == 64 => {
            Some(if integer.is_signed { Type::I64 } else { Type::U64 })
        }
        (Physical::INT32, None) => match converted {
            ConvertedType::NONE | ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 => {
                Some(Type::I32)
            }
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 => Some(Type::U32),
            _ => None,
        },
        (Physical::INT64, None) => match converted {
            ConvertedType::NONE | ConvertedType::INT_64 => Some(Type::I64),
            ConvertedType::UINT_64 => Some(Type::U64),
            _ => None,
        },
        (Physical::BYTE_ARRAY, Some(LogicalType::String | LogicalType::Json)) => Some(Type::Text),
        (Physical::BYTE_ARRAY, None) => {
            matches!(converted, ConvertedType::UTF8 | ConvertedType::JSON).then_some(Type::Text)
        }
        (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)) if len_of(field) == 2 => Some(Type::F16),
        _ => None,
    }
}

fn len_of(field: &Field) -> i32 {
    match field {
        Field::PrimitiveType { type_length, .. } => *type_length,
        Field::GroupType { .. } => 0,
    }
}
