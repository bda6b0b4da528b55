//! Values of GGUF keys whose type the caller says: `u32:7`, `bool:true`, `str[]:["a", "b"]`.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use apr_container::Value;
use gguf_core::{GgufBuilder, KeyType, ValueType};

use super::gguf::{key_kind, set_text};
use super::{Entries, OF_GGUF};
use crate::error::{Error, ErrorKind};
use crate::json;

/// Names of types, here, of gguf-py and of llama.cpp's `--override-kv`. That of GGUF comes second.
const NAMES: &[(&str, &str)] = &[
    ("u8", "u8"),
    ("uint8", "u8"),
    ("i8", "i8"),
    ("int8", "i8"),
    ("u16", "u16"),
    ("uint16", "u16"),
    ("i16", "i16"),
    ("int16", "i16"),
    ("u32", "u32"),
    ("uint32", "u32"),
    ("i32", "i32"),
    ("int32", "i32"),
    ("u64", "u64"),
    ("uint64", "u64"),
    ("i64", "i64"),
    ("int64", "i64"),
    ("f32", "f32"),
    ("float32", "f32"),
    ("f64", "f64"),
    ("float64", "f64"),
    ("bool", "bool"),
    ("str", "string"),
    ("string", "string"),
    // Without a width: that of the key, else the one in which llama.cpp keeps such a value.
    ("int", "i64"),
    ("float", "f64"),
];

/// A value of a GGUF key with its type.
///
/// ```
/// use gguf_core::{Gguf, GgufBuilder, Value};
/// use model_file::entries::TypedValue;
///
/// let mut builder = GgufBuilder::new();
/// TypedValue::parse("my.count", "u8:7").expect("it begins with a type").set(&mut builder, "my.count")?;
/// let file = builder.layout()?.to_vec(&[])?;
/// assert_eq!(Gguf::from_bytes(&file)?.get("my.count"), Some(Value::U8(7)));
///
/// assert!(TypedValue::parse("my.count", "7").is_none());
/// let refused = TypedValue::parse("my.count", "u8:256").expect("it begins with a type");
/// assert_eq!(refused.set(&mut builder, "my.count").unwrap_err().code(), "mo-entry-type");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedValue {
    /// Type as in the list of keys.
    kind: String,
    text: String,
}

impl TypedValue {
    /// The value of a text `TYPE:VALUE`; `None` if the text does not begin with a type. Arrays are `TYPE[]:JSON`.
    #[must_use]
    pub fn parse(key: &str, text: &str) -> Option<Self> {
        let (kind, text) = text.split_once(':')?;
        let (name, is_array) = kind.strip_suffix("[]").map_or((kind, false), |name| (name, true));
        let (given, name) = NAMES.iter().find(|(given, _)| given.eq_ignore_ascii_case(name))?;
        let known = KeyType::of(key).map(KeyType::value_type);
        let name = match (*given, known) {
            ("int", Some(known))
                if !matches!(known, ValueType::F32 | ValueType::F64 | ValueType::Bool | ValueType::Text) =>
            {
                known.name()
            }
            ("float", Some(known @ (ValueType::F32 | ValueType::F64))) => known.name(),
            _ => name,
        };
        let kind = if is_array { format!("{name}[]") } else { name.to_owned() };
        Some(Self { kind, text: text.to_owned() })
    }

    /// Sets the key: an old value is replaced, and its type too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EntryType`] if the value does not have the type; [`ErrorKind::Gguf`] for an invalid key.
    pub fn set(&self, builder: &mut GgufBuilder, key: &str) -> Result<(), Error> {
        set_text(builder, key, &self.kind, &self.text)
    }

    /// The value without its type.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Refuses a value without a type for a new key of which nothing says what it is: it would become a string where a program may
/// expect a number.
///
/// # Errors
///
/// [`ErrorKind::EntryWithoutType`].
pub fn check_untyped(entries: Option<&Entries>, key: &str, text: &str) -> Result<(), Error> {
    let is_there = |entries: &Entries| entries.contains_key(key) || key_kind(entries, key).is_some();
    if key == OF_GGUF || entries.is_some_and(is_there) || KeyType::of(key).is_some() {
        return Ok(());
    }
    let is_word = ["true", "false"].iter().any(|word| word.eq_ignore_ascii_case(text.trim()));
    let value = json::parse(text);
    let is_text = matches!(value, None | Some(Value::String(_) | Value::Map(_) | Value::Nil));
    if is_text && !is_word {
        return Ok(());
    }
    let kind = match value {
        Some(Value::Array(_)) => "i32[]",
        Some(Value::F64(_) | Value::F32(_)) => "f32",
        Some(Value::Int(0..) | Value::UInt(_)) => "u32",
        Some(Value::Int(_)) => "i32",
        _ => "bool",
    };
    Err(ErrorKind::EntryWithoutType { key: key.to_owned(), value: text.to_owned(), kind: kind.to_owned() }
        .into())
}
