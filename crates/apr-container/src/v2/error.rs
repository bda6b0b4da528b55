//! Errors of version 2 alone.

use located_error::remedy;

use crate::error::WRITER;

located_error::errors! {
    /// An error of version 2, inside a [`crate::Error`], which has the location.
    pub struct Error;

    /// What was wrong with a file of version 2. Quantities are bytes unless the field says otherwise.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// The header has a checksum of its own, which does not match its bytes: the file is corrupted.
        HeaderChecksum {
            /// Stored in the header.
            expected: u32,
            /// Computed over its bytes.
            actual: u32,
        } = "ac-v2-header-checksum" (Verification),
            "header checksum mismatch: expected {expected:08X}, found {actual:08X}"
            => remedy::FETCH;
        /// The file marks its matrices as column-major. No reader accepts that, because most would read them as rows.
        ColumnMajor = "ac-v2-column-major" (Invalid),
            "the tensors are marked as column-major, which no reader accepts"
            => "import the model again with the program that wrote it";
        /// Everything after the header is one compressed block. Such a file is read as a whole where that is possible; here it is not.
        WholeCompressed {
            /// The algorithm its flag names.
            algorithm: &'static str,
        } = "ac-v2-compressed" (Invalid),
            "everything after the header is one {algorithm} block: decompress the file first (`v2::Stored`)"
            => "`apr convert FILE OUT.apr` writes it uncompressed";
        /// A section or a tensor does not begin where the format puts it: there are gaps, overlaps, or a wrong offset.
        Misplaced {
            /// Which part.
            part: &'static str,
            /// Where the header or the index says it is.
            found: u64,
            /// Where it belongs (in compat mode: before what it cannot be).
            expected: u64,
        } = "ac-v2-misplaced" (Invalid),
            "{part} at {found}, expected at {expected}"
            => WRITER;
        /// A tensor does not begin at a multiple of 64 bytes.
        Misaligned {
            /// Declared offset, relative to the data section.
            offset: u64,
            /// What it has to be a multiple of.
            align: u64,
        } = "ac-v2-misaligned" (Invalid),
            "tensor offset {offset} is not a multiple of {align}"
            => WRITER;
        /// Padding bytes must be zero. Other bytes could carry anything.
        Padding = "ac-v2-padding" (Invalid),
            "padding is not zero"
            => WRITER;
        /// The tensor data are followed by more or fewer bytes than the checksum has.
        TrailingBytes {
            /// How many.
            count: u64,
        } = "ac-v2-trailing" (Invalid),
            "expected 4 bytes after the tensor data, found {count}"
            => remedy::FETCH;
        /// A tensor has a data type that no specification lists, so that its length cannot be checked.
        UnknownDtype {
            /// The number.
            found: u8,
        } = "ac-v2-dtype" (Invalid),
            "unknown data type {found}"
            => "update apr if the file was made by a newer program; `--compat` carries such tensors without reading them";
        /// A tensor has more than eight dimensions, which is what the format can store.
        TooManyDimensions {
            /// How many.
            found: usize,
        } = "ac-v2-dimensions" (Invalid),
            "{found} dimensions, the limit is 8"
            => "reshape the tensor, or store the model as safetensors";
        /// A tensor name is longer than 256 bytes; other writers truncate it, and two tensors may get one name.
        NameTooLong {
            /// Its length.
            len: usize,
        } = "ac-v2-name" (Invalid),
            "tensor name of {len} bytes, the limit is 256"
            => "give it a shorter name: apr convert --rename FROM=TO";
        /// Two tensors have the same name.
        DuplicateTensor = "ac-v2-duplicate-tensor" (Invalid),
            "duplicate tensor name"
            => WRITER;
        /// The index is not sorted by name, so that a binary search would miss tensors.
        IndexOrder = "ac-v2-order" (Invalid),
            "tensor index is not sorted by name"
            => WRITER;
        /// A size does not fit into 64 bits.
        SizeOverflow = "ac-v2-overflow" (Invalid),
            "size overflows 64 bits"
            => remedy::FETCH;
        /// The declared size of a tensor does not match its data type and shape.
        SizeMismatch {
            /// Declared.
            declared: u64,
            /// From type and shape.
            computed: u64,
        } = "ac-v2-size" (Invalid),
            "{declared} bytes declared, {computed} expected from data type and shape"
            => remedy::FETCH;
        /// No tensor has this name.
        TensorNotFound = "ac-v2-not-found" (Usage),
            "tensor not found"
            => remedy::TENSOR_NAMES;
        /// The tensor has another data type than requested.
        DtypeMismatch {
            /// The tensor's type.
            found: tensor_dtype::AprType,
            /// What was asked for.
            expected: &'static str,
        } = "ac-v2-dtype-mismatch" (Usage),
            "data type mismatch: expected {expected}, found {found}"
            => "`apr tensors FILE` shows it";
        /// The bytes are not aligned in memory for a view without a copy.
        UnalignedView {
            /// Alignment the element type needs.
            align: usize,
        } = "ac-v2-view" (Internal),
            "data not aligned to {align} bytes in memory: read it element by element"
            => remedy::BUG;
        /// This machine stores values in another byte order than the file.
        ForeignEndian = "ac-v2-endian" (Internal),
            "little-endian data on a big-endian machine: read it element by element"
            => remedy::BUG;
        /// The data of a tensor have another length than was laid out, or the file changed while it was read.
        DataLength {
            /// Needed.
            needed: u64,
            /// Given.
            given: u64,
        } = "ac-v2-data-length" (Invalid),
            "data length: expected {needed}, found {given}"
            => remedy::QUIET;
        /// Data were given for another number of tensors than were laid out.
        DataCount {
            /// Tensors laid out.
            needed: usize,
            /// Slices given.
            given: usize,
        } = "ac-v2-data-count" (Internal),
            "data for {given} tensors, expected {needed}"
            => remedy::BUG;
        /// A flag announces content that is not written.
        FlagNotWritten {
            /// The flags concerned.
            flags: super::Flags,
        } = "ac-v2-flag" (Usage),
            "flags {flags:?} cannot be set: their content is not written"
            => "leave the flag out";
        /// The metadata are not valid JSON.
        JsonSyntax = "ac-v2-json" (Invalid),
            "invalid JSON"
            => remedy::FETCH;
        /// A key occurs twice: readers that use the first value and readers that use the last would disagree.
        DuplicateKey = "ac-v2-duplicate-key" (Invalid),
            "duplicate key"
            => WRITER;
        /// A member of the metadata has another type than the format specifies.
        JsonType {
            /// What belongs here.
            expected: &'static str,
        } = "ac-v2-json-type" (Invalid),
            "expected {expected}"
            => WRITER;
        /// The metadata lack a member that every writer writes.
        MissingKey {
            /// Its key.
            key: &'static str,
        } = "ac-v2-missing-key" (Invalid),
            "missing key `{key}`"
            => WRITER;
        /// A file name in a manifest could lead out of the folder of the manifest.
        ShardName = "ac-v2-shard-name" (Invalid),
            "the file name of a shard is not a plain name"
            => "do not use this manifest";
        /// The manifest of a sharded model contradicts itself.
        ShardManifest {
            /// What does not fit.
            what: &'static str,
        } = "ac-v2-manifest" (Invalid),
            "shard manifest: {what}"
            => remedy::FETCH;
    }
}

impl ErrorKind {
    pub(crate) fn at(self, offset: u64) -> crate::Error {
        crate::Error::from(self).at(offset)
    }
}
