//! Errors of the scanner.

use core::fmt;

/// Why a text is not the JSON that was expected, and where.
///
/// Small and without an allocation: callers convert it to an error of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    start: usize,
    offset: usize,
}

/// What was wrong. Exhaustive: a format maps each kind to one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A byte that cannot be there.
    UnexpectedByte {
        /// The byte that begins the token.
        found: u8,
        /// What would be correct.
        expected: &'static str,
    },
    /// The text ends too early.
    UnexpectedEnd {
        /// What is missing.
        expected: &'static str,
    },
    /// A control character in a string that is not escaped.
    ControlCharacter {
        /// The byte.
        found: u8,
    },
    /// An escape sequence that JSON does not have.
    InvalidEscape,
    /// Half of a surrogate pair ([`Check::Values`](crate::Check::Values)).
    LoneSurrogate,
    /// A number that JSON does not allow.
    InvalidNumber,
    /// A number beyond the range of a double ([`Check::Values`](crate::Check::Values)).
    NumberOutOfRange,
    /// Not an integer from 0 to 2^64 - 1 where one is expected.
    NotAnInteger,
    /// Not an object where one is expected.
    NotAnObject,
    /// Not an array where one is expected.
    NotAnArray,
    /// More arrays and objects within one another than the limit.
    TooDeep,
    /// Bytes after the value.
    TrailingBytes {
        /// The first of them.
        found: u8,
    },
}

impl Error {
    #[cold]
    pub(crate) const fn new(kind: ErrorKind, at: usize) -> Self {
        Self { kind, start: at, offset: at }
    }

    #[cold]
    pub(crate) const fn within(kind: ErrorKind, start: usize, offset: usize) -> Self {
        Self { kind, start, offset }
    }

    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Byte offset of the token, number or escape sequence that is wrong.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Byte offset of the first byte that cannot be there: the length of the text if it ends too early.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedByte { found, expected } => {
                write!(f, "expected {expected}, found byte 0x{found:02x}")
            }
            Self::UnexpectedEnd { expected } => write!(f, "expected {expected}, found the end of the text"),
            Self::ControlCharacter { found } => {
                write!(f, "unescaped control character 0x{found:02x} in a string")
            }
            Self::InvalidEscape => f.write_str("invalid escape sequence"),
            Self::LoneSurrogate => f.write_str("lone surrogate in a string"),
            Self::InvalidNumber => f.write_str("invalid number"),
            Self::NumberOutOfRange => f.write_str("number out of the range of a double"),
            Self::NotAnInteger => f.write_str("expected an integer from 0 to 2^64 - 1"),
            Self::NotAnObject => f.write_str("expected an object"),
            Self::NotAnArray => f.write_str("expected an array"),
            Self::TooDeep => f.write_str("arrays and objects are nested too deeply"),
            Self::TrailingBytes { found } => write!(f, "unexpected byte 0x{found:02x} after the JSON value"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte offset {}", self.kind, self.offset)
    }
}

impl core::error::Error for Error {}
