//! What an error is about.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use json_scan::Quoted;

use crate::text::cut;

/// Bytes that are kept of a name.
const KEPT: usize = 256;

/// What an error is about, by its name in the file. Names are cut after 256 bytes, and shown escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A tensor.
    Tensor(Box<str>),
    /// A key of the metadata, with its path joined by dots.
    Key(Box<str>),
    /// A value of a nested structure, by its path: `.layers[3].weight`. Labels in it that are not identifiers are escaped already.
    Field(Box<str>),
    /// An entry of a list of files.
    Entry(Box<str>),
    /// A column of a table.
    Column(Box<str>),
}

impl Subject {
    /// A tensor.
    #[must_use]
    pub fn tensor(name: &str) -> Self {
        Self::Tensor(cut(name, KEPT).into())
    }

    /// A key of the metadata.
    #[must_use]
    pub fn key(name: &str) -> Self {
        Self::Key(cut(name, KEPT).into())
    }

    /// An entry of a list of files.
    #[must_use]
    pub fn entry(name: &str) -> Self {
        Self::Entry(cut(name, KEPT).into())
    }

    /// A column of a table.
    #[must_use]
    pub fn column(name: &str) -> Self {
        Self::Column(cut(name, KEPT).into())
    }

    /// A tensor whose name may not be UTF-8: other bytes are replaced.
    #[must_use]
    pub fn tensor_bytes(name: &[u8]) -> Self {
        Self::tensor(&lossy(name))
    }

    /// A key that may not be UTF-8: other bytes are replaced.
    #[must_use]
    pub fn key_bytes(name: &[u8]) -> Self {
        Self::key(&lossy(name))
    }

    /// The name, not escaped.
    #[must_use]
    pub const fn name(&self) -> &str {
        match self {
            Self::Tensor(name)
            | Self::Key(name)
            | Self::Field(name)
            | Self::Entry(name)
            | Self::Column(name) => name,
        }
    }

    /// The name, if this is a tensor.
    #[must_use]
    pub const fn as_tensor(&self) -> Option<&str> {
        match self {
            Self::Tensor(name) => Some(name),
            _ => None,
        }
    }
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..KEPT).unwrap_or(name)).into_owned()
}

/// `tensor "w"`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(name) => write!(f, "tensor {}", Quoted(name)),
            Self::Key(name) => write!(f, "key {}", Quoted(name)),
            Self::Field(path) => write!(f, "in `{path}`"),
            Self::Entry(name) => write!(f, "entry {}", Quoted(name)),
            Self::Column(name) => write!(f, "column {}", Quoted(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn names_are_cut_between_characters_and_shown_escaped() {
        assert_eq!(Subject::tensor(&"é".repeat(200)).name().len(), 256);
        assert_eq!(Subject::tensor_bytes(&[b'x'; 999]).name().len(), 256);
        let subject = Subject::key_bytes(b"a\n\xff");
        assert_eq!(subject.to_string(), "key \"a\\n\u{fffd}\"");
        assert_eq!((subject.as_tensor(), Subject::tensor("w").as_tensor()), (None, Some("w")));
    }
}
