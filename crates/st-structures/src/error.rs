//! Kinds of errors.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use located_error::{Subject, bounded};

/// Bytes kept of a string that a file or a type supplied.
const KEPT: usize = 256;

const TYPE: &str = "read the file into a type that has a field for this, or into `st_structures::Structure`";
const NOT_ONE: &str =
    "read it as a plain safetensors file, or save the data again with safestructures or apr.structures";
const DAMAGED: &str =
    "the schema was changed or made by hand: ask the author of the program that wrote the file";
const LIMITS: &str = "if you trust the file, read it with a program of your own and `st_structures::Limits`";

located_error::errors! {
    /// Why a file or a value was refused. The offset is that of a byte in the JSON of the schema, the subject a path in the
    /// structure: `.layers[3].weight`.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Error;

    /// What was wrong.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum ErrorKind {
        /// The data is valid but does not fit the type of the program that reads it. The message says where.
        Custom {
            /// What the type reports, at most 512 bytes.
            message: Box<str>,
        } = "ss-custom" (Invalid),
            "{message}"
            => TYPE;
        /// The file holds tensors but no `_safestructures_schema_`: nothing describes how they belong together.
        NoSchema = "ss-no-schema" (Invalid),
            "no schema in the metadata: a safetensors file, not a structure"
            => NOT_ONE;
        /// The file holds a schema but not its version. Writers always store it.
        NoVersion = "ss-no-version" (Invalid),
            "the metadata has no version of the schema"
            => DAMAGED;
        /// The schema is of a version that is not known; 1.0.0 is. The same words may mean other things in another version.
        UnknownVersion {
            /// The value in the file, cut after 256 bytes.
            found: Box<str>,
        } = "ss-version" (Unsupported),
            "unsupported schema version {found:?}, expected 1.0.0"
            => "look for a newer release of this program";
        /// The schema is not valid JSON.
        Json {
            /// What should have come.
            expected: &'static str,
        } = "ss-json" (Invalid),
            "invalid JSON in the schema: expected {expected}"
            => DAMAGED;
        /// A string of the schema contains half of a surrogate pair. Strings of Python may contain one, those of most other languages may not.
        LoneSurrogate = "ss-json-surrogate" (Unsupported),
            "lone surrogate in a string of the schema"
            => "read the file with `apr.structures` in Python and replace the string";
        /// An object of the schema has two equal keys. Readers disagree about which of them counts.
        DuplicateKey {
            /// The key, cut after 256 bytes.
            key: Box<str>,
        } = "ss-duplicate" (Invalid),
            "duplicate field {key:?} in an object of the schema"
            => DAMAGED;
        /// The data are nested more deeply than 128 levels, or than the program allows. Deeper trees exhaust the stack of readers.
        TooDeep {
            /// Deepest level accepted.
            limit: u8,
        } = "ss-depth" (Invalid),
            "nodes nested deeper than {limit} levels"
            => "keep long chains as lists";
        /// The schema has more nodes than the limit allows.
        TooMany {
            /// Most accepted.
            limit: u32,
        } = "ss-nodes" (Invalid),
            "more than {limit} nodes"
            => LIMITS;
        /// A node of the schema lacks a field that its type needs.
        MissingField {
            /// The field.
            field: &'static str,
        } = "ss-field-missing" (Invalid),
            "node without `{field}`"
            => DAMAGED;
        /// A node of the schema has a field that its type does not know. Passing over it could lose data.
        UnknownField {
            /// The field, cut after 256 bytes.
            field: Box<str>,
        } = "ss-field-unknown" (Invalid),
            "node with an unknown field {field:?}"
            => DAMAGED;
        /// A field of the schema holds the wrong kind of JSON value.
        WrongType {
            /// What belongs there.
            expected: &'static str,
        } = "ss-type" (Invalid),
            "wrong type of value in the schema: expected {expected}"
            => DAMAGED;
        /// A node is of a type that is not known. Names in a file are compared with a fixed list; nothing is imported by them.
        UnknownType {
            /// The value in the file, cut after 256 bytes.
            name: Box<str>,
        } = "ss-data-type" (Unsupported),
            "unknown data type {name:?}"
            => "read the file in Python with the plugin that wrote it: `apr.structures.load_file(path, plugins=[...])`";
        /// A text that should be a number is none, or one too large for the type.
        InvalidNumber {
            /// What belongs there.
            expected: &'static str,
        } = "ss-number" (Invalid),
            "invalid number: expected {expected}"
            => DAMAGED;
        /// The values and the keys of a dict do not belong together.
        KeysDiffer {
            /// A label that is on one side only, cut after 256 bytes.
            label: Box<str>,
        } = "ss-keys" (Invalid),
            "`value` and `keys` of a dict differ: {label:?} is in one of them"
            => DAMAGED;
        /// Two keys of a map have the same text, such as 1 and "1". One of the values would be lost.
        KeyCollision {
            /// The text, cut after 256 bytes.
            label: Box<str>,
        } = "ss-key-collision" (Usage),
            "two keys of a map have the same string form {label:?}"
            => "use keys of one type, or a list of pairs";
        /// The schema names a tensor that the file does not have.
        NoTensor {
            /// What it names, cut after 256 bytes.
            id: Box<str>,
        } = "ss-tensor" (Invalid),
            "no tensor {id:?} in the file"
            => DAMAGED;
        /// A tensor that represents bytes or a scalar has another type or shape.
        TensorShape {
            /// What belongs there.
            expected: &'static str,
        } = "ss-tensor-shape" (Invalid),
            "wrong dtype or shape of a tensor: expected {expected}"
            => DAMAGED;
        /// The schema is kept in the metadata under this key, so a program cannot use it for its own.
        ReservedKey {
            /// The key.
            key: &'static str,
        } = "ss-reserved-key" (Usage),
            "`{key}` cannot be a key of the metadata"
            => "rename the key";
    }

    wrapped {
        /// The file is not a valid safetensors file, or the tensors cannot become one.
        File(st_core::Error);
    }
}

impl Error {
    /// The same error, seen from the list around its value.
    pub(crate) fn in_item(self, idx: usize) -> Self {
        self.inside(format!("[{idx}]"))
    }

    /// The same error, seen from the map around its value.
    pub(crate) fn in_entry(self, label: &str) -> Self {
        let plain =
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        self.inside(if plain { format!(".{}", cut(label)) } else { format!("[{:?}]", cut(label)) })
    }

    fn inside(mut self, mut step: String) -> Self {
        step += self.0.subject.as_ref().map_or("", Subject::name);
        self.0.subject = Some(Subject::Field(step.into()));
        self
    }
}

/// The beginning of a string that may be long.
pub(crate) fn cut(text: &str) -> &str {
    located_error::cut(text, KEPT)
}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

fn custom(message: &dyn fmt::Display) -> Error {
    ErrorKind::Custom { message: bounded(message, 2 * KEPT) }.into()
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        custom(&message)
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        custom(&message)
    }
}

impl ErrorKind {
    pub(crate) fn unknown_version(found: &str) -> Self {
        Self::UnknownVersion { found: cut(found).into() }
    }

    pub(crate) fn key_collision(label: &str) -> Self {
        Self::KeyCollision { label: cut(label).to_string().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_in_order() {
        let problems = located_error::problems(ErrorKind::TABLE, "ss-");
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn paths_begin_at_the_outermost_value() {
        let error = Error::from(ErrorKind::NoSchema).in_item(3).in_entry("a b").in_entry("layers").at(7);
        assert_eq!(error.subject().map(Subject::name), Some(".layers[\"a b\"][3]"));
        assert!(error.to_string().ends_with(", in `.layers[\"a b\"][3]`, at byte 7"), "{error}");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let error = <Error as serde::de::Error>::custom(format_args!("a{}", "é".repeat(1000)));
        let ErrorKind::Custom { message } = error.kind() else { panic!("{error}") };
        assert_eq!(message.len(), 511);
        assert_eq!(cut(&"é".repeat(200)).len(), 256);
    }
}
