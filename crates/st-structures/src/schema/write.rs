//! Writes nodes as a schema and its tensors.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use json_scan::{Escape, push_string};
use st_core::Dtype;

use super::{
    BOOL, BYTES, COMPLEX, COUNTER, DATA_TYPE, DATACLASS, DEFAULT_DICT, DEQUE, DICT, ENUM, FACTORY, FLOAT,
    FROZEN_SET, INT, KEYS, LIST, MAXLEN, NAME, NAMED_TUPLE, NONE, ORDERED_DICT, SCALAR, SET, STR, TUPLE,
    VALUE, VARIANT,
};
use crate::error::{Error, ErrorKind};
use crate::limits::{Limits, MAX_DEPTH};
use crate::node::{Entry, Factory, Node};
use crate::number::{complex_text, float_text, is_integer};
use crate::tensor::Tensor;

/// A tensor of the file; its name is its place among them.
#[derive(Debug)]
pub(crate) struct Stored<'n> {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Cow<'n, [usize]>,
    pub(crate) data: &'n [u8],
}

/// Writes a schema; what it holds can be read again with the default limits.
pub(crate) fn write<'n>(root: &'n Node<'_>) -> Result<(String, Vec<Stored<'n>>), Error> {
    let mut writer = Writer { out: String::new(), tensors: Vec::new(), nodes_left: Limits::DEFAULT.nodes };
    writer.node(root, MAX_DEPTH)?;
    Ok((writer.out, writer.tensors))
}

struct Writer<'n> {
    out: String,
    tensors: Vec<Stored<'n>>,
    nodes_left: u32,
}

impl<'n> Writer<'n> {
    fn node(&mut self, node: &'n Node<'_>, depth_left: u8) -> Result<(), Error> {
        let depth_left = depth_left.checked_sub(1).ok_or(ErrorKind::TooDeep { limit: MAX_DEPTH })?;
        let too_many = ErrorKind::TooMany { limit: Limits::DEFAULT.nodes };
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or(too_many)?;
        match node {
            Node::None => self.literal(NONE, "null"),
            Node::Bool(value) => self.literal(BOOL, if *value { "true" } else { "false" }),
            Node::Int(value) => self.text(INT, &value.to_string()),
            Node::BigInt(digits) if is_integer(digits) => self.text(INT, digits),
            Node::BigInt(_) => {
                return Err(ErrorKind::InvalidNumber { expected: "the text of an integer" }.into());
            }
            Node::Float(value) => self.text(FLOAT, &float_text(*value)),
            Node::Complex(re, im) => self.text(COMPLEX, &complex_text(*re, *im)),
            Node::Str(text) => self.text(STR, text),
            Node::Bytes(bytes) => {
                self.tensor(
                    BYTES,
                    Stored { dtype: Dtype::U8, shape: [bytes.len()].to_vec().into(), data: bytes },
                );
            }
            Node::List(items) => self.items(LIST, items, depth_left)?,
            Node::Tuple(items) => self.items(TUPLE, items, depth_left)?,
            Node::Set(items) => self.items(SET, items, depth_left)?,
            Node::FrozenSet(items) => self.items(FROZEN_SET, items, depth_left)?,
            Node::Deque(items, maxlen) => {
                self.items(DEQUE, items, depth_left)?;
                self.optional(MAXLEN, maxlen.map(|len| len.to_string()).as_deref());
            }
            Node::Dict(entries) => self.entries(DICT, entries, depth_left)?,
            Node::OrderedDict(entries) => self.entries(ORDERED_DICT, entries, depth_left)?,
            Node::Counter(entries) => self.entries(COUNTER, entries, depth_left)?,
            Node::DefaultDict(entries, factory) => {
                self.entries(DEFAULT_DICT, entries, depth_left)?;
                self.optional(FACTORY, factory.map(Factory::name));
            }
            Node::Dataclass(class) => {
                self.fields(DATACLASS, &class.fields, depth_left)?;
                if let Some(name) = &class.name {
                    self.field(NAME, name);
                }
            }
            Node::NamedTuple(tuple) => {
                self.fields(NAMED_TUPLE, &tuple.fields, depth_left)?;
                self.field(NAME, &tuple.name);
            }
            Node::Enum(member) => {
                self.open(ENUM);
                self.node(&member.value, depth_left).map_err(|error| error.in_entry(&member.variant))?;
                self.field(NAME, &member.name);
                self.field(VARIANT, &member.variant);
            }
            Node::Tensor(tensor) => self.tensor(tensor.library().data_type(), stored(tensor)),
            Node::Scalar(tensor) if tensor.shape().is_empty() => self.tensor(SCALAR, stored(tensor)),
            Node::Scalar(_) => return Err(ErrorKind::TensorShape { expected: "no dimensions" }.into()),
        }
        self.out.push('}');
        Ok(())
    }

    /// Everything of a node up to its value.
    fn open(&mut self, data_type: &str) {
        self.out.push('{');
        self.key(DATA_TYPE);
        push_string(&mut self.out, data_type, Escape::Ascii);
        self.out.push_str(", ");
        self.key(VALUE);
    }

    fn key(&mut self, key: &str) {
        push_string(&mut self.out, key, Escape::Ascii);
        self.out.push_str(": ");
    }

    fn literal(&mut self, data_type: &str, value: &str) {
        self.open(data_type);
        self.out.push_str(value);
    }

    fn text(&mut self, data_type: &str, value: &str) {
        self.open(data_type);
        push_string(&mut self.out, value, Escape::Ascii);
    }

    /// A further field.
    fn field(&mut self, field: &str, value: &str) {
        self.optional(field, Some(value));
    }

    fn optional(&mut self, field: &str, value: Option<&str>) {
        self.out.push_str(", ");
        self.key(field);
        match value {
            Some(value) => push_string(&mut self.out, value, Escape::Ascii),
            None => self.out.push_str("null"),
        }
    }

    fn tensor(&mut self, data_type: &str, tensor: Stored<'n>) {
        self.text(data_type, &self.tensors.len().to_string());
        self.tensors.push(tensor);
    }

    fn items(&mut self, data_type: &str, items: &'n [Node<'_>], depth_left: u8) -> Result<(), Error> {
        self.open(data_type);
        self.out.push('[');
        for (idx, item) in items.iter().enumerate() {
            self.separate(idx);
            self.node(item, depth_left).map_err(|error| error.in_item(idx))?;
        }
        self.out.push(']');
        Ok(())
    }

    fn fields(
        &mut self,
        data_type: &str,
        fields: &'n [(String, Node<'_>)],
        depth_left: u8,
    ) -> Result<(), Error> {
        self.open(data_type);
        self.object(fields.iter().map(|(name, value)| (&**name, value)), depth_left)
    }

    fn entries(&mut self, data_type: &str, entries: &'n [Entry<'_>], depth_left: u8) -> Result<(), Error> {
        self.open(data_type);
        self.object(entries.iter().map(|entry| (&*entry.label, &entry.value)), depth_left)?;
        self.out.push_str(", ");
        self.key(KEYS);
        self.object(entries.iter().map(|entry| (&*entry.label, &entry.key)), depth_left)
    }

    fn object<'m>(
        &mut self,
        members: impl Iterator<Item = (&'n str, &'n Node<'m>)>,
        depth_left: u8,
    ) -> Result<(), Error>
    where
        'm: 'n,
    {
        let mut labels = BTreeSet::new();
        self.out.push('{');
        for (idx, (label, node)) in members.enumerate() {
            if !labels.insert(label) {
                return Err(ErrorKind::key_collision(label).into());
            }
            self.separate(idx);
            self.key(label);
            self.node(node, depth_left).map_err(|error| error.in_entry(label))?;
        }
        self.out.push('}');
        Ok(())
    }

    fn separate(&mut self, idx: usize) {
        if idx > 0 {
            self.out.push_str(", ");
        }
    }
}

fn stored<'n>(tensor: &'n Tensor<Cow<'_, [u8]>>) -> Stored<'n> {
    Stored { dtype: tensor.dtype(), shape: tensor.shape().into(), data: tensor.data() }
}
