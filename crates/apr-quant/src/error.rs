//! What can be wrong, and where.

use core::fmt;

use tensor_dtype::Dtype;

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
    pub const fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// The same error of values that `count` others stand in front of: where it names an element, its place among all.
    ///
    /// ```
    /// use apr_quant::{Error, ErrorKind};
    ///
    /// let error = Error::from(ErrorKind::NonFinite { element: 3 });
    /// assert_eq!(error.behind(256).kind(), &ErrorKind::NonFinite { element: 259 });
    /// ```
    #[must_use]
    pub const fn behind(mut self, count: u64) -> Self {
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

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A row is not a whole number of blocks.
    RowLength {
        /// The format.
        dtype: Dtype,
        /// Elements of the row.
        row_len: u64,
    },
    /// More bytes than 64 bits count.
    TooLong,
    /// Numbers cannot be turned into this format.
    NotQuantizable {
        /// The format.
        dtype: Dtype,
        /// Name of one that they can be turned into.
        instead: &'static str,
    },
    /// This crate has no code to decode the type.
    NotDecodable {
        /// The type.
        dtype: Dtype,
    },
    /// The values are not a whole number of rows.
    ValuesLength {
        /// Elements of a row.
        row_len: u64,
        /// Values that were given.
        count: u64,
    },
    /// The room for blocks is longer or shorter than they are.
    OutputLength {
        /// Bytes that the blocks take.
        expected: u64,
        /// Bytes of the room.
        found: u64,
    },
    /// The bytes are not the blocks of as many elements as there is room for.
    BlocksLength {
        /// The format.
        dtype: Dtype,
        /// Bytes that as many elements take.
        expected: u64,
        /// Bytes that were given.
        found: u64,
    },
    /// Numbers and what became of them are not of the same count.
    UnequalLengths {
        /// Numbers before.
        originals: u64,
        /// Numbers after.
        decoded: u64,
    },
    /// There is not one weight per column.
    ImportanceLength {
        /// Columns of a row.
        expected: u64,
        /// Weights that were given.
        found: u64,
    },
    /// A weight is negative or not finite.
    ImportanceValue {
        /// Its column.
        column: u64,
    },
    /// The weights of a block are zero, or too small to add up, and its scale follows from them.
    ImportanceZero {
        /// The format.
        dtype: Dtype,
        /// Place of the block's largest magnitude among the values.
        element: u64,
    },
    /// A number is infinite or not a number.
    NonFinite {
        /// Its place among the values.
        element: u64,
    },
    /// The step between the codes of a block is so small that nothing can be divided by it.
    ScaleTooSmall {
        /// The format.
        dtype: Dtype,
        /// Place of the block's largest magnitude among the values.
        element: u64,
    },
    /// A scale of a block, or the number itself, would be stored as infinity.
    ScaleTooLarge {
        /// The format.
        dtype: Dtype,
        /// Place of the block's largest magnitude among the values.
        element: u64,
    },
}

impl ErrorKind {
    /// Every code that [`code`](Self::code) gives.
    pub const CODES: &'static [&'static str] = &[
        "q-row-length",
        "q-too-long",
        "q-not-quantizable",
        "q-not-decodable",
        "q-values-length",
        "q-output-length",
        "q-blocks-length",
        "q-unequal-lengths",
        "q-importance-length",
        "q-importance-value",
        "q-importance-zero",
        "q-non-finite",
        "q-scale-too-small",
        "q-scale-too-large",
    ];

    /// Stable identifier.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RowLength { .. } => "q-row-length",
            Self::TooLong => "q-too-long",
            Self::NotQuantizable { .. } => "q-not-quantizable",
            Self::NotDecodable { .. } => "q-not-decodable",
            Self::ValuesLength { .. } => "q-values-length",
            Self::OutputLength { .. } => "q-output-length",
            Self::BlocksLength { .. } => "q-blocks-length",
            Self::UnequalLengths { .. } => "q-unequal-lengths",
            Self::ImportanceLength { .. } => "q-importance-length",
            Self::ImportanceValue { .. } => "q-importance-value",
            Self::ImportanceZero { .. } => "q-importance-zero",
            Self::NonFinite { .. } => "q-non-finite",
            Self::ScaleTooSmall { .. } => "q-scale-too-small",
            Self::ScaleTooLarge { .. } => "q-scale-too-large",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowLength { dtype, row_len } => write!(
                f,
                "a row of {row_len} elements is not a whole number of {dtype} blocks of {}",
                dtype.block_len()
            ),
            Self::TooLong => f.write_str("more bytes than 64 bits count"),
            Self::NotQuantizable { dtype, instead } => {
                write!(f, "numbers cannot be turned into {dtype}; use {instead}")
            }
            Self::NotDecodable { dtype } => write!(f, "decoding {dtype} is not supported"),
            Self::ValuesLength { row_len, count } => {
                write!(f, "{count} values are not a whole number of rows of {row_len}")
            }
            Self::OutputLength { expected, found } => {
                write!(f, "the blocks take {expected} bytes, the room for them has {found}")
            }
            Self::BlocksLength { dtype, expected, found } => {
                write!(f, "{found} bytes of {dtype} blocks, {expected} for the elements wanted")
            }
            Self::UnequalLengths { originals, decoded } => {
                write!(f, "{originals} numbers cannot be compared with {decoded}")
            }
            Self::ImportanceLength { expected, found } => {
                write!(f, "{found} importance weights for rows of {expected} elements")
            }
            Self::ImportanceValue { column } => {
                write!(f, "the importance weight of column {column} is negative or not finite")
            }
            Self::ImportanceZero { dtype, element } => write!(
                f,
                "no importance weight around element {element} is large enough for a scale of {dtype}; give such columns a small one"
            ),
            Self::NonFinite { element } => {
                write!(f, "element {element} is infinite or not a number; no block can hold it")
            }
            Self::ScaleTooSmall { dtype, element } => write!(
                f,
                "the block around element {element} is too small for {dtype}; set such numbers to zero, or use F32"
            ),
            Self::ScaleTooLarge { dtype, element } => {
                let instead = if *dtype == Dtype::Bf16 { "F32" } else { "BF16 or F32" };
                write!(f, "element {element} is too large for {dtype} and would be infinite; use {instead}")
            }
        }
    }
}
