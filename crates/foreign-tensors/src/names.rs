//! Names of tensors: unique, and chosen or left out by the caller.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::string::String;

use located_error::Subject;

use crate::error::{Error, ErrorKind};

/// Joins a path and the next part of it with `.`.
#[cfg(any(feature = "hdf5", feature = "onnx", feature = "tflite"))]
pub(crate) fn join(path: &str, part: &str) -> String {
    if path.is_empty() {
        return part.into();
    }
    let mut joined = String::with_capacity(path.len() + 1 + part.len());
    joined.push_str(path);
    joined.push('.');
    joined.push_str(part);
    joined
}

/// The error for a key that is none of these.
#[cfg(any(feature = "numpy", feature = "hdf5"))]
pub(crate) fn no_key<'n>(keys: impl Iterator<Item = &'n str>) -> Error {
    let mut list = String::new();
    for key in keys {
        if list.len() > 1000 {
            list.push_str(", ...");
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.extend(located_error::cut(key, 100).escape_debug());
    }
    ErrorKind::NoObject { objects: list }.into()
}

/// Whether a name matches a pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    let mut rest = rest;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(found) = rest.find(part) else { return false };
        rest = rest.get(found + part.len()..).unwrap_or("");
    }
    true
}

/// The names so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// With the number of names that were there before.
    taken: BTreeMap<String, usize>,
}

impl Names {
    /// How many names were there before this one.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.taken.get(name).copied()
    }

    /// Whether the name is taken.
    #[cfg(any(feature = "onnx", feature = "tflite"))]
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.taken.contains_key(name)
    }

    /// Takes a name that no other tensor may have.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateName`].
    pub(crate) fn take(&mut self, name: &str) -> Result<(), Error> {
        let position = self.taken.len();
        match self.taken.entry(name.into()) {
            Entry::Vacant(entry) => {
                entry.insert(position);
                Ok(())
            }
            Entry::Occupied(_) => Err(Error::from(ErrorKind::DuplicateName {}).of(Subject::tensor(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "anything", true),
            ("opt*", "optimizer.0", true),
            ("*.bias", "layer.bias", true),
            ("*.bias", "layer.bias2", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_is_taken_once() {
        let mut names = Names::default();
        names.take("a").unwrap();
        assert_eq!(names.take("a").unwrap_err().code(), "ft-duplicate-name");
        names.take("0").unwrap();
        assert_eq!((names.position("a"), names.position("0"), names.position("b")), (Some(0), Some(1), None));
    }

    #[cfg(feature = "hdf5")]
    #[test]
    fn parts_of_a_path_are_joined() {
        assert_eq!((join("", "a"), join("a", "0")), ("a".into(), "a.0".into()));
    }
}
