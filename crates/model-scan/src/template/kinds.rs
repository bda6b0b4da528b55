//! Which values may be texts that a template has built.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::String;

/// What a value may be; of two, the greater one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A number, a truth value, or nothing.
    #[default]
    Number,
    /// Given by the program: messages, tools.
    Data,
    /// Written in the template as a text, or a list of such.
    Literal,
    /// A text that the template builds, or that comes from its author in another way.
    Built,
}

/// Kinds of variables by their names, of attributes by names with a point before them, of arguments of macros, and of elements that were
/// appended to lists. They hold for all of the template, in any order.
#[derive(Default)]
pub(super) struct Kinds {
    known: BTreeMap<String, Kind>,
    /// Whether a kind has grown.
    pub(super) is_changed: bool,
}

/// Key of what was appended.
pub(super) const APPENDED: &str = "[]";

impl Kinds {
    pub(super) fn grow(&mut self, name: &str, kind: Kind) {
        let old = self.known.get(name).copied();
        if old.is_none_or(|old| old < kind) {
            self.is_changed = true;
            self.known.insert(name.to_owned(), kind);
        }
    }

    /// Of what was assigned.
    pub(super) fn get(&self, name: &str) -> Option<Kind> {
        self.known.get(name).copied()
    }

    /// Greatest kind of the attributes that the template assigns.
    pub(super) fn any_attribute(&self) -> Kind {
        let attributes = self.known.iter().filter(|(name, _)| name.starts_with('.'));
        attributes.map(|(_, kind)| *kind).max().unwrap_or_default()
    }

    /// Of a variable: what is not assigned is data, except special tokens, which come with the template.
    pub(super) fn variable(&self, name: &str) -> Kind {
        let is_token = name.ends_with("_token") || name.ends_with("_tokens");
        let is_built = is_token || ["varargs", "kwargs"].contains(&name);
        let free = if is_built { Kind::Built } else { Kind::Data };
        self.get(name).unwrap_or(free)
    }
}
