//! Values of serde types to nodes.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::error::{Error, ErrorKind};
use crate::limits::MAX_DEPTH;
use crate::node::{Dataclass, Entry, EnumNode, Node};
use crate::structure::Structs;
use crate::tensor::{self, NEWTYPE};

type Owned = Node<'static>;

/// The nodes of a value.
pub(crate) fn to_node<T: Serialize + ?Sized>(value: &T, structs: Structs) -> Result<Owned, Error> {
    value.serialize(NodeSerializer { depth_left: MAX_DEPTH, structs })
}

/// Makes a node of one value.
#[derive(Clone, Copy)]
struct NodeSerializer {
    depth_left: u8,
    structs: Structs,
}

impl NodeSerializer {
    /// The serializer of what the value holds.
    fn inner(self) -> Result<Self, Error> {
        let depth_left = self.depth_left.checked_sub(1);
        let depth_left = depth_left.ok_or(ErrorKind::TooDeep { limit: MAX_DEPTH })?;
        Ok(Self { depth_left, ..self })
    }

    fn items(self, around: Around) -> Result<Items, Error> {
        Ok(Items { inner: self.inner()?, items: Vec::new(), around })
    }

    fn fields(self, around: Around) -> Result<Fields, Error> {
        Ok(Fields { inner: self.inner()?, fields: Vec::new(), around })
    }
}

/// What a list of values or fields becomes.
enum Around {
    List,
    Tuple,
    Dict,
    Dataclass(&'static str),
    Variant(&'static str, &'static str),
}

fn variant(name: &str, variant: &str, value: Owned) -> Owned {
    Node::Enum(Box::new(EnumNode { name: name.to_owned(), variant: variant.to_owned(), value }))
}

macro_rules! integers {
    ($($serialize:ident, $ty:ty;)*) => {
        $(fn $serialize(self, value: $ty) -> Result<Owned, Error> {
            Ok(Node::Int(value.into()))
        })*
    };
}

impl Serializer for NodeSerializer {
    type Ok = Owned;
    type Error = Error;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    integers! {
        serialize_i8, i8;
        serialize_i16, i16;
        serialize_i32, i32;
        serialize_i64, i64;
        serialize_i128, i128;
        serialize_u8, u8;
        serialize_u16, u16;
        serialize_u32, u32;
        serialize_u64, u64;
    }

    fn serialize_u128(self, value: u128) -> Result<Owned, Error> {
        Ok(i128::try_from(value).map_or_else(|_| Node::BigInt(value.to_string()), Node::Int))
    }

    fn serialize_bool(self, value: bool) -> Result<Owned, Error> {
        Ok(Node::Bool(value))
    }

    fn serialize_f32(self, value: f32) -> Result<Owned, Error> {
        Ok(Node::Float(value.into()))
    }

    fn serialize_f64(self, value: f64) -> Result<Owned, Error> {
        Ok(Node::Float(value))
    }

    fn serialize_char(self, value: char) -> Result<Owned, Error> {
        Ok(Node::Str(value.into()))
    }

    fn serialize_str(self, value: &str) -> Result<Owned, Error> {
        Ok(Node::Str(value.to_owned()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Owned, Error> {
        Ok(Node::Bytes(Cow::Owned(value.to_vec())))
    }

    fn serialize_none(self) -> Result<Owned, Error> {
        Ok(Node::None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Owned, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Owned, Error> {
        Ok(Node::None)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Owned, Error> {
        Ok(Node::None)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        _variant_index: u32,
        variant_name: &'static str,
    ) -> Result<Owned, Error> {
        Ok(variant(name, variant_name, Node::None))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Owned, Error> {
        if name == NEWTYPE {
            // Its parts are a tuple with a list in it, at whatever depth the tensor is.
            return tensor(value.serialize(Self { depth_left: 2, ..self })?);
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _variant_index: u32,
        variant_name: &'static str,
        value: &T,
    ) -> Result<Owned, Error> {
        let value = value.serialize(self.inner()?).map_err(|error| error.in_entry(variant_name))?;
        Ok(variant(name, variant_name, value))
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Items, Error> {
        self.items(Around::List)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Items, Error> {
        self.items(Around::Tuple)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Items, Error> {
        self.items(Around::Tuple)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _variant_index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Items, Error> {
        self.inner()?.items(Around::Variant(name, variant))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Entries, Error> {
        Ok(Entries { inner: self.inner()?, entries: Vec::new(), key: None })
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Fields, Error> {
        self.fields(match self.structs {
            Structs::Dict => Around::Dict,
            Structs::Dataclass => Around::Dataclass(name),
        })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _variant_index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Fields, Error> {
        self.inner()?.fields(Around::Variant(name, variant))
    }
}

/// The tensor whose parts were made nodes of.
fn tensor(parts: Owned) -> Result<Owned, Error> {
    let wrong = ErrorKind::WrongType { expected: "the parts of a tensor" };
    let Node::Tuple(parts) = parts else { return Err(wrong.into()) };
    let Ok([Node::Str(dtype), Node::Str(library), Node::List(shape), Node::Bytes(data)]) =
        <[Owned; tensor::PARTS]>::try_from(parts)
    else {
        return Err(wrong.into());
    };
    let dim = |dim: &Owned| if let Node::Int(dim) = dim { usize::try_from(*dim).ok() } else { None };
    let shape: Option<Vec<usize>> = shape.iter().map(dim).collect();
    tensor::from_parts(&dtype, &library, &shape.ok_or(wrong)?, data.into_owned()).map(Node::Tensor)
}

/// Collects the elements of a list.
struct Items {
    inner: NodeSerializer,
    items: Vec<Owned>,
    around: Around,
}

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let node = value.serialize(self.inner).map_err(|error| error.in_item(self.items.len()))?;
        self.items.push(node);
        Ok(())
    }

    fn finish(self) -> Owned {
        match self.around {
            Around::List => Node::List(self.items),
            Around::Variant(name, variant_name) => variant(name, variant_name, Node::Tuple(self.items)),
            _ => Node::Tuple(self.items),
        }
    }
}

macro_rules! item_traits {
    ($($name:ident, $push:ident;)*) => {
        $(impl $name for Items {
            type Ok = Owned;
            type Error = Error;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.push(value)
            }

            fn end(self) -> Result<Owned, Error> {
                Ok(self.finish())
            }
        })*
    };
}

item_traits! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
    SerializeTupleVariant, serialize_field;
}

/// Collects the fields of a struct.
struct Fields {
    inner: NodeSerializer,
    fields: Vec<(&'static str, Owned)>,
    around: Around,
}

impl Fields {
    fn push<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        let node = value.serialize(self.inner).map_err(|error| error.in_entry(name))?;
        self.fields.push((name, node));
        Ok(())
    }

    fn finish(self) -> Owned {
        let named = |(name, value): (&str, Owned)| (name.to_owned(), value);
        let entry = |(name, value): (&str, Owned)| Entry::new(Node::Str(name.to_owned()), value);
        let fields = self.fields.into_iter();
        match self.around {
            Around::Dataclass(name) => Node::Dataclass(Dataclass {
                name: Some(name.to_owned()),
                fields: fields.map(named).collect(),
            }),
            Around::Variant(name, variant_name) => {
                variant(name, variant_name, Node::Dict(fields.map(entry).collect()))
            }
            _ => Node::Dict(fields.map(entry).collect()),
        }
    }
}

macro_rules! field_traits {
    ($($name:ident,)*) => {
        $(impl $name for Fields {
            type Ok = Owned;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.push(name, value)
            }

            fn end(self) -> Result<Owned, Error> {
                Ok(self.finish())
            }
        })*
    };
}

field_traits! { SerializeStruct, SerializeStructVariant, }

/// Collects the entries of a map.
struct Entries {
    inner: NodeSerializer,
    entries: Vec<Entry<'static>>,
    key: Option<Entry<'static>>,
}

impl SerializeMap for Entries {
    type Ok = Owned;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let key = key.serialize(self.inner).map_err(|error| error.in_item(self.entries.len()))?;
        self.key = Some(Entry::new(key, Node::None));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take();
        let mut entry = key.ok_or_else(|| <Error as serde::ser::Error>::custom("a value without a key"))?;
        entry.value = value.serialize(self.inner).map_err(|error| error.in_entry(&entry.label))?;
        self.entries.push(entry);
        Ok(())
    }

    fn end(self) -> Result<Owned, Error> {
        Ok(Node::Dict(self.entries))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;

    #[test]
    fn a_tensor_is_recognised_at_any_depth() {
        let tensor = crate::Tensor::from_f32(&[1], &[1.0]).unwrap();
        let node = to_node(&Some((tensor.clone(),)), Structs::Dict).unwrap();
        assert_eq!(node, Node::Tuple(vec![Node::Tensor(tensor.into())]));
    }

    #[test]
    fn depth_is_bounded() {
        #[derive(serde::Serialize)]
        struct Chain(Option<Box<(Chain,)>>);
        let chain = |len| (0..len).fold(Chain(None), |chain, _| Chain(Some(Box::new((chain,)))));
        assert!(to_node(&chain(127), Structs::Dict).is_ok());
        let error = to_node(&chain(129), Structs::Dict).unwrap_err();
        assert_eq!(error.code(), "ss-depth");
        assert_eq!(to_node(&String::new(), Structs::Dict).unwrap(), Node::Str(String::new()));
    }
}
