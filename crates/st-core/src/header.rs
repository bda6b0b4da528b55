//! The owned, validated table of tensors.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::header_text;
use crate::limits::{MAX_HEADER_LEN, ReadOptions};
use crate::name_index::NameIndex;
use crate::table::{self, Record, Span, Table};
use crate::view::TensorView;
use tensor_dtype::Dtype;

/// Bytes of the length field every file begins with.
pub(crate) const LENGTH_FIELD: u64 = 8;

/// The header of a file: name, dtype, shape and offsets of every tensor, and the metadata.
///
/// A `Header` exists only for a valid file: the tensors, taken in file order, cover the data section from
/// its first byte to the end of the file without hole or overlap, and each one's size follows from its type
/// and shape. Memory is proportional to the header text; parsing takes time linear in it, except that
/// tensors listed out of file order, or names chosen to collide, are sorted.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 8 | `n`, length of the JSON text, little-endian |
/// | 8 | n | JSON text, padded with spaces by writers |
/// | 8 + n | | data section; offsets in the text count from here |
///
/// ```
/// use st_core::{Dtype, Header, ReadOptions};
///
/// let file = b"\x3c\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}    \0\x3c\0\x40";
/// let header = Header::from_bytes(file, &ReadOptions::STRICT)?;
/// let w = header.tensor("w").expect("it is there");
/// assert_eq!((w.dtype(), w.shape(), w.file_range()), (Dtype::F16, &[2, 1][..], 68..72));
/// # Ok::<(), st_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Header {
    table: Table,
    index: NameIndex,
    /// Places of the metadata's items, sorted by key.
    metadata_order: Vec<u32>,
    header_len: u64,
}

impl Header {
    /// Reads the header of a whole file.
    ///
    /// # Errors
    ///
    /// Everything [`declared_len`](Self::declared_len) and [`from_prefix`](Self::from_prefix) refuse.
    pub fn from_bytes(file: &[u8], options: &ReadOptions) -> Result<Self, Error> {
        Self::from_prefix(file, file.len() as u64, options)
    }

    /// The length of the JSON text, for a reader that fetches the beginning of a file piece by piece: read
    /// eight bytes, then as many as this returns, then call [`from_prefix`](Self::from_prefix).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::HeaderTooSmall`] for a file of fewer than eight bytes, [`ErrorKind::HeaderTooLarge`] for a
    /// text beyond the limit, [`ErrorKind::InvalidHeaderLength`] for one beyond the end of the file.
    pub fn declared_len(first8: [u8; 8], file_len: u64, options: &ReadOptions) -> Result<u64, Error> {
        let Some(available) = file_len.checked_sub(LENGTH_FIELD) else {
            return Err(ErrorKind::HeaderTooSmall { available: file_len }.into());
        };
        let len = u64::from_le_bytes(first8);
        let limit = options.limits.header_bytes.min(MAX_HEADER_LEN);
        if len > limit {
            return Err(Error::from(ErrorKind::HeaderTooLarge { len, limit }).at(0));
        }
        if len > available {
            return Err(Error::from(ErrorKind::InvalidHeaderLength { len, available }).at(0));
        }
        Ok(len)
    }

    /// Reads the header from the beginning of a file that is `file_len` bytes long; `prefix` holds at least
    /// the length field and the JSON text.
    ///
    /// # Errors
    ///
    /// Any kind up to [`ErrorKind::LimitExceeded`]: the length field first, then the encoding, the JSON text,
    /// the tensors in file order, and at last the length of the file. [`ErrorKind::InvalidHeaderLength`] also
    /// if `prefix` is too short.
    pub fn from_prefix(prefix: &[u8], file_len: u64, options: &ReadOptions) -> Result<Self, Error> {
        let Some((first8, rest)) = prefix.split_first_chunk::<8>() else {
            return Err(ErrorKind::HeaderTooSmall { available: prefix.len() as u64 }.into());
        };
        let header_len = Self::declared_len(*first8, file_len, options)?;
        let text = usize::try_from(header_len).ok().and_then(|len| rest.get(..len));
        let Some(text) = text else {
            let kind = ErrorKind::InvalidHeaderLength { len: header_len, available: rest.len() as u64 };
            return Err(Error::from(kind).at(0));
        };
        let text = core::str::from_utf8(text).map_err(|error| {
            Error::from(ErrorKind::InvalidUtf8).at(LENGTH_FIELD + error.valid_up_to() as u64)
        })?;
        let (table, index, metadata_order) = table::read(text, options)?;
        table::check(&table, text, header_len, file_len)?;
        Ok(Self { table, index, metadata_order, header_len })
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.records.len()
    }

    /// Whether the file holds no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.records.is_empty()
    }

    /// Length of the JSON text with its padding, in bytes.
    #[must_use]
    pub const fn header_len(&self) -> u64 {
        self.header_len
    }

    /// Where the data section begins, in bytes from the start of the file.
    #[must_use]
    pub const fn data_start(&self) -> u64 {
        LENGTH_FIELD + self.header_len
    }

    /// Length of the data section in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.table.records.last().map_or(0, |record| record.end)
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.data_start() + self.data_len()
    }

    /// The tensor of this name, found in constant time (logarithmic for names chosen to collide).
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'_>> {
        self.get(self.index.find(name, &self.table)? as usize)
    }

    /// The tensor with this index in file order.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<TensorInfo<'_>> {
        let record = self.table.records.get(idx)?;
        Some(TensorInfo { header: self, record, idx })
    }

    /// The tensors in file order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { header: self, records: self.table.records.iter().enumerate() }
    }

    /// The metadata; `None` if the header has none or has `null`.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'_>> {
        let items = self.table.metadata.as_deref()?;
        Some(Metadata { header: self, items })
    }

    /// The first [`data_start`](Self::data_start) bytes of the file with other metadata and the same length:
    /// written over the old ones, they change the metadata without touching the tensors.
    ///
    /// Fields of tensor entries that the format does not know are dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoHeaderRoom`] with the number of missing bytes.
    ///
    /// ```
    /// use st_core::{Header, Layout, ReadOptions, WriteOptions};
    ///
    /// let layout = Layout::new([], &WriteOptions { header_room: 64, ..WriteOptions::default() })?;
    /// let mut file = layout.to_vec(&[])?;
    /// let header = Header::from_bytes(&file, &ReadOptions::STRICT)?;
    /// let metadata = [("format".to_string(), "pt".to_string())].into();
    /// let start = header.with_metadata(Some(&metadata))?;
    /// file[..start.len()].copy_from_slice(&start);
    /// let header = Header::from_bytes(&file, &ReadOptions::STRICT)?;
    /// assert_eq!(header.metadata().and_then(|metadata| metadata.get("format")), Some("pt"));
    /// # Ok::<(), st_core::Error>(())
    /// ```
    pub fn with_metadata(&self, metadata: Option<&BTreeMap<String, String>>) -> Result<Vec<u8>, Error> {
        let mut out = self.header_len.to_le_bytes().to_vec();
        let entries = self.iter().map(|info| header_text::Entry {
            name: info.name(),
            dtype: info.dtype(),
            shape: info.shape(),
            offsets: info.data_offsets(),
        });
        header_text::write(&mut out, metadata, entries);
        let capacity = self.data_start() as usize;
        if out.len() > capacity {
            return Err(ErrorKind::NoHeaderRoom { missing: (out.len() - capacity) as u64 }.into());
        }
        out.resize(capacity, b' ');
        Ok(out)
    }

    fn text(&self, span: Span) -> &str {
        self.table.text(span)
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("header_len", &self.header_len)
            .field("metadata", &self.metadata())
            .field("tensors", &self.iter())
            .finish()
    }
}

impl<'h> IntoIterator for &'h Header {
    type Item = TensorInfo<'h>;
    type IntoIter = Iter<'h>;

    fn into_iter(self) -> Iter<'h> {
        self.iter()
    }
}

/// The entry of a tensor in the header.
#[derive(Clone, Copy)]
pub struct TensorInfo<'h> {
    header: &'h Header,
    record: &'h Record,
    idx: usize,
}

impl<'h> TensorInfo<'h> {
    /// Name, unescaped.
    #[must_use]
    pub fn name(&self) -> &'h str {
        self.header.text(self.record.name)
    }

    /// Type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.record.dtype
    }

    /// Dimensions, the slowest first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &'h [usize] {
        self.header.table.shape(self.record)
    }

    /// First byte and one past the last, from the start of the data section.
    #[must_use]
    pub const fn data_offsets(&self) -> (u64, u64) {
        (self.record.begin, self.record.end)
    }

    /// The tensor's bytes, from the start of the file.
    #[must_use]
    pub const fn file_range(&self) -> Range<u64> {
        let start = self.header.data_start();
        start + self.record.begin..start + self.record.end
    }

    /// Size in bytes.
    #[must_use]
    pub const fn byte_len(&self) -> u64 {
        self.record.end - self.record.begin
    }

    /// Number of elements.
    #[must_use]
    pub fn element_count(&self) -> u64 {
        self.byte_len() * 8 / u64::from(self.dtype().bits())
    }

    /// Index in file order, from 0.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.idx
    }

    /// The tensor in a data section, which begins at [`Header::data_start`]; `None` if it is not all there.
    #[must_use]
    pub fn view<'data>(&self, data: &'data [u8]) -> Option<TensorView<'data>>
    where
        'h: 'data,
    {
        let range = usize::try_from(self.record.begin).ok()?..usize::try_from(self.record.end).ok()?;
        Some(TensorView::proven(self.dtype(), self.shape(), data.get(range)?))
    }
}

impl fmt::Debug for TensorInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorInfo")
            .field("name", &self.name())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("data_offsets", &self.data_offsets())
            .finish()
    }
}

/// The tensors of a [`Header`] in file order.
#[derive(Clone)]
pub struct Iter<'h> {
    header: &'h Header,
    records: core::iter::Enumerate<core::slice::Iter<'h, Record>>,
}

impl<'h> Iterator for Iter<'h> {
    type Item = TensorInfo<'h>;

    fn next(&mut self) -> Option<TensorInfo<'h>> {
        let (idx, record) = self.records.next()?;
        Some(TensorInfo { header: self.header, record, idx })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The metadata of a file: pairs of strings, which are not authenticated.
#[derive(Clone, Copy)]
pub struct Metadata<'h> {
    header: &'h Header,
    items: &'h [[Span; 2]],
}

impl<'h> Metadata<'h> {
    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the object is there but empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'h str> {
        let idx = self.header.table.find_metadata(&self.header.metadata_order, key)?;
        Some(self.header.text(self.items[idx][1]))
    }

    /// Keys and values in the order of the header.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'h str, &'h str)> + use<'h> {
        let header = self.header;
        self.items.iter().map(|&[key, value]| (header.text(key), header.text(value)))
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
