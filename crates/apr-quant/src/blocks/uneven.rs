//! The sixteen non-uniform levels of the IQ4 formats, and the search for the scale of 32 values.

use crate::blocks::extremes::signed_largest;
use crate::each::each;
use crate::inline::shared;

/// The level of each code.
pub(super) const VALUES: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0,
];

/// Midpoints between adjacent levels. From a midpoint on, the upper level is the nearest: both distances are exact near it.
const MIDDLES: [f32; 15] = {
    let mut middles = [0.0; 15];
    let mut idx = 0;
    while idx < 15 {
        middles[idx] = (VALUES[idx] + VALUES[idx + 1]) / 2.0;
        idx += 1;
    }
    middles
};

/// Number of scales that are tried: the one that maps the largest value to the first level, and fifteen around it.
const TRIES: usize = 16;

/// Largest magnitude that is treated as zero.
const NOTHING: f32 = 1e-15;

shared! {
    /// The code of the nearest level; the last one for not-a-number.
    pub(super) fn nearest(value: f32) -> u8 {
        let mut code = 15;
        for middle in &MIDDLES {
            code -= u8::from(value < *middle);
        }
        code
    }

    /// The scale with the least weighted error, or 0 if all values are close to zero.
    ///
    /// Each lane is one try and adds its sums in the order of the values, as the reference does for one try after another.
    pub(super) fn search(x: &[f32; 32], weights: &[f32; 32]) -> f32 {
        let largest = signed_largest(x);
        if largest.abs() < NOTHING {
            return 0.0;
        }
        let mut inverse = [1.0 / (largest / 127.0); TRIES];
        for (idx, inverse) in inverse.iter_mut().enumerate().skip(1) {
            *inverse = (idx as f32 - 135.0) / largest;
        }
        let (mut products, mut squares) = ([0.0f32; TRIES], [0.0f32; TRIES]);
        for (value, weight) in x.iter().zip(weights) {
            let mut steps = [VALUES[15]; TRIES];
            let scaled = each(&inverse, |inverse| inverse * value);
            for (idx, &middle) in MIDDLES.iter().enumerate() {
                let width = VALUES[idx + 1] - VALUES[idx];
                for (step, &scaled) in steps.iter_mut().zip(&scaled) {
                    *step -= if scaled < middle { width } else { 0.0 };
                }
            }
            for ((product, square), step) in products.iter_mut().zip(&mut squares).zip(steps) {
                let weighted = weight * step;
                *product += weighted * value;
                *square += weighted * step;
            }
        }
        let mut scale = products[0] / squares[0];
        let mut best = scale * products[0];
        for (&product, &square) in products.iter().zip(&squares).skip(1) {
            if square > 0.0 && product * product > best * square {
                scale = product / square;
                best = scale * product;
            }
        }
        scale
    }

    /// Packs two codes per byte: the first sixteen in the lower nibbles.
    pub(super) fn encode_codes(x: &[f32; 32], inverse: f32, out: &mut [u8; 16]) {
        let codes = each(x, |value| nearest(inverse * value));
        for (idx, byte) in out.iter_mut().enumerate() {
            *byte = codes[idx] | codes[idx + 16] << 4;
        }
    }

    /// Decodes both nibbles: level times scale.
    pub(super) fn decode_codes(bytes: &[u8; 16], scale: f32, out: &mut [f32; 32]) {
        for (idx, byte) in bytes.iter().enumerate() {
            out[idx] = scale * VALUES[usize::from(byte & 15)];
            out[idx + 16] = scale * VALUES[usize::from(byte >> 4)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest level; on ties the upper one.
    fn nearest_by_distance(value: f32) -> u8 {
        let distance = |code: &u8| (VALUES[usize::from(*code)] - value).abs();
        (0..16).rev().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(15)
    }

    #[test]
    fn ties_go_up() {
        for middle in MIDDLES {
            for value in [middle.next_down(), middle, middle.next_up(), middle - 0.25, middle + 0.25] {
                assert_eq!(nearest(value), nearest_by_distance(value), "{value}");
            }
        }
        assert_eq!([f32::MIN, f32::MAX, f32::NAN, 0.0, -0.0].map(nearest), [0, 15, 15, 8, 8]);
    }

    #[test]
    fn numbers_on_the_steps_find_their_scale() {
        let mut x = [0.0; 32];
        for (idx, value) in x.iter_mut().enumerate() {
            *value = 0.5 * VALUES[idx % 16];
        }
        let scale = search(&x, &x.map(|value| value * value));
        assert!((scale - 0.5).abs() < 1e-6, "{scale}");
        assert!((search(&x, &[2.0; 32]) - 0.5).abs() < 1e-6);
    }
}
