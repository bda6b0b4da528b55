//! Kinds of errors.

use located_error::{Subject, remedy};
use tensor_dtype::Dtype;

use crate::grammar::MAX_DEPTH;

const REWRITE: &str =
    "write the file again with a safetensors library; tell the author of the program that made it";
const INDEX: &str =
    "fetch the index again, or make a new one from the shards: `apr shard --index FOLDER --force`";
const LOOSE: &str = "if you trust the file, repeat with --compat; `apr convert --compat` rewrites it cleanly";

located_error::errors! {
    /// Why an operation was refused. Offsets count from the start of the file; for a [`ShardIndex`](crate::ShardIndex), of the JSON text.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Error;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// The file is shorter than the 8 bytes that hold the length of the header. It is empty, or a download or copy stopped at
        /// once.
        HeaderTooSmall {
            /// Bytes in the file.
            available: u64,
        } = "st-header-too-small" (Invalid),
            "header too small: expected at least 8 bytes, found {available}"
            => remedy::FETCH;
        /// The first 8 bytes of a safetensors file give the length of its header, and the format allows at most 100,000,000. A number
        /// this large usually means that the file is of another format, or damaged at its beginning. When writing, the names, shapes
        /// and metadata together need more than that.
        HeaderTooLarge {
            /// Declared (reading) or needed (writing).
            len: u64,
            /// Largest accepted.
            limit: u64,
        } = "st-header-too-large" (Invalid),
            "header too large: {len} bytes, the limit is {limit}"
            => "check that this is a safetensors file; when writing, shorten the metadata or split the model with `apr shard`";
        /// The declared length of the header reaches past the end of the file. The file was cut short, or its first 8 bytes are
        /// damaged.
        InvalidHeaderLength {
            /// Declared length.
            len: u64,
            /// Bytes after the length field.
            available: u64,
        } = "st-header-length" (Invalid),
            "invalid header length: {len} bytes declared, {available} bytes follow"
            => remedy::FETCH;
        /// The header is not valid UTF-8. Its bytes are damaged.
        InvalidUtf8 = "st-utf8" (Invalid),
            "header is not valid UTF-8"
            => remedy::FETCH;
        /// The JSON text of the header ends in the middle of a value. The declared length of the header is too small, or the header
        /// was cut.
        UnexpectedEnd {
            /// What should have come.
            expected: &'static str,
        } = "st-json-end" (Invalid),
            "unexpected end of JSON: expected {expected}"
            => remedy::FETCH;
        /// The header is not JSON: another character is expected at this byte. A single damaged byte is enough.
        UnexpectedByte {
            /// The byte.
            found: u8,
            /// What should have come.
            expected: &'static str,
        } = "st-json-syntax" (Invalid),
            "invalid JSON: expected {expected}, found byte 0x{found:02x}"
            => remedy::FETCH;
        /// A string of the header holds a raw control character, which JSON wants escaped.
        ControlCharacter {
            /// The byte.
            found: u8,
        } = "st-json-control" (Invalid),
            "invalid JSON: unescaped control character 0x{found:02x} in a string"
            => REWRITE;
        /// A string of the header has a backslash sequence that JSON does not know.
        InvalidEscape = "st-json-escape" (Invalid),
            "invalid JSON: unknown escape sequence in a string"
            => REWRITE;
        /// A string of the header has half of a `\u` surrogate pair, which is not a character.
        LoneSurrogate = "st-json-surrogate" (Invalid),
            "invalid JSON: lone surrogate in a \\u escape"
            => REWRITE;
        /// A number of the header is not written the way JSON numbers are.
        InvalidNumber = "st-json-number" (Invalid),
            "invalid JSON: malformed number"
            => REWRITE;
        /// A number of the header is larger than any number a reader can hold.
        NumberOutOfRange = "st-json-range" (Invalid),
            "invalid JSON: number out of range"
            => REWRITE;
        /// Arrays and objects of the header are nested more deeply than any real header needs. The limit protects readers from
        /// running out of stack.
        NestingTooDeep {
            /// Deepest level accepted.
            limit: u8,
        } = "st-json-depth" (Invalid),
            "JSON nested deeper than {limit} levels"
            => "do not trust this file: no known program writes such headers";
        /// After the closing brace of the header only spaces, tabs and line ends may follow as padding.
        TrailingBytes {
            /// The first byte of it.
            found: u8,
        } = "st-json-trailing" (Invalid),
            "byte 0x{found:02x} after the end of the JSON object"
            => REWRITE;
        /// A value of the header has the wrong type, for example a number where a string belongs, or a negative or fractional size.
        WrongType {
            /// What belongs here.
            expected: &'static str,
        } = "st-entry-type" (Invalid),
            "wrong type of value: expected {expected}"
            => REWRITE;
        /// The entry of a tensor needs `dtype`, `shape` and `data_offsets`, and one of them is missing.
        MissingField {
            /// The field.
            field: &'static str,
        } = "st-entry-missing" (Invalid),
            "tensor entry without `{field}`"
            => REWRITE;
        /// The entry of a tensor names a field twice. Readers would disagree on which one counts, so all refuse it.
        DuplicateField {
            /// The field.
            field: &'static str,
        } = "st-entry-duplicate" (Invalid),
            "tensor entry with two `{field}`"
            => REWRITE;
        /// The element type is none of the 22 the format defines. Names are exact and upper case: F32, BF16, I64.
        UnknownDtype = "st-dtype" (Invalid),
            "unknown dtype"
            => "update `apr` if the type is newer than it; otherwise write the file again with a type the format has";
        /// The header has two `__metadata__` objects.
        DuplicateMetadata = "st-metadata-duplicate" (Invalid),
            "`__metadata__` appears twice"
            => REWRITE;
        /// The specification requires that the header begins with `{`. The official reader also takes white space before it; strict
        /// reading does not, because a file could then pass for two formats.
        LeadingWhitespace = "st-strict-whitespace" (Invalid),
            "header does not begin with `{{`"
            => LOOSE;
        /// A tensor is written as an array instead of an object. The official reader takes this by accident of its JSON library; no
        /// writer does it.
        EntryAsArray = "st-strict-array" (Invalid),
            "tensor entry in array form"
            => LOOSE;
        /// An element type is written as an object instead of a string. The official reader takes this by accident of its JSON library;
        /// no writer does it.
        DtypeAsMap = "st-strict-dtype" (Invalid),
            "dtype in object form"
            => LOOSE;
        /// Two tensors have the same name. The official reader silently keeps the last one, so two programs can see different models
        /// in one file; the specification forbids it.
        DuplicateTensor = "st-duplicate-tensor" (Invalid),
            "duplicate tensor name"
            => LOOSE;
        /// A metadata key is given twice. The official reader silently keeps the last value; the specification forbids it.
        DuplicateMetadataKey = "st-duplicate-key" (Invalid),
            "duplicate metadata key"
            => LOOSE;
        /// The tensors have to follow each other without a gap or an overlap, and each has to end after it begins. This one does not
        /// begin where the one before it ends. Gaps could hide data, with overlaps one value could be read many times.
        InvalidOffsets {
            /// Declared begin, relative to the data section.
            begin: u64,
            /// Declared end.
            end: u64,
            /// Where the tensor has to begin.
            expected: u64,
        } = "st-offsets" (Invalid),
            "invalid data offsets [{begin}, {end}]: expected the tensor to begin at {expected}"
            => REWRITE;
        /// The sizes in the shape multiply to more bytes than 64 bits can count. No real tensor is that large: the header is damaged
        /// or hostile.
        SizeOverflow = "st-size-overflow" (Invalid),
            "size of the tensor overflows 64 bits"
            => "do not trust this file: fetch it again from a source you know";
        /// Elements of 4 or 6 bits are packed, and these do not fill whole bytes. The format has no padding inside a tensor.
        PartialByte {
            /// Size in bits.
            bits: u64,
        } = "st-partial-byte" (Invalid),
            "tensor of {bits} bits does not end on a byte"
            => REWRITE;
        /// The bytes a tensor occupies are given twice, by its offsets and by its type and shape, and the two disagree.
        SizeMismatch {
            /// From the data offsets.
            declared: u64,
            /// From dtype and shape.
            computed: u64,
        } = "st-size" (Invalid),
            "data offsets span {declared} bytes, expected {computed} from dtype and shape"
            => REWRITE;
        /// The header describes a file of another length. A shorter file was cut off, usually by a broken download or a full disk; a
        /// longer one has bytes after the last tensor that nothing accounts for.
        IncompleteFile {
            /// Length the header describes, saturated.
            expected: u64,
            /// Length of the file.
            actual: u64,
        } = "st-file-length" (Invalid),
            "header describes a file of {expected} bytes, found {actual}"
            => remedy::FETCH;
        /// The header asks for more than this reader grants: tensors, dimensions, or bytes of names or metadata. The limits are far
        /// above any real model and keep a hostile header from using up memory.
        LimitExceeded {
            /// Name of the limit.
            limit: &'static str,
            /// Its value.
            max: u64,
        } = "st-limit" (Invalid),
            "limit on {limit} exceeded: {max}"
            => "if you trust the file, repeat with --compat, which keeps only the limits of the format itself";
        /// The file has no tensor of this name.
        TensorNotFound = "st-not-found" (Usage),
            "tensor not found"
            => "list the names with `apr tensors FILE`";
        /// The tensor holds elements of another type than the operation reads.
        DtypeMismatch {
            /// The tensor's type.
            found: Dtype,
            /// What was asked for.
            expected: &'static str,
        } = "st-dtype-mismatch" (Unsupported),
            "expected a tensor of {expected}, found {found}"
            => "look at the type with `apr tensors FILE`";
        /// The address of the tensor is not a multiple of the element size, so its bytes cannot be viewed as values without a copy; they
        /// can be read one by one.
        Misaligned {
            /// Alignment the element type needs.
            align: usize,
        } = "st-misaligned" (Unsupported),
            "data is not aligned to {align} bytes: read it element by element"
            => "write an aligned copy with `apr convert IN OUT --align 64`";
        /// The format stores little-endian numbers and this machine is big-endian, so they cannot be viewed in place; they can be
        /// read one by one.
        ForeignEndian = "st-endian" (Unsupported),
            "data is little-endian, this machine is big-endian: read it element by element"
            => "read the tensor element by element";
        /// The bytes given for a tensor are more or fewer than its type and shape need. When a file is being rewritten, the input has
        /// changed meanwhile.
        DataLength {
            /// Bytes needed.
            needed: u64,
            /// Bytes given.
            given: u64,
        } = "st-data-length" (Invalid),
            "expected {needed} bytes of data, found {given}"
            => "repeat when nothing else writes to the input";
        /// Data was given for more or fewer tensors than were laid out.
        DataCount {
            /// Tensors laid out.
            needed: usize,
            /// Slices given.
            given: usize,
        } = "st-data-count" (Invalid),
            "expected data of {needed} tensors, found {given}"
            => remedy::BUG;
        /// The slice has more indices than the tensor has dimensions.
        TooManyIndices {
            /// Indices given.
            given: usize,
            /// Dimensions of the tensor.
            rank: usize,
        } = "st-index-count" (Usage),
            "{given} indices for {rank} dimensions"
            => "look at the shape with `apr tensors FILE`";
        /// A slice may have one ellipsis: with two, its meaning is open.
        SecondEllipsis = "st-index-ellipsis" (Usage),
            "more than one ellipsis in an index"
            => "keep one ellipsis";
        /// An index is out of the range of its dimension.
        IndexOutOfRange {
            /// Dimension, from 0.
            dim: usize,
            /// The index.
            index: i64,
            /// Size of the dimension.
            size: usize,
        } = "st-index-range" (Usage),
            "index {index} is out of range for dimension {dim} of size {size}"
            => "look at the shape with `apr tensors FILE`";
        /// A range of the slice ends before it begins.
        ReversedRange {
            /// Dimension, from 0.
            dim: usize,
            /// First index.
            start: i64,
            /// One past the last index.
            stop: i64,
        } = "st-index-reversed" (Usage),
            "range {start}..{stop} of dimension {dim} ends before it begins"
            => "swap its two ends";
        /// Elements of 4 or 6 bits share bytes, and the slice begins or ends inside one.
        SliceInsideByte = "st-index-byte" (Usage),
            "slice begins or ends inside a byte"
            => "choose bounds that fall on whole bytes: multiples of 2 elements for F4, of 4 for F6";
        /// `__metadata__` is the name under which a header keeps its metadata, so no tensor can have it.
        ReservedName = "st-reserved-name" (Usage),
            "`__metadata__` cannot name a tensor"
            => "choose another name";
        /// Metadata is replaced in place as long as it fits into the padding of the header; this does not.
        NoHeaderRoom {
            /// Bytes by which the header is too short.
            missing: u64,
        } = "st-header-room" (Usage),
            "header is {missing} bytes too short for this metadata: rewrite the file"
            => "rewrite the file with `apr convert IN OUT --set KEY=VALUE --header-room 4096`";
        /// An index of shards maps tensors to files in `weight_map`; this one has none.
        NoWeightMap = "st-shard-no-map" (Invalid),
            "shard index without `weight_map`"
            => INDEX;
        /// The index of shards lists a key twice, so readers could disagree on where a tensor is.
        DuplicateShardEntry = "st-shard-duplicate" (Invalid),
            "shard index lists a key twice"
            => INDEX;
        /// The index of shards names a file outside its own folder. Following it would let a downloaded index read files elsewhere on
        /// this machine.
        ShardPathEscapes = "st-shard-path" (Invalid),
            "shard path is not a plain relative path inside the folder of its index"
            => "do not trust this index: shards are plain file names beside it";
        /// `total_size` in the index of shards is not a whole number of bytes.
        InvalidTotalSize = "st-shard-size" (Invalid),
            "`total_size` of the shard index is not a number of bytes"
            => INDEX;
    }
}

impl Error {
    pub(crate) fn of_tensor(self, name: &str) -> Self {
        self.of(Subject::tensor(name))
    }
}

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
    /// The error at an offset of a text.
    #[cold]
    pub(crate) fn in_text(self, at: usize) -> Error {
        Error::from(self).at(at as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_order() {
        let problems = located_error::problems(ErrorKind::TABLE, "st-");
        assert!(problems.is_empty(), "{problems:?}");
    }
}
