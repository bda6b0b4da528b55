//! What can be wrong, and of which tensor.

use core::fmt;

use tensor_dtype::Dtype;

use crate::target_format::TargetFormat;

/// Why an operation was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    kind: ErrorKind,
    tensor: Option<Box<str>>,
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing is quantized to a type of this name.
    UnknownTarget {
        /// The name.
        name: Box<str>,
    },
    /// Numbers cannot be turned into this type, only back.
    ReadOnlyTarget {
        /// Its name.
        name: &'static str,
        /// One that they can be turned into.
        instead: &'static str,
    },
    /// An override is not `EXPRESSION=TYPE`.
    Override {
        /// What was given.
        text: Box<str>,
        /// What is wrong with it.
        what: Box<str>,
    },
    /// The file to be written has no such type.
    NotInFormat {
        /// The type.
        dtype: Dtype,
        /// The file.
        format: TargetFormat,
    },
    /// A quantized tensor would lose precision a second time.
    Requantize {
        /// What it is.
        from: Dtype,
        /// What it would become.
        to: Dtype,
    },
    /// So few bits are of use only to those who know which columns matter.
    NeedsImportance {
        /// What the tensor would become.
        to: Dtype,
    },
    /// The weights of columns do not fit the tensor.
    ImportanceLength {
        /// Weights that it takes.
        expected: u64,
        /// Weights that there are.
        found: u64,
    },
    /// A file of importance is not sound.
    Importance {
        /// What is wrong with it.
        what: &'static str,
        /// Where.
        offset: u64,
    },
    /// A tensor has more elements than 64 bits count.
    TooLong,
    /// A tensor's numbers are not what their format allows, or not what the new one can hold.
    Quant(apr_quant::Error),
    /// A file of importance is not sound GGUF.
    Gguf(gguf_core::Error),
}

impl ErrorKind {
    /// Every code of this crate; those of the crates below are added by [`ErrorKind::Quant`] and [`ErrorKind::Gguf`].
    pub const CODES: &'static [&'static str] = &[
        "cv-target",
        "cv-read-only-target",
        "cv-override",
        "cv-not-in-container",
        "cv-requantize",
        "cv-needs-importance",
        "cv-importance-length",
        "cv-importance",
        "cv-too-long",
    ];

    /// Stable identifier.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownTarget { .. } => "cv-target",
            Self::ReadOnlyTarget { .. } => "cv-read-only-target",
            Self::Override { .. } => "cv-override",
            Self::NotInFormat { .. } => "cv-not-in-container",
            Self::Requantize { .. } => "cv-requantize",
            Self::NeedsImportance { .. } => "cv-needs-importance",
            Self::ImportanceLength { .. } => "cv-importance-length",
            Self::Importance { .. } => "cv-importance",
            Self::TooLong => "cv-too-long",
            Self::Quant(error) => error.code(),
            Self::Gguf(error) => error.code(),
        }
    }
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Stable identifier of the kind, for example `cv-requantize`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Name of the tensor, where one is to blame.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// Byte offset in a file of importance.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        match &self.kind {
            ErrorKind::Importance { offset, .. } => Some(*offset),
            ErrorKind::Gguf(error) => error.offset(),
            _ => None,
        }
    }

    /// The same error about this tensor.
    #[must_use]
    pub fn of_tensor(mut self, name: &str) -> Self {
        self.tensor = Some(name.into());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, tensor: None }
    }
}

impl From<apr_quant::Error> for Error {
    fn from(error: apr_quant::Error) -> Self {
        ErrorKind::Quant(error).into()
    }
}

impl From<gguf_core::Error> for Error {
    fn from(error: gguf_core::Error) -> Self {
        ErrorKind::Gguf(error).into()
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTarget { name } => write!(f, "nothing is quantized to `{}`", name.escape_debug()),
            Self::ReadOnlyTarget { name, instead } => {
                write!(f, "{name} is read and not written here; use {instead}")
            }
            Self::Override { text, what } => write!(f, "`{}`: {what}", text.escape_debug()),
            Self::NotInFormat { dtype, format } => write!(f, "{format} has no type {dtype}"),
            Self::Requantize { from, to } => {
                write!(f, "the tensor is {from} already, and would lose precision again as {to}")
            }
            Self::NeedsImportance { to } => {
                write!(f, "{to} in a file this small needs to know which columns matter")
            }
            Self::ImportanceLength { expected, found } => {
                write!(f, "{found} importance weights for a tensor that takes {expected}")
            }
            Self::Importance { what, .. } => f.write_str(what),
            Self::TooLong => f.write_str("more elements than 64 bits count"),
            Self::Quant(error) => error.fmt(f),
            Self::Gguf(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if let ErrorKind::Importance { offset, .. } = &self.kind {
            write!(f, " at byte {offset}")?;
        }
        match &self.tensor {
            Some(name) => write!(f, " (tensor `{}`)", name.escape_debug()),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Quant(error) => Some(error),
            ErrorKind::Gguf(error) => Some(error),
            _ => None,
        }
    }
}
