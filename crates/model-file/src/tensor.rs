//! One tensor of a model, wherever its bytes are.

#[cfg(feature = "foreign")]
mod foreign;
#[cfg(feature = "apr")]
mod of_apr;
#[cfg(feature = "std")]
mod shared;

use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "quantize")]
use apr_quant::{Quantizer, dequantize, repack};
#[cfg(feature = "gguf")]
use gguf_core::Endian;
use read_at::ReadAt;
#[cfg(feature = "quantize")]
use st_core::TensorView;
use st_core::{Bounds, Index, SlicePlan, TensorInfo};
#[cfg(feature = "std")]
use st_mmap::SafeTensorsFile;
use tensor_dtype::{Dtype, TensorType};

#[cfg(feature = "gguf")]
use crate::blocks::Swap;
#[cfg(feature = "quantize")]
use crate::blocks::{APR_Q8_SCALE, Decoded, Shown};
use crate::error::{Error, ErrorKind};

#[cfg(feature = "std")]
pub use self::shared::SharedTensor;

/// Bytes read from a tensor at once.
const CHUNK: u64 = 1 << 20;
/// The smallest number that a half holds with all of its digits, and the first that rounds to infinity.
#[cfg(feature = "quantize")]
const HALF_MIN_NORMAL: f32 = 1.0 / 16_384.0;
#[cfg(feature = "quantize")]
const HALF_OVERFLOW: f32 = 65_520.0;

/// A tensor of a model file: name, type and shape, and access to its bytes, which are read on demand.
///
/// Bytes are row-major and little-endian, whatever the byte order of the file.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'m> {
    name: &'m str,
    dtype: TensorType,
    shape: &'m [usize],
    elements: u64,
    byte_len: u64,
    place: Place<'m>,
    /// If this shows other bytes than are stored.
    #[cfg(feature = "quantize")]
    shown: Option<Shown>,
    /// The tensor that this is another name of.
    #[cfg(feature = "foreign")]
    alias_of: Option<&'m str>,
}

/// Totals over several tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of tensors.
    pub tensors: u64,
    /// Number of their elements.
    pub elements: u64,
    /// Bytes of their data.
    pub bytes: u64,
}

impl Totals {
    /// Totals over these tensors.
    #[must_use]
    pub fn of(tensors: &[Tensor<'_>]) -> Self {
        let mut totals = Self::default();
        tensors.iter().for_each(|tensor| totals.add(tensor));
        totals
    }

    /// Adds a tensor.
    pub fn add(&mut self, tensor: &Tensor<'_>) {
        self.tensors += 1;
        self.elements = self.elements.saturating_add(tensor.elements);
        self.bytes = self.bytes.saturating_add(tensor.byte_len);
    }
}

/// One safetensors file of a model.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct Part<'m> {
    /// The file.
    pub file: &'m SafeTensorsFile,
    /// Its name in the index of shards.
    pub shard: Option<&'m str>,
}

/// Where the bytes are.
#[derive(Clone, Copy, Debug)]
enum Place<'m> {
    #[cfg(feature = "std")]
    Part(Part<'m>, TensorInfo<'m>),
    Stored(Origin<'m>),
    /// In the other byte order; `None` if the layout of the blocks is not known in it.
    #[cfg(feature = "gguf")]
    Swapped(Origin<'m>, Option<Swap>),
    #[cfg(feature = "apr")]
    Memory(&'m [u8]),
    /// Made of the bytes of a file of another program.
    #[cfg(feature = "foreign")]
    Foreign(crate::foreign::Place<'m>),
}

/// The bytes from this offset on of a file, or of the original inside a sealed file.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'m> {
    pub(crate) content: &'m dyn ReadAt,
    pub(crate) offset: u64,
}

impl fmt::Debug for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl<'m> Tensor<'m> {
    /// Of a safetensors file that `st-mmap` reads.
    #[cfg(feature = "std")]
    pub(crate) fn of_part(part: Part<'m>, info: TensorInfo<'m>) -> Self {
        Self::of_info(info, Place::Part(part, info))
    }

    /// Of a safetensors file whose bytes are read by offset.
    pub(crate) fn of_safetensors(info: TensorInfo<'m>, content: &'m dyn ReadAt) -> Self {
        Self::of_info(info, Place::Stored(Origin { content, offset: info.file_range().start }))
    }

    fn of_info(info: TensorInfo<'m>, place: Place<'m>) -> Self {
        let kind = (info.name(), TensorType::Known(info.dtype()));
        Self::new(kind, (info.shape(), info.element_count()), info.byte_len(), place)
    }

    const fn new(
        (name, dtype): (&'m str, TensorType),
        (shape, elements): (&'m [usize], u64),
        byte_len: u64,
        place: Place<'m>,
    ) -> Self {
        Self {
            name,
            dtype,
            shape,
            elements,
            byte_len,
            place,
            #[cfg(feature = "quantize")]
            shown: None,
            #[cfg(feature = "foreign")]
            alias_of: None,
        }
    }

    /// Of a GGUF file. Its bytes are read as little-endian, whatever the byte order of the file; block types without a big-endian
    /// layout are not converted.
    #[cfg(feature = "gguf")]
    pub(crate) fn of_gguf(
        kind: (&'m str, TensorType),
        extent: (&'m [usize], u64),
        byte_len: u64,
        origin: Origin<'m>,
        endian: Endian,
    ) -> Self {
        let swap = match kind.1 {
            TensorType::Known(dtype) if dtype.is_quantized() => Swap::blocks(dtype),
            TensorType::Known(dtype) => Some(Swap::plain(dtype.block_bytes())),
            TensorType::Unknown(_) | TensorType::Other(_) => None,
        };
        let place = match endian {
            Endian::Little => Place::Stored(origin),
            Endian::Big => Place::Swapped(origin, swap),
        };
        Self::new(kind, extent, byte_len, place)
    }
}

#[cfg(feature = "quantize")]
impl<'m> Tensor<'m> {
    /// The same tensor as plain numbers, `F32` or `F16`, made of its blocks as they are read; of plain numbers themselves,
    /// nothing else.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownEncoding`], [`ErrorKind::ByteOrder`].
    pub fn dequantized(self, to: Dtype) -> Result<Self, Error> {
        if self.dtype.element().is_some() { Ok(self) } else { self.decoded_to(to) }
    }

    /// The same tensor as `F32` if it is floats of 16 bits or blocks; of every other type, nothing else.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownEncoding`], [`ErrorKind::ByteOrder`].
    pub fn widened(self) -> Result<Self, Error> {
        match self.dtype {
            TensorType::Known(Dtype::F16 | Dtype::Bf16) => self.decoded_to(Dtype::F32),
            _ => self.dequantized(Dtype::F32),
        }
    }

    /// Whether it is as long as rows that are whole blocks of this format.
    #[must_use]
    pub fn has_rows_of(&self, format: Dtype) -> bool {
        let row_len = self.shape.last().map_or(1, |&dim| dim as u64);
        let n_rows = self.elements.checked_div(row_len).unwrap_or(0);
        format.byte_len_of_rows(row_len, n_rows).ok() == Some(self.byte_len)
    }

    /// The same numbers in blocks of another format, if it holds each of them and the rows are whole blocks.
    #[must_use]
    pub fn repacked(self, to: Dtype) -> Option<Self> {
        let from = decodable(self.dtype).filter(|&from| repack(from, to).is_some())?;
        // Blocks of both formats have the same length.
        let is_whole = self.shown.is_none() && self.check_order().is_ok() && self.has_rows_of(to);
        is_whole.then_some(Self { dtype: to.into(), shown: Some(Shown::Repacked { from, to }), ..self })
    }

    /// `AprQ8` as `Q8_0`, its one scale rounded to 16 bits, with the largest difference that this makes to a number; `None` for
    /// every other type, for rows that are no whole blocks, and for a scale that is beyond the normal numbers of 16 bits.
    ///
    /// # Errors
    ///
    /// If the scale cannot be read.
    pub fn with_half_scale(self) -> Result<Option<(Self, f64)>, Error> {
        let row_len = self.shape.last().map_or(1, |&dim| dim as u64);
        let n_rows = self.elements.checked_div(row_len).unwrap_or(0);
        let Ok(byte_len) = Dtype::Q8_0.byte_len_of_rows(row_len, n_rows) else { return Ok(None) };
        if self.dtype != TensorType::Known(Dtype::AprQ8) || self.shown.is_some() {
            return Ok(None);
        }
        let mut scale = [0; APR_Q8_SCALE as usize];
        if self.elements > 0 {
            self.read(0, &mut scale)?;
        }
        let scale = f32::from_le_bytes(scale);
        let (mut half, mut rounded) = ([0; 2], [0.0]);
        let is_normal = (HALF_MIN_NORMAL..HALF_OVERFLOW).contains(&scale.abs());
        let made = is_normal
            && Quantizer::new(Dtype::F16)
                .and_then(|quantizer| quantizer.quantize(&[scale], 1, &mut half))
                .and_then(|()| dequantize(Dtype::F16, &half, &mut rounded))
                .is_ok();
        if !made && self.elements > 0 {
            return Ok(None);
        }
        // No code is larger than -128; with the scale as it was, its product is rounded too.
        let difference = match (f64::from(scale) - f64::from(rounded[0])).abs() {
            0.0 => 0.0,
            of_scale => 128.0 * (of_scale + f64::from(scale.abs() * f32::EPSILON)),
        };
        let shown = Some(Shown::Scaled(half));
        Ok(Some((Self { dtype: TensorType::Known(Dtype::Q8_0), byte_len, shown, ..self }, difference)))
    }

    fn decoded_to(self, to: Dtype) -> Result<Self, Error> {
        self.check_order()?;
        // Blocks of 32 may run on over the ends of rows, as those of tables in `.apr` files of version 1 do.
        let runs_on = |format: Dtype| {
            format.block_len() == 32
                && self.elements.div_ceil(32).checked_mul(format.block_bytes() as u64) == Some(self.byte_len)
        };
        let is_whole = |format: &Dtype| self.has_rows_of(*format) || runs_on(*format);
        let from = decodable(self.dtype).filter(is_whole).filter(|_| self.shown.is_none());
        let Some(from) = from else {
            let kind = ErrorKind::UnknownEncoding { found: self.dtype };
            return Err(Error::from(kind).of_tensor(self.name));
        };
        let byte_len = self.elements.saturating_mul(u64::from(to.bits() / 8));
        let shown = Some(Shown::Plain(Decoded { from, to, elements: self.elements }));
        Ok(Self { dtype: TensorType::Known(to), byte_len, shown, ..self })
    }
}

impl<'m> Tensor<'m> {
    /// The same tensor with its bytes as they lie, in whatever order its file has them.
    #[must_use]
    pub fn as_stored(self) -> Self {
        match self.place {
            #[cfg(feature = "gguf")]
            Place::Swapped(origin, _) => Self { place: Place::Stored(origin), ..self },
            _ => self,
        }
    }

    /// Looks whether what is read of it is little-endian, as everything written is.
    ///
    /// # Errors
    ///
    /// If its byte order is the other one and its type cannot be byte-swapped here.
    pub fn check_order(&self) -> Result<(), Error> {
        match self.place {
            #[cfg(feature = "gguf")]
            Place::Swapped(_, None) => {
                Err(Error::from(ErrorKind::ByteOrder { found: self.dtype }).of_tensor(self.name))
            }
            _ => Ok(()),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'m str {
        self.name
    }

    /// The type of its elements.
    #[must_use]
    pub fn dtype(&self) -> TensorType {
        self.dtype
    }

    /// Its dimensions.
    #[must_use]
    pub fn shape(&self) -> &'m [usize] {
        self.shape
    }

    /// Bytes of its data.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// Number of its elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Where its bytes begin in its file; `None` for a tensor that no file has as such.
    #[must_use]
    pub fn file_offset(&self) -> Option<u64> {
        match &self.place {
            #[cfg(feature = "std")]
            Place::Part(_, info) => Some(info.file_range().start),
            #[cfg(feature = "gguf")]
            Place::Swapped(origin, _) => Some(origin.offset),
            Place::Stored(origin) => Some(origin.offset),
            #[cfg(feature = "apr")]
            Place::Memory(_) => None,
            #[cfg(feature = "foreign")]
            Place::Foreign(_) => None,
        }
    }

    /// Name of the shard it is in.
    #[must_use]
    pub fn shard(&self) -> Option<&'m str> {
        match &self.place {
            #[cfg(feature = "std")]
            Place::Part(part, _) => part.shard,
            _ => None,
        }
    }

    /// Reads `buf.len()` bytes from `offset` within the tensor.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`], [`ErrorKind::Read`]; of a decoded tensor, [`ErrorKind::NotRepresentable`].
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        let (len, available) = (buf.len() as u64, self.byte_len);
        if offset.checked_add(len).is_none_or(|end| end > available) {
            return Err(Error::from(ErrorKind::OutOfRange { offset, len, available }).of_tensor(self.name));
        }
        #[cfg(feature = "quantize")]
        if let Some(shown) = self.shown {
            let read = shown.read(offset, buf, self.byte_len, |offset, buf| self.read_stored(offset, buf));
            return read.map_err(|error| error.of_tensor(self.name));
        }
        self.read_stored(offset, buf)
    }

    fn read_stored(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        match &self.place {
            #[cfg(feature = "std")]
            Place::Part(part, _) => {
                let range = offset..offset + buf.len() as u64;
                Ok(part.file.read_range(self.name, range, buf)?)
            }
            Place::Stored(origin) => origin.read(offset, buf, self.name),
            #[cfg(feature = "gguf")]
            Place::Swapped(origin, None) => origin.read(offset, buf, self.name),
            #[cfg(feature = "gguf")]
            Place::Swapped(origin, Some(swap)) => {
                swap.read(offset, buf, self.byte_len, |offset, buf| origin.read(offset, buf, self.name))
            }
            #[cfg(feature = "foreign")]
            Place::Foreign(place) => place.read(offset, buf).map_err(|error| error.of_tensor(self.name)),
            #[cfg(feature = "apr")]
            Place::Memory(data) => {
                let bytes =
                    usize::try_from(offset).ok().and_then(|offset| data.get(offset..)?.get(..buf.len()));
                let available = self.byte_len;
                let bytes =
                    bytes.ok_or(ErrorKind::OutOfRange { offset, len: buf.len() as u64, available })?;
                buf.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Tells the source that the tensor will be read from its beginning to its end, if its bytes are as long there.
    fn will_read(&self) {
        #[cfg(feature = "quantize")]
        if self.shown.is_some() {
            return;
        }
        match &self.place {
            #[cfg(feature = "std")]
            Place::Part(part, info) => part.file.will_read(info),
            Place::Stored(origin) => origin.will_read(self.byte_len),
            #[cfg(feature = "gguf")]
            Place::Swapped(origin, _) => origin.will_read(self.byte_len),
            #[cfg(any(feature = "foreign", feature = "apr"))]
            _ => {}
        }
    }

    /// All bytes.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read); [`ErrorKind::OutOfMemory`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let out_of_memory = ErrorKind::OutOfMemory { bytes: self.byte_len };
        let len = usize::try_from(self.byte_len).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
        bytes.resize(len.ok_or_else(|| Error::from(out_of_memory).of_tensor(self.name))?, 0);
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// All values as `f32`: plain floats and integers are converted (rounded to nearest), blocks are decoded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownEncoding`] for types without an `f32` conversion, and those of [`to_vec`](Self::to_vec).
    #[cfg(feature = "quantize")]
    pub fn to_f32(&self) -> Result<Vec<f32>, Error> {
        let widened = self.widened()?;
        let unknown = || Error::from(ErrorKind::UnknownEncoding { found: self.dtype }).of_tensor(self.name);
        let dtype = widened.dtype.element().ok_or_else(unknown)?;
        let bytes = widened.to_vec()?;
        if dtype == Dtype::F32 {
            return Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect());
        }
        let view = TensorView::new(dtype, widened.shape, &bytes)?;
        Ok(match view.to_f32() {
            Ok(values) => values.collect(),
            Err(_) => view.to_f64()?.map(|value| value as f32).collect(),
        })
    }

    /// The bytes of a slice of a tensor of plain elements, row-major, without reading the rest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownEncoding`] of blocks, [`ErrorKind::SafeTensors`] for an index that does not fit the shape, and those of
    /// [`read`](Self::read).
    pub fn slice(&self, index: &[Index]) -> Result<Vec<u8>, Error> {
        let unknown = || Error::from(ErrorKind::UnknownEncoding { found: self.dtype }).of_tensor(self.name);
        let dtype = self.dtype.element().ok_or_else(unknown)?;
        let plan = SlicePlan::new(dtype, self.shape, index, Bounds::Exact)?;
        let out_of_memory = || Error::from(ErrorKind::OutOfMemory { bytes: plan.byte_len() });
        let mut bytes = Vec::new();
        let len = usize::try_from(plan.byte_len()).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
        bytes.resize(len.ok_or_else(out_of_memory)?, 0);
        let mut rest = &mut bytes[..];
        for range in plan.ranges() {
            // The ranges are as long as the plan together.
            let (now, after) = rest.split_at_mut((range.end - range.start) as usize);
            self.read(range.start, now)?;
            rest = after;
        }
        Ok(bytes)
    }

    /// Passes all bytes to `take`, a chunk of whole elements or blocks at a time.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read) and of `take`.
    pub fn stream<E: From<Error>>(
        &self,
        buf: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.byte_len == 0 {
            // What cannot be represented has no bytes.
            self.read(0, &mut [])?;
        }
        let block = self.dtype.known().map_or(1, |dtype| dtype.block_bytes() as u64);
        let chunk = CHUNK - CHUNK % block;
        self.will_read();
        let mut offset = 0;
        while offset < self.byte_len {
            let len = chunk.min(self.byte_len - offset);
            // At most CHUNK, which fits any usize.
            buf.resize(len as usize, 0);
            self.read(offset, buf)?;
            take(buf)?;
            offset += len;
        }
        Ok(())
    }
}

impl Origin<'_> {
    fn will_read(&self, len: u64) {
        self.content.will_read(self.offset..self.offset.saturating_add(len));
    }

    fn read(&self, offset: u64, buf: &mut [u8], tensor: &str) -> Result<(), Error> {
        let read = self.content.read_exact_at(self.offset + offset, buf);
        read.map_err(|error| Error::from(error).of_tensor(tensor))
    }
}

/// Number of elements of a shape.
#[cfg(any(feature = "apr", feature = "foreign"))]
fn elements_of(shape: &[usize]) -> u64 {
    shape.iter().fold(1, |count: u64, &dim| count.saturating_mul(dim as u64))
}

/// Common name of this quantization: that of ggml, also for blocks of `.apr` files with the same codes.
#[must_use]
pub fn common_name(dtype: TensorType) -> &'static str {
    match dtype {
        TensorType::Known(Dtype::AprQ4) => Dtype::Q4_0.name(),
        TensorType::Known(Dtype::AprQ8) => Dtype::Q8_0.name(),
        _ => dtype.name(),
    }
}

/// The type, if `apr-quant` decodes it.
#[cfg(feature = "quantize")]
#[must_use]
pub fn decodable(dtype: TensorType) -> Option<Dtype> {
    dtype.known().filter(|&dtype| apr_quant::is_decodable(dtype))
}
