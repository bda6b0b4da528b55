//! Everything before the tensor data.

use alloc::vec::Vec;
use core::fmt;

use crate::cursor::{Cursor, Endian, Form, Stop};
use crate::error::{Error, ErrorKind};
use crate::options::{Limits, ReadOptions, Strictness};
use crate::tensor::TensorInfo;
use crate::value::{Text, Value, ValueType};

/// The first four bytes of every file, in both byte orders.
pub const MAGIC: [u8; 4] = *b"GGUF";
/// The key of the alignment of tensors.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";
/// The default alignment.
pub(crate) const DEFAULT_ALIGNMENT: u32 = 32;
/// The newest version, the one written.
pub(crate) const VERSION: u32 = 3;

/// A key and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry<'data> {
    key: Text<'data>,
    value: Value<'data>,
    value_offset: u64,
}

impl<'data> Entry<'data> {
    /// The key. Two entries of a file have different keys.
    #[must_use]
    pub const fn key(&self) -> Text<'data> {
        self.key
    }

    /// The value.
    #[must_use]
    pub const fn value(&self) -> Value<'data> {
        self.value
    }

    /// Byte offset of the value in the file, after its type.
    #[must_use]
    pub const fn value_offset(&self) -> u64 {
        self.value_offset
    }
}

/// The result of [`Header::from_prefix`].
#[derive(Clone, Debug)]
pub enum Prefix<'data> {
    /// The whole header was there.
    Header(Header<'data>),
    /// More of the file is needed.
    More {
        /// Bytes from the start of the file that have to be there to get further; as a rule the header is longer still.
        needed: u64,
    },
}

/// The metadata and the table of tensors: proof that every string, array and tensor is within the file.
///
/// Borrows the bytes it was read from. Whether the file is long enough for the tensors is checked separately,
/// [`check_file_len`](Self::check_file_len): a header can be read without the data after it.
///
/// ```
/// use gguf_core::{GgufBuilder, Header, Prefix, ReadOptions};
///
/// let mut builder = GgufBuilder::new();
/// builder.set("general.architecture", "demo")?;
/// builder.set_numbers("demo.list", &[1u32; 1000])?;
/// let file = builder.layout()?.to_vec(&[])?;
///
/// // Reading a large file: a prefix first, then as many bytes as required.
/// let mut at_hand = 64;
/// let header = loop {
///     match Header::from_prefix(&file[..at_hand], file.len() as u64, &ReadOptions::STRICT)? {
///         Prefix::Header(header) => break header,
///         Prefix::More { needed } => at_hand = file.len().min(needed as usize * 2),
///     }
/// };
/// assert_eq!(header.get("general.architecture").and_then(|value| value.as_str()), Some("demo"));
/// # Ok::<(), gguf_core::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Header<'data> {
    version: u32,
    form: Form,
    alignment: u32,
    entries: Vec<Entry<'data>>,
    /// Indices of `entries`, sorted by key.
    by_key: Vec<u32>,
    tensors: Vec<TensorInfo<'data>>,
    /// Indices of `tensors`, sorted by name.
    by_name: Vec<u32>,
    header_len: u64,
    data_start: u64,
    data_len: u64,
}

impl<'data> Header<'data> {
    /// Reads the header of a file from its first bytes: `prefix` of `file_len` bytes.
    ///
    /// Strict and compat reading return what llama.cpp and `docs/gguf.md` say of a file's metadata: a file cut off in its data
    /// has a header.
    ///
    /// # Errors
    ///
    /// [`ErrorKind`] lists the errors; `docs/gguf.md` specifies the order of the checks.
    pub fn from_prefix(
        prefix: &'data [u8],
        file_len: u64,
        options: &ReadOptions,
    ) -> Result<Prefix<'data>, Error> {
        let limit = options.limits.header_bytes;
        match Self::read(&mut Cursor::new(prefix, file_len), file_len, options) {
            Ok(header) if header.header_len > limit => Err(too_long(limit)),
            Ok(header) => Ok(Prefix::Header(header)),
            Err(Stop::Refused(error)) => Err(error),
            Err(Stop::More(needed)) if needed > limit => Err(too_long(limit)),
            Err(Stop::More(needed)) => Ok(Prefix::More { needed }),
        }
    }

    /// Reads the header of a file that is in memory from its first to its last byte.
    ///
    /// # Errors
    ///
    /// As [`from_prefix`](Self::from_prefix).
    pub fn from_bytes(file: &'data [u8], options: &ReadOptions) -> Result<Self, Error> {
        match Self::from_prefix(file, file.len() as u64, options)? {
            Prefix::Header(header) => Ok(header),
            // Every byte was available.
            Prefix::More { needed } => {
                Err(ErrorKind::Truncated { needed, available: file.len() as u64 }.into())
            }
        }
    }

    fn read(cursor: &mut Cursor<'data>, file_len: u64, options: &ReadOptions) -> Result<Self, Stop> {
        let version = preamble(cursor, options)?;
        let (n_tensors, n_entries) = counts(cursor, &options.limits)?;

        // Reserved memory is bounded by the available bytes, not by the stated count.
        let mut entries = Vec::with_capacity(capacity(cursor, n_entries, MIN_ENTRY));
        for _ in 0..n_entries {
            entries.push(entry(cursor, options)?);
        }
        let key = |entry: &Entry<'data>| entry.key.as_bytes();
        let by_key = index(&entries, key).map_err(|second: &Entry<'_>| {
            // The key is followed by the type, then the value.
            let offset = second.value_offset - 4 - second.key.as_bytes().len() as u64;
            Error::from(ErrorKind::DuplicateKey).at(offset).of_key(second.key.as_bytes())
        })?;
        let alignment = alignment(&entries, &by_key)?;

        let mut tensors = Vec::with_capacity(capacity(cursor, n_tensors, MIN_TENSOR));
        for _ in 0..n_tensors {
            tensors.push(TensorInfo::read(cursor, options)?);
        }
        // Names are C strings in llama.cpp: what follows a NUL does not tell them apart.
        let name = |info: &TensorInfo<'data>| before_nul(info.name().as_bytes());
        let by_name = index(&tensors, name).map_err(|second: &TensorInfo<'_>| {
            let error = Error::from(ErrorKind::DuplicateTensor).at(second.info_offset());
            error.of_tensor(second.name().as_bytes())
        })?;

        let header_len = cursor.offset();
        // No overflow: a length in memory and 2^31 at most.
        let data_start = header_len.next_multiple_of(alignment.into());
        if !tensors.is_empty() && data_start > file_len {
            let kind =
                ErrorKind::Truncated { needed: data_start - header_len, available: file_len - header_len };
            return Err(Error::from(kind).at(header_len).into());
        }
        let mut data_len = 0u64;
        for info in &mut tensors {
            let end = info.place(data_start, data_len, alignment, options.strictness)?;
            data_len = data_len.max(end);
        }
        let form = cursor.form;
        Ok(Self {
            version,
            form,
            alignment,
            entries,
            by_key,
            tensors,
            by_name,
            header_len,
            data_start,
            data_len,
        })
    }

    /// Whether every tensor ends within a file of `file_len` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DataTruncated`] names the first tensor that reaches beyond it: with its padding in [`Strictness::Strict`],
    /// without in [`Strictness::Compat`].
    pub fn check_file_len(&self, file_len: u64, strictness: Strictness) -> Result<(), Error> {
        for info in &self.tensors {
            let end = info.file_range().end;
            // No overflow: proven when the tensor was placed.
            let needed = match strictness {
                Strictness::Strict => {
                    self.data_start
                        + info.data_offset()
                        + info.byte_len().next_multiple_of(self.alignment.into())
                }
                Strictness::Compat => end,
            };
            if needed > file_len {
                let kind = ErrorKind::DataTruncated { needed, available: file_len };
                let error = Error::from(kind).at(info.info_offset());
                return Err(error.of_tensor(info.name().as_bytes()));
            }
        }
        Ok(())
    }

    /// Version of the format: 3, or 2 or 1 of old files.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Byte order of the header and of the tensors.
    #[must_use]
    pub const fn endian(&self) -> Endian {
        self.form.endian
    }

    /// What tensors are aligned to, in bytes: `general.alignment`, or 32.
    #[must_use]
    pub const fn alignment(&self) -> u32 {
        self.alignment
    }

    /// The metadata in file order.
    #[must_use]
    pub fn entries(&self) -> &[Entry<'data>] {
        &self.entries
    }

    /// The entry of this key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry<'data>> {
        let found = |idx: &u32| self.entries[*idx as usize].key.as_bytes().cmp(key.as_bytes());
        let place = self.by_key.binary_search_by(found).ok()?;
        self.entries.get(self.by_key[place] as usize)
    }

    /// The value of this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'data>> {
        self.entry(key).map(Entry::value)
    }

    /// The tensors in file order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo<'data>] {
        &self.tensors
    }

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`].
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo<'data>, Error> {
        let order = |idx: &u32| {
            let found = self.tensors[*idx as usize].name().as_bytes();
            before_nul(found).cmp(before_nul(name.as_bytes()))
        };
        let place = self.by_name.binary_search_by(order).ok();
        place
            .and_then(|place| self.tensors.get(self.by_name[place] as usize))
            .filter(|info| info.name() == name)
            .ok_or_else(|| Error::from(ErrorKind::TensorNotFound).of_tensor(name.as_bytes()))
    }

    /// Bytes from the start of the file to the end of the table of tensors, without padding.
    #[must_use]
    pub const fn header_len(&self) -> u64 {
        self.header_len
    }

    /// Where the tensor data begin, from the start of the file.
    #[must_use]
    pub const fn data_start(&self) -> u64 {
        self.data_start
    }

    /// Bytes of tensor data, including the padding after the last tensor.
    #[must_use]
    pub const fn data_len(&self) -> u64 {
        self.data_len
    }

    pub(crate) const fn form(&self) -> Form {
        self.form
    }
}

impl fmt::Debug for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("version", &self.version)
            .field("endian", &self.form.endian)
            .field("alignment", &self.alignment)
            .field("entries", &self.entries)
            .field("tensors", &self.tensors)
            .finish()
    }
}

fn too_long(limit: u64) -> Error {
    ErrorKind::LimitExceeded { limit: "bytes of a header", max: limit }.into()
}

/// Magic and version; sets the form of what follows.
fn preamble(cursor: &mut Cursor<'_>, options: &ReadOptions) -> Result<u32, Stop> {
    let magic = cursor.take(4)?;
    if magic != MAGIC {
        let mut found = [0; 4];
        found.copy_from_slice(magic);
        return Err(Error::from(ErrorKind::Magic { found }).at(0).into());
    }
    let offset = cursor.offset();
    let refused = |kind: ErrorKind| Stop::from(Error::from(kind).at(offset));
    let mut version = cursor.u32()?;
    if version != 0 && version & 0xffff == 0 {
        version = version.swap_bytes();
        if !(1..=VERSION).contains(&version) {
            return Err(refused(ErrorKind::UnknownVersion { version }));
        }
        if options.strictness == Strictness::Strict {
            return Err(refused(ErrorKind::ByteOrder));
        }
        cursor.form.endian = Endian::Big;
    }
    match (version, options.strictness) {
        (1, Strictness::Strict) => return Err(refused(ErrorKind::OldVersion)),
        (1, Strictness::Compat) => cursor.form.narrow = true,
        (2..=VERSION, _) => {}
        _ => return Err(refused(ErrorKind::UnknownVersion { version })),
    }
    Ok(version)
}

/// Least bytes of an entry: an empty key, a type, one byte.
const MIN_ENTRY: u64 = 5;
/// Least bytes of a tensor's row: an empty name, no dimension, type and offset.
const MIN_TENSOR: u64 = 16;

/// Least bytes of something that has one length besides `fixed` bytes.
const fn least(cursor: &Cursor<'_>, fixed: u64) -> u64 {
    fixed + cursor.form.len_bytes() as u64
}

/// Capacity to reserve: the stated count, at most what the available bytes can hold.
fn capacity(cursor: &Cursor<'_>, count: u64, fixed: u64) -> usize {
    let most = cursor.left_at_hand() as u64 / least(cursor, fixed);
    most.min(count) as usize
}

/// The numbers of tensors and of entries.
fn counts(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<(u64, u64), Stop> {
    let offset = cursor.offset();
    let n_tensors = cursor.len()?;
    let n_entries = cursor.len()?;
    let len_bytes = cursor.form.len_bytes() as u64;
    let mut left = cursor.left();
    let claims = [
        ("tensors", n_tensors, least(cursor, MIN_TENSOR), limits.tensors, offset),
        ("keys", n_entries, least(cursor, MIN_ENTRY), limits.keys, offset + len_bytes),
    ];
    for (what, count, bytes, limit, offset) in claims {
        let max = left / bytes;
        if count > max {
            return Err(Error::from(ErrorKind::Count { what, count, max }).at(offset).into());
        }
        // An index is 32 bits long.
        let limit = limit.min(u32::MAX.into());
        if count > limit {
            return Err(Error::from(ErrorKind::LimitExceeded { limit: what, max: limit }).at(offset).into());
        }
        left -= count * bytes;
    }
    Ok((n_tensors, n_entries))
}

fn entry<'data>(cursor: &mut Cursor<'data>, options: &ReadOptions) -> Result<Entry<'data>, Stop> {
    let offset = cursor.offset();
    let key = cursor.text(options.limits.string_bytes)?;
    if key.is_empty() && options.strictness == Strictness::Strict {
        return Err(Error::from(ErrorKind::EmptyKey).at(offset).into());
    }
    let about = |stop: Stop| stop.map(|error| error.of_key(key));
    let offset = cursor.offset();
    let id = cursor.u32().map_err(about)?;
    let unknown = || Error::from(ErrorKind::UnknownValueType { id }).at(offset).of_key(key);
    let value_type = ValueType::from_id(id).ok_or_else(unknown)?;
    let value_offset = cursor.offset();
    let value = Value::read(cursor, value_type, options).map_err(about)?;
    Ok(Entry { key: Text::new(key), value, value_offset })
}

/// The alignment of tensors by the metadata.
fn alignment(entries: &[Entry<'_>], by_key: &[u32]) -> Result<u32, Error> {
    let order = |idx: &u32| entries[*idx as usize].key.as_bytes().cmp(ALIGNMENT_KEY.as_bytes());
    let Ok(place) = by_key.binary_search_by(order) else { return Ok(DEFAULT_ALIGNMENT) };
    let entry = &entries[by_key[place] as usize];
    let refused =
        |kind: ErrorKind| Err(Error::from(kind).at(entry.value_offset).of_key(entry.key.as_bytes()));
    match entry.value {
        Value::U32(alignment) if alignment.is_power_of_two() => Ok(alignment),
        Value::U32(found) => refused(ErrorKind::Alignment { found }),
        other => refused(ErrorKind::AlignmentType { found: other.value_type() }),
    }
}

/// A name as C sees it.
pub(crate) fn before_nul(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or(name)
}

/// Indices of the items sorted by name, or the first item with a repeated name.
pub(crate) fn index<'a, T, N: Ord + ?Sized + 'a>(
    items: &'a [T],
    name: impl Fn(&'a T) -> &'a N,
) -> Result<Vec<u32>, &'a T> {
    // There are at most `u32::MAX`: counted before.
    let mut order: Vec<u32> = (0..items.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| name(&items[a as usize]).cmp(name(&items[b as usize])).then(a.cmp(&b)));
    let pairs = order.iter().zip(order.iter().skip(1));
    let doubles = pairs.filter(|&(&a, &b)| name(&items[a as usize]) == name(&items[b as usize]));
    match doubles.map(|(_, &second)| second).min() {
        Some(second) => Err(&items[second as usize]),
        None => Ok(order),
    }
}
