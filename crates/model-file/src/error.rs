//! Errors.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use apr_container::ModelType;
use json_scan::{Quoted, Visible};
use tensor_dtype::TensorType;

use crate::FileKind;

/// Why a model file was refused, and the tensor concerned.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    tensor: Option<String>,
}

/// What was wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A safetensors header.
    SafeTensors(st_core::Error),
    /// An `.apr` file.
    Apr(apr_container::Error),
    /// A GGUF file.
    #[cfg(feature = "gguf")]
    Gguf(gguf_core::Error),
    /// A sealed file.
    #[cfg(feature = "sealed")]
    Sealed(apr_sealed::Error),
    /// A model and its tensors.
    Model(apr_models::Error),
    /// The source of the bytes.
    Read(read_at::Error),
    /// A file that cannot be opened.
    #[cfg(feature = "std")]
    File(durable_file::Error),
    /// A safetensors file, or a set of them, on disk.
    #[cfg(feature = "std")]
    Files(st_mmap::Error),
    /// A format that is recognized and not opened: one of other programs, or one whose feature is not enabled.
    ForeignFormat {
        /// What the file is.
        found: FileKind,
    },
    /// The payload is of a type that only its maker's program can decode.
    ForeignPayload {
        /// The declared model type.
        model_type: ModelType,
    },
    /// The metadata name no model, and the tensors are too large to be taken for one.
    NoModel,
    /// A tensor of a type that no model has.
    ModelDtype {
        /// The type.
        found: TensorType,
    },
    /// The encoding of a tensor's values is not known.
    UnknownEncoding {
        /// The type.
        found: TensorType,
    },
    /// Blocks of a big-endian file whose layout is not known in that byte order.
    ByteOrder {
        /// The type.
        found: TensorType,
    },
    /// A value that the requested element type cannot represent.
    #[cfg(feature = "quantize")]
    NotRepresentable {
        /// The stored type.
        from: TensorType,
        /// The requested type.
        to: TensorType,
        /// Index of the value; `None` if the blocks themselves cannot be decoded.
        element: Option<u64>,
        /// The value.
        value: f32,
    },
    /// A dimension that an index of this machine cannot represent.
    Dimension {
        /// The code of the format for it.
        code: &'static str,
    },
    /// A range that is not within the tensor.
    OutOfRange {
        /// First byte of the range.
        offset: u64,
        /// Length of the range.
        len: u64,
        /// Length of the tensor.
        available: u64,
    },
    /// An [entry](crate::entries) with metadata of a format is not what this crate writes there.
    InvalidEntry {
        /// Key of the entry.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An [entry](crate::entries) does not have the type of its GGUF key.
    EntryType {
        /// The key.
        key: String,
        /// Its type.
        expected: String,
        /// The value.
        value: String,
    },
    /// There is no tensor of that name.
    TensorNotFound,
    /// There is no memory for so many bytes.
    OutOfMemory {
        /// Requested bytes.
        bytes: u64,
    },
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The kind, for crates that wrap it in an error of their own.
    #[must_use]
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// Name of the tensor concerned.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// Stable identifier: the code of a wrapped error, or one of this crate's own, for example `mo-foreign-format`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &self.0.kind {
            ErrorKind::SafeTensors(error) => error.code(),
            ErrorKind::Apr(error) => error.code(),
            #[cfg(feature = "gguf")]
            ErrorKind::Gguf(error) => error.code(),
            #[cfg(feature = "sealed")]
            ErrorKind::Sealed(error) => error.code(),
            ErrorKind::Model(error) => error.code(),
            ErrorKind::Read(_) => "mo-read",
            #[cfg(feature = "std")]
            ErrorKind::File(error) => error.code(),
            #[cfg(feature = "std")]
            ErrorKind::Files(error) => error.code(),
            ErrorKind::ForeignFormat { .. } => "mo-foreign-format",
            ErrorKind::ForeignPayload { .. } => "mo-foreign-payload",
            ErrorKind::NoModel => "mo-no-model",
            ErrorKind::ModelDtype { .. } => "mo-model-dtype",
            ErrorKind::UnknownEncoding { .. } => "mo-unknown-encoding",
            ErrorKind::ByteOrder { .. } => "mo-byte-order",
            #[cfg(feature = "quantize")]
            ErrorKind::NotRepresentable { .. } => "mo-not-representable",
            ErrorKind::Dimension { code } => code,
            ErrorKind::OutOfRange { .. } => "mo-range",
            ErrorKind::InvalidEntry { .. } => "mo-invalid-entry",
            ErrorKind::EntryType { .. } => "mo-entry-type",
            ErrorKind::TensorNotFound => "mo-no-tensor",
            ErrorKind::OutOfMemory { .. } => "mo-out-of-memory",
        }
    }

    pub(crate) fn of_tensor(mut self, name: &str) -> Self {
        self.0.tensor.get_or_insert_with(|| name.to_owned());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, tensor: None }))
    }
}

macro_rules! wraps {
    ($($(#[$meta:meta])* $error:ty => $kind:ident,)*) => {$(
        $(#[$meta])*
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                ErrorKind::$kind(error).into()
            }
        }
    )*};
}

wraps! {
    st_core::Error => SafeTensors,
    apr_container::Error => Apr,
    #[cfg(feature = "gguf")]
    gguf_core::Error => Gguf,
    #[cfg(feature = "sealed")]
    apr_sealed::Error => Sealed,
    apr_models::Error => Model,
    #[cfg(feature = "std")]
    durable_file::Error => File,
    #[cfg(feature = "std")]
    st_mmap::Error => Files,
}

/// Of the content of a sealed file, the error of the sealed file.
impl From<read_at::Error> for Error {
    fn from(error: read_at::Error) -> Self {
        #[cfg(feature = "sealed")]
        if core::error::Error::source(&error).is_some_and(|source| source.is::<apr_sealed::Error>()) {
            let kind = error.kind();
            let sealed = error.into_source().and_then(|source| source.downcast::<apr_sealed::Error>().ok());
            return sealed.map_or(ErrorKind::Read(kind.into()), |sealed| ErrorKind::Sealed(*sealed)).into();
        }
        ErrorKind::Read(error).into()
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SafeTensors(error) => error.fmt(f),
            Self::Apr(error) => error.fmt(f),
            #[cfg(feature = "gguf")]
            Self::Gguf(error) => error.fmt(f),
            #[cfg(feature = "sealed")]
            Self::Sealed(error) => error.fmt(f),
            Self::Model(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            #[cfg(feature = "std")]
            Self::File(error) => error.fmt(f),
            #[cfg(feature = "std")]
            Self::Files(error) => error.fmt(f),
            Self::ForeignFormat { found } => write!(f, "this is {}", found.title()),
            Self::ForeignPayload { model_type } => {
                write!(f, "the payload is of a type of its maker's own ({model_type})")
            }
            Self::NoModel => f.write_str("these tensors say of no model that they are one"),
            Self::ModelDtype { found } => write!(f, "no model has tensors of type {found}"),
            Self::UnknownEncoding { found } => {
                write!(f, "the numbers of a tensor of type {found} are not known here")
            }
            Self::ByteOrder { found } => {
                write!(f, "big-endian blocks of type {found} are not turned round here")
            }
            #[cfg(feature = "quantize")]
            Self::NotRepresentable { from, to, .. } => write!(f, "{from} cannot become {to}"),
            Self::Dimension { .. } => f.write_str("a dimension is beyond what this machine can count"),
            Self::OutOfRange { offset, len, available } => {
                write!(f, "{len} bytes at {offset} are beyond the tensor, which has {available}")
            }
            Self::InvalidEntry { key, reason } => {
                write!(f, "the entry {} is not valid: {}", Quoted(key), Visible(reason))
            }
            Self::EntryType { key, expected, value } => {
                write!(f, "{}: expected {}, found {}", Quoted(key), Visible(expected), Quoted(value))
            }
            Self::TensorNotFound => f.write_str("there is no such tensor"),
            Self::OutOfMemory { bytes } => write!(f, "cannot allocate {bytes} bytes"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        #[cfg(feature = "quantize")]
        if let ErrorKind::NotRepresentable { element: Some(element), value, .. } = self.0.kind {
            write!(f, ": element {element} is {value}")?;
        }
        match &self.0.tensor {
            Some(tensor) => write!(f, ", tensor {}", Quoted(tensor)),
            None => Ok(()),
        }
    }
}

/// Of a wrapped error, its own source: its text is part of this one's.
impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::SafeTensors(error) => error.source(),
            ErrorKind::Apr(error) => error.source(),
            #[cfg(feature = "gguf")]
            ErrorKind::Gguf(error) => error.source(),
            #[cfg(feature = "sealed")]
            ErrorKind::Sealed(error) => error.source(),
            ErrorKind::Model(error) => error.source(),
            // So that a missing range is found in the chain.
            ErrorKind::Read(error) => Some(error),
            #[cfg(feature = "std")]
            ErrorKind::File(error) => error.source(),
            #[cfg(feature = "std")]
            ErrorKind::Files(error) => error.source(),
            _ => None,
        }
    }
}
