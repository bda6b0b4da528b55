//! One tensor, wherever its bytes are.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use located_error::Subject;
use read_at::ReadAt;
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::model::Model;
use crate::options::Limits;
use crate::view::View;

/// The type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// An element type of safetensors.
    Known(Dtype),
    /// Signed integers of 4 bits, two in a byte, the first in the low bits.
    I4,
    /// Unsigned integers of 4 bits, two in a byte, the first in the low bits.
    U4,
    /// Signed integers of 2 bits, four in a byte, the first in the lowest bits.
    I2,
    /// Unsigned integers of 2 bits, four in a byte, the first in the lowest bits.
    U2,
    /// Complex numbers of two `F64`.
    C128,
}

impl ElementType {
    /// Name of the type, as safetensors spells types.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Known(dtype) => dtype.name(),
            Self::I4 => "I4",
            Self::U4 => "U4",
            Self::I2 => "I2",
            Self::U2 => "U2",
            Self::C128 => "C128",
        }
    }

    /// The type in safetensors; `None` for types that it does not have.
    #[must_use]
    pub const fn known(self) -> Option<Dtype> {
        match self {
            Self::Known(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// Bits of an element.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Self::Known(dtype) => dtype.bits() as u64,
            Self::I4 | Self::U4 => 4,
            Self::I2 | Self::U2 => 2,
            Self::C128 => 128,
        }
    }

    /// Bytes of an element; 0 of types of fewer than 8 bits.
    pub(crate) const fn width(self) -> usize {
        (self.bits() / 8) as usize
    }

    /// Bytes of one number of an element: a complex one has two.
    pub(crate) const fn number_width(self) -> usize {
        match self {
            Self::C128 => 8,
            Self::Known(Dtype::C64) => 4,
            _ => self.width(),
        }
    }

    /// Bytes of `count` elements; the last byte of packed elements is filled up.
    ///
    /// # Errors
    ///
    /// If there are more than fit in 64 bits.
    pub(crate) fn byte_len(self, count: u64) -> Result<u64, Error> {
        let bits = count.checked_mul(self.bits()).ok_or_else(|| Error::view("its size overflows"))?;
        Ok(bits.div_ceil(8))
    }
}

/// Bytes that have to be decoded: a deflated member of an archive, chunks of an HDF5 dataset, typed fields of protobuf.
pub(crate) trait Decode: fmt::Debug + Send + Sync {
    /// All bytes that are stored, before a view of them.
    fn decode(&self, file: &dyn ReadAt) -> Result<Vec<u8>, Error>;
}

/// Bytes of a file inside another.
#[cfg(feature = "torch")]
#[derive(Debug)]
struct Within {
    inner: Arc<dyn Decode>,
    range: Range<u64>,
}

#[cfg(feature = "torch")]
impl Decode for Within {
    fn decode(&self, file: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        let len = self.range.end - self.range.start;
        self.inner.decode(&read_at::Window::new(file, self.range.start, len)?)
    }
}

/// Where the stored bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a file: 0 for the file that was read, then the companions from 1.
    #[cfg_attr(
        not(any(
            feature = "numpy",
            feature = "onnx",
            feature = "tflite",
            feature = "flax",
            feature = "hdf5"
        )),
        expect(dead_code, reason = "TensorFlow has checksums of all bytes")
    )]
    Stored(usize, Range<u64>),
    /// In memory.
    Memory(Arc<[u8]>),
    /// Somewhere, encoded.
    #[cfg_attr(
        not(any(
            feature = "numpy",
            feature = "onnx",
            feature = "tensorflow",
            feature = "flax",
            feature = "hdf5"
        )),
        expect(dead_code, reason = "TensorFlow Lite encodes nothing")
    )]
    Encoded(Arc<dyn Decode>),
}

/// A tensor: name, type, shape, and access to its bytes, which are read on demand.
#[derive(Clone, Debug)]
pub struct Tensor {
    name: String,
    dtype: ElementType,
    shape: Vec<u64>,
    place: Place,
    view: View,
    problem: Option<String>,
    /// The number of the storage, of those that several tensors may have.
    #[cfg(any(feature = "torch", feature = "onnx", feature = "tflite"))]
    storage: Option<u64>,
    /// The file that the place is in or counts from: of a shard, its number among the companions.
    home: usize,
}

impl Tensor {
    /// A tensor of `stored` bytes at `place`, of which `view` is shown.
    ///
    /// # Errors
    ///
    /// If it reaches beyond its storage, has too many dimensions or is too large.
    pub(crate) fn new(
        name: impl Into<String>,
        dtype: ElementType,
        shape: Vec<u64>,
        (place, stored): (Place, u64),
        mut view: View,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let name = name.into();
        let mut check = || -> Result<(), Error> {
            if shape.len() > limits.rank {
                return Err(ErrorKind::Limit { limit: "rank", allowed: limits.rank as u64 }.into());
            }
            let overflow = || Error::view("its size overflows");
            let count =
                shape.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim)).ok_or_else(overflow)?;
            if dtype.byte_len(count)? > limits.tensor_bytes {
                return Err(ErrorKind::Limit { limit: "tensor_bytes", allowed: limits.tensor_bytes }.into());
            }
            match stored.checked_mul(8).ok_or_else(overflow)?.checked_div(dtype.bits()) {
                Some(elements) => view.check(&shape, elements),
                None => Err(Error::view("its elements have no size")),
            }
        };
        check().map_err(|error| error.of(Subject::tensor(&name)))?;
        Ok(Self {
            name,
            dtype,
            shape,
            place,
            view,
            problem: None,
            #[cfg(any(feature = "torch", feature = "onnx", feature = "tflite"))]
            storage: None,
            home: 0,
        })
    }

    /// A tensor that cannot be represented; `what` completes "... cannot be represented". Its type is shown as `U8`.
    pub(crate) fn unsupported(name: impl Into<String>, shape: Vec<u64>, what: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            dtype: ElementType::Known(Dtype::U8),
            shape,
            place: Place::Memory(Arc::from([])),
            view: View::whole(),
            problem: Some(what.into()),
            #[cfg(any(feature = "torch", feature = "onnx", feature = "tflite"))]
            storage: None,
            home: 0,
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> ElementType {
        self.dtype
    }

    /// The shape, in elements.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The same tensor of a model in which its file is a companion.
    #[cfg(any(feature = "torch", feature = "keras"))]
    pub(crate) const fn moved(mut self, home: usize) -> Self {
        self.home = home;
        self
    }

    /// The same tensor of a file that contains its file as it is.
    #[cfg(feature = "torch")]
    pub(crate) fn within(mut self, range: &Range<u64>) -> Self {
        match &mut self.place {
            Place::Stored(0, stored) => {
                let start = range.start.saturating_add(stored.start);
                *stored = start..start.saturating_add(stored.end - stored.start);
            }
            Place::Encoded(inner) => {
                *inner = Arc::new(Within { inner: Arc::clone(inner), range: range.clone() });
            }
            _ => {}
        }
        self
    }

    /// The same tensor of a storage that others may have, too: equal numbers are equal storages.
    #[cfg(feature = "torch")]
    pub(crate) const fn of_storage(mut self, number: u64) -> Self {
        self.storage = Some(number);
        self
    }

    /// What about the tensor cannot be represented, if something cannot.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether the tensor can be read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorUnsupported`] if there is a [`problem`](Self::problem).
    pub fn check(&self) -> Result<(), Error> {
        match &self.problem {
            Some(problem) => Err(Error::tensor_unsupported(problem.as_str()).of(Subject::tensor(&self.name))),
            None => Ok(()),
        }
    }

    /// Number of elements.
    #[must_use]
    pub fn element_count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Bytes of the elements.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        if self.problem.is_some() { 0 } else { (self.element_count() * self.dtype.bits()).div_ceil(8) }
    }

    /// Where the bytes are in a file as they are: 0 for the file that was read, then the companions from 1.
    #[must_use]
    pub fn stored(&self) -> Option<(usize, Range<u64>)> {
        let Place::Stored(file, range) = &self.place else { return None };
        if self.problem.is_some() || !self.view.is_plain() || self.dtype.width() == 0 && self.view.offset > 0
        {
            return None;
        }
        let start = range.start + self.view.offset * self.dtype.width() as u64;
        Some((self.home + *file, start..start + self.byte_len()))
    }

    /// What two tensors have in common that are the same elements; `None` if no other tensor can be the same.
    #[cfg(any(feature = "torch", feature = "onnx", feature = "tflite"))]
    pub(crate) fn identity(&self) -> Option<impl Ord + '_> {
        let stored = match &self.place {
            Place::Stored(file, range) => Some((*file, range.start, range.end)),
            _ => None,
        };
        // Of a storage with a number, the number: two ranges of it may begin at the same byte.
        let stored = stored.filter(|_| self.storage.is_none());
        let is_shared = self.storage.is_some() || stored.is_some();
        let is_shown = is_shared && self.problem.is_none() && self.element_count() > 0;
        is_shown.then_some((self.storage, stored, self.dtype, self.shape.as_slice(), &self.view))
    }

    /// The bytes, row-major and little-endian, with views, byte order and signs applied. `file` is the file that `model` was read from.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorUnsupported`] if there is a [`problem`](Self::problem); if there is no memory; those of reading and decoding.
    pub fn to_vec(&self, model: &Model, file: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        self.bytes(model, file).map_err(|error| error.of(Subject::tensor(&self.name)))
    }

    fn bytes(&self, model: &Model, file: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        self.check()?;
        let width = self.dtype.width();
        let start = self.view.offset * width as u64;
        let len = self.dtype.byte_len(self.view.span(&self.shape))?;
        let number = match &self.place {
            Place::Stored(number, _) => self.home + number,
            _ => self.home,
        };
        let file: &dyn ReadAt = match number.checked_sub(1) {
            None => file,
            Some(companion) => match model.companions().get(companion) {
                Some(source) => &**source,
                None => return Err(Error::malformed("a file with bytes of the tensor is missing")),
            },
        };
        let mut bytes = match &self.place {
            Place::Stored(_, range) => {
                let mut bytes = reserved(len)?;
                bytes.resize(len as usize, 0);
                file.read_exact_at(range.start + start, &mut bytes)?;
                bytes
            }
            Place::Memory(stored) => part(stored, start, len)?.to_vec(),
            Place::Encoded(encoded) => {
                let stored = encoded.decode(file)?;
                if start == 0 && stored.len() as u64 == len {
                    stored
                } else {
                    part(&stored, start, len)?.to_vec()
                }
            }
        };
        if self.view.strides.is_some() {
            let mut gathered = reserved(self.byte_len())?;
            self.view.gather(&self.shape, width, &bytes, &mut gathered);
            bytes = gathered;
        }
        self.finish(&mut bytes);
        Ok(bytes)
    }

    /// Byte order and signs.
    fn finish(&self, bytes: &mut [u8]) {
        let View { swap, negate, conjugate, .. } = self.view;
        if swap > 1 {
            bytes.chunks_exact_mut(swap).for_each(<[u8]>::reverse);
        }
        let number = self.dtype.number_width().max(1);
        if negate || conjugate {
            let is_complex = self.dtype.width() > number;
            for (idx, number) in bytes.chunks_exact_mut(number).enumerate() {
                let is_imaginary = is_complex && idx % 2 == 1;
                if negate != (conjugate && is_imaginary) {
                    self.negate(number);
                }
            }
        }
    }

    /// Reverses the sign of one little-endian number: floats by their highest bit, integers as two's complement.
    fn negate(&self, number: &mut [u8]) {
        let is_integer = matches!(
            self.dtype,
            ElementType::Known(
                Dtype::I8
                    | Dtype::I16
                    | Dtype::I32
                    | Dtype::I64
                    | Dtype::U8
                    | Dtype::U16
                    | Dtype::U32
                    | Dtype::U64
            )
        );
        if is_integer {
            let mut carry = true;
            for byte in number {
                let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
                (*byte, carry) = (sum, over);
            }
        } else if let Some(last) = number.last_mut() {
            *last ^= 0x80;
        }
    }
}

/// An empty buffer for this many bytes.
pub(crate) fn reserved(len: u64) -> Result<Vec<u8>, Error> {
    let out_of_memory = || Error::from(ErrorKind::OutOfMemory { needed: len });
    let len = usize::try_from(len).map_err(|_| out_of_memory())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| out_of_memory())?;
    Ok(bytes)
}

fn part(stored: &[u8], start: u64, len: u64) -> Result<&[u8], Error> {
    let start = usize::try_from(start).ok();
    let part = start.and_then(|start| stored.get(start..)?.get(..usize::try_from(len).ok()?));
    part.ok_or_else(|| Error::view("it reaches beyond its storage"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreign_format::Format;

    fn bytes(dtype: ElementType, shape: &[u64], stored: &[u8], view: View) -> Vec<u8> {
        let place = (Place::Memory(stored.into()), stored.len() as u64);
        let tensor = Tensor::new("t", dtype, shape.to_vec(), place, view, &Limits::default()).unwrap();
        tensor.to_vec(&Model::new(Format::Torch), &[0_u8; 0].as_slice()).unwrap()
    }

    #[test]
    fn byte_order_and_signs_are_applied() {
        let i16 = ElementType::Known(Dtype::I16);
        assert_eq!(bytes(i16, &[2], &[0, 1, 0, 2], View { swap: 2, ..View::whole() }), [1, 0, 2, 0]);
        assert_eq!(bytes(i16, &[1], &[1, 0], View { negate: true, ..View::whole() }), [255, 255]);
        let f32 = ElementType::Known(Dtype::F32);
        let negated = bytes(f32, &[1], &1.5_f32.to_le_bytes(), View { negate: true, ..View::whole() });
        assert_eq!(negated, (-1.5_f32).to_le_bytes());
        let c64 = ElementType::Known(Dtype::C64);
        let stored = [1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat();
        let conjugated = bytes(c64, &[1], &stored, View { conjugate: true, ..View::whole() });
        assert_eq!(conjugated, [1.0_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat());
    }

    #[test]
    fn packed_elements_fill_the_last_byte() {
        assert_eq!(bytes(ElementType::I4, &[3], &[0x21, 0x03], View::whole()), [0x21, 0x03]);
        assert_eq!(ElementType::U2.byte_len(5).unwrap(), 2);
    }
}
