//! Numbers of the types of files, as the reference implementation computes with them.

use alloc::vec;

use apr_quant::{Dtype, NonFinite, Quantizer, dequantize};

use crate::error::Error;
use crate::tensors::output::Shift;

/// Smallest magnitude that is infinite as `F16`: halfway between the largest `F16` and 2^16.
const F16_LIMIT: f32 = 65_520.0;

/// Values of little-endian bytes.
pub(super) fn decode(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> Result<(), Error> {
    match dtype {
        Dtype::Bool | Dtype::U8 => each(bytes, out, f32::from),
        Dtype::F8E4M3 => each(bytes, out, e4m3),
        Dtype::F8E5M2 => each(bytes, out, e5m2),
        _ => dequantize(dtype, bytes, out)?,
    }
    Ok(())
}

fn each(bytes: &[u8], out: &mut [f32], value: fn(u8) -> f32) {
    let mut table = [0.0; 256];
    for (byte, place) in (0..=u8::MAX).zip(&mut table) {
        *place = value(byte);
    }
    for (byte, out) in bytes.iter().zip(out) {
        *out = table[usize::from(*byte)];
    }
}

/// OFP8 E4M3: no infinities; all bits of exponent and mantissa set is not a number.
fn e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(byte >> 3 & 15), f32::from(byte & 7));
    let magnitude = match (exponent, byte & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa / 512.0,
        _ => (1.0 + mantissa / 8.0) * libm::scalbnf(1.0, exponent - 7),
    };
    if byte & 0x80 == 0 { magnitude } else { -magnitude }
}

/// OFP8 E5M2: the upper half of a binary16.
fn e5m2(byte: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(byte >> 2 & 31), f32::from(byte & 3));
    let magnitude = match (exponent, byte & 3) {
        (31, 0) => f32::INFINITY,
        (31, _) => f32::NAN,
        (0, _) => mantissa / 65_536.0,
        _ => (1.0 + mantissa / 4.0) * libm::scalbnf(1.0, exponent - 15),
    };
    if byte & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Adds to each value, with the precision of `dtype`.
pub(super) fn add(dtype: Dtype, shift: Shift, values: &mut [f32]) -> Result<(), Error> {
    let term = match shift {
        Shift::None => return Ok(()),
        Shift::PlusOne => 1.0,
        Shift::MinusOne => -1.0,
    };
    values.iter_mut().for_each(|value| *value += term);
    if dtype == Dtype::F16 {
        let mut halves = vec![0; values.len() * 2];
        let quantizer = Quantizer::new(Dtype::F16)?.non_finite(NonFinite::AsReference);
        quantizer.quantize(values, values.len(), &mut halves)?;
        dequantize(Dtype::F16, &halves, values)?;
    }
    Ok(())
}

/// How many values are finite, and infinite in this type or in blocks whose scale they determine; and how many are not finite.
pub(super) fn beyond(dtype: Dtype, values: &[f32]) -> (u64, u64) {
    let limit = match dtype {
        Dtype::F16 | Dtype::TQ1_0 | Dtype::TQ2_0 => F16_LIMIT,
        Dtype::Q8_0 => F16_LIMIT * 127.0,
        _ => f32::INFINITY,
    };
    let largest = values.iter().fold(0, |max: u32, value| max.max(value.to_bits() & 0x7fff_ffff));
    if largest < limit.to_bits() {
        return (0, 0);
    }
    let not_finite = values.iter().filter(|value| !value.is_finite()).count();
    let beyond = values.iter().filter(|value| value.is_finite() && value.abs() >= limit).count();
    (beyond as u64, not_finite as u64)
}

/// How many floats are infinite or not a number, by the bits of their exponents.
pub(super) fn not_finite(dtype: Dtype, bytes: &[u8]) -> u64 {
    let halves = |exponent: u16| {
        let halves = bytes.as_chunks().0.iter();
        halves.filter(|half| u16::from_le_bytes(**half) & exponent == exponent).count()
    };
    let count = match dtype {
        Dtype::F32 => {
            let words = bytes.as_chunks().0.iter();
            words.filter(|word| u32::from_le_bytes(**word) & 0x7f80_0000 == 0x7f80_0000).count()
        }
        Dtype::F16 => halves(0x7c00),
        Dtype::Bf16 => halves(0x7f80),
        _ => 0,
    };
    count as u64
}

/// Makes what is not a number quiet where the reference implementation does: in `BF16`.
pub(super) fn quiet(dtype: Dtype, bytes: &mut [u8]) {
    if dtype == Dtype::Bf16 {
        for half in bytes.as_chunks_mut::<2>().0 {
            let bits = u16::from_le_bytes(*half);
            if bits & 0x7fff > 0x7f80 {
                *half = (bits | 0x40).to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn eight_bit_floats_have_their_published_values() {
        for (byte, value) in
            [(0x00, 0.0), (0x01, 0.001_953_125), (0x08, 0.015_625), (0x38, 1.0), (0x7e, 448.0), (0xb8, -1.0)]
        {
            assert_eq!(e4m3(byte), value, "{byte:02x}");
        }
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        for (byte, value) in [
            (0x01, 1.525_878_9e-5),
            (0x04, 6.103_515_6e-5),
            (0x3c, 1.0),
            (0x7b, 57_344.0),
            (0xfc, f32::NEG_INFINITY),
        ] {
            assert_eq!(e5m2(byte), value, "{byte:02x}");
        }
        assert!(e5m2(0x7d).is_nan());
    }

    #[test]
    fn sums_are_rounded_to_the_type() {
        let mut values = [0.000_1, -0.3];
        add(Dtype::F32, Shift::PlusOne, &mut values).unwrap();
        assert_eq!(values, [1.000_1, 0.7]);
        let mut values = [0.000_1, 0.000_6];
        add(Dtype::F16, Shift::PlusOne, &mut values).unwrap();
        assert_eq!(values, [1.0, 1.000_976_6]);
        let values = [1.0, 65_519.0, 65_520.0, -1e30, f32::INFINITY, f32::NAN];
        assert_eq!(beyond(Dtype::F16, &values), (2, 2));
        assert_eq!(beyond(Dtype::Q8_0, &values), (1, 2));
        assert_eq!(beyond(Dtype::F32, &values[..4]), (0, 0));
        let words: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(not_finite(Dtype::F32, &words), 2);
        let halves: Vec<u8> =
            [0x7c00_u16, 0xfe00, 0x7bff].iter().flat_map(|half| half.to_le_bytes()).collect();
        assert_eq!(not_finite(Dtype::F16, &halves), 2);
        assert_eq!(not_finite(Dtype::Bf16, &[0x80, 0x7f, 0xff, 0x7f, 0x7f, 0x7f]), 2);
    }
}
