//! Kinds of errors.

use core::fmt;

use located_error::{Entry, Located, Location};
use tensor_dtype::Dtype;

const LENGTHS: &str = "give as many as the message says";

/// Why an operation was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    kind: ErrorKind,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Stable identifier of the kind, for example `q-row-length`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The same error of values that follow `count` others: an element that it names is counted from the first of all.
    ///
    /// ```
    /// use apr_quant::{Error, ErrorKind};
    ///
    /// let error = Error::from(ErrorKind::NonFinite { element: 3 });
    /// assert_eq!(error.offset_elements(256).kind(), &ErrorKind::NonFinite { element: 259 });
    /// ```
    #[must_use]
    pub const fn offset_elements(mut self, count: u64) -> Self {
        if let ErrorKind::NonFinite { element }
        | ErrorKind::ImportanceZero { element, .. }
        | ErrorKind::ScaleTooSmall { element, .. }
        | ErrorKind::ScaleTooLarge { element, .. } = &mut self.kind
        {
            *element = element.saturating_add(count);
        }
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl core::error::Error for Error {}

impl Located for Error {
    fn code(&self) -> &'static str {
        self.kind.code()
    }

    fn message(&self) -> &dyn fmt::Display {
        &self.kind
    }

    fn location(&self) -> Location<'_> {
        Location::default()
    }

    fn entry(&self) -> Option<&'static Entry> {
        self.kind.entry()
    }
}

located_error::kinds! {
    /// What was wrong.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum ErrorKind {
        /// Numbers are quantized in blocks, and a row of the tensor is not a whole number of them. Blocks never run on into the next
        /// row.
        RowLength {
            /// The format.
            dtype: Dtype,
            /// Elements of the row.
            row_len: u64,
        } = "q-row-length" (Usage),
            "a row of {row_len} elements is not a whole number of {dtype} blocks of {}", dtype.block_len()
            => "choose a type with shorter blocks: those of Q8_0 and Q4_0 have 32 numbers, F16 has none";
        /// The shape of the tensor asks for more bytes than 64 bits can count. No file is that long: the shape is damaged or made up.
        TooLong = "q-too-long" (Invalid),
            "size does not fit 64 bits"
            => "fetch the file again";
        /// Blocks of this type are read, but numbers are not turned into it. Types with codebooks need a search that this version
        /// does not have.
        NotQuantizable {
            /// The format.
            dtype: Dtype,
            /// Name of one that they can be turned into.
            instead: &'static str,
        } = "q-not-quantizable" (Unsupported),
            "quantizing to {dtype} is not supported; use {instead}"
            => "choose the type that the message names";
            /// Tensors of this type can be listed and copied, and this version has no code to decode them.
        NotDecodable {
            /// The type.
            dtype: Dtype,
        } = "q-not-decodable" (Unsupported),
            "decoding {dtype} is not supported"
            => "convert the file to another type with the program that wrote it";
        /// The numbers are not a whole number of rows.
        ValuesLength {
            /// Elements of a row.
            row_len: u64,
            /// Values that were given.
            count: u64,
        } = "q-values-length" (Usage),
            "{count} values are not a whole number of rows of {row_len}"
            => LENGTHS;
        /// The output buffer is longer or shorter than the blocks. Leftover bytes would later be read as blocks.
        OutputLength {
            /// Bytes that the blocks take.
            expected: u64,
            /// Length of the output buffer in bytes.
            found: u64,
        } = "q-output-length" (Usage),
            "wrong output length: expected {expected} bytes, found {found}"
            => LENGTHS;
        /// There are more or fewer bytes than the blocks of so many numbers take.
        BlocksLength {
            /// The format.
            dtype: Dtype,
            /// Bytes that as many elements take.
            expected: u64,
            /// Bytes that were given.
            found: u64,
        } = "q-blocks-length" (Invalid),
            "wrong length of {dtype} blocks: expected {expected} bytes, found {found}"
            => "fetch the file again; a tensor's bytes and its shape have to agree";
        /// Numbers are compared with what became of them, and there are more of one than of the other.
        UnequalLengths {
            /// Numbers before.
            originals: u64,
            /// Numbers after.
            decoded: u64,
        } = "q-unequal-lengths" (Usage),
            "{originals} values cannot be compared with {decoded}"
            => LENGTHS;
        /// An importance matrix has one weight for each column of a tensor, and this one has another number of columns.
        ImportanceLength {
            /// Columns of a row.
            expected: u64,
            /// Weights that were given.
            found: u64,
        } = "q-importance-length" (Usage),
            "wrong number of importance weights: expected {expected}, found {found}"
            => "take the importance matrix that was made with this model";
        /// A weight of the importance matrix is negative, infinite or not a number. It says how much a column counts, so it cannot be
        /// less than nothing.
        ImportanceValue {
            /// Its column.
            column: u64,
        } = "q-importance-value" (Usage),
            "the importance weight of column {column} is negative or not finite"
            => "make the importance matrix again";
        /// All weights of a block are zero, or so small that they do not add up to anything. The scale of such a block is a quotient
        /// of sums of weights: there is none, and the reference would store not-a-number.
        ImportanceZero {
            /// The format.
            dtype: Dtype,
            /// Place of the block's largest magnitude among the values.
            element: u64,
        } = "q-importance-zero" (Usage),
            "no importance weight around element {element} is large enough for a scale of {dtype}; give such columns a small one"
            => "give columns that were never used a small weight, or quantize this tensor without the importance matrix";
        /// The tensor holds infinity or not-a-number, and no block can hold that: the numbers beside it would be lost as well. Most
        /// often the training went wrong.
        NonFinite {
            /// Its place among the values.
            element: u64,
        } = "q-non-finite" (Invalid),
            "element {element} is infinite or not a number; no block can hold it"
            => "find out where the number comes from: the message says which element it is";
        /// The numbers of a block are so close to zero that the step between their codes has no inverse. What the reference makes of
        /// them is not defined.
        ScaleTooSmall {
            /// The format.
            dtype: Dtype,
            /// Place of the block's largest magnitude among the values.
            element: u64,
        } = "q-scale-too-small" (Invalid),
            "the block around element {element} is too small for {dtype}; set such values to zero, or use F32"
            => "set numbers below 1e-35 to zero, or keep the tensor as F32";
        /// The numbers of a block are so large that its scale would be stored as infinity, and every number of it would be lost; or a
        /// number is beyond the largest one of the format itself (65,504 for F16, 3.39e38 for BF16).
        ScaleTooLarge {
            /// The format.
            dtype: Dtype,
            /// Place of the block's largest magnitude among the values.
            element: u64,
        } = "q-scale-too-large" (Invalid),
            "element {} is too large for {} and would be infinite; use {}", element, dtype, if *dtype == Dtype::Bf16 { "F32" } else { "BF16 or F32" }
            => "scale the tensor down, or keep it as F32 or BF16";
    }
}
