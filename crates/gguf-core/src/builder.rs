//! Writing, before the first phase: the content of a file.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tensor_dtype::Dtype;

use crate::cursor::{Endian, Form};
use crate::error::{Error, ErrorKind};
use crate::header::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, Header};
use crate::layout::Layout;
use crate::tensor::{MAX_NAME, MAX_RANK, TensorInfo};
use crate::value::{Number, Text, Value, ValueType, put_number, put_text, put_value};

/// Longest key.
const MAX_KEY: usize = 65_535;

/// An entry as it is written to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedEntry {
    pub(crate) key: Vec<u8>,
    /// Type and value.
    pub(crate) value: Vec<u8>,
}

/// A tensor to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorSpec {
    pub(crate) name: Vec<u8>,
    pub(crate) dtype: Dtype,
    /// The fastest first.
    pub(crate) dims: Vec<u64>,
    pub(crate) byte_len: u64,
}

/// Collects keys and tensors of a file of version 3. Entries and tensors are written in the order they were added; the same
/// calls give the same bytes.
///
/// ```
/// use gguf_core::Dtype;
/// use gguf_core::{Gguf, GgufBuilder};
///
/// let mut builder = GgufBuilder::new();
/// builder.set("general.architecture", "demo")?;
/// builder.set("general.alignment", 64u32)?;
/// builder.add_tensor("rows", Dtype::Q8_0, &[3, 32])?;
/// let layout = builder.layout()?;
/// assert_eq!(layout.file_len(), layout.data_start() + 128);
///
/// // An edited copy: other keys, the same tensors.
/// let file = layout.to_vec(&[&[0; 3 * 34]])?;
/// let mut copy = GgufBuilder::copy_of(Gguf::from_bytes(&file)?.header())?;
/// copy.rename("general.architecture", "demo.was")?;
/// copy.remove("general.alignment");
/// assert_eq!(copy.layout()?.tensors().len(), 1);
/// # Ok::<(), gguf_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GgufBuilder {
    endian: Endian,
    entries: Vec<EncodedEntry>,
    /// Index of each entry by its key: models may have many.
    indices: BTreeMap<Vec<u8>, usize>,
    tensors: Vec<TensorSpec>,
}

impl GgufBuilder {
    /// An empty little-endian file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty file in this byte order. The tensors' bytes have to be in it too; most programs read little-endian
    /// files only.
    #[must_use]
    pub fn with_endian(endian: Endian) -> Self {
        Self { endian, ..Self::default() }
    }

    /// A file with the keys and tensors of another, in its byte order, to be changed and filled with the other's data:
    /// tensor `n` of the [`Layout`] is tensor `n` of [`Header::tensors`].
    ///
    /// # Errors
    ///
    /// What only [`Strictness::Compat`](crate::Strictness::Compat) reads cannot be written: [`ErrorKind::NestedArray`],
    /// [`ErrorKind::EmptyKey`], [`ErrorKind::NameLength`], [`ErrorKind::Rank`].
    pub fn copy_of(header: &Header<'_>) -> Result<Self, Error> {
        let mut builder = Self::with_endian(header.endian());
        builder.copy_entries(header)?;
        header.tensors().iter().try_for_each(|info| builder.copy_tensor(info))?;
        Ok(builder)
    }

    /// Appends the keys of another file; keys of both get the other's value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NestedArray`], [`ErrorKind::EmptyKey`].
    pub fn copy_entries(&mut self, header: &Header<'_>) -> Result<(), Error> {
        for entry in header.entries() {
            let key = entry.key().as_bytes();
            if key.is_empty() {
                return Err(ErrorKind::EmptyKey.into());
            }
            let value = self.encode(&entry.value()).map_err(|error| error.of_key(key))?;
            self.put(key, value);
        }
        Ok(())
    }

    /// Adds a tensor like that of another file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NameLength`], [`ErrorKind::Rank`].
    pub fn copy_tensor(&mut self, info: &TensorInfo<'_>) -> Result<(), Error> {
        let name = info.name().as_bytes();
        let dims = info.dims().collect();
        let spec = TensorSpec { name: name.to_vec(), dtype: info.dtype(), dims, byte_len: info.byte_len() };
        self.push_tensor(spec).map_err(|error| error.of_tensor(name))
    }

    /// Sets a key: an old value is replaced where it stands, a new one comes last.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`], [`ErrorKind::NestedArray`].
    pub fn set<'a>(&mut self, key: &str, value: impl Into<Value<'a>>) -> Result<(), Error> {
        let value = self.encode(&value.into()).map_err(|error| error.of_key(key.as_bytes()))?;
        self.set_encoded(key, value)
    }

    /// Sets a key to an array of numbers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`].
    pub fn set_numbers<T: Number>(&mut self, key: &str, numbers: &[T]) -> Result<(), Error> {
        let mut out = self.array_head(T::TYPE, numbers.len());
        numbers.iter().for_each(|number| put_value(&mut out, &number.value(), self.form()));
        self.set_encoded(key, out)
    }

    /// Sets a key to an array of strings.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`].
    pub fn set_texts<'a, T: Into<Text<'a>>>(
        &mut self,
        key: &str,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        let mut elements = Vec::new();
        let mut count = 0;
        for text in texts {
            put_text(&mut elements, text.into().as_bytes(), self.form());
            count += 1;
        }
        let mut out = self.array_head(ValueType::Text, count);
        out.append(&mut elements);
        self.set_encoded(key, out)
    }

    /// Removes a key; returns whether it existed.
    pub fn remove(&mut self, key: &str) -> bool {
        let Some(place) = self.indices.remove(key.as_bytes()) else { return false };
        self.entries.remove(place);
        self.indices.values_mut().filter(|later| **later > place).for_each(|later| *later -= 1);
        true
    }

    /// Gives a key another name, where it stands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyNotFound`]; [`ErrorKind::DuplicateKey`] if the new name is taken; [`ErrorKind::InvalidKey`].
    pub fn rename(&mut self, key: &str, new_key: &str) -> Result<(), Error> {
        check_key(new_key)?;
        let refused = |kind: ErrorKind, key: &str| Error::from(kind).of_key(key.as_bytes());
        let place = self.place(key.as_bytes()).ok_or_else(|| refused(ErrorKind::KeyNotFound, key))?;
        if self.place(new_key.as_bytes()).is_some_and(|other| other != place) {
            return Err(refused(ErrorKind::DuplicateKey, new_key));
        }
        self.indices.remove(key.as_bytes());
        self.indices.insert(new_key.into(), place);
        self.entries[place].key = new_key.into();
        Ok(())
    }

    /// Adds a tensor. `shape` has the slowest dimension first, `[rows, columns]` of a matrix.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Rank`], [`ErrorKind::ForeignFormat`], [`ErrorKind::Dimension`],
    /// [`ErrorKind::TooManyElements`], [`ErrorKind::RowLength`], [`ErrorKind::SizeOverflow`].
    pub fn add_tensor(&mut self, name: &str, dtype: Dtype, shape: &[u64]) -> Result<(), Error> {
        let refused = |error: Error| error.of_tensor(name.as_bytes());
        if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(refused(ErrorKind::InvalidName.into()));
        }
        let dims: Vec<u64> = shape.iter().rev().copied().collect();
        let byte_len = byte_len(dtype, &dims).map_err(refused)?;
        self.push_tensor(TensorSpec { name: name.into(), dtype, dims, byte_len }).map_err(refused)
    }

    /// Fixes every offset.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateTensor`]; [`ErrorKind::AlignmentType`] and [`ErrorKind::Alignment`] for what
    /// `general.alignment` was set to; [`ErrorKind::SizeOverflow`].
    pub fn layout(&self) -> Result<Layout, Error> {
        Layout::new(self.form(), self.alignment()?, &self.entries, &self.tensors)
    }

    /// The value of `general.alignment`, or 32.
    fn alignment(&self) -> Result<u32, Error> {
        let Some(place) = self.place(ALIGNMENT_KEY.as_bytes()) else { return Ok(DEFAULT_ALIGNMENT) };
        let (value_type, value) = self.entries[place].value.split_at_checked(4).unwrap_or_default();
        let value_type = ValueType::from_id(self.form().number(value_type) as u32);
        let refused = |kind: ErrorKind| Err(Error::from(kind).of_key(ALIGNMENT_KEY.as_bytes()));
        match (value_type, self.form().number(value.get(..4).unwrap_or_default()) as u32) {
            (Some(ValueType::U32), alignment) if alignment.is_power_of_two() => Ok(alignment),
            (Some(ValueType::U32), found) => refused(ErrorKind::Alignment { found }),
            (other, _) => refused(ErrorKind::AlignmentType { found: other.unwrap_or(ValueType::Array) }),
        }
    }

    const fn form(&self) -> Form {
        Form { endian: self.endian, narrow: false }
    }

    fn place(&self, key: &[u8]) -> Option<usize> {
        self.indices.get(key).copied()
    }

    fn put(&mut self, key: &[u8], value: Vec<u8>) {
        match self.place(key) {
            Some(place) => self.entries[place].value = value,
            None => {
                self.indices.insert(key.into(), self.entries.len());
                self.entries.push(EncodedEntry { key: key.into(), value });
            }
        }
    }

    fn set_encoded(&mut self, key: &str, value: Vec<u8>) -> Result<(), Error> {
        check_key(key)?;
        self.put(key.as_bytes(), value);
        Ok(())
    }

    /// Type and value.
    fn encode(&self, value: &Value<'_>) -> Result<Vec<u8>, Error> {
        if value.as_array().is_some_and(|array| array.element_type() == ValueType::Array) {
            return Err(ErrorKind::NestedArray.into());
        }
        let mut out = Vec::new();
        put_number(&mut out, value.value_type().id().into(), 4, self.endian);
        put_value(&mut out, value, self.form());
        Ok(out)
    }

    fn array_head(&self, element: ValueType, count: usize) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, ValueType::Array.id().into(), 4, self.endian);
        put_number(&mut out, element.id().into(), 4, self.endian);
        put_number(&mut out, count as u64, 8, self.endian);
        out
    }

    fn push_tensor(&mut self, spec: TensorSpec) -> Result<(), Error> {
        let (len, max) = (spec.name.len() as u64, MAX_NAME as u64);
        if len > max {
            return Err(ErrorKind::NameLength { len, max }.into());
        }
        if spec.dims.len() > MAX_RANK {
            return Err(ErrorKind::Rank { n_dims: spec.dims.len() as u64, max: MAX_RANK as u64 }.into());
        }
        if spec.dtype.ggml_type().is_none() {
            return Err(ErrorKind::ForeignFormat { dtype: spec.dtype }.into());
        }
        self.tensors.push(spec);
        Ok(())
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
        return Err(Error::from(ErrorKind::InvalidKey).of_key(key.as_bytes()));
    }
    Ok(())
}

/// Bytes of a tensor, by the rules of the reader.
fn byte_len(dtype: Dtype, dims: &[u64]) -> Result<u64, Error> {
    const MAX: u64 = i64::MAX as u64;
    if let Some(&dim) = dims.iter().find(|dim| **dim > MAX) {
        return Err(ErrorKind::Dimension { dim }.into());
    }
    let (&row_len, rest) = dims.split_first().unwrap_or((&1, &[]));
    let empty = dims.contains(&0);
    let mut n_rows = u64::from(!empty);
    let mut count = row_len;
    for &dim in rest.iter().filter(|_| !empty) {
        if MAX / dim <= count {
            return Err(ErrorKind::TooManyElements.into());
        }
        count *= dim;
        n_rows *= dim;
    }
    let byte_len = dtype.byte_len_of_rows(row_len, n_rows);
    byte_len.map_err(|error| ErrorKind::of_size(dtype, error).into())
}
