//! Replaces a value in place.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::header::{ALIGNMENT_KEY, Header};
use crate::value::{Value, put_value};

/// Bytes to be written into a file, at an offset from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Where.
    pub offset: u64,
    /// What.
    pub bytes: Vec<u8>,
}

impl Header<'_> {
    /// Changes a value without rewriting the file: the new value must have the type and length of the old one.
    ///
    /// A crash while the patch is written can leave half of it; a copy ([`GgufBuilder::copy_of`]) cannot.
    ///
    /// ```
    /// use gguf_core::{Gguf, GgufBuilder, Value};
    ///
    /// let mut builder = GgufBuilder::new();
    /// builder.set("demo.epochs", 3u32)?;
    /// let mut file = builder.layout()?.to_vec(&[])?;
    ///
    /// let patch = Gguf::from_bytes(&file)?.patch("demo.epochs", Value::U32(4))?;
    /// let at = patch.offset as usize;
    /// file[at..at + patch.bytes.len()].copy_from_slice(&patch.bytes);
    /// assert_eq!(Gguf::from_bytes(&file)?.get("demo.epochs"), Some(Value::U32(4)));
    /// # Ok::<(), gguf_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyNotFound`]; [`ErrorKind::NotInPlace`] for another type or length, and for `general.alignment`.
    ///
    /// [`GgufBuilder::copy_of`]: crate::GgufBuilder::copy_of
    pub fn patch<'a>(&self, key: &str, value: impl Into<Value<'a>>) -> Result<Patch, Error> {
        let value = value.into();
        let refused = |kind: ErrorKind| Error::from(kind).of_key(key.as_bytes());
        let entry = self.entry(key).ok_or_else(|| refused(ErrorKind::KeyNotFound))?;
        let encode = |value: &Value<'_>| {
            let mut out = Vec::new();
            put_value(&mut out, value, self.form());
            out
        };
        let bytes = encode(&value);
        let same_type = entry.value().value_type() == value.value_type();
        if key == ALIGNMENT_KEY || !same_type || encode(&entry.value()).len() != bytes.len() {
            return Err(refused(ErrorKind::NotInPlace).at(entry.value_offset()));
        }
        Ok(Patch { offset: entry.value_offset(), bytes })
    }
}
