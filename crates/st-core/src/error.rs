//! What can be wrong, and where.

use alloc::boxed::Box;
use core::fmt;

use located_error::Quoted;

use crate::grammar::MAX_DEPTH;
use tensor_dtype::Dtype;

/// Why an operation was refused, with the byte offset and the tensor concerned where there is one.
///
/// One pointer long: results are returned from every step of a scan, and what fails is rare.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    offset: Option<u64>,
    tensor: Option<Box<str>>,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where: bytes from the start of the file (of the JSON text for a [`ShardIndex`](crate::ShardIndex)).
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Name of the tensor concerned, cut after 256 bytes.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// Stable identifier of the kind, for example `st-header-too-large`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The same error for a text that begins at `base`.
    pub(crate) fn shifted(mut self, base: u64) -> Self {
        self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
        self
    }

    pub(crate) fn of_tensor(mut self, name: &str) -> Self {
        const KEPT: usize = 256;
        self.0.tensor = Some(name.get(..name.floor_char_boundary(KEPT)).unwrap_or_default().into());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, offset: None, tensor: None }))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, offset, tensor } = &*self.0;
        f.debug_struct("Error").field("kind", kind).field("offset", offset).field("tensor", tensor).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        if let Some(tensor) = &self.0.tensor {
            write!(f, ", tensor {}", Quoted(tensor))?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, ", at byte {offset}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}

impl From<json_scan::Error> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: json_scan::Error) -> Self {
        use json_scan::ErrorKind as Json;
        let kind = match error.kind() {
            Json::UnexpectedByte { found, expected } => ErrorKind::UnexpectedByte { found, expected },
            Json::UnexpectedEnd { expected } => ErrorKind::UnexpectedEnd { expected },
            Json::ControlCharacter { found } => ErrorKind::ControlCharacter { found },
            Json::InvalidEscape => ErrorKind::InvalidEscape,
            Json::LoneSurrogate => ErrorKind::LoneSurrogate,
            Json::InvalidNumber => ErrorKind::InvalidNumber,
            Json::NumberOutOfRange => ErrorKind::NumberOutOfRange,
            Json::NotAnInteger => ErrorKind::WrongType { expected: "an integer from 0 to 2^64 - 1" },
            Json::NotAnObject => ErrorKind::WrongType { expected: "an object" },
            Json::NotAnArray => ErrorKind::WrongType { expected: "an array" },
            Json::TooDeep => ErrorKind::NestingTooDeep { limit: MAX_DEPTH },
            Json::TrailingBytes { found } => ErrorKind::TrailingBytes { found },
        };
        kind.in_text(error.start())
    }
}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

impl ErrorKind {
    /// The error at a place in a text.
    #[cold]
    pub(crate) fn in_text(self, at: usize) -> Error {
        Error::from(self).at(at as u64)
    }
}

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })?
        => $code:literal, $text:literal;)*) => {
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
                    // Dereferenced, or each argument would be a reference to a reference.
                    $(Self::$variant $({ $($field),* })? => write!(f, $text $($(, $field = *$field)*)?),)*
                }
            }
        }
    };
}

error_kinds! {
    /// The file is shorter than the 8-byte header length.
    HeaderTooSmall {
        /// Bytes in the file.
        available: u64,
    } => "st-header-too-small", "header too small: a file has at least 8 bytes, this one {available}";
    /// The header length exceeds the limit.
    HeaderTooLarge {
        /// Declared (reading) or needed (writing).
        len: u64,
        /// Largest accepted.
        limit: u64,
    } => "st-header-too-large", "header too large: {len} bytes, the limit is {limit}";
    /// The header reaches past the end of the file.
    InvalidHeaderLength {
        /// Declared length.
        len: u64,
        /// Bytes after the length field.
        available: u64,
    } => "st-header-length", "invalid header length: {len} bytes declared, {available} bytes follow";
    /// The header is not UTF-8.
    InvalidUtf8 => "st-utf8", "header is not valid UTF-8";
    /// The JSON text ends inside a value.
    UnexpectedEnd {
        /// What should have come.
        expected: &'static str,
    } => "st-json-end", "JSON ends where {expected} should follow";
    /// A byte that cannot stand here.
    UnexpectedByte {
        /// The byte.
        found: u8,
        /// What should have come.
        expected: &'static str,
    } => "st-json-syntax", "invalid JSON: found byte 0x{found:02x} where {expected} should stand";
    /// An unescaped control character inside a string.
    ControlCharacter {
        /// The byte.
        found: u8,
    } => "st-json-control", "invalid JSON: unescaped control character 0x{found:02x} in a string";
    /// A backslash sequence JSON does not know.
    InvalidEscape => "st-json-escape", "invalid JSON: unknown escape sequence in a string";
    /// Half of a `\u` surrogate pair.
    LoneSurrogate => "st-json-surrogate", "invalid JSON: lone surrogate in a \\u escape";
    /// Not a JSON number.
    InvalidNumber => "st-json-number", "invalid JSON: malformed number";
    /// A number no double can hold.
    NumberOutOfRange => "st-json-range", "invalid JSON: number out of range";
    /// Arrays and objects within each other beyond the limit.
    NestingTooDeep {
        /// Deepest level accepted.
        limit: u8,
    } => "st-json-depth", "JSON nested deeper than {limit} levels";
    /// Something after the closing brace.
    TrailingBytes {
        /// The first byte of it.
        found: u8,
    } => "st-json-trailing", "byte 0x{found:02x} after the end of the JSON object";
    /// A JSON value of the wrong type.
    WrongType {
        /// What belongs here.
        expected: &'static str,
    } => "st-entry-type", "wrong type of value: {expected} expected";
    /// A tensor entry lacks a field.
    MissingField {
        /// The field.
        field: &'static str,
    } => "st-entry-missing", "tensor entry without `{field}`";
    /// A tensor entry names a field twice.
    DuplicateField {
        /// The field.
        field: &'static str,
    } => "st-entry-duplicate", "tensor entry with two `{field}`";
    /// A dtype the format does not know.
    UnknownDtype => "st-dtype", "unknown dtype";
    /// Two `__metadata__` objects.
    DuplicateMetadata => "st-metadata-duplicate", "`__metadata__` appears twice";
    /// Strict: white space before the opening brace.
    LeadingWhitespace => "st-strict-whitespace", "header does not begin with `{{`";
    /// Strict: a tensor entry written as an array.
    EntryAsArray => "st-strict-array", "tensor entry in array form";
    /// Strict: a dtype written as an object.
    DtypeAsMap => "st-strict-dtype", "dtype in object form";
    /// Two tensors of the same name (reading: strict only).
    DuplicateTensor => "st-duplicate-tensor", "duplicate tensor name";
    /// Strict: a metadata key given twice.
    DuplicateMetadataKey => "st-duplicate-key", "duplicate metadata key";
    /// The tensor does not begin where the one before it ends, or ends before it begins.
    InvalidOffsets {
        /// Declared begin, relative to the data section.
        begin: u64,
        /// Declared end.
        end: u64,
        /// Where the tensor has to begin.
        expected: u64,
    } => "st-offsets", "invalid data offsets [{begin}, {end}]: the tensor has to begin at {expected}";
    /// The size of a tensor does not fit 64 bits.
    SizeOverflow => "st-size-overflow", "size of the tensor overflows 64 bits";
    /// Elements of a sub-byte type do not fill whole bytes.
    PartialByte {
        /// Size in bits.
        bits: u64,
    } => "st-partial-byte", "tensor of {bits} bits does not end on a byte";
    /// Offsets and shape disagree.
    SizeMismatch {
        /// From the data offsets.
        declared: u64,
        /// From dtype and shape.
        computed: u64,
    } => "st-size", "data offsets span {declared} bytes, dtype and shape need {computed}";
    /// The tensors do not cover the file to its end.
    IncompleteFile {
        /// Length the header describes, saturated.
        expected: u64,
        /// Length of the file.
        actual: u64,
    } => "st-file-length", "header describes a file of {expected} bytes, this one has {actual}";
    /// More than [`Limits`](crate::Limits) allow.
    LimitExceeded {
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        max: u64,
    } => "st-limit", "limit on {limit} exceeded: {max}";
    /// No tensor of this name.
    TensorNotFound => "st-not-found", "tensor not found";
    /// A typed view of other elements.
    DtypeMismatch {
        /// The tensor's type.
        found: Dtype,
        /// What was asked for.
        expected: &'static str,
    } => "st-dtype-mismatch", "tensor holds {found}, not {expected}";
    /// The bytes are not aligned for a zero-copy view; read them with an element iterator.
    Misaligned {
        /// Alignment the element type needs.
        align: usize,
    } => "st-misaligned", "data is not aligned to {align} bytes: read it element by element";
    /// A zero-copy view of multi-byte elements on a big-endian host; read them with an element iterator.
    ForeignEndian => "st-endian", "data is little-endian, this machine is not: read it element by element";
    /// Bytes given and bytes needed differ.
    DataLength {
        /// Bytes needed.
        needed: u64,
        /// Bytes given.
        given: u64,
    } => "st-data-length", "{given} bytes given, {needed} needed";
    /// More slices of data than tensors, or fewer.
    DataCount {
        /// Tensors laid out.
        needed: usize,
        /// Slices given.
        given: usize,
    } => "st-data-count", "data for {given} tensors given, {needed} needed";
    /// More indices than dimensions.
    TooManyIndices {
        /// Indices given.
        given: usize,
        /// Dimensions of the tensor.
        rank: usize,
    } => "st-index-count", "{given} indices for {rank} dimensions";
    /// More than one ellipsis.
    SecondEllipsis => "st-index-ellipsis", "more than one ellipsis in an index";
    /// An index outside its dimension.
    IndexOutOfRange {
        /// Dimension, from 0.
        dim: usize,
        /// The index.
        index: i64,
        /// Size of the dimension.
        size: usize,
    } => "st-index-range", "index {index} is out of range for dimension {dim} of size {size}";
    /// A range that ends before it begins.
    ReversedRange {
        /// Dimension, from 0.
        dim: usize,
        /// First index.
        start: i64,
        /// One past the last index.
        stop: i64,
    } => "st-index-reversed", "range {start}..{stop} of dimension {dim} ends before it begins";
    /// A slice of a sub-byte type that begins or ends inside a byte.
    SliceInsideByte => "st-index-byte", "slice begins or ends inside a byte";
    /// A tensor may not be called `__metadata__`.
    ReservedName => "st-reserved-name", "`__metadata__` cannot name a tensor";
    /// New metadata does not fit the header of an existing file.
    NoHeaderRoom {
        /// Bytes by which the header is too short.
        missing: u64,
    } => "st-header-room", "header lacks {missing} bytes of room for this metadata: rewrite the file";
    /// A shard index without `weight_map`.
    NoWeightMap => "st-shard-no-map", "shard index without `weight_map`";
    /// A shard index lists a tensor twice.
    DuplicateShardEntry => "st-shard-duplicate", "shard index lists a key twice";
    /// A shard's path leaves the folder of its index.
    ShardPathEscapes => "st-shard-path", "shard path is not a plain relative path inside the folder of its index";
    /// `total_size` of a shard index is not a number of bytes.
    InvalidTotalSize => "st-shard-size", "`total_size` of the shard index is not a number of bytes";
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn codes_are_distinct() {
        for (idx, code) in ErrorKind::CODES.iter().enumerate() {
            assert!(code.starts_with("st-"));
            assert!(!ErrorKind::CODES[..idx].contains(code), "{code}");
        }
    }

    /// One line each, in lower case, without a full stop.
    #[test]
    fn every_kind_has_a_text() {
        use ErrorKind::*;
        let (len, limit, expected) = (1, 2, "x");
        let kinds = [
            HeaderTooSmall { available: 1 },
            HeaderTooLarge { len, limit },
            InvalidHeaderLength { len, available: 1 },
            InvalidUtf8,
            UnexpectedEnd { expected },
            UnexpectedByte { found: 7, expected },
            ControlCharacter { found: 7 },
            InvalidEscape,
            LoneSurrogate,
            InvalidNumber,
            NumberOutOfRange,
            NestingTooDeep { limit: 127 },
            TrailingBytes { found: 7 },
            WrongType { expected },
            MissingField { field: "x" },
            DuplicateField { field: "x" },
            UnknownDtype,
            DuplicateMetadata,
            LeadingWhitespace,
            EntryAsArray,
            DtypeAsMap,
            DuplicateTensor,
            DuplicateMetadataKey,
            InvalidOffsets { begin: 1, end: 2, expected: 3 },
            SizeOverflow,
            PartialByte { bits: 12 },
            SizeMismatch { declared: 1, computed: 2 },
            IncompleteFile { expected: 1, actual: 2 },
            LimitExceeded { limit: "x", max: 1 },
            TensorNotFound,
            DtypeMismatch { found: Dtype::U8, expected },
            Misaligned { align: 4 },
            ForeignEndian,
            DataLength { needed: 1, given: 2 },
            DataCount { needed: 1, given: 2 },
            TooManyIndices { given: 1, rank: 0 },
            SecondEllipsis,
            IndexOutOfRange { dim: 0, index: 1, size: 1 },
            ReversedRange { dim: 0, start: 2, stop: 1 },
            SliceInsideByte,
            ReservedName,
            NoHeaderRoom { missing: 1 },
            NoWeightMap,
            DuplicateShardEntry,
            ShardPathEscapes,
            InvalidTotalSize,
        ];
        assert!(kinds.iter().map(ErrorKind::code).eq(ErrorKind::CODES.iter().copied()));
        for kind in kinds {
            let text = kind.to_string();
            assert!(text.len() > 8 && !text.ends_with('.') && !text.contains('\n'), "{text}");
            assert_eq!(text, Error::from(kind).to_string());
        }
    }

    #[test]
    fn display_names_tensor_and_offset() {
        let error = Error::from(ErrorKind::UnknownDtype).of_tensor("a\n").at(12);
        assert_eq!(error.to_string(), "unknown dtype, tensor \"a\\n\", at byte 12");
        assert_eq!((error.tensor(), error.offset(), error.code()), (Some("a\n"), Some(12), "st-dtype"));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let name = "é".repeat(200);
        let error = Error::from(ErrorKind::UnknownDtype).of_tensor(&name);
        assert_eq!(error.tensor().map(str::len), Some(256));
    }
}
