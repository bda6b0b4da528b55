//! What can be wrong, and where.

use core::fmt;

use crate::format::BlockFormat;

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
    /// A number that ggml never gave to a type.
    UnknownType {
        /// The number.
        id: u32,
    },
    /// A type that ggml gave up.
    RemovedType {
        /// The number.
        id: u32,
        /// Its name.
        name: &'static str,
        /// The type that took its place.
        instead: &'static str,
    },
    /// A row is not a whole number of blocks.
    RowLength {
        /// The format.
        format: BlockFormat,
        /// Elements of the row.
        row_len: u64,
    },
    /// More bytes than 64 bits count.
    TooLong,
}

impl ErrorKind {
    /// Every code that [`code`](Self::code) gives.
    pub const CODES: &'static [&'static str] =
        &["q-unknown-type", "q-removed-type", "q-row-length", "q-too-long"];

    /// Stable identifier.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownType { .. } => "q-unknown-type",
            Self::RemovedType { .. } => "q-removed-type",
            Self::RowLength { .. } => "q-row-length",
            Self::TooLong => "q-too-long",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType { id } => write!(f, "tensor type {id} is not one that this version knows"),
            Self::RemovedType { id, name, instead } => {
                write!(
                    f,
                    "tensor type {id} ({name}) was removed from the format; convert the file with {instead}"
                )
            }
            Self::RowLength { format, row_len } => write!(
                f,
                "a row of {row_len} elements is not a whole number of {format} blocks of {}",
                format.block_len()
            ),
            Self::TooLong => f.write_str("more bytes than 64 bits count"),
        }
    }
}
