//! Kinds of errors.

use located_error::{Subject, remedy};
use tensor_dtype::{Dtype, GgmlType, SizeError};

use crate::value::ValueType;

const LOOSE: &str =
    "if you trust the file, repeat with --compat; a copy written from it is one that llama.cpp reads";
const REWRITE: &str = "tell the author of the program that wrote the file";
const SHARDS: &str = "give all shards of one model, `NAME-00001-of-000NN.gguf` and so on";

located_error::errors! {
    /// Why an operation was refused. Offsets count from the start of the file.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Error;

    /// What was wrong. Quantities are bytes unless the field says otherwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// The file ends inside its header.
        Truncated {
            /// Bytes the field needs.
            needed: u64,
            /// Bytes left in the file.
            available: u64,
        } = "gg-truncated" (Invalid),
            "truncated header: expected {needed} bytes, {available} left"
            => remedy::FETCH;
        /// A GGUF file begins with the letters `GGUF`, this one does not. Files that begin with `ggml`, `ggjt` or `lmgg` are of
        /// formats that came before.
        Magic {
            /// Its first four bytes.
            found: [u8; 4],
        } = "gg-magic" (Invalid),
            "not a GGUF file: it begins with [{:02x}, {:02x}, {:02x}, {:02x}]", found[0], found[1], found[2], found[3]
            => "check that this is a GGUF file; convert an older one with the tools of its time";
        /// The file is of a version of the format that is not known: 1, 2 and 3 are.
        UnknownVersion {
            /// The version.
            version: u32,
        } = "gg-version" (Unsupported),
            "unsupported GGUF version {version}"
            => "look for a newer release of this program";
        /// The file is of version 1, of 2023. llama.cpp no longer reads it.
        OldVersion = "gg-version-1" (Unsupported),
            "GGUF version 1 is no longer read by llama.cpp"
            => LOOSE;
        /// The file was made for big-endian machines. llama.cpp does not read it here.
        ByteOrder = "gg-byte-order" (Unsupported),
            "big-endian file"
            => LOOSE;
        /// The file says it has more tensors or keys than fit into the rest of it. It was cut short, or made to break programs
        /// that believe such numbers.
        Count {
            /// What is counted.
            what: &'static str,
            /// Declared.
            count: u64,
            /// Most that fit into the bytes left.
            max: u64,
        } = "gg-count" (Invalid),
            "{count} {what} declared, {max} at most fit into the bytes left"
            => remedy::FETCH;
        /// The header asks for more than the limits allow: the message names the limit.
        LimitExceeded {
            /// Name of the limit.
            limit: &'static str,
            /// Its value.
            max: u64,
        } = "gg-limit" (Invalid),
            "limit on {limit} exceeded: {max}"
            => "if you trust the file, read it with a program of your own and `gguf_core::Limits`";
        /// A string is longer than what is left of the file.
        StringLength {
            /// Declared length.
            len: u64,
            /// Bytes left in the file.
            available: u64,
        } = "gg-string-length" (Invalid),
            "string of {len} bytes declared, {available} left"
            => remedy::FETCH;
        /// An array has more elements than fit into the rest of the file.
        ArrayLength {
            /// Declared elements.
            count: u64,
            /// Bytes left in the file.
            available: u64,
        } = "gg-array-length" (Invalid),
            "array of {count} elements declared, {available} bytes left"
            => remedy::FETCH;
        /// An array has arrays as elements. The format allows that, llama.cpp does not read it, and it is not written.
        NestedArray = "gg-array-nested" (Invalid),
            "array of arrays"
            => LOOSE;
        /// The type of a value is a number that stands for none of the 13 types.
        UnknownValueType {
            /// The number.
            id: u32,
        } = "gg-value-type" (Invalid),
            "unknown value type {id}"
            => remedy::FETCH;
        /// A key has no name. llama.cpp refuses such a file.
        EmptyKey = "gg-key-empty" (Invalid),
            "empty key"
            => LOOSE;
        /// A key is there twice. Two programs may see two models in one file.
        DuplicateKey = "gg-key-duplicate" (Invalid),
            "duplicate key"
            => REWRITE;
        /// The key `general.alignment` says where tensors begin and has to be a u32.
        AlignmentType {
            /// What it is.
            found: ValueType,
        } = "gg-alignment-type" (Invalid),
            "wrong type of the alignment: expected u32, found {found}"
            => REWRITE;
        /// The alignment of the tensors has to be a power of two.
        Alignment {
            /// What it is.
            found: u32,
        } = "gg-alignment" (Invalid),
            "alignment {found} is not a power of two"
            => REWRITE;
        /// A tensor's name is longer than llama.cpp reads: 63 bytes.
        NameLength {
            /// Its length.
            len: u64,
            /// Longest accepted.
            max: u64,
        } = "gg-name-length" (Invalid),
            "tensor name of {len} bytes, at most {max} are allowed"
            => "give the tensor a shorter name; to read such a file, repeat with --compat";
        /// Two tensors have the same name. llama.cpp compares names up to the first zero byte.
        DuplicateTensor = "gg-name-duplicate" (Invalid),
            "duplicate tensor name"
            => REWRITE;
        /// A tensor has more dimensions than GGUF files can have: four.
        Rank {
            /// Declared.
            n_dims: u64,
            /// Most accepted.
            max: u64,
        } = "gg-rank" (Invalid),
            "{n_dims} dimensions, at most {max} are allowed"
            => "leave dimensions of one element out; to read such a file, repeat with --compat";
        /// A dimension is negative to most programs: it does not fit 63 bits.
        Dimension {
            /// The dimension.
            dim: u64,
        } = "gg-dimension" (Invalid),
            "dimension {dim} does not fit 63 bits"
            => remedy::FETCH;
        /// The dimensions of a tensor multiply to more than 63 bits count. Such files were made to break programs.
        TooManyElements = "gg-elements" (Invalid),
            "number of elements does not fit 63 bits"
            => remedy::FETCH;
        /// The numbers of a tensor are stored in a way that this version does not know, so its size is not known either.
        UnknownTensorType {
            /// The number.
            id: u32,
        } = "gg-type-unknown" (Unsupported),
            "unknown tensor type {id}"
            => "look for a newer release of this program";
        /// The numbers of a tensor are stored in a way that was taken out of the format.
        RemovedTensorType {
            /// The number.
            id: u32,
            /// Its name.
            name: &'static str,
            /// What took its place.
            instead: &'static str,
        } = "gg-type-removed" (Unsupported),
            "tensor type {id} ({name}) was removed from the format, use {instead}"
            => "quantize the original model again, with the type that the message names";
        /// GGUF files cannot hold numbers of this format.
        ForeignFormat {
            /// The format.
            dtype: Dtype,
        } = "gg-type-foreign" (Usage),
            "GGUF has no tensor type {dtype}"
            => "choose one of ggml's types, for example q8_0 or f32";
        /// A row of a tensor is not a whole number of blocks of its format.
        RowLength {
            /// The format.
            dtype: Dtype,
            /// Elements of a row.
            row_len: u64,
        } = "gg-row-length" (Invalid),
            "rows of {row_len} elements are not whole {dtype} blocks"
            => "store this tensor with a smaller block (32 elements) or without any, as f16";
        /// The size of a tensor, or of all of them, does not fit 64 bits.
        SizeOverflow = "gg-size" (Invalid),
            "size does not fit 64 bits"
            => remedy::FETCH;
        /// Tensors have to follow each other in the order of their table, each padded to the alignment. llama.cpp refuses a file in
        /// which they do not.
        Offset {
            /// Declared, relative to the data section.
            found: u64,
            /// Where it has to begin.
            expected: u64,
        } = "gg-offset" (Invalid),
            "data offset {found}, expected {expected}"
            => LOOSE;
        /// The data of a tensor, or the padding behind it, reach past the end of the file.
        DataTruncated {
            /// Where it ends, from the start of the file.
            needed: u64,
            /// Length of the file.
            available: u64,
        } = "gg-data-end" (Invalid),
            "tensor data to byte {needed} declared, the file has {available}"
            => remedy::FETCH;
        /// There is no tensor of this name in the file.
        TensorNotFound = "gg-not-found" (Usage),
            "tensor not found"
            => "`apr tensors FILE` lists their names";
        /// There is no such key in the file.
        KeyNotFound = "gg-key-not-found" (Usage),
            "key not found"
            => "`apr inspect FILE` lists the keys";
        /// A key to be written has 1 to 65,535 bytes and no control characters.
        InvalidKey = "gg-key" (Usage),
            "a key has 1 to 65535 bytes and no control characters"
            => "choose another key; those of others are words in lower case joined by dots";
        /// The name of a tensor to be written has 1 to 63 bytes and no control characters.
        InvalidName = "gg-name" (Usage),
            "a tensor name has 1 to 63 bytes and no control characters"
            => "give the tensor another name, of 63 bytes or less";
        /// A tensor was given more or fewer bytes than its shape needs.
        DataLength {
            /// Bytes needed.
            needed: u64,
            /// Bytes given.
            given: u64,
        } = "gg-data-length" (Usage),
            "expected {needed} bytes of data, found {given}"
            => remedy::BUG;
        /// Bytes of more or fewer tensors were given than there are.
        DataCount {
            /// Tensors laid out.
            needed: usize,
            /// Slices given.
            given: usize,
        } = "gg-data-count" (Usage),
            "expected data of {needed} tensors, found {given}"
            => remedy::BUG;
        /// A value is changed where it stands only if the new one has its type and length; the alignment never is.
        NotInPlace = "gg-in-place" (Usage),
            "the new value has another size than the old one: write a copy"
            => "write a copy of the file with the new value";
        /// A model is split into 1 to 65,535 shards.
        ShardCount {
            /// Shards needed.
            count: u64,
            /// Most.
            max: u64,
        } = "gg-shard-count" (Usage),
            "{count} shards: expected 1 to {max}"
            => "allow larger shards, or more tensors in each";
        /// A shard holds at least one tensor; its size is a whole number with M or G behind it.
        ShardSize = "gg-shard-size" (Usage),
            "a shard holds at least one tensor; a size is a number followed by M or G"
            => "for example 300M or 2G";
        /// Shards carry the keys `split.no`, `split.count` and `split.tensors.count`. This file lacks one, or has them where a whole
        /// model is wanted.
        ShardKeys = "gg-shard-keys" (Invalid),
            "keys of a shard are missing or already present"
            => SHARDS;
        /// The shards are not in order, one is missing, or they are not of one model.
        ShardOrder {
            /// Place of the shard in the list, from 0.
            idx: u64,
            /// What its keys say: number from 0.
            no: u64,
            /// What its keys say: number of shards.
            count: u64,
        } = "gg-shard-order" (Invalid),
            "shard {idx} of the list has number {no} of {count}"
            => SHARDS;
        /// The shards together have more or fewer tensors than each of them says.
        ShardTensors {
            /// Tensors said to be there.
            declared: u64,
            /// Tensors there.
            found: u64,
        } = "gg-shard-tensors" (Invalid),
            "the shards declare {declared} tensors and hold {found}"
            => SHARDS;
    }
}

impl Error {
    pub(crate) fn of_key(self, key: &[u8]) -> Self {
        self.of(Subject::key_bytes(key))
    }

    pub(crate) fn of_tensor(self, name: &[u8]) -> Self {
        self.of(Subject::tensor_bytes(name))
    }
}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
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
    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_order() {
        let problems = located_error::problems(ErrorKind::TABLE, "gg-");
        assert!(problems.is_empty(), "{problems:?}");
    }
}
