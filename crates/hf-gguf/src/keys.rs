//! Keys of a GGUF file in the order in which they are written.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use gguf_core::{GgufBuilder, Header, ValueType};

use crate::error::Error;

/// A value, of the types that models have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// 16 bits: `split.no`, `split.count`.
    U16(u16),
    /// Most numbers.
    U32(u32),
    /// A signed number.
    I32(i32),
    /// 64 bits.
    U64(u64),
    /// A float.
    F32(f32),
    /// A truth value.
    Bool(bool),
    /// A string.
    String(String),
    /// An array of bytes.
    U8s(Vec<u8>),
    /// An array of numbers.
    U32s(Vec<u32>),
    /// An array of signed numbers.
    I32s(Vec<i32>),
    /// An array of floats.
    F32s(Vec<f32>),
    /// An array of truth values.
    Bools(Vec<bool>),
    /// An array of strings.
    Strings(Vec<String>),
}

impl Value {
    /// Whether it is a string or an array without elements, which the reference implementation does not write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::U16(_) | Self::U32(_) | Self::I32(_) | Self::U64(_) | Self::F32(_) | Self::Bool(_) => false,
            Self::String(text) => text.is_empty(),
            Self::U8s(array) => array.is_empty(),
            Self::U32s(array) => array.is_empty(),
            Self::I32s(array) => array.is_empty(),
            Self::F32s(array) => array.is_empty(),
            Self::Bools(array) => array.is_empty(),
            Self::Strings(array) => array.is_empty(),
        }
    }

    /// The value of a file; `None` for types that models do not have.
    fn stored(value: gguf_core::Value<'_>) -> Option<Self> {
        use gguf_core::Value as Stored;
        let text = |text: gguf_core::Text<'_>| text.to_str().ok().map(String::from);
        Some(match value {
            Stored::U16(number) => Self::U16(number),
            Stored::U32(number) => Self::U32(number),
            Stored::I32(number) => Self::I32(number),
            Stored::U64(number) => Self::U64(number),
            Stored::F32(number) => Self::F32(number),
            Stored::Bool(flag) => Self::Bool(flag),
            Stored::Text(own) => Self::String(text(own)?),
            Stored::Array(array) => {
                let items = array.iter();
                macro_rules! of {
                    ($variant:ident, $own:ident) => {
                        Self::$own(
                            items
                                .map(|item| if let Stored::$variant(item) = item { Some(item) } else { None })
                                .collect::<Option<_>>()?,
                        )
                    };
                }
                match array.element_type() {
                    ValueType::U8 => of!(U8, U8s),
                    ValueType::U32 => of!(U32, U32s),
                    ValueType::I32 => of!(I32, I32s),
                    ValueType::F32 => of!(F32, F32s),
                    ValueType::Bool => of!(Bool, Bools),
                    ValueType::Text => {
                        Self::Strings(items.map(|item| item.as_text().and_then(text)).collect::<Option<_>>()?)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// The number, if this is one of 32 bits without a sign.
    #[must_use]
    pub const fn as_u32(&self) -> Option<u32> {
        if let Self::U32(number) = self { Some(*number) } else { None }
    }

    /// The string, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }
}

macro_rules! from {
    ($($ty:ty => $variant:ident),* $(,)?) => {
        $(impl From<$ty> for Value {
            fn from(value: $ty) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

from! {
    u16 => U16, u32 => U32, i32 => I32, u64 => U64, f32 => F32, bool => Bool, String => String,
    Vec<u8> => U8s, Vec<u32> => U32s, Vec<i32> => I32s, Vec<f32> => F32s, Vec<bool> => Bools, Vec<String> => Strings,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The name, `general.architecture`.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Keys in the order of their first insertion.
///
/// ```
/// use hf_gguf::Keys;
///
/// let mut keys = Keys::new();
/// keys.set("general.type", "model");
/// keys.set("general.name", "");
/// keys.set("llama.block_count", 2_u32);
/// keys.set("general.type", "adapter");
/// let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
/// assert_eq!(names, ["general.type", "llama.block_count"]);
/// assert_eq!(keys.get("general.type").and_then(|value| value.as_str()), Some("adapter"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys {
    keys: Vec<Key>,
    /// Where each one is: front matter may have 10,000 base models of nine keys.
    by_name: BTreeMap<Box<str>, usize>,
}

impl Keys {
    /// No keys.
    #[must_use]
    pub const fn new() -> Self {
        Self { keys: Vec::new(), by_name: BTreeMap::new() }
    }

    /// The keys of a file, and the names of those whose values are of types that models do not have: they are left out.
    #[must_use]
    pub fn from_header(header: &Header<'_>) -> (Self, Vec<String>) {
        let (mut keys, mut left_out) = (Self::new(), Vec::new());
        for entry in header.entries() {
            let name = entry.key().to_str_lossy().into_owned();
            match Value::stored(entry.value()) {
                Some(value) => keys.push(name, value),
                None => left_out.push(name),
            }
        }
        (keys, left_out)
    }

    /// Sets a key: an old value is replaced where it stands, a new key comes last. Empty strings and arrays are ignored, as
    /// by the reference implementation.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        if value.is_empty() {
            return;
        }
        match self.by_name.get(name.as_str()) {
            Some(&place) => self.keys[place].value = value,
            None => self.push(name, value),
        }
    }

    fn push(&mut self, name: String, value: Value) {
        self.by_name.insert(name.as_str().into(), self.keys.len());
        self.keys.push(Key { name, value });
    }

    /// Sets a key if there is a value.
    pub fn set_some(&mut self, name: impl Into<String>, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Sets each of these keys in turn.
    pub fn append(&mut self, keys: Self) {
        for key in keys.keys {
            self.set(key.name, key.value);
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.by_name.get(name).map(|&place| &self.keys[place].value)
    }

    /// The keys in order.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds the keys to a file.
    ///
    /// # Errors
    ///
    /// Those of the [`GgufBuilder`]: names that no GGUF file has.
    pub fn write_to(&self, builder: &mut GgufBuilder) -> Result<(), Error> {
        for Key { name, value } in &self.keys {
            match value {
                Value::U16(number) => builder.set(name, *number),
                Value::U32(number) => builder.set(name, *number),
                Value::I32(number) => builder.set(name, *number),
                Value::U64(number) => builder.set(name, *number),
                Value::F32(number) => builder.set(name, *number),
                Value::Bool(flag) => builder.set(name, *flag),
                Value::String(text) => builder.set(name, text.as_str()),
                Value::U8s(array) => builder.set_numbers(name, array),
                Value::U32s(array) => builder.set_numbers(name, array),
                Value::I32s(array) => builder.set_numbers(name, array),
                Value::F32s(array) => builder.set_numbers(name, array),
                Value::Bools(array) => builder.set_numbers(name, array),
                Value::Strings(array) => builder.set_texts(name, array.iter().map(String::as_str)),
            }?;
        }
        Ok(())
    }
}
