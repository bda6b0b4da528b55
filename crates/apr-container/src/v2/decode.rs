//! Stored elements as `f32`.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use tensor_dtype::AprType;
use tensor_dtype::{Element, Elements};

/// Elements of an `AprQ4` block.
const Q4_ELEMENTS: usize = 32;
/// Bytes of one: a half-precision scale, then the nibbles.
const Q4_BYTES: usize = 18;

/// Whether [`to_f32`] knows the type.
pub(crate) const fn is_decodable(dtype: AprType) -> bool {
    matches!(dtype, AprType::F32 | AprType::F16 | AprType::Bf16 | AprType::AprQ4 | AprType::AprQ8)
}

/// Decodes a tensor of a decodable type and validated length into one value per element.
pub(crate) fn to_f32(dtype: AprType, data: &[u8], out: &mut [f32]) {
    match dtype {
        AprType::F32 => each(Elements::<f32>::new(data), out, |value| value),
        AprType::F16 => match f16::slice_of(data) {
            // Whole slices are converted by CPU instructions where they exist.
            Some(halves) if cfg!(target_endian = "little") => halves.convert_to_f32_slice(out),
            _ => each(Elements::<f16>::new(data), out, f16::to_f32),
        },
        // As bits: a NaN keeps its payload, also a signalling one.
        AprType::Bf16 => {
            each(Elements::<bf16>::new(data), out, |value| f32::from_bits(u32::from(value.to_bits()) << 16));
        }
        AprType::AprQ4 => {
            for (block, out) in data.chunks_exact(Q4_BYTES).zip(out.chunks_mut(Q4_ELEMENTS)) {
                q4_block(block, out);
            }
        }
        AprType::AprQ8 => {
            let Some((scale, rest)) = data.split_first_chunk() else { return };
            let scale = f32::from_le_bytes(*scale);
            each(Elements::<i8>::new(rest), out, |value| f32::from(value) * scale);
        }
        _ => {}
    }
}

fn each<T>(values: impl Iterator<Item = T>, out: &mut [f32], convert: impl Fn(T) -> f32) {
    for (place, value) in out.iter_mut().zip(values) {
        *place = convert(value);
    }
}

/// Byte `i` holds element `2 i` in its lower half and `2 i + 1` in its upper one. The last block of a tensor may be
/// longer than what is left of `out`.
fn q4_block(block: &[u8], out: &mut [f32]) {
    let Some((scale, nibbles)) = block.split_first_chunk() else { return };
    let scale = f16::from_le_bytes(*scale).to_f32();
    let values = nibbles.iter().flat_map(|byte| [byte & 0x0F, byte >> 4]);
    each(values, out, |nibble| (f32::from(nibble) - 8.0) * scale);
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nibbles_are_interleaved() {
        let mut data = f16::from_f32(0.5).to_le_bytes().to_vec();
        data.extend([0x0F, 0x98].into_iter().chain([0x88; 14]));
        let mut out = [9.0; 5];
        to_f32(AprType::AprQ4, &data, &mut out);
        assert_eq!(out, [3.5, -4.0, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn the_scale_of_the_second_block_is_its_own() {
        let mut data = Vec::new();
        for scale in [1.0, 2.0] {
            data.extend(f16::from_f32(scale).to_le_bytes());
            data.extend([0x99; 16]);
        }
        let mut out = [0.0; 33];
        to_f32(AprType::AprQ4, &data, &mut out);
        assert_eq!((out[31], out[32]), (1.0, 2.0));
    }

    #[test]
    fn one_scale_serves_a_whole_q8_tensor() {
        let mut data = 0.25f32.to_le_bytes().to_vec();
        data.extend([127, 0x80, 0]);
        let mut out = [9.0; 3];
        to_f32(AprType::AprQ8, &data, &mut out);
        assert_eq!(out, [31.75, -32.0, 0.0]);
        to_f32(AprType::AprQ8, &[], &mut []);
    }

    proptest! {
        /// Whether or not the bytes happen to be aligned, the values are the same.
        #[test]
        fn halves_do_not_depend_on_alignment(bits in prop::collection::vec(any::<u16>(), 0..40)) {
            let mut data = vec![0];
            bits.iter().for_each(|bits| data.extend(bits.to_le_bytes()));
            let (mut aligned, mut shifted) = (vec![0.0; bits.len()], vec![0.0; bits.len()]);
            to_f32(AprType::F16, &data[1..], &mut shifted);
            data.remove(0);
            to_f32(AprType::F16, &data, &mut aligned);
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            prop_assert!(aligned.iter().zip(&shifted).all(same));
        }
    }
}
