//! Elements of inputs in order: those of a file, or dequantized from several tensors.

use alloc::vec;
use alloc::vec::Vec;

use tensor_dtype::Dtype;

use super::numbers::decode;
use crate::error::{Error, ErrorKind};
use crate::tensors::input::{Gptq, Input, Packed, Values};

/// Reads inputs, with the scales and the codes of the quantized one that was read last.
#[derive(Debug, Default)]
pub(super) struct Loader {
    /// Number of the codes.
    which: Option<usize>,
    scales: Vec<f32>,
    codes: Vec<i32>,
    zeros: Vec<i32>,
    groups: Vec<i32>,
    raw: Vec<u8>,
}

impl Loader {
    /// Fills `out` with elements from `first` on, as their file has them, or of 32 bits.
    pub(super) fn load<E: From<Error>>(
        &mut self,
        input: &Input,
        first: u64,
        out: &mut [u8],
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match &input.values {
            Values::Stored { tensor, dtype } => read(*tensor, first * dtype.block_bytes() as u64, out),
            Values::Scaled { codes, scales, blocks } => {
                let count: u64 = blocks.iter().map(|(count, _)| count).product();
                self.begin(codes.0, (*scales, count), read)?;
                self.raw.clear();
                self.raw.resize(out.len() / 4 * codes.1.block_bytes(), 0);
                read(codes.0, first * codes.1.block_bytes() as u64, &mut self.raw)?;
                let mut values = vec![0.0; out.len() / 4];
                decode(codes.1, &self.raw, &mut values)?;
                for (idx, (value, out)) in (first..).zip(values.into_iter().zip(out.as_chunks_mut().0)) {
                    let scale = self.scales.get(scale_of(idx, &input.shape, blocks)).copied();
                    *out = (value * scale.unwrap_or(f32::NAN)).to_le_bytes();
                }
                Ok(())
            }
            Values::Packed(packed) => self.packed(packed, &input.shape, first, out, read),
            Values::Gptq(gptq) => self.gptq(gptq, &input.shape, first, out, read),
        }
    }

    /// Reads the scales of another tensor than before. Returns whether it is another one.
    fn begin<E: From<Error>>(
        &mut self,
        codes: usize,
        ((tensor, dtype), count): ((usize, Dtype), u64),
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.which == Some(codes) {
            return Ok(false);
        }
        self.which = None;
        self.raw.clear();
        self.raw.resize(count as usize * dtype.block_bytes(), 0);
        read(tensor, 0, &mut self.raw)?;
        self.scales.clear();
        self.scales.resize(count as usize, 0.0);
        decode(dtype, &self.raw, &mut self.scales)?;
        self.which = Some(codes);
        Ok(true)
    }

    /// Reads words from an offset in words on.
    fn words<E: From<Error>>(
        &mut self,
        tensor: usize,
        first: u64,
        count: u64,
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Vec<i32>, E> {
        self.raw.clear();
        self.raw.resize(count as usize * 4, 0);
        read(tensor, first * 4, &mut self.raw)?;
        Ok(self.raw.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect())
    }

    fn packed<E: From<Error>>(
        &mut self,
        packed: &Packed,
        shape: &[u64],
        first: u64,
        out: &mut [u8],
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let &[rows, columns] = shape else { return Ok(()) };
        let n_groups = columns / packed.group;
        let bits = packed.bits;
        let per_word = u64::from((32 - (bits - 1)).div_ceil(bits));
        let mask = (1_i32 << bits) - 1;
        if self.begin(packed.codes, (packed.scales, rows * n_groups), read)? {
            self.which = None;
            self.check_shape(packed, shape, read)?;
            self.zeros = match packed.zeros {
                Some(tensor) => self.words(tensor, 0, rows.div_ceil(per_word) * n_groups, read)?,
                None => Vec::new(),
            };
            self.which = Some(packed.codes);
        }
        let last = first + (out.len() / 4) as u64;
        let first_row = first / columns;
        let n_rows = last.div_ceil(columns) - first_row;
        let words =
            self.words(packed.codes, first_row * packed.row_words, n_rows * packed.row_words, read)?;
        for (idx, out) in (first..).zip(out.as_chunks_mut().0) {
            let (row, column) = (idx / columns, idx % columns);
            let group = column / packed.group;
            let word = words.get(((row - first_row) * packed.row_words + column / per_word) as usize);
            let code = word.copied().unwrap_or(0) >> ((column % per_word) as u32 * bits) & mask;
            let zero = match self.zeros.get((row / per_word * n_groups + group) as usize) {
                Some(zeros) => zeros >> ((row % per_word) as u32 * bits) & mask,
                None => 1 << (bits - 1),
            };
            let scale = self.scales.get((row * n_groups + group) as usize).copied().unwrap_or(f32::NAN);
            *out = ((code - zero) as f32 * scale).to_le_bytes();
        }
        Ok(())
    }

    /// Compares the stored shape with that of the codes and scales.
    fn check_shape<E: From<Error>>(
        &mut self,
        packed: &Packed,
        shape: &[u64],
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (tensor, dtype) = packed.shape;
        let mut bytes = [0; 16];
        let size = dtype.block_bytes().min(8);
        read(tensor, 0, &mut bytes[..2 * size])?;
        let found: Vec<u64> = bytes[..2 * size]
            .chunks(size)
            .map(|bytes| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            .collect();
        if found == shape { Ok(()) } else { Err(Error::from(ErrorKind::QuantizedShape).into()) }
    }

    fn gptq<E: From<Error>>(
        &mut self,
        gptq: &Gptq,
        shape: &[u64],
        first: u64,
        out: &mut [u8],
        read: &mut impl FnMut(usize, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let &[outputs, inputs] = shape else { return Ok(()) };
        let per_word = u64::from(32 / gptq.bits);
        let mask = if gptq.bits == 8 { 255 } else { (1_i32 << gptq.bits) - 1 };
        if self.begin(gptq.codes, (gptq.scales, gptq.n_groups * outputs), read)? {
            self.which = None;
            self.codes = self.words(gptq.codes, 0, inputs / per_word * outputs, read)?;
            self.zeros = self.words(gptq.zeros, 0, gptq.n_groups * (outputs / per_word), read)?;
            self.groups = self.words(gptq.groups, 0, inputs, read)?;
            if self.groups.iter().any(|group| !(0..gptq.n_groups).contains(&(i64::from(*group) as u64))) {
                return Err(Error::from(ErrorKind::QuantizedShape).into());
            }
            self.which = Some(gptq.codes);
        }
        let bits = |word: Option<&i32>, place: u64| {
            word.copied().unwrap_or(0) >> ((place % per_word) as u32 * gptq.bits) & mask
        };
        for (idx, out) in (first..).zip(out.as_chunks_mut().0) {
            let (output, input) = (idx / inputs, idx % inputs);
            // Compared with the number of groups above.
            let group = self.groups.get(input as usize).map_or(0, |group| u64::from(group.unsigned_abs()));
            let code = bits(self.codes.get((input / per_word * outputs + output) as usize), input);
            let zero =
                bits(self.zeros.get((group * (outputs / per_word) + output / per_word) as usize), output);
            let scale = self.scales.get((group * outputs + output) as usize).copied().unwrap_or(f32::NAN);
            *out = (scale * (code - (zero + gptq.zero_offset)) as f32).to_le_bytes();
        }
        Ok(())
    }
}

/// The scale of an element.
fn scale_of(element: u64, shape: &[u64], blocks: &[(u64, u64)]) -> usize {
    let mut rest = element;
    let mut stride = 1;
    let mut place = 0;
    for (&len, &(count, size)) in shape.iter().zip(blocks).rev() {
        place += rest % len / size * stride;
        rest /= len;
        stride *= count;
    }
    place as usize
}
