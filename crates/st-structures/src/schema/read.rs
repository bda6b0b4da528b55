//! Parses a schema into nodes.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use st_core::{Dtype, SafeTensors};

use super::{
    BOOL, BYTES, COMPLEX, COUNTER, DATA_TYPE, DATACLASS, DEFAULT_DICT, DEQUE, DICT, ENUM, FACTORY, FLOAT,
    FROZEN_SET, INT, KEYS, LIST, MAXLEN, NAME, NAMED_TUPLE, NONE, NONE_ALIAS, ORDERED_DICT, SCALAR, SET, STR,
    TUPLE, VALUE, VARIANT,
};
use crate::error::{Error, ErrorKind, cut};
use crate::json::{Json, JsonError, parse};
use crate::limits::{Limits, MAX_DEPTH};
use crate::node::{Dataclass, Entry, EnumNode, Factory, NamedTuple, Node};
use crate::number::{is_integer, parse_complex, parse_float};
use crate::tensor::{Library, Tensor};

/// Values of JSON that one node is made of, at most: itself, `data_type`, `value`, and three more.
const VALUES_PER_NODE: u64 = 6;

/// Reads a schema whose tensors are those of a file.
pub(crate) fn read<'data>(
    text: &str,
    tensors: &SafeTensors<'data>,
    limits: &Limits,
) -> Result<Node<'data>, Error> {
    let depth = limits.depth.min(MAX_DEPTH);
    let (too_deep, too_many) =
        (ErrorKind::TooDeep { limit: depth }, ErrorKind::TooMany { limit: limits.nodes });
    let json = json(text, limits)?;
    Reader { tensors, nodes_left: limits.nodes, too_deep, too_many }.node(json, depth)
}

/// The text of a schema as JSON, within the limits.
pub(crate) fn json<'t>(text: &'t str, limits: &Limits) -> Result<Json<'t>, Error> {
    let depth = limits.depth.min(MAX_DEPTH);
    // A node and the array or object around its children are two levels of JSON.
    let json = parse(text, 2 * u16::from(depth) + 1, VALUES_PER_NODE * u64::from(limits.nodes));
    json.map_err(|error| match error {
        JsonError::Depth => ErrorKind::TooDeep { limit: depth }.into(),
        JsonError::Count => ErrorKind::TooMany { limit: limits.nodes }.into(),
        JsonError::Syntax(error) => error,
    })
}

struct Reader<'r, 'data> {
    tensors: &'r SafeTensors<'data>,
    nodes_left: u32,
    too_deep: ErrorKind,
    too_many: ErrorKind,
}

impl<'data> Reader<'_, 'data> {
    fn node(&mut self, json: Json<'_>, depth_left: u8) -> Result<Node<'data>, Error> {
        let depth_left = depth_left.checked_sub(1).ok_or_else(|| self.too_deep.clone())?;
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or_else(|| self.too_many.clone())?;
        let Json::Object(fields) = json else {
            return Err(wrong("an object with `data_type` and `value`"));
        };
        let mut fields = Fields(fields);
        let data_type = fields.text(DATA_TYPE)?;
        let value = fields.take(VALUE)?;
        let node = match &*data_type {
            NONE | NONE_ALIAS => match value {
                Json::Null => Node::None,
                _ => return Err(wrong("null")),
            },
            BOOL => match value {
                Json::Bool(value) => Node::Bool(value),
                _ => return Err(wrong("true or false")),
            },
            STR => Node::Str(text(value)?.into_owned()),
            INT => integer(&text(value)?)?,
            FLOAT => Node::Float(parse_float(&text(value)?).ok_or(number("the text of a float"))?),
            COMPLEX => {
                let parts = parse_complex(&text(value)?).ok_or(number("the text of a complex number"))?;
                Node::Complex(parts.0, parts.1)
            }
            LIST => Node::List(self.items(value, depth_left)?),
            TUPLE => Node::Tuple(self.items(value, depth_left)?),
            SET => Node::Set(self.items(value, depth_left)?),
            FROZEN_SET => Node::FrozenSet(self.items(value, depth_left)?),
            DEQUE => {
                let maxlen = match fields.take(MAXLEN)? {
                    Json::Null => None,
                    other => Some(length(&text(other)?)?),
                };
                Node::Deque(self.items(value, depth_left)?, maxlen)
            }
            DICT => Node::Dict(self.entries(value, fields.take(KEYS)?, depth_left)?),
            ORDERED_DICT => Node::OrderedDict(self.entries(value, fields.take(KEYS)?, depth_left)?),
            COUNTER => Node::Counter(self.entries(value, fields.take(KEYS)?, depth_left)?),
            DEFAULT_DICT => {
                let factory = match fields.take(FACTORY)? {
                    Json::Null => None,
                    other => Some(factory(&text(other)?)?),
                };
                Node::DefaultDict(self.entries(value, fields.take(KEYS)?, depth_left)?, factory)
            }
            DATACLASS => {
                let name = fields.find(NAME).map(text).transpose()?.map(Cow::into_owned);
                Node::Dataclass(Dataclass { name, fields: self.fields(value, depth_left)? })
            }
            NAMED_TUPLE => {
                let name = fields.text(NAME)?.into_owned();
                Node::NamedTuple(NamedTuple { name, fields: self.fields(value, depth_left)? })
            }
            ENUM => {
                let (name, variant) = (fields.text(NAME)?, fields.text(VARIANT)?);
                let (name, variant) = (name.into_owned(), variant.into_owned());
                let value = self.node(value, depth_left).map_err(|error| error.in_entry(&variant))?;
                Node::Enum(Box::new(EnumNode { name, variant, value }))
            }
            BYTES => {
                let (dtype, _, shape, data) = self.tensor(value)?.into_parts();
                if dtype != Dtype::U8 || shape.len() != 1 {
                    return Err(ErrorKind::TensorShape { expected: "`U8` of one dimension" }.into());
                }
                Node::Bytes(data)
            }
            SCALAR => {
                let tensor = self.tensor(value)?;
                if !tensor.shape().is_empty() {
                    return Err(ErrorKind::TensorShape { expected: "no dimensions" }.into());
                }
                Node::Scalar(tensor)
            }
            other => match Library::from_data_type(other) {
                Some(library) => Node::Tensor(self.tensor(value)?.with_library(library)),
                None => return Err(ErrorKind::UnknownType { name: cut(other).into() }.into()),
            },
        };
        match fields.0.first() {
            None => Ok(node),
            Some((field, _)) => Err(ErrorKind::UnknownField { field: cut(field).into() }.into()),
        }
    }

    fn items(&mut self, value: Json<'_>, depth_left: u8) -> Result<Vec<Node<'data>>, Error> {
        let Json::Array(items) = value else { return Err(wrong("an array of nodes")) };
        let item = |(idx, item)| self.node(item, depth_left).map_err(|error| error.in_item(idx));
        items.into_iter().enumerate().map(item).collect()
    }

    fn fields(&mut self, value: Json<'_>, depth_left: u8) -> Result<Vec<(String, Node<'data>)>, Error> {
        let fields = object(value)?;
        let field = |(name, value): (Cow<'_, str>, _)| {
            let value = self.node(value, depth_left).map_err(|error| error.in_entry(&name))?;
            Ok((name.into_owned(), value))
        };
        fields.into_iter().map(field).collect()
    }

    fn entries(
        &mut self,
        value: Json<'_>,
        keys: Json<'_>,
        depth_left: u8,
    ) -> Result<Vec<Entry<'data>>, Error> {
        let (values, mut keys) = (object(value)?, object(keys)?);
        let differ = |label: &str| ErrorKind::KeysDiffer { label: cut(label).into() };
        // Writers put both into one order; another one costs a sort.
        if !values.iter().map(|(label, _)| label).eq(keys.iter().map(|(label, _)| label)) {
            let mut by_label: BTreeMap<_, _> = keys.into_iter().collect();
            let found = values
                .iter()
                .map(|(label, _)| by_label.remove_entry(&**label).ok_or_else(|| Error::from(differ(label))));
            keys = found.collect::<Result<_, _>>()?;
            if let Some(label) = by_label.keys().next() {
                return Err(differ(label).into());
            }
        }
        let entry = |((label, value), (_, key)): ((Cow<'_, str>, _), (_, _))| {
            let value = self.node(value, depth_left).map_err(|error| error.in_entry(&label))?;
            let key = self.node(key, depth_left).map_err(|error| error.in_entry(&label))?;
            Ok(Entry { label: label.into_owned(), key, value })
        };
        values.into_iter().zip(keys).map(entry).collect()
    }

    fn tensor(&self, value: Json<'_>) -> Result<Tensor<Cow<'data, [u8]>>, Error> {
        let id = text(value)?;
        let found = self.tensors.header().tensor(&id).zip(self.tensors.data(&id));
        let (info, data) = found.ok_or_else(|| ErrorKind::NoTensor { id: cut(&id).into() })?;
        Tensor::new(info.dtype(), info.shape(), Cow::Borrowed(data))
    }
}

/// The fields of a node that have not been read yet.
struct Fields<'t>(Vec<(Cow<'t, str>, Json<'t>)>);

impl<'t> Fields<'t> {
    fn find(&mut self, name: &'static str) -> Option<Json<'t>> {
        let idx = self.0.iter().position(|(field, _)| field == name)?;
        Some(self.0.swap_remove(idx).1)
    }

    fn take(&mut self, field: &'static str) -> Result<Json<'t>, Error> {
        self.find(field).ok_or_else(|| ErrorKind::MissingField { field }.into())
    }

    fn text(&mut self, field: &'static str) -> Result<Cow<'t, str>, Error> {
        text(self.take(field)?)
    }
}

fn wrong(expected: &'static str) -> Error {
    ErrorKind::WrongType { expected }.into()
}

const fn number(expected: &'static str) -> ErrorKind {
    ErrorKind::InvalidNumber { expected }
}

fn text(json: Json<'_>) -> Result<Cow<'_, str>, Error> {
    if let Json::Str(text) = json { Ok(text) } else { Err(wrong("a string")) }
}

fn object<'t>(json: Json<'t>) -> Result<Vec<(Cow<'t, str>, Json<'t>)>, Error> {
    if let Json::Object(fields) = json { Ok(fields) } else { Err(wrong("an object")) }
}

fn integer<'data>(text: &str) -> Result<Node<'data>, Error> {
    if !is_integer(text) {
        return Err(number("the text of an integer").into());
    }
    Ok(text.parse().map_or_else(|_| Node::BigInt(text.to_string()), Node::Int))
}

fn length(text: &str) -> Result<u64, Error> {
    let value = text.parse().ok().filter(|_| is_integer(text));
    value.ok_or_else(|| number("the text of a length").into())
}

fn factory(name: &str) -> Result<Factory, Error> {
    Factory::from_name(name).ok_or_else(|| ErrorKind::UnknownType { name: cut(name).into() }.into())
}
