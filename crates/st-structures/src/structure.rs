//! Whole files.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use st_core::{Dtype, Layout, SafeTensors, TensorSpec};

use crate::de::NodeDeserializer;
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::node::Node;
use crate::schema::{self, SCHEMA_KEY, VERSION, VERSION_KEY};
use crate::ser;

/// The content of a file: its data, and the metadata beside them.
///
/// ```
/// use st_structures::{Node, Structure};
///
/// let mut structure = Structure::new(Node::List(vec![Node::Int(1), Node::None]));
/// structure.metadata.insert("made by".into(), "hand".into());
/// let file = structure.to_vec()?;
/// assert_eq!(Structure::from_bytes(&file)?, structure);
/// # Ok::<(), st_structures::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Structure<'data> {
    /// The data.
    pub root: Node<'data>,
    /// Free-form metadata; the schema is not among them.
    pub metadata: BTreeMap<String, String>,
}

impl<'data> Structure<'data> {
    /// Data without metadata.
    #[must_use]
    pub const fn new(root: Node<'data>) -> Self {
        Self { root, metadata: BTreeMap::new() }
    }

    /// Reads a file with [`Limits::DEFAULT`]. Tensors and bytes are borrowed from it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] if the file is invalid; [`ErrorKind::NoSchema`], [`ErrorKind::NoVersion`] or
    /// [`ErrorKind::UnknownVersion`]; then, with its place, everything that a schema can have wrong.
    pub fn from_bytes(file: &'data [u8]) -> Result<Self, Error> {
        Self::from_bytes_with(file, &Limits::DEFAULT)
    }

    /// Reads a file with limits of the caller's.
    ///
    /// # Errors
    ///
    /// As [`from_bytes`](Self::from_bytes).
    pub fn from_bytes_with(file: &'data [u8], limits: &Limits) -> Result<Self, Error> {
        let tensors = SafeTensors::from_bytes(file)?;
        let metadata = tensors.header().metadata().ok_or(ErrorKind::NoSchema)?;
        let schema = metadata.get(SCHEMA_KEY).ok_or(ErrorKind::NoSchema)?;
        let version = metadata.get(VERSION_KEY).ok_or(ErrorKind::NoVersion)?;
        if version != VERSION {
            return Err(ErrorKind::unknown_version(version).into());
        }
        let root = schema::read::read(schema, &tensors, limits)?;
        let own = metadata.iter().filter(|(key, _)| ![SCHEMA_KEY, VERSION_KEY].contains(key));
        let metadata = own.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Ok(Self { root, metadata })
    }

    /// The data as a file in memory. Equal data give equal bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ReservedKey`], [`ErrorKind::KeyCollision`], [`ErrorKind::TooDeep`] and [`ErrorKind::TooMany`];
    /// [`ErrorKind::InvalidNumber`] and [`ErrorKind::TensorShape`] for nodes whose content does not have their type;
    /// [`ErrorKind::File`] if the header would be too long.
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        write(&self.root, &self.metadata)
    }

    /// The data as a value of a serde type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Custom`] if the type has no place for the data.
    pub fn deserialize<T: Deserialize<'data>>(self) -> Result<T, Error> {
        T::deserialize(NodeDeserializer::new(self.root))
    }
}

/// What a struct of Rust is written as. Either is read as either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Structs {
    /// A `dict`.
    #[default]
    Dict,
    /// A dataclass under the struct's name.
    Dataclass,
}

/// How to write a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// What structs become.
    pub structs: Structs,
    /// Free-form metadata.
    pub metadata: BTreeMap<String, String>,
}

/// Writes a value of any serde type as a file in memory. Every tensor is copied once before.
///
/// # Errors
///
/// As [`Structure::to_vec`], and [`ErrorKind::Custom`] if the type refuses.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    to_vec_with(value, &WriteOptions::default())
}

/// Writes a value of any serde type, with metadata or structs as dataclasses.
///
/// # Errors
///
/// As [`to_vec`].
pub fn to_vec_with<T: Serialize + ?Sized>(value: &T, options: &WriteOptions) -> Result<Vec<u8>, Error> {
    write(&ser::to_node(value, options.structs)?, &options.metadata)
}

/// Reads a value of a serde type from a file.
///
/// # Errors
///
/// As [`Structure::from_bytes`] and [`Structure::deserialize`].
pub fn from_bytes<'de, T: Deserialize<'de>>(file: &'de [u8]) -> Result<T, Error> {
    from_bytes_with(file, &Limits::DEFAULT)
}

/// Reads a value of a serde type with limits of the caller's.
///
/// # Errors
///
/// As [`from_bytes`].
pub fn from_bytes_with<'de, T: Deserialize<'de>>(file: &'de [u8], limits: &Limits) -> Result<T, Error> {
    Structure::from_bytes_with(file, limits)?.deserialize()
}

fn write(root: &Node<'_>, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>, Error> {
    for key in [SCHEMA_KEY, VERSION_KEY] {
        if metadata.contains_key(key) {
            return Err(ErrorKind::ReservedKey { key }.into());
        }
    }
    let (schema, mut tensors) = schema::write::write(root)?;
    let mut metadata = metadata.clone();
    metadata.insert(SCHEMA_KEY.to_owned(), schema);
    metadata.insert(VERSION_KEY.to_owned(), VERSION.to_owned());
    let options = st_core::WriteOptions { metadata: Some(metadata), ..Default::default() };

    let mut names: Vec<String> = (0..tensors.len()).map(|id| id.to_string()).collect();
    if tensors.is_empty() {
        names.push(schema::DUMMY.to_owned());
        let zero = schema::write::Stored { dtype: Dtype::I64, shape: [1].to_vec().into(), data: &[0; 8] };
        tensors.push(zero);
    }
    let specs = names.iter().zip(&tensors);
    let specs = specs.map(|(name, tensor)| TensorSpec { name, dtype: tensor.dtype, shape: &tensor.shape });
    let layout = Layout::new(specs, &options)?;
    let data: Vec<&[u8]> = tensors.iter().map(|tensor| tensor.data).collect();
    Ok(layout.to_vec(&data)?)
}
