//! What can be wrong with a structure.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Write as _};

/// Bytes kept of a text that a file or a type supplied.
const KEPT: usize = 256;

/// Why a file or a value was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: Option<u64>,
    path: String,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Where in the text of the schema, in bytes, if the text itself is wrong.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Where in the structure: `.layers[3].weight`, empty for the outermost value.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Stable identifier: one of [`ErrorKind::CODES`], or the wrapped error's own.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.kind.code()
    }

    pub(crate) fn at(mut self, offset: usize) -> Self {
        self.offset = Some(offset as u64);
        self
    }

    /// The same error, seen from the list around its place.
    pub(crate) fn in_item(mut self, idx: usize) -> Self {
        self.path.insert_str(0, &format!("[{idx}]"));
        self
    }

    /// The same error, seen from the map around its place.
    pub(crate) fn in_entry(mut self, label: &str) -> Self {
        let plain =
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let step = if plain { format!(".{}", cut(label)) } else { format!("[{:?}]", cut(label)) };
        self.path.insert_str(0, &step);
        self
    }
}

/// The beginning of a text that may be long.
pub(crate) fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(KEPT)).unwrap_or_default()
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, offset: None, path: String::new() }
    }
}

impl From<st_core::Error> for Error {
    fn from(error: st_core::Error) -> Self {
        ErrorKind::File { error }.into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if !self.path.is_empty() {
            write!(f, ", in `{}`", self.path)?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", at byte {offset} of the schema")?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::File { error } => Some(error),
            _ => None,
        }
    }
}

#[cfg(feature = "std")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

/// A text of a type, cut: it may quote the file.
struct Message(String);

impl fmt::Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = 2 * KEPT - self.0.len();
        let kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.0.push_str(kept);
        if kept.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

fn custom(message: &dyn fmt::Display) -> Error {
    let mut kept = Message(String::new());
    // It fails when there is more than is kept.
    let _ = write!(kept, "{message}");
    ErrorKind::Custom { message: kept.0.into() }.into()
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

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $variant:ident $({ $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })?
        => $code:literal, $text:literal;)*) => {
        /// What was wrong.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ErrorKind {
            /// The file is not a sound safetensors file, or none can be made of the tensors.
            File {
                /// What the format's own reader or writer says.
                error: st_core::Error,
            },
            /// A type refuses a value, or has no place for it.
            Custom {
                /// What it says, at most 512 bytes.
                message: Box<str>,
            },
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $ty),* })?,)*
        }

        impl ErrorKind {
            /// Every identifier of this crate's own; [`File`](Self::File) has that of the error it wraps.
            pub const CODES: &'static [&'static str] = &["ss-custom", $($code),*];

            /// Stable identifier of the kind.
            #[must_use]
            pub const fn code(&self) -> &'static str {
                match self {
                    Self::File { error } => error.code(),
                    Self::Custom { .. } => "ss-custom",
                    $(Self::$variant $({ $($field: _),* })? => $code,)*
                }
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::File { error } => error.fmt(f),
                    Self::Custom { message } => f.write_str(message),
                    $(Self::$variant $({ $($field),* })? => write!(f, $text),)*
                }
            }
        }
    };
}

error_kinds! {
    /// The metadata hold no schema: tensors alone.
    NoSchema => "ss-no-schema", "no schema in the metadata: a safetensors file, not a structure";
    /// The metadata do not say which version the schema is of.
    NoVersion => "ss-no-version", "no version of the schema in the metadata";
    /// A version that is not known.
    UnknownVersion {
        /// What the file says, cut after 256 bytes.
        found: Box<str>,
    } => "ss-version", "schema of version {found:?}, 1.0.0 is known";
    /// The text of the schema is not JSON.
    Json {
        /// What should have come.
        expected: &'static str,
    } => "ss-json", "the schema is not valid JSON: {expected} expected";
    /// Half of a surrogate pair.
    LoneSurrogate => "ss-json-surrogate", "half of a surrogate pair in a text of the schema";
    /// An object with two equal keys.
    DuplicateKey {
        /// The key, cut after 256 bytes.
        key: Box<str>,
    } => "ss-duplicate", "two fields {key:?} in one object of the schema";
    /// Nodes within each other beyond the limit.
    TooDeep {
        /// Deepest level accepted.
        limit: u8,
    } => "ss-depth", "nodes nested deeper than {limit} levels";
    /// More nodes than the limit allows.
    TooMany {
        /// Most accepted.
        limit: u32,
    } => "ss-nodes", "more than {limit} nodes";
    /// A node lacks a field.
    MissingField {
        /// The field.
        field: &'static str,
    } => "ss-field-missing", "node without `{field}`";
    /// A node has a field that its type does not know.
    UnknownField {
        /// The field, cut after 256 bytes.
        field: Box<str>,
    } => "ss-field-unknown", "node with an unknown field {field:?}";
    /// A field of the wrong kind.
    WrongType {
        /// What belongs there.
        expected: &'static str,
    } => "ss-type", "wrong kind of value in the schema: {expected} expected";
    /// A type that is not among those the layout knows. It is not looked up anywhere.
    UnknownType {
        /// What the file says, cut after 256 bytes.
        name: Box<str>,
    } => "ss-data-type", "unknown data type {name:?}";
    /// A text that is not the number it should be.
    InvalidNumber {
        /// What belongs there.
        expected: &'static str,
    } => "ss-number", "{expected} expected";
    /// A dict whose `value` and `keys` have different labels.
    KeysDiffer {
        /// A label that is on one side only, cut after 256 bytes.
        label: Box<str>,
    } => "ss-keys", "`value` and `keys` of a dict differ: {label:?} is in one of them";
    /// Two keys of a map have the same text.
    KeyCollision {
        /// The text, cut after 256 bytes.
        label: Box<str>,
    } => "ss-key-collision", "two keys of a map are both written {label:?}";
    /// A node names a tensor that the file does not have.
    NoTensor {
        /// What it names, cut after 256 bytes.
        id: Box<str>,
    } => "ss-tensor", "no tensor {id:?} in the file";
    /// A tensor of another type or shape than its node needs.
    TensorShape {
        /// What belongs there.
        expected: &'static str,
    } => "ss-tensor-shape", "tensor of another type or shape: {expected} expected";
    /// A key that the layout keeps for itself.
    ReservedKey {
        /// The key.
        key: &'static str,
    } => "ss-reserved-key", "`{key}` cannot be a key of the metadata";
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
    fn every_kind_has_a_text_and_a_code_of_its_own() {
        use ErrorKind::*;
        let (expected, limit) = ("x", 1);
        let text: Box<str> = "x".into();
        let kinds = [
            Custom { message: "a message".into() },
            NoSchema,
            NoVersion,
            UnknownVersion { found: text.clone() },
            Json { expected },
            LoneSurrogate,
            DuplicateKey { key: text.clone() },
            TooDeep { limit: 1 },
            TooMany { limit },
            MissingField { field: "x" },
            UnknownField { field: text.clone() },
            WrongType { expected },
            UnknownType { name: text.clone() },
            InvalidNumber { expected },
            KeysDiffer { label: text.clone() },
            KeyCollision { label: text.clone() },
            NoTensor { id: text },
            TensorShape { expected },
            ReservedKey { key: "x" },
        ];
        assert!(kinds.iter().map(ErrorKind::code).eq(ErrorKind::CODES.iter().copied()));
        for (idx, kind) in kinds.iter().enumerate() {
            let text = kind.to_string();
            assert!(text.len() > 8 && !text.ends_with('.') && !text.contains('\n'), "{text}");
            assert!(kind.code().starts_with("ss-") && !ErrorKind::CODES[..idx].contains(&kind.code()));
        }
    }

    #[test]
    fn places_are_shown_from_the_outside() {
        let error = Error::from(ErrorKind::NoSchema).in_item(3).in_entry("a b").in_entry("layers").at(7);
        assert_eq!(error.path(), ".layers[\"a b\"][3]");
        assert!(
            error.to_string().ends_with(", in `.layers[\"a b\"][3]`, at byte 7 of the schema"),
            "{error}"
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let error = <Error as serde::de::Error>::custom(format_args!("a{}", "é".repeat(1000)));
        let ErrorKind::Custom { message } = error.kind() else { panic!("{error}") };
        assert_eq!(message.len(), 511);
        assert_eq!(cut(&"é".repeat(200)).len(), 256);
    }
}
