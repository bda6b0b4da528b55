//! Tensors inside a structure, and their representation in serde.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeTuple, Serializer};
use st_core::{Dtype, TensorView};

use crate::error::{Error, ErrorKind};

/// The name by which this crate's serializer and deserializer know a tensor.
pub(crate) const NEWTYPE: &str = "$st_structures::Tensor";

/// Type, library, shape, bytes.
pub(crate) const PARTS: usize = 4;

/// Whose array a tensor was. Readers decide anew what they make of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Library {
    /// `numpy.ndarray`, also what Rust writes.
    #[default]
    Numpy,
    /// `torch.Tensor`.
    Torch,
    /// `tensorflow.python.framework.ops.EagerTensor`.
    TensorFlow,
    /// `jaxlib.xla_extension.ArrayImpl`.
    Jax,
}

impl Library {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Numpy, Self::Torch, Self::TensorFlow, Self::Jax];

    /// The `data_type` of its tensors.
    #[must_use]
    pub const fn data_type(self) -> &'static str {
        match self {
            Self::Numpy => "numpy.ndarray",
            Self::Torch => "torch.Tensor",
            Self::TensorFlow => "tensorflow.python.framework.ops.EagerTensor",
            Self::Jax => "jaxlib.xla_extension.ArrayImpl",
        }
    }

    /// The library whose tensors have this `data_type`.
    #[must_use]
    pub fn from_data_type(name: &str) -> Option<Self> {
        match name {
            // Newer releases of jaxlib keep the class elsewhere.
            "jaxlib._jax.ArrayImpl" => Some(Self::Jax),
            _ => Self::ALL.into_iter().find(|library| library.data_type() == name),
        }
    }
}

/// A tensor of a structure: element type, dimensions, and little-endian, row-major bytes of exactly the size they imply.
///
/// `Tensor` owns its bytes; `Tensor<&[u8]>` borrows them from the file (serde's derive needs `#[serde(borrow)]` on such a
/// field). Other serde formats get a tuple of type, library, shape and bytes.
///
/// ```
/// use st_structures::{Tensor, from_bytes, to_vec};
///
/// let file = to_vec(&Tensor::from_f32(&[3], &[1.0, 2.0, 4.0])?)?;
/// let tensor: Tensor<&[u8]> = from_bytes(&file)?;
/// assert!(tensor.view().elements::<f32>()?.eq([1.0, 2.0, 4.0]));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor<D = Vec<u8>> {
    dtype: Dtype,
    shape: Vec<usize>,
    data: D,
    library: Library,
}

impl<D: AsRef<[u8]>> Tensor<D> {
    /// A tensor of these bytes.
    ///
    /// # Errors
    ///
    /// Those of [`TensorView::new`], if `data` is not as long as type and shape need.
    pub fn new(dtype: Dtype, shape: &[usize], data: D) -> Result<Self, Error> {
        TensorView::new(dtype, shape, data.as_ref())?;
        Ok(Self { dtype, shape: shape.to_vec(), data, library: Library::default() })
    }

    /// The same tensor, as of another library.
    #[must_use]
    pub fn with_library(self, library: Library) -> Self {
        Self { library, ..self }
    }

    /// Type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Dimensions, the slowest first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.data.as_ref()
    }

    /// Whose array it was.
    #[must_use]
    pub const fn library(&self) -> Library {
        self.library
    }

    /// The tensor with everything that can be read from one.
    ///
    /// # Panics
    ///
    /// If `D` lends other bytes than it did when the tensor was made.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        TensorView::new(self.dtype, &self.shape, self.data()).expect("lengths were compared when it was made")
    }

    pub(crate) fn into_parts(self) -> (Dtype, Library, Vec<usize>, D) {
        (self.dtype, self.library, self.shape, self.data)
    }
}

impl Tensor {
    /// A tensor of `F32`.
    ///
    /// # Errors
    ///
    /// Those of [`TensorView::new`], if the number of values is not that of the shape.
    pub fn from_f32(shape: &[usize], values: &[f32]) -> Result<Self, Error> {
        Self::new(Dtype::F32, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }
}

/// What [`Node`](crate::Node)s hold, out of a tensor of one's own.
impl From<Tensor> for Tensor<Cow<'_, [u8]>> {
    fn from(tensor: Tensor) -> Self {
        let Tensor { dtype, shape, data, library } = tensor;
        Self { dtype, shape, data: Cow::Owned(data), library }
    }
}

/// What [`Node`](crate::Node)s hold, without a copy.
impl<'data> From<Tensor<&'data [u8]>> for Tensor<Cow<'data, [u8]>> {
    fn from(tensor: Tensor<&'data [u8]>) -> Self {
        let Tensor { dtype, shape, data, library } = tensor;
        Self { dtype, shape, data: Cow::Borrowed(data), library }
    }
}

impl From<Tensor<Cow<'_, [u8]>>> for Tensor {
    fn from(tensor: Tensor<Cow<'_, [u8]>>) -> Self {
        let Tensor { dtype, shape, data, library } = tensor;
        Self { dtype, shape, data: data.into_owned(), library }
    }
}

impl<D: AsRef<[u8]>> fmt::Debug for Tensor<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<D: AsRef<[u8]>> Serialize for Tensor<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NEWTYPE, &Parts(self))
    }
}

struct Parts<'a, D>(&'a Tensor<D>);

impl<D: AsRef<[u8]>> Serialize for Parts<'_, D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut parts = serializer.serialize_tuple(PARTS)?;
        parts.serialize_element(self.0.dtype.name())?;
        parts.serialize_element(self.0.library.data_type())?;
        parts.serialize_element(&self.0.shape)?;
        parts.serialize_element(&Bytes(self.0.data()))?;
        parts.end()
    }
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Tensor {
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        deserializer.deserialize_newtype_struct(NEWTYPE, TensorVisitor(OwnedBytes))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Tensor<&'a [u8]> {
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        deserializer.deserialize_newtype_struct(NEWTYPE, TensorVisitor(PhantomData::<&'a [u8]>))
    }
}

/// Reads the parts; the bytes as its seed reads them.
struct TensorVisitor<S>(S);

impl<'de, S> Visitor<'de> for TensorVisitor<S>
where
    S: DeserializeSeed<'de>,
    S::Value: AsRef<[u8]>,
{
    type Value = Tensor<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor")
    }

    fn visit_newtype_struct<De: Deserializer<'de>>(self, deserializer: De) -> Result<Self::Value, De::Error> {
        deserializer.deserialize_tuple(PARTS, self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let missing = || A::Error::custom("a tensor has four parts");
        let dtype: Cow<'de, str> = parts.next_element()?.ok_or_else(missing)?;
        let library: Cow<'de, str> = parts.next_element()?.ok_or_else(missing)?;
        let shape: Vec<usize> = parts.next_element()?.ok_or_else(missing)?;
        let data = parts.next_element_seed(self.0)?.ok_or_else(missing)?;
        let dtype = Dtype::element_from_name(&dtype).ok_or_else(|| A::Error::custom("unknown dtype"))?;
        let library = Library::from_data_type(&library).ok_or_else(|| A::Error::custom("unknown library"))?;
        let tensor = Tensor::new(dtype, &shape, data).map_err(A::Error::custom)?;
        Ok(tensor.with_library(library))
    }
}

/// Bytes out of a format that has them, or lists alone.
struct OwnedBytes;

impl<'de> DeserializeSeed<'de> for OwnedBytes {
    type Value = Vec<u8>;

    fn deserialize<De: Deserializer<'de>>(self, deserializer: De) -> Result<Vec<u8>, De::Error> {
        deserializer.deserialize_byte_buf(self)
    }
}

impl<'de> Visitor<'de> for OwnedBytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

/// The tensor in the tuple that [`Parts`] writes, when this crate's serializer made nodes of it.
pub(crate) fn from_parts(
    dtype: &str,
    library: &str,
    shape: &[usize],
    data: Vec<u8>,
) -> Result<Tensor<Cow<'static, [u8]>>, Error> {
    let dtype =
        Dtype::element_from_name(dtype).ok_or(ErrorKind::WrongType { expected: "the parts of a tensor" })?;
    let library = Library::from_data_type(library).unwrap_or_default();
    Ok(Tensor::new(dtype, shape, Cow::Owned(data))?.with_library(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_what_they_write() {
        for library in Library::ALL {
            assert_eq!(Library::from_data_type(library.data_type()), Some(library));
        }
        assert_eq!(Library::from_data_type("jaxlib._jax.ArrayImpl"), Some(Library::Jax));
        assert_eq!(Library::from_data_type("os.system"), None);
    }

    #[test]
    fn other_formats_get_the_parts() {
        let tensor = Tensor::from_f32(&[2], &[1.0, -1.0]).unwrap().with_library(Library::Torch);
        let text = serde_json::to_string(&tensor).unwrap();
        assert_eq!(text, r#"["F32","torch.Tensor",[2],[0,0,128,63,0,0,128,191]]"#);
        assert_eq!(serde_json::from_str::<Tensor>(&text).unwrap(), tensor);
        assert!(serde_json::from_str::<Tensor>(r#"["F32","torch.Tensor",[3],[0,0,128,63]]"#).is_err());
    }
}
