//! Four-bit floats (E2M1): a sign, two bits of exponent, one of mantissa.

use crate::inline::shared;

/// Doubled magnitudes, which are integers; the scales are halved accordingly.
const MAGNITUDES: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0];

shared! {
    /// The codes of `N` values: the nearest representable value by distances rounded to `f32`, on ties the lowest code.
    ///
    /// A value of the opposite sign is never nearer than zero, and negative zero is never nearer than positive zero, so eight
    /// distances suffice for sixteen codes.
    pub(super) fn codes<const N: usize>(x: &[f32; N], scale: f32) -> [u8; N] {
        let (mut codes, mut least) = ([0; N], [0.0; N]);
        for (least, value) in least.iter_mut().zip(x) {
            *least = (0.0 * scale - value.abs()).abs();
        }
        for (code, magnitude) in (0..).zip(MAGNITUDES).skip(1) {
            for ((best, least), value) in codes.iter_mut().zip(&mut least).zip(x) {
                let distance = (magnitude * scale - value.abs()).abs();
                *best = if distance < *least { code } else { *best };
                *least = if distance < *least { distance } else { *least };
            }
        }
        for (code, value) in codes.iter_mut().zip(x) {
            *code |= u8::from(*value < 0.0 && *code > 0) << 3;
        }
        codes
    }

    /// The value of a code times the scale; code 8 decodes to positive zero.
    pub(super) fn value(code: u8, scale: f32) -> f32 {
        /// Integers, as in the reference: no negative zero.
        const VALUES: [f32; 16] =
            [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];
        VALUES[usize::from(code & 15)] * scale
    }

    /// Packs two codes per byte: the first half of the values in the lower bits.
    pub(super) fn pack<const N: usize>(codes: &[u8; N], out: &mut [u8]) {
        for (idx, byte) in out.iter_mut().enumerate().take(N / 2) {
            *byte = codes[idx] | codes[idx + N / 2] << 4;
        }
    }

    /// Decodes bytes, first the codes of the lower bits.
    pub(super) fn unpack(bytes: &[u8], scale: f32, out: &mut [f32]) {
        let (low, high) = out.split_at_mut(bytes.len());
        for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
            *low = value(byte & 15, scale);
            *high = value(byte >> 4, scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_lower_code() {
        let x = [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0, 99.0, -0.5, -1.5, -0.0, -10.0, f32::NAN];
        assert_eq!(codes(&x, 1.0), [0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 0, 14, 0]);
        assert_eq!(codes(&x.map(f32::next_up), 1.0)[..7], [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn far_beyond_the_scale_distances_are_all_the_same() {
        assert_eq!(codes(&[1e12, -1e12, f32::INFINITY], 224.0), [0, 0, 0]);
    }
}
