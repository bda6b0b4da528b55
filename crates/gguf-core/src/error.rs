//! What can be wrong, and where.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use tensor_dtype::{Dtype, GgmlType, SizeError};

use crate::value::ValueType;

/// Why an operation was refused, with the byte offset and the key or tensor concerned where there is one.
///
/// One pointer long: results are returned from every step of a reader, and what fails is rare.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    subject: Option<Subject>,
}

/// What an [`Error`] is about. Names are cut after 256 bytes; bytes that are not UTF-8 are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A key of the metadata.
    Key(Box<str>),
    /// A tensor.
    Tensor(Box<str>),
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where: bytes from the start of the file.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The key or tensor concerned.
    #[must_use]
    pub const fn subject(&self) -> Option<&Subject> {
        self.0.subject.as_ref()
    }

    /// Stable identifier of the kind, for example `gg-string-length`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    pub(crate) fn of_key(mut self, key: &[u8]) -> Self {
        self.0.subject.get_or_insert_with(|| Subject::Key(shown(key)));
        self
    }

    pub(crate) fn of_tensor(mut self, name: &[u8]) -> Self {
        self.0.subject.get_or_insert_with(|| Subject::Tensor(shown(name)));
        self
    }
}

/// The beginning of a name, as text.
fn shown(name: &[u8]) -> Box<str> {
    const KEPT: usize = 256;
    let cut = name.get(..KEPT).unwrap_or(name);
    let mut text = String::from_utf8_lossy(cut).into_owned();
    text.truncate(text.floor_char_boundary(KEPT));
    text.into()
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, offset: None, subject: None }))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, offset, subject } = &*self.0;
        f.debug_struct("Error").field("kind", kind).field("offset", offset).field("subject", subject).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        match &self.0.subject {
            Some(Subject::Key(key)) => write!(f, ", key \"{}\"", key.escape_debug())?,
            Some(Subject::Tensor(name)) => write!(f, ", tensor \"{}\"", name.escape_debug())?,
            None => {}
        }
        if let Some(offset) = self.0.offset {
            write!(f, ", at byte {offset}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })?
        => $code:literal, $text:literal $(, $arg:expr)*;)*) => {
        /// What was wrong. Quantities are bytes unless the field says otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $ty),* })?,)*
        }

        impl ErrorKind {
            /// Every identifier [`Error::code`] can return.
            pub const CODES: &'static [&'static str] = &[$($code),*];

            /// Stable identifier of the kind.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($field: _),* })? => $code,)*
                }
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),* })? => write!(f, $text $(, $arg)*),)*
                }
            }
        }
    };
}

error_kinds! {
    /// The file ends inside a field of the header.
    Truncated {
        /// Bytes the field needs.
        needed: u64,
        /// Bytes left in the file.
        available: u64,
    } => "gg-truncated", "truncated header: {needed} bytes needed, {available} left";
    /// The file does not begin with `GGUF`.
    Magic {
        /// Its first four bytes.
        found: [u8; 4],
    } => "gg-magic", "no GGUF file: it begins with [{:02x}, {:02x}, {:02x}, {:02x}]", found[0], found[1], found[2], found[3];
    /// A version nobody has defined.
    UnknownVersion {
        /// The version.
        version: u32,
    } => "gg-version", "GGUF version {version} is not known";
    /// Strict: version 1, which llama.cpp no longer reads.
    OldVersion => "gg-version-1", "GGUF version 1 is no longer read by llama.cpp";
    /// Strict: a file in the other byte order.
    ByteOrder => "gg-byte-order", "big-endian file";
    /// More tensors or keys declared than the file has room for.
    Count {
        /// What is counted.
        what: &'static str,
        /// Declared.
        count: u64,
        /// Most that fit into the bytes left.
        max: u64,
    } => "gg-count", "{count} {what} declared, {max} at most fit into the bytes left";
    /// More than [`Limits`](crate::Limits) allow.
    LimitExceeded {
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: u64,
    } => "gg-limit", "limit on {limit} exceeded: {max}";
    /// A string reaches past the end of the file.
    StringLength {
        /// Declared length.
        len: u64,
        /// Bytes left in the file.
        available: u64,
    } => "gg-string-length", "string of {len} bytes declared, {available} left";
    /// An array reaches past the end of the file.
    ArrayLength {
        /// Declared elements.
        count: u64,
        /// Bytes left in the file.
        available: u64,
    } => "gg-array-length", "array of {count} elements declared, {available} bytes left";
    /// Strict, and when writing: an array of arrays.
    NestedArray => "gg-array-nested", "array of arrays";
    /// A number that is not a type of value.
    UnknownValueType {
        /// The number.
        id: u32,
    } => "gg-value-type", "value type {id} is not known";
    /// Strict, and when writing: a key of no bytes.
    EmptyKey => "gg-key-empty", "empty key";
    /// A key twice.
    DuplicateKey => "gg-key-duplicate", "duplicate key";
    /// `general.alignment` is not a `u32`.
    AlignmentType {
        /// What it is.
        found: ValueType,
    } => "gg-alignment-type", "the alignment has to be a u32 and is {found}";
    /// `general.alignment` is not a power of two.
    Alignment {
        /// What it is.
        found: u32,
    } => "gg-alignment", "an alignment of {found} is not a power of two";
    /// Strict, and when writing: a tensor name of more than 63 bytes.
    NameLength {
        /// Its length.
        len: u64,
        /// Longest accepted.
        max: u64,
    } => "gg-name-length", "tensor name of {len} bytes, at most {max} are allowed";
    /// A tensor name twice.
    DuplicateTensor => "gg-name-duplicate", "duplicate tensor name";
    /// More dimensions than allowed.
    Rank {
        /// Declared.
        n_dims: u64,
        /// Most accepted.
        max: u64,
    } => "gg-rank", "{n_dims} dimensions, at most {max} are allowed";
    /// A dimension beyond 63 bits, negative to most readers.
    Dimension {
        /// The dimension.
        dim: u64,
    } => "gg-dimension", "dimension {dim} does not fit 63 bits";
    /// More elements than 63 bits count.
    TooManyElements => "gg-elements", "number of elements does not fit 63 bits";
    /// A number that is not a type of tensor.
    UnknownTensorType {
        /// The number.
        id: u32,
    } => "gg-type-unknown", "tensor type {id} is not known";
    /// A tensor type that was given up.
    RemovedTensorType {
        /// The number.
        id: u32,
        /// Its name.
        name: &'static str,
        /// What took its place.
        instead: &'static str,
    } => "gg-type-removed", "tensor type {id} ({name}) was removed from the format, use {instead}";
    /// A format that GGUF has no number for.
    ForeignFormat {
        /// The format.
        dtype: Dtype,
    } => "gg-type-foreign", "GGUF has no tensor type {dtype}";
    /// A row is not a whole number of blocks.
    RowLength {
        /// The format.
        dtype: Dtype,
        /// Elements of a row.
        row_len: u64,
    } => "gg-row-length", "rows of {row_len} elements are not whole {dtype} blocks";
    /// The size of a tensor, of the data section or of the file overflows.
    SizeOverflow => "gg-size", "size does not fit 64 bits";
    /// Strict: a tensor does not begin where the one before it ends.
    Offset {
        /// Declared, relative to the data section.
        found: u64,
        /// Where it has to begin.
        expected: u64,
    } => "gg-offset", "data offset {found}, expected {expected}";
    /// A tensor reaches past the end of the file.
    DataTruncated {
        /// Where it ends, from the start of the file.
        needed: u64,
        /// Length of the file.
        available: u64,
    } => "gg-data-end", "tensor data to byte {needed} declared, the file has {available}";
    /// No tensor of this name.
    TensorNotFound => "gg-not-found", "tensor not found";
    /// No such key.
    KeyNotFound => "gg-key-not-found", "key not found";
    /// Writing: a key that is too long or has control characters.
    InvalidKey => "gg-key", "a key has 1 to 65535 bytes and no control characters";
    /// Writing: a tensor name that is empty or has control characters.
    InvalidName => "gg-name", "a tensor name has 1 to 63 bytes and no control characters";
    /// Bytes given and bytes needed differ.
    DataLength {
        /// Bytes needed.
        needed: u64,
        /// Bytes given.
        given: u64,
    } => "gg-data-length", "{given} bytes given, {needed} needed";
    /// More slices of data than tensors, or fewer.
    DataCount {
        /// Tensors laid out.
        needed: usize,
        /// Slices given.
        given: usize,
    } => "gg-data-count", "data for {given} tensors given, {needed} needed";
    /// In place: the new value is of another type or size, or decides where the data lie.
    NotInPlace => "gg-in-place", "the new value does not fit in the place of the old one: write a copy";
    /// Splitting into nothing, or into more shards than file names count.
    ShardCount {
        /// Shards needed.
        count: u64,
        /// Most.
        max: u64,
    } => "gg-shard-count", "{count} shards, 1 to {max} are possible";
    /// A shard may hold nothing, or its size is not a number of megabytes or gigabytes.
    ShardSize => "gg-shard-size", "a shard holds at least one tensor; a size is a number with M or G behind it";
    /// Merging: a file without the keys of a shard, or splitting one that has them.
    ShardKeys => "gg-shard-keys", "keys of a shard missing or there already";
    /// Merging: shards out of order, missing, or of different models.
    ShardOrder {
        /// Place of the shard in the list, from 0.
        idx: u64,
        /// What its keys say: number from 0.
        no: u64,
        /// What its keys say: number of shards.
        count: u64,
    } => "gg-shard-order", "shard {idx} of the list says it is {no} of {count}";
    /// Merging: fewer or more tensors than the shards say.
    ShardTensors {
        /// Tensors said to be there.
        declared: u64,
        /// Tensors there.
        found: u64,
    } => "gg-shard-tensors", "the shards speak of {declared} tensors and hold {found}";
}

impl ErrorKind {
    /// Why an identifier stands for no type.
    pub(crate) fn of_unknown_type(id: GgmlType) -> Self {
        let GgmlType(number) = id;
        match id.removed() {
            Some(removed) => {
                Self::RemovedTensorType { id: number, name: removed.name, instead: removed.instead }
            }
            None => Self::UnknownTensorType { id: number },
        }
    }

    /// Why a tensor of this type has no size.
    pub(crate) fn of_size(dtype: Dtype, error: SizeError) -> Self {
        match error {
            SizeError::PartialBlock { row_len } => Self::RowLength { dtype, row_len },
            _ => Self::SizeOverflow,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn codes_are_distinct() {
        for (idx, code) in ErrorKind::CODES.iter().enumerate() {
            assert!(code.starts_with("gg-"));
            assert!(!ErrorKind::CODES[..idx].contains(code), "{code}");
        }
    }

    #[test]
    fn display_names_subject_and_offset() {
        let error = Error::from(ErrorKind::DuplicateKey).of_key(b"a\n\xff").at(12);
        assert_eq!(error.to_string(), "duplicate key, key \"a\\n\u{fffd}\", at byte 12");
        let error = Error::from(ErrorKind::DuplicateTensor).of_tensor(&[b'x'; 999]);
        assert!(matches!(error.subject(), Some(Subject::Tensor(name)) if name.len() == 256));
        assert_eq!((error.offset(), error.code()), (None, "gg-name-duplicate"));
    }

    /// The first place and name stay: the innermost knows best.
    #[test]
    fn the_first_place_stays() {
        let error = Error::from(ErrorKind::EmptyKey).at(1).at(2).of_tensor(b"t").of_key(b"k");
        assert_eq!((error.offset(), error.subject()), (Some(1), Some(&Subject::Tensor("t".into()))));
    }
}
