//! Nodes to values of serde types.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::{self, Vec};

use serde::de::value::{BorrowedBytesDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use st_core::Dtype;

use crate::error::{Error, ErrorKind};
use crate::node::{Dataclass, Entry, EnumNode, NamedTuple, Node};
use crate::tensor::{NEWTYPE, Tensor};

/// Gives one node to a type.
pub(crate) struct NodeDeserializer<'de> {
    node: Node<'de>,
}

impl<'de> NodeDeserializer<'de> {
    pub(crate) const fn new(node: Node<'de>) -> Self {
        Self { node }
    }
}

fn items<'de, V: Visitor<'de>>(items: Vec<Node<'de>>, visitor: V) -> Result<V::Value, Error> {
    let mut items = Items { rest: items.into_iter(), idx: 0 };
    let value = visitor.visit_seq(&mut items)?;
    match items.rest.len() {
        0 => Ok(value),
        left => Err(Error::custom(format_args!("a list of {} elements, {left} too many", items.idx + left))),
    }
}

fn entries<'de, V: Visitor<'de>>(entries: Vec<Entry<'de>>, visitor: V) -> Result<V::Value, Error> {
    visitor.visit_map(Entries { rest: entries.into_iter(), value: None })
}

fn fields<'de, V: Visitor<'de>>(fields: Vec<(String, Node<'de>)>, visitor: V) -> Result<V::Value, Error> {
    let entry = |(label, value)| Entry { key: Node::Str(String::clone(&label)), label, value };
    entries(fields.into_iter().map(entry).collect(), visitor)
}

/// The number in a tensor without dimensions.
fn scalar<'de>(tensor: &Tensor<Cow<'de, [u8]>>) -> Result<Node<'de>, Error> {
    let view = tensor.view();
    let part =
        |bytes: &[u8]| bytes.try_into().ok().map_or(f64::NAN, |bytes| f32::from_le_bytes(bytes).into());
    Ok(match tensor.dtype() {
        Dtype::Bool => Node::Bool(tensor.data() != [0]),
        Dtype::U64 => Node::Int(view.elements::<u64>()?.next().unwrap_or_default().into()),
        Dtype::I64 => Node::Int(view.elements::<i64>()?.next().unwrap_or_default().into()),
        Dtype::C64 => {
            let (re, im) = tensor.data().split_at_checked(4).unwrap_or_default();
            Node::Complex(part(re), part(im))
        }
        Dtype::U8 | Dtype::I8 | Dtype::U16 | Dtype::I16 | Dtype::U32 | Dtype::I32 => {
            // Exact: these integers have at most 32 bits.
            Node::Int(view.to_f64()?.next().unwrap_or_default() as i128)
        }
        _ => Node::Float(view.to_f64()?.next().unwrap_or(f64::NAN)),
    })
}

impl<'de> Deserializer<'de> for NodeDeserializer<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node {
            Node::None => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(value),
            Node::Int(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => visitor.visit_i64(value),
                (_, Ok(value)) => visitor.visit_u64(value),
                _ => visitor.visit_i128(value),
            },
            Node::BigInt(digits) => match digits.parse() {
                Ok(value) => visitor.visit_u128(value),
                Err(_) => Err(ErrorKind::InvalidNumber { expected: "an integer of at most 128 bits" }.into()),
            },
            Node::Float(value) => visitor.visit_f64(value),
            Node::Complex(re, im) => items([Node::Float(re), Node::Float(im)].into(), visitor),
            Node::Str(text) => visitor.visit_string(text),
            Node::Bytes(Cow::Borrowed(bytes)) => visitor.visit_borrowed_bytes(bytes),
            Node::Bytes(Cow::Owned(bytes)) => visitor.visit_byte_buf(bytes),
            Node::List(nodes)
            | Node::Tuple(nodes)
            | Node::Set(nodes)
            | Node::FrozenSet(nodes)
            | Node::Deque(nodes, _) => items(nodes, visitor),
            Node::Dict(nodes)
            | Node::OrderedDict(nodes)
            | Node::Counter(nodes)
            | Node::DefaultDict(nodes, _) => entries(nodes, visitor),
            Node::Dataclass(Dataclass { fields: nodes, .. })
            | Node::NamedTuple(NamedTuple { fields: nodes, .. }) => fields(nodes, visitor),
            // As formats write it that know texts and maps alone: types that look before they choose expect that.
            Node::Enum(member) => match *member {
                EnumNode { variant, value: Node::None, .. } => visitor.visit_string(variant),
                EnumNode { variant, value, .. } => fields([(variant, value)].into(), visitor),
            },
            Node::Tensor(_) => Err(Error::invalid_type(Unexpected::Other("a tensor"), &visitor)),
            Node::Scalar(tensor) => Self::new(scalar(&tensor)?).deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node {
            Node::None => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.node {
            Node::Tensor(tensor) | Node::Scalar(tensor) if name == NEWTYPE => {
                let (dtype, library, shape, data) = tensor.into_parts();
                let parts = [
                    Part::Word(dtype.name()),
                    Part::Word(library.data_type()),
                    Part::Shape(shape),
                    Part::Bytes(data),
                ];
                visitor.visit_newtype_struct(SeqDeserializer::new(parts.into_iter()))
            }
            _ if name == NEWTYPE => self.deserialize_any(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.node {
            Node::Enum(member) => {
                visitor.visit_enum(Variant { variant: member.variant, value: member.value })
            }
            // What a program without the enum may have written: the name alone, or a dict of one entry.
            Node::Str(variant) => visitor.visit_enum(Variant { variant, value: Node::None }),
            Node::Dict(mut nodes) if nodes.len() == 1 => match nodes.pop() {
                Some(Entry { key: Node::Str(variant), value, .. }) => {
                    visitor.visit_enum(Variant { variant, value })
                }
                _ => Err(Error::custom("the name of a variant expected")),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node {
            Node::Bytes(bytes) => visitor.visit_seq(SeqDeserializer::<_, Error>::new(bytes.iter().copied())),
            Node::NamedTuple(NamedTuple { fields, .. }) => {
                items(fields.into_iter().map(|(_, value)| value).collect(), visitor)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct map
        struct identifier
    }
}

impl<'de> IntoDeserializer<'de, Error> for NodeDeserializer<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The elements of a list, one after the other.
struct Items<'de> {
    rest: vec::IntoIter<Node<'de>>,
    idx: usize,
}

impl<'de> SeqAccess<'de> for &mut Items<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(node) = self.rest.next() else { return Ok(None) };
        let value = seed.deserialize(NodeDeserializer::new(node));
        let value = value.map_err(|error| error.in_item(self.idx))?;
        self.idx += 1;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The entries of a map, one after the other.
struct Entries<'de> {
    rest: vec::IntoIter<Entry<'de>>,
    value: Option<(String, Node<'de>)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(Entry { label, key, value }) = self.rest.next() else { return Ok(None) };
        let key = seed.deserialize(NodeDeserializer::new(key)).map_err(|error| error.in_entry(&label))?;
        self.value = Some((label, value));
        Ok(Some(key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (label, value) = self.value.take().ok_or_else(|| Error::custom("a value without a key"))?;
        seed.deserialize(NodeDeserializer::new(value)).map_err(|error| error.in_entry(&label))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A variant and what it holds.
struct Variant<'de> {
    variant: String,
    value: Node<'de>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let name: StringDeserializer<Error> = self.variant.clone().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> Variant<'de> {
    fn value<T>(self, read: impl FnOnce(NodeDeserializer<'de>) -> Result<T, Error>) -> Result<T, Error> {
        let Self { variant, value } = self;
        read(NodeDeserializer::new(value)).map_err(|error| error.in_entry(&variant))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.value {
            Node::None => Ok(()),
            _ => Err(Error::custom("a variant that holds nothing expected").in_entry(&self.variant)),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        self.value(|value| seed.deserialize(value))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.value(|value| value.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value(|value| value.deserialize_any(visitor))
    }
}

/// One of the parts of a tensor.
enum Part<'de> {
    Word(&'static str),
    Shape(Vec<usize>),
    Bytes(Cow<'de, [u8]>),
}

impl<'de> IntoDeserializer<'de, Error> for Part<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Part<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Word(word) => visitor.visit_str(word),
            Self::Shape(shape) => SeqDeserializer::new(shape.into_iter()).deserialize_any(visitor),
            Self::Bytes(Cow::Borrowed(bytes)) => {
                BorrowedBytesDeserializer::new(bytes).deserialize_any(visitor)
            }
            Self::Bytes(Cow::Owned(bytes)) => visitor.visit_byte_buf(bytes),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
