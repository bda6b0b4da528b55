//! The data of a structure as a tree of nodes.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::number::{complex_text, float_text};
use crate::tensor::Tensor;

/// A value of a structure: every type of Python that the layout knows, and the variants of Rust's enums.
///
/// Tensors and bytes are borrowed from the file. The order of sets and dicts is that of the file.
///
/// ```
/// use st_structures::{Entry, Node};
///
/// let config = Node::Dict(vec![
///     Entry::new(Node::Str("layers".into()), Node::Int(12)),
///     Entry::new(Node::Tuple(vec![Node::Int(0), Node::Str("a".into())]), Node::Float(0.5)),
/// ]);
/// let Node::Dict(entries) = &config else { unreachable!() };
/// assert_eq!(entries[1].label, "(0, 'a')");
/// assert_eq!(config.get("layers"), Some(&Node::Int(12)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Node<'data> {
    /// `None`.
    None,
    /// `bool`.
    Bool(bool),
    /// `int` of at most 128 bits.
    Int(i128),
    /// `int` beyond: decimal digits, optionally after a minus sign.
    BigInt(String),
    /// `float`.
    Float(f64),
    /// `complex`: real and imaginary part.
    Complex(f64, f64),
    /// `str`.
    Str(String),
    /// `bytes`.
    Bytes(Cow<'data, [u8]>),
    /// `list`.
    List(Vec<Node<'data>>),
    /// `tuple`.
    Tuple(Vec<Node<'data>>),
    /// `set`.
    Set(Vec<Node<'data>>),
    /// `frozenset`.
    FrozenSet(Vec<Node<'data>>),
    /// `collections.deque`, with the greatest length it may have.
    Deque(Vec<Node<'data>>, Option<u64>),
    /// `dict`.
    Dict(Vec<Entry<'data>>),
    /// `collections.OrderedDict`.
    OrderedDict(Vec<Entry<'data>>),
    /// `collections.Counter`.
    Counter(Vec<Entry<'data>>),
    /// `collections.defaultdict`, with what makes its missing values.
    DefaultDict(Vec<Entry<'data>>, Option<Factory>),
    /// A dataclass.
    Dataclass(Dataclass<'data>),
    /// A named tuple.
    NamedTuple(NamedTuple<'data>),
    /// A member of a Python enum, a variant of a Rust one.
    Enum(Box<EnumNode<'data>>),
    /// A tensor.
    Tensor(Tensor<Cow<'data, [u8]>>),
    /// A numpy scalar: a tensor without dimensions.
    Scalar(Tensor<Cow<'data, [u8]>>),
}

/// An entry of a dict.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'data> {
    /// The text that joins key and value in the schema; Python's `str(key)`. No two entries of a dict share one.
    pub label: String,
    /// The key.
    pub key: Node<'data>,
    /// The value.
    pub value: Node<'data>,
}

impl<'data> Entry<'data> {
    /// An entry under the label that Python would give it (of keys that Python's own types cannot make, a similar one).
    #[must_use]
    pub fn new(key: Node<'data>, value: Node<'data>) -> Self {
        Self { label: label(&key), key, value }
    }
}

/// A dataclass: its fields, and the name it was registered under.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dataclass<'data> {
    /// The name that reader and writer agree on; safestructures has none.
    pub name: Option<String>,
    /// Names and values of the fields.
    pub fields: Vec<(String, Node<'data>)>,
}

/// A named tuple.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedTuple<'data> {
    /// Name of its type.
    pub name: String,
    /// Names and values of the fields.
    pub fields: Vec<(String, Node<'data>)>,
}

/// A member of a Python enum, a variant of a Rust one.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumNode<'data> {
    /// Name of the enum.
    pub name: String,
    /// Name of the variant.
    pub variant: String,
    /// What it holds: [`Node::None`] if nothing.
    pub value: Node<'data>,
}

macro_rules! factories {
    ($($variant:ident $name:literal,)*) => {
        /// What makes the missing values of a `defaultdict`: types of Python that need no import.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Factory {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Factory {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in Python.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The factory of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

factories! {
    Bool "bool",
    Int "int",
    Float "float",
    Complex "complex",
    Str "str",
    Bytes "bytes",
    List "list",
    Tuple "tuple",
    Set "set",
    FrozenSet "frozenset",
    Dict "dict",
}

impl<'data> Node<'data> {
    /// The elements of a list, tuple, set, frozenset or deque.
    #[must_use]
    pub fn items(&self) -> Option<&[Node<'data>]> {
        match self {
            Self::List(items) | Self::Tuple(items) | Self::Set(items) | Self::FrozenSet(items) => Some(items),
            Self::Deque(items, _) => Some(items),
            _ => None,
        }
    }

    /// The entries of a dict of any kind.
    #[must_use]
    pub fn entries(&self) -> Option<&[Entry<'data>]> {
        match self {
            Self::Dict(entries) | Self::OrderedDict(entries) | Self::Counter(entries) => Some(entries),
            Self::DefaultDict(entries, _) => Some(entries),
            _ => None,
        }
    }

    /// The value under a key that is a text, or in the field of this name. It looks at one after the other.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Node<'data>> {
        let fields = match self {
            Self::Dataclass(Dataclass { fields, .. }) | Self::NamedTuple(NamedTuple { fields, .. }) => fields,
            _ => {
                let is_it = |entry: &&Entry<'_>| matches!(&entry.key, Node::Str(key) if key == name);
                return self.entries()?.iter().find(is_it).map(|entry| &entry.value);
            }
        };
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }
}

/// Python's `str` of a key.
fn label(key: &Node<'_>) -> String {
    if let Node::Str(text) = key { text.clone() } else { repr(key) }
}

/// Python's `repr`, except that more characters count as printable.
fn repr(node: &Node<'_>) -> String {
    let list = |items: &[Node<'_>]| items.iter().map(repr).collect::<Vec<_>>().join(", ");
    match node {
        Node::None => "None".into(),
        Node::Bool(true) => "True".into(),
        Node::Bool(false) => "False".into(),
        Node::Int(value) => value.to_string(),
        Node::BigInt(digits) => digits.clone(),
        Node::Float(value) => float_text(*value),
        Node::Complex(re, im) => complex_text(*re, *im),
        Node::Str(text) => quoted(text.chars(), '\u{a0}'),
        Node::Bytes(bytes) => {
            String::from("b") + &quoted(bytes.iter().map(|byte| char::from(*byte)), '\u{ff}')
        }
        Node::Tuple(items) if items.len() == 1 => String::from("(") + &list(items) + ",)",
        Node::Tuple(items) => String::from("(") + &list(items) + ")",
        Node::FrozenSet(items) if items.is_empty() => "frozenset()".into(),
        Node::FrozenSet(items) => String::from("frozenset({") + &list(items) + "})",
        Node::List(items) | Node::Set(items) | Node::Deque(items, _) => {
            String::from("[") + &list(items) + "]"
        }
        Node::Enum(node) => node.name.clone() + "." + &node.variant,
        Node::Dict(entries)
        | Node::OrderedDict(entries)
        | Node::Counter(entries)
        | Node::DefaultDict(entries, _) => {
            let entries = entries.iter().map(|entry| repr(&entry.key) + ": " + &repr(&entry.value));
            String::from("{") + &entries.collect::<Vec<_>>().join(", ") + "}"
        }
        Node::Dataclass(Dataclass { name, fields }) => call(name.as_deref().unwrap_or_default(), fields),
        Node::NamedTuple(NamedTuple { name, fields }) => call(name, fields),
        Node::Tensor(tensor) | Node::Scalar(tensor) => alloc::format!("{tensor:?}"),
    }
}

fn call(name: &str, fields: &[(String, Node<'_>)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(field, value)| field.clone() + "=" + &repr(value)).collect();
    String::from(name) + "(" + &fields.join(", ") + ")"
}

/// A text in quotes; from DEL on, characters up to `escaped` are not printed as they are.
fn quoted(chars: impl Iterator<Item = char> + Clone, escaped: char) -> String {
    let quote = if chars.clone().any(|c| c == '\'') && !chars.clone().any(|c| c == '"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for char in chars {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if char == quote => out.extend(['\\', char]),
            _ if char < ' ' || ('\x7f'..=escaped).contains(&char) => {
                let _ = write!(out, "\\x{:02x}", char as u32);
            }
            _ => out.push(char),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn labels_are_those_of_python() {
        let text = |text: &str| Node::Str(text.into());
        let table = [
            (text("a'b"), "a'b"),
            (Node::Bool(true), "True"),
            (Node::None, "None"),
            (Node::Int(-3), "-3"),
            (Node::Float(2.0), "2.0"),
            (Node::Complex(1.0, 2.0), "(1+2j)"),
            (Node::Tuple(vec![]), "()"),
            (Node::Tuple(vec![Node::Int(1)]), "(1,)"),
            (Node::Tuple(vec![text("it's"), text("a\"'\n"), Node::None]), "(\"it's\", 'a\"\\'\\n', None)"),
            (Node::FrozenSet(vec![Node::Int(1), Node::Int(2)]), "frozenset({1, 2})"),
            (Node::Bytes(Cow::Borrowed(b"a\xff'")), "b\"a\\xff'\""),
        ];
        for (key, label) in table {
            assert_eq!(Entry::new(key, Node::None).label, label);
        }
    }

    #[test]
    fn factories_are_found_by_their_names() {
        for factory in Factory::ALL {
            assert_eq!(Factory::from_name(factory.name()), Some(*factory));
        }
        assert_eq!(Factory::from_name("os.system"), None);
    }
}
