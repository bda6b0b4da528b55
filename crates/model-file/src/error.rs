//! Kinds of errors.

#[cfg(feature = "tensor-models")]
use alloc::string::String;
#[cfg(feature = "quantize")]
use core::fmt;

#[cfg(feature = "apr")]
use apr_container::ModelType;
#[cfg(feature = "tensor-models")]
use json_scan::{Quoted, Visible};
use located_error::{Subject, remedy};
use tensor_dtype::TensorType;

use crate::FileKind;

const CONVERT: &str = "convert the file to another type with the program that wrote it";

located_error::errors! {
    /// Why a model file was refused, with the tensor concerned.
    pub struct Error;

    /// What was wrong.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// The bytes of the file could not be read: a range is outside it, has not arrived yet, or the source failed.
        Read {
            /// The error of the source.
            error: read_at::Error,
        } = "mo-read" (Io) from error,
            "{}", error
            => "check the disk or connection that the bytes come from, and try again";
        /// The file is of a format that is recognized and not opened: one of other programs, or one whose feature is not enabled.
        ForeignFormat {
            /// What the file is.
            found: FileKind,
        } = "mo-foreign-format" (Unsupported),
            "this is {}", found.title()
            => "convert the file to safetensors, .apr or GGUF";
        /// The payload has a type of its author's own, which only their program can decode.
        ForeignPayload {
            /// The declared model type.
            model_type: ModelType,
        } = "mo-foreign-payload" (Unsupported) if "apr",
            "the payload has a custom type ({model_type})"
            => "open the file with the program that wrote it";
        /// The metadata name no model, and the tensors are too large for one.
        NoModel = "mo-no-model" (Usage) if "tensor-models",
            "these tensors are not a model that predicts"
            => "use a file of `apr train`, or of apr.sklearn.export in Python; a language model runs in llama.cpp, Ollama or LM Studio";
        /// A tensor has a dtype that no model has.
        ModelDtype {
            /// The type.
            found: TensorType,
        } = "mo-model-dtype" (Usage) if "tensor-models",
            "no model has tensors of type {found}"
            => "use a file that `apr train` wrote";
        /// A nested object was asked for in a file of a format that has none.
        NoNestedObjects {
            /// What the file is.
            found: FileKind,
        } = "mo-key" (Usage) if "foreign",
            "{} has no nested objects", found.title()
            => "leave the nested object out: the file is read as a whole";
        /// There is no code to decode the values of this type.
        UnknownEncoding {
            /// The type.
            found: TensorType,
        } = "mo-unknown-encoding" (Unsupported),
            "decoding {found} is not supported"
            => CONVERT;
        /// The file is big-endian, and the layout of its blocks in that byte order is not known.
        ByteOrder {
            /// The type.
            found: TensorType,
        } = "mo-byte-order" (Unsupported) if "gguf",
            "big-endian blocks of type {found} are not supported"
            => CONVERT;
        /// A value is outside the range of the requested element type, or the blocks cannot be decoded.
        NotRepresentable {
            /// The stored type.
            from: TensorType,
            /// The requested type.
            to: TensorType,
            /// Index of the value; `None` if the blocks themselves cannot be decoded.
            element: Option<u64>,
            /// The value.
            value: f32,
        } = "mo-not-representable" (Invalid) if "quantize",
            "{} cannot become {}{}", from, to, Unfit(*element, *value)
            => "request another type: F32 represents every value";
        /// A range of bytes is outside the tensor.
        OutOfRange {
            /// First byte of the range.
            offset: u64,
            /// Length of the range.
            len: u64,
            /// Length of the tensor.
            available: u64,
        } = "mo-range" (Internal),
            "range of {len} bytes from byte {offset} is outside the {available} bytes of the tensor"
            => remedy::BUG;
        /// An entry with metadata of a format is not what this crate writes there.
        InvalidEntry {
            /// Key of the entry.
            key: String,
            /// What is wrong with it.
            reason: String,
        } = "mo-invalid-entry" (Usage) if "tensor-models",
            "the entry {} is not valid: {}", Quoted(key), Visible(reason)
            => "remove the entry, or set it correctly";
        /// An entry does not have the type of its GGUF key.
        EntryType {
            /// The key.
            key: String,
            /// Its type.
            expected: String,
            /// The value.
            value: String,
        } = "mo-entry-type" (Usage) if "tensor-models",
            "{}: expected {}, found {}", Quoted(key), Visible(expected), Quoted(value)
            => "set the entry to JSON of that type, or give another type before the value, as in str:VALUE";
        /// A new GGUF key of unknown type would become a string, and its value looks like a number, a truth value or an array.
        EntryWithoutType {
            /// The key.
            key: String,
            /// The value.
            value: String,
            /// A type that it could have.
            kind: String,
        } = "mo-entry-untyped" (Usage) if "tensor-models",
            "{} is not a known key, and {} may be a {} or a string", Quoted(key), Quoted(value), Visible(kind)
            => "put the type before the value, as in u32:7, f32:0.5, bool:true, i32[]:[1,2] or str:7";
        /// No tensor has this name.
        TensorNotFound = "mo-no-tensor" (Usage),
            "tensor not found"
            => remedy::TENSOR_NAMES;
        /// There is not enough memory for the bytes of a tensor or file.
        OutOfMemory {
            /// Requested bytes.
            bytes: u64,
        } = "mo-out-of-memory" (Io),
            "no memory for {bytes} bytes"
            => remedy::MEMORY;
    }

    wrapped {
        /// A safetensors header.
        SafeTensors(st_core::Error);
        /// An `.apr` file.
        Apr(apr_container::Error) if "apr";
        /// A GGUF file.
        Gguf(gguf_core::Error) if "gguf";
        /// A sealed file.
        Sealed(apr_sealed::Error) if "sealed";
        /// A file of another program.
        Foreign(foreign_tensors::Error) if "foreign";
        /// A model and its tensors.
        Model(apr_models::Error) if "apr";
        /// A file that cannot be opened.
        File(durable_file::Error) if "std";
        /// A safetensors file, or a set of them, on disk.
        Files(st_mmap::Error) if "std";
    }
}

impl Error {
    /// The kind, for crates that wrap it in an error of their own.
    #[must_use]
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    pub(crate) fn of_tensor(self, name: &str) -> Self {
        self.of(Subject::tensor(name))
    }
}

/// Of the content of a sealed file, the error of the sealed file.
impl From<read_at::Error> for Error {
    fn from(error: read_at::Error) -> Self {
        #[cfg(feature = "sealed")]
        if matches!(core::error::Error::source(&error), Some(source) if source.is::<apr_sealed::Error>()) {
            let kind = error.kind();
            let sealed = error.into_source().and_then(|source| source.downcast::<apr_sealed::Error>().ok());
            return sealed
                .map_or(ErrorKind::Read { error: kind.into() }, |sealed| ErrorKind::Sealed(*sealed))
                .into();
        }
        ErrorKind::Read { error }.into()
    }
}

/// The element that a type cannot represent. Without its value in the npm package: formatting floats takes 12 kB.
#[cfg(feature = "quantize")]
struct Unfit(Option<u64>, f32);

#[cfg(feature = "quantize")]
impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(element) if cfg!(apr_small) => write!(f, ": element {element}"),
            Some(element) => write!(f, ": element {element} is {}", self.1),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_complete() {
        let problems = located_error::problems(ErrorKind::TABLE, "mo-");
        assert!(problems.is_empty(), "{problems:?}");
    }
}
