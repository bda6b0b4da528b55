//! Lossless conversion between two layouts of 4-bit blocks.
//!
//! A block of `AprQ4` and one of `Q4_0` are the same 18 bytes in another order: an `f16` scale, then 32 nibbles with the values
//! (q - 8) d. Byte i holds elements 2i and 2i + 1 in `AprQ4`, i and i + 16 in `Q4_0`.

use tensor_dtype::Dtype;

/// Bytes of a block of either format.
const BLOCK: usize = 18;
/// Bytes of the scale.
const SCALE: usize = 2;
/// Bytes of the nibbles.
const NIBBLES: usize = 16;

/// Rewrites whole blocks of one format as blocks of another, in place.
pub type Repack = fn(&mut [u8]);

/// The function that converts whole blocks of `from` to blocks of `to` with bit-identical values; `None` if values would have
/// to be rounded. The length does not change, and the reverse conversion restores the bytes.
///
/// `AprQ4` blocks continue across rows, `Q4_0` blocks begin with each row: rows must be whole blocks.
///
/// ```
/// use apr_quant::{Dtype, dequantize, repack};
///
/// let mut block: Vec<u8> = vec![0x00, 0x3c];
/// block.extend((0..16).map(|idx| idx * 17));
/// let to_q4_0 = repack(Dtype::AprQ4, Dtype::Q4_0).expect("both have 4 bits and one scale");
/// let (mut before, mut after) = ([0.0; 32], [0.0; 32]);
/// dequantize(Dtype::AprQ4, &block, &mut before)?;
/// to_q4_0(&mut block);
/// dequantize(Dtype::Q4_0, &block, &mut after)?;
/// assert_eq!(before, after);
/// assert!(repack(Dtype::AprQ8, Dtype::Q8_0).is_none());
/// # Ok::<(), apr_quant::Error>(())
/// ```
#[must_use]
pub const fn repack(from: Dtype, to: Dtype) -> Option<Repack> {
    match (from, to) {
        (Dtype::AprQ4, Dtype::Q4_0) => Some(halves_apart),
        (Dtype::Q4_0, Dtype::AprQ4) => Some(neighbours),
        _ => None,
    }
}

/// `AprQ4` to `Q4_0`.
fn halves_apart(blocks: &mut [u8]) {
    for block in blocks.as_chunks_mut::<BLOCK>().0 {
        let old: [u8; NIBBLES] = core::array::from_fn(|idx| block[SCALE + idx]);
        let code = |element: usize| (old[element / 2] >> (4 * (element % 2))) & 15;
        for idx in 0..NIBBLES {
            block[SCALE + idx] = code(idx) | code(idx + NIBBLES) << 4;
        }
    }
}

/// `Q4_0` to `AprQ4`.
fn neighbours(blocks: &mut [u8]) {
    for block in blocks.as_chunks_mut::<BLOCK>().0 {
        let old: [u8; NIBBLES] = core::array::from_fn(|idx| block[SCALE + idx]);
        let code = |element: usize| (old[element % NIBBLES] >> (4 * (element / NIBBLES))) & 15;
        for idx in 0..NIBBLES {
            block[SCALE + idx] = code(2 * idx) | code(2 * idx + 1) << 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::dtypes;
    use crate::quantizer::{Quantizer, dequantize};

    /// Every possible scale, with different codes in each block.
    fn blocks() -> impl Iterator<Item = [u8; BLOCK]> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        (0..=u16::MAX).map(move |bits| {
            let mut block = [0; BLOCK];
            block[..SCALE].copy_from_slice(&bits.to_le_bytes());
            for byte in &mut block[SCALE..] {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = (state >> 32) as u8;
            }
            block
        })
    }

    #[test]
    fn repacked_blocks_stand_for_the_same_bits_and_come_back() {
        for (from, to) in [(Dtype::AprQ4, Dtype::Q4_0), (Dtype::Q4_0, Dtype::AprQ4)] {
            let (there, back) = (repack(from, to).unwrap(), repack(to, from).unwrap());
            for block in blocks() {
                let mut other = block;
                there(&mut other);
                let (mut before, mut after) = ([0.0; 32], [0.0; 32]);
                dequantize(from, &block, &mut before).unwrap();
                dequantize(to, &other, &mut after).unwrap();
                assert!(before.map(f32::to_bits) == after.map(f32::to_bits), "{from} to {to}: {block:?}");
                back(&mut other);
                assert_eq!(other, block, "{from} to {to}");
            }
        }
    }

    /// A block of `.apr` files has the error of ggml's, and becomes it.
    #[test]
    fn quantized_values_are_the_same_block() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let values: [f32; 4096] = core::array::from_fn(|idx| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Blocks of zeros, of one sign, with an outlier.
            match idx / 32 % 4 {
                0 => 0.0,
                1 => (state >> 40) as f32 / 1e7,
                2 if idx % 32 == 5 => -90.0,
                _ => (state >> 40) as f32 / 1e7 - 0.8,
            }
        });
        let (mut own, mut ggml) = ([0; 128 * BLOCK], [0; 128 * BLOCK]);
        Quantizer::new(Dtype::AprQ4).unwrap().quantize(&values, 4096, &mut own).unwrap();
        Quantizer::new(Dtype::Q4_0).unwrap().quantize(&values, 4096, &mut ggml).unwrap();
        halves_apart(&mut own);
        assert_eq!(own, ggml);
    }

    #[test]
    fn nothing_else_is_relabelled() {
        for from in dtypes() {
            for to in dtypes() {
                let is_four = |dtype| matches!(dtype, Dtype::AprQ4 | Dtype::Q4_0);
                assert_eq!(repack(from, to).is_some(), from != to && is_four(from) && is_four(to));
            }
        }
    }
}
