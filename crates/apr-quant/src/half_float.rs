//! Conversion of `f16` and `bf16` by integer arithmetic, with the same bits on every machine.

use crate::inline::shared;

/// Largest magnitude of an `f32` that is still finite as `f16`, plus one unit: 65,520.
const F16_OVERFLOW: u32 = 0x477f_f000;
/// Smallest normal `f16`, as `f32`: 2^-14.
const F16_NORMAL: u32 = 0x3880_0000;
const INFINITY: u32 = 0x7f80_0000;

shared! {
    /// Nearest `f16`, ties to even; not-a-number becomes `7e00` with its sign.
    pub(crate) fn f16_bits(value: f32) -> u16 {
        let sign = (value.to_bits() >> 16) & 0x8000;
        let magnitude = value.to_bits() & 0x7fff_ffff;
        let half = if magnitude > INFINITY {
            0x7e00
        } else if magnitude >= F16_OVERFLOW {
            0x7c00
        } else if magnitude < F16_NORMAL {
            // One half has the unit 2^-24, which is that of subnormal `f16`: the addition rounds.
            (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits()
        } else {
            let odd = (magnitude >> 13) & 1;
            ((magnitude + 0x0fff + odd) >> 13) - (112 << 10)
        };
        (sign | half) as u16
    }

    /// The `f32` of the same value.
    pub(crate) fn f16_value(bits: u16) -> f32 {
        let sign = u32::from(bits & 0x8000) << 16;
        let magnitude = u32::from(bits & 0x7fff) << 13;
        let value = if magnitude >= 0x0f80_0000 {
            INFINITY | magnitude
        } else {
            // 2^112: exact, for subnormal numbers too.
            (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits()
        };
        f32::from_bits(sign | value)
    }
}

/// Nearest `bf16`, ties to even; not-a-number keeps its upper half and becomes quiet.
#[inline(always)]
pub(crate) fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded =
        if bits & 0x7fff_ffff > INFINITY { bits | 0x0040_0000 } else { bits + 0x7fff + ((bits >> 16) & 1) };
    (rounded >> 16) as u16
}

/// The `f32` of the same value.
#[inline(always)]
pub(crate) fn bf16_value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

shared! {
    /// The `f16` at this offset of a block.
    pub(crate) fn read_f16<const BYTES: usize>(block: &[u8; BYTES], at: usize) -> f32 {
        f16_value(u16::from_le_bytes([block[at], block[at + 1]]))
    }

    /// Writes an `f16` at this offset of a block.
    pub(crate) fn write_f16<const BYTES: usize>(block: &mut [u8; BYTES], at: usize, value: f32) {
        block[at..at + 2].copy_from_slice(&f16_bits(value).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_comes_back() {
        for bits in 0..=u16::MAX {
            let value = f16_value(bits);
            let expected = if value.is_nan() { bits & 0x8000 | 0x7e00 } else { bits };
            assert_eq!(f16_bits(value), expected, "{bits:04x}");
        }
    }

    #[test]
    fn every_bf16_comes_back() {
        for bits in 0..=u16::MAX {
            let value = bf16_value(bits);
            let expected = if value.is_nan() { bits | 0x40 } else { bits };
            assert_eq!(bf16_bits(value), expected, "{bits:04x}");
        }
    }

    #[test]
    fn halves_go_to_the_even_neighbour() {
        for bits in (0..0x7bff_u16).step_by(7) {
            let (low, high) = (f16_value(bits), f16_value(bits + 1));
            let middle = low + (high - low) / 2.0;
            assert_eq!(f16_bits(middle), if bits % 2 == 0 { bits } else { bits + 1 });
            assert_eq!(f16_bits(middle.next_up()), bits + 1);
            assert_eq!(f16_bits(-middle.next_down()), bits | 0x8000);
        }
        assert_eq!([65_519.996, 65_520.0, f32::INFINITY].map(f16_bits), [0x7bff, 0x7c00, 0x7c00]);
        assert_eq!(f16_bits(-f32::from_bits(1)), 0x8000);
    }
}
