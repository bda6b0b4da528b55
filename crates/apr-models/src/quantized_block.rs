//! Values quantized to 8 or 4 bits.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::payload::fields::read;
use crate::quant_type::{BLOCK, QuantType};
use crate::tensors::Tensors;

/// A quantized tensor, as other implementations store it in version 1 files.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedBlock {
    quant_type: QuantType,
    shape: Vec<usize>,
    blocks: Vec<u8>,
    block_size: usize,
}

impl QuantizedBlock {
    /// A tensor of this shape in these bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] if the bytes are not the blocks that the shape needs; [`ErrorKind::PartInvalid`] for
    /// a shape with too many elements to count.
    pub fn from_parts(quant_type: QuantType, shape: Vec<usize>, blocks: Vec<u8>) -> Result<Self, Error> {
        let table = Self { quant_type, shape, blocks, block_size: BLOCK };
        if let Some(block_len) = quant_type.block_len() {
            let expected = table.n_elements()?.div_ceil(BLOCK).checked_mul(block_len);
            let expected = expected.ok_or(TOO_MANY)?;
            let found = table.blocks.len();
            checks::expect_len(BLOCKS, expected, found)?;
        }
        Ok(table)
    }

    /// How the values are stored.
    #[must_use]
    pub const fn quant_type(&self) -> QuantType {
        self.quant_type
    }

    /// Dimensions, row-major.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The bytes.
    #[must_use]
    pub fn blocks(&self) -> &[u8] {
        &self.blocks
    }

    /// The values, row-major: scale times stored value, rounded once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for a [`QuantType`] that is reserved or custom.
    pub fn dequantize(&self) -> Result<Vec<f32>, Error> {
        let Some(block_len) = self.quant_type.block_len() else {
            return Err(ErrorKind::PartInvalid {
                part: "quant_type",
                problem: "only Q8_0 and Q4_0 have a known meaning",
            }
            .into());
        };
        let count = self.n_elements()?;
        let mut values = Vec::with_capacity(count.next_multiple_of(BLOCK));
        for block in self.blocks.chunks_exact(block_len) {
            let (scale, quants) = block.split_at(2);
            let scale = half::f16::from_le_bytes([scale[0], scale[1]]).to_f32();
            match self.quant_type {
                QuantType::Q8_0 => {
                    values.extend(quants.iter().map(|&quant| f32::from(quant.cast_signed()) * scale));
                }
                _ => {
                    let halves = quants.iter().flat_map(|&pair| [pair & 15, pair >> 4]);
                    values.extend(halves.map(|quant| (f32::from(quant) - 8.0) * scale));
                }
            }
        }
        values.truncate(count);
        Ok(values)
    }

    fn n_elements(&self) -> Result<usize, Error> {
        let count = self.shape.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim));
        count.ok_or_else(|| TOO_MANY.into())
    }

    /// Reads it from tensors `blocks` (bytes), `shape`, and `quant_type` (0 for Q8_0 to 4 for custom).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[BLOCKS, SHAPE, QUANT_TYPE])?;
        let kind = QuantType::ALL.get(tensors.count(QUANT_TYPE)?).copied();
        let kind = kind.ok_or(ErrorKind::PartInvalid { part: QUANT_TYPE, problem: "0 to 4 is needed" })?;
        Self::from_parts(kind, tensors.counts(SHAPE)?, tensors.bytes(BLOCKS)?.to_vec())
    }
}

const TOO_MANY: ErrorKind =
    ErrorKind::PartInvalid { part: SHAPE, problem: "more elements than this machine can address" };
const BLOCKS: &str = "blocks";
const SHAPE: &str = "shape";
const QUANT_TYPE: &str = "quant_type";

impl QuantizedBlock {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_u8(BLOCKS, &[self.blocks.len()], &self.blocks)?;
        tensors.push_counts(SHAPE, &self.shape)?;
        tensors.push_count(QUANT_TYPE, self.quant_type as usize)
    }
}

stored_model! {
    /// Kind (alternatives Q8_0, Q4_0, Q4_1, Q8Tensor, custom), dimensions, bytes, values of a block.
    QuantizedBlock "QuantizedBlock" [NeuralSequential or any]
    n_features: |_| None;
}

impl QuantizedBlock {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.variant(self.quant_type as u32)?;
        out.usizes(&self.shape)?;
        out.bytes(&self.blocks)?;
        out.usize(self.block_size)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let (quant_type, shape, blocks, block_size) = read(input, |fields| {
            let quant_type = QuantType::ALL[fields.variant(5) as usize];
            let (shape, blocks, block_size) = (fields.usizes(), fields.bytes(), fields.usize());
            let is_whole = quant_type.block_len().is_none() || block_size == BLOCK;
            fields.check(is_whole, "blocks of another size than 32 values");
            (quant_type, shape, blocks, block_size)
        })?;
        let table = Self::from_parts(quant_type, shape, blocks)?;
        Ok(Self { block_size, ..table })
    }
}
