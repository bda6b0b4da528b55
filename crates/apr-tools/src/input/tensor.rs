//! One tensor of a model, wherever its bytes are.

use std::path::Path;

use apr_container::v2;
use apr_quant::{Dtype, Quantizer, dequantize, repack};
use gguf_core::Endian;
use st_core::TensorInfo;
use tensor_dtype::TensorType;

use super::blocks::{APR_Q8_SCALE, Decoded, Shown, Swap};
use super::{Part, Stored};
use crate::error::{CODE_NOT_CARRIED, Failure};

/// Bytes read from a tensor at once.
const CHUNK: u64 = 1 << 20;
/// The smallest number that a half holds with all of its digits, and the first that rounds to infinity.
const HALF_MIN_NORMAL: f32 = 1.0 / 16_384.0;
const HALF_OVERFLOW: f32 = 65_520.0;

/// A tensor and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'m> {
    name: &'m str,
    dtype: TensorType,
    shape: &'m [usize],
    elements: u64,
    byte_len: u64,
    place: Place<'m>,
    /// If this shows other bytes than are stored.
    shown: Option<Shown>,
}

/// Several tensors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) tensors: u64,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
}

impl Totals {
    pub(crate) fn of(tensors: &[Tensor<'_>]) -> Self {
        let mut totals = Self::default();
        tensors.iter().for_each(|tensor| totals.add(tensor));
        totals
    }

    pub(crate) fn add(&mut self, tensor: &Tensor<'_>) {
        self.tensors += 1;
        self.elements = self.elements.saturating_add(tensor.elements);
        self.bytes = self.bytes.saturating_add(tensor.byte_len);
    }
}

/// Where the bytes are.
#[derive(Clone, Copy, Debug)]
enum Place<'m> {
    SafeTensors(Part<'m>, TensorInfo<'m>),
    File(Origin<'m>),
    /// In the other byte order; `None` if nobody here knows how to turn it round.
    Swapped(Origin<'m>, Option<Swap>),
    Memory(&'m [u8]),
}

/// From this offset of a file, or of what is inside a sealed one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'m> {
    pub(super) stored: &'m Stored,
    pub(super) label: &'m Path,
    pub(super) offset: u64,
}

impl<'m> Tensor<'m> {
    pub(super) fn of_safetensors(part: Part<'m>, info: TensorInfo<'m>) -> Self {
        Self {
            name: info.name(),
            dtype: TensorType::Known(info.dtype()),
            shape: info.shape(),
            elements: info.element_count(),
            byte_len: info.byte_len(),
            place: Place::SafeTensors(part, info),
            shown: None,
        }
    }

    /// Of a safetensors file whose bytes are read by offset.
    pub(super) fn in_content(info: TensorInfo<'m>, origin: Origin<'m>) -> Self {
        Self {
            name: info.name(),
            dtype: TensorType::Known(info.dtype()),
            shape: info.shape(),
            elements: info.element_count(),
            byte_len: info.byte_len(),
            place: Place::File(origin),
            shown: None,
        }
    }

    pub(super) fn in_memory(name: &'m str, dtype: TensorType, shape: &'m [usize], data: &'m [u8]) -> Self {
        let elements = shape.iter().fold(1_u64, |count, &dim| count.saturating_mul(dim as u64));
        let byte_len = data.len() as u64;
        let place = Place::Memory(data);
        Self { name, dtype, shape, elements, byte_len, place, shown: None }
    }

    pub(super) fn stored(
        info: v2::TensorInfo<'m>,
        shape: &'m [usize],
        stored: &'m Stored,
        label: &'m Path,
    ) -> Self {
        Self::of_apr(info, shape, Place::File(Origin { stored, label, offset: info.file_range().start }))
    }

    /// Of a file that was decompressed into memory.
    pub(super) fn inflated(info: v2::TensorInfo<'m>, shape: &'m [usize], data: &'m [u8]) -> Self {
        Self::of_apr(info, shape, Place::Memory(data))
    }

    fn of_apr(info: v2::TensorInfo<'m>, shape: &'m [usize], place: Place<'m>) -> Self {
        Self {
            name: info.name(),
            dtype: TensorType::from(info.dtype()),
            shape,
            elements: info.shape().iter().fold(1, |count: u64, &dim| count.saturating_mul(dim)),
            byte_len: info.byte_len(),
            place,
            shown: None,
        }
    }

    /// Of a GGUF file. What is read of it is little-endian whatever the file is; blocks that nobody writes in the other order
    /// stay as they are.
    pub(super) fn of_gguf(
        (name, dtype): (&'m str, TensorType),
        (shape, elements): (&'m [usize], u64),
        byte_len: u64,
        origin: Origin<'m>,
        endian: Endian,
    ) -> Self {
        let swap = match dtype {
            TensorType::Known(dtype) if dtype.is_quantized() => Swap::blocks(dtype),
            TensorType::Known(dtype) => Some(Swap::plain(dtype.block_bytes())),
            TensorType::Unknown(_) => None,
        };
        let place = match endian {
            Endian::Little => Place::File(origin),
            Endian::Big => Place::Swapped(origin, swap),
        };
        Self { name, dtype, shape, elements, byte_len, place, shown: None }
    }

    /// The same tensor as plain numbers, `F32` or `F16`, made of its blocks as they are read; of plain numbers themselves,
    /// nothing else.
    ///
    /// # Errors
    ///
    /// If nobody here knows the numbers in it.
    pub(crate) fn dequantized(self, to: Dtype) -> Result<Self, Failure> {
        if self.dtype.element().is_some() { Ok(self) } else { self.decoded_to(to) }
    }

    /// The same tensor as `F32` if it is floats of 16 bits or blocks; of every other type, nothing else.
    ///
    /// # Errors
    ///
    /// If nobody here knows the numbers in it.
    pub(crate) fn widened(self) -> Result<Self, Failure> {
        match self.dtype {
            TensorType::Known(Dtype::F16 | Dtype::Bf16) => self.decoded_to(Dtype::F32),
            _ => self.dequantized(Dtype::F32),
        }
    }

    /// Whether it is as long as rows that are whole blocks of this format.
    pub(crate) fn has_rows_of(&self, format: Dtype) -> bool {
        let row_len = self.shape.last().map_or(1, |&dim| dim as u64);
        let n_rows = self.elements.checked_div(row_len).unwrap_or(0);
        format.byte_len_of_rows(row_len, n_rows).ok() == Some(self.byte_len)
    }

    /// The same numbers in blocks of another format, if it holds each of them and the rows are whole blocks.
    pub(crate) fn repacked(self, to: Dtype) -> Option<Self> {
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
    pub(crate) fn with_half_scale(self) -> Result<Option<(Self, f64)>, Failure> {
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

    fn decoded_to(self, to: Dtype) -> Result<Self, Failure> {
        self.check_order()?;
        // Blocks of 32 may run on over the ends of rows, as those of tables in `.apr` files of version 1 do.
        let runs_on = |format: Dtype| {
            format.block_len() == 32
                && self.elements.div_ceil(32).checked_mul(format.block_bytes() as u64) == Some(self.byte_len)
        };
        let is_whole = |format: &Dtype| self.has_rows_of(*format) || runs_on(*format);
        let from = decodable(self.dtype).filter(is_whole).filter(|_| self.shown.is_none());
        let Some(from) = from else {
            let what = format!("the numbers of a tensor of type {} are not known here", self.dtype);
            return Err(Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(self.name)));
        };
        let byte_len = self.elements.saturating_mul(u64::from(to.bits() / 8));
        let shown = Some(Shown::Plain(Decoded { from, to, elements: self.elements }));
        Ok(Self { dtype: TensorType::Known(to), byte_len, shown, ..self })
    }

    /// The same tensor with its bytes as they lie, in whatever order its file has them.
    #[must_use]
    pub(crate) fn as_stored(self) -> Self {
        match self.place {
            Place::Swapped(origin, _) => Self { place: Place::File(origin), ..self },
            _ => self,
        }
    }

    /// Looks whether what is read of it is little-endian, as everything written is.
    ///
    /// # Errors
    ///
    /// If it is in the other order and nobody here knows how to turn it round.
    pub(crate) fn check_order(&self) -> Result<(), Failure> {
        if !matches!(self.place, Place::Swapped(_, None)) {
            return Ok(());
        }
        let what = format!("big-endian blocks of type {} are not turned round here", self.dtype);
        Err(Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(self.name)))
    }

    pub(crate) fn name(&self) -> &'m str {
        self.name
    }

    pub(crate) fn dtype(&self) -> TensorType {
        self.dtype
    }

    pub(crate) fn shape(&self) -> &'m [usize] {
        self.shape
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.byte_len
    }

    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// Where its bytes begin in its file; `None` for a tensor that no file has as such.
    pub(crate) fn file_offset(&self) -> Option<u64> {
        match &self.place {
            Place::SafeTensors(_, info) => Some(info.file_range().start),
            Place::File(origin) | Place::Swapped(origin, _) => Some(origin.offset),
            Place::Memory(_) => None,
        }
    }

    /// Name of the shard it is in.
    pub(crate) fn shard(&self) -> Option<&'m str> {
        match &self.place {
            Place::SafeTensors(part, _) => part.shard,
            Place::File(_) | Place::Swapped(..) | Place::Memory(_) => None,
        }
    }

    /// Reads `buf.len()` bytes from `offset` within the tensor.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or became shorter; of a tensor that is dequantized, if a number does not fit.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Failure> {
        let Some(shown) = self.shown else { return self.read_stored(offset, buf) };
        let read = shown.read(offset, buf, self.byte_len, |offset, buf| self.read_stored(offset, buf));
        read.map_err(|failure| failure.of_tensor(Some(self.name)))
    }

    fn read_stored(&self, offset: u64, buf: &mut [u8]) -> Result<(), Failure> {
        match &self.place {
            Place::SafeTensors(part, _) => {
                let range = offset..offset + buf.len() as u64;
                Ok(part.file.read_range(self.name, range, buf)?)
            }
            Place::File(origin) | Place::Swapped(origin, None) => origin.read(offset, buf, self.name),
            Place::Swapped(origin, Some(swap)) => {
                swap.read(offset, buf, self.byte_len, |offset, buf| origin.read(offset, buf, self.name))
            }
            Place::Memory(data) => {
                let bytes =
                    usize::try_from(offset).ok().and_then(|offset| data.get(offset..)?.get(..buf.len()));
                let bytes = bytes.ok_or_else(|| {
                    Failure::new(crate::error::CODE_INTERNAL, "a read beyond the tensor")
                        .of_tensor(Some(self.name))
                })?;
                buf.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Passes all bytes to `take`, a chunk at a time.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read) and of `take`.
    pub(crate) fn stream<E: From<Failure>>(
        &self,
        buf: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut offset = 0;
        while offset < self.byte_len {
            let len = CHUNK.min(self.byte_len - offset);
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
    fn read(&self, offset: u64, buf: &mut [u8], tensor: &str) -> Result<(), Failure> {
        let read = self.stored.read(self.offset + offset, buf, ("read the tensor", self.label));
        read.map_err(|failure| failure.of_tensor(Some(tensor)))
    }
}

/// Name of this kind of quantization: ggml's also for the blocks of `.apr` files that hold the same codes.
pub(crate) fn common_name(dtype: TensorType) -> &'static str {
    match dtype {
        TensorType::Known(Dtype::AprQ4) => Dtype::Q4_0.name(),
        TensorType::Known(Dtype::AprQ8) => Dtype::Q8_0.name(),
        _ => dtype.name(),
    }
}

/// The type, if `apr-quant` decodes it.
pub(crate) fn decodable(dtype: TensorType) -> Option<Dtype> {
    dtype.known().filter(|&dtype| apr_quant::is_decodable(dtype))
}
