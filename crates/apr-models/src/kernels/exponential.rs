//! The exponential function of many values.

use crate::kernels::vectors::Vectors;

/// Values at a time.
const LANES: usize = 8;

/// `ln(2) / 2`, `1.5 ln(2)` and `2^-28` as `libm` compares them: by the upper half of their bits.
const HALF_LN2: f64 = f64::from_bits(0x3fd6_2e43_0000_0000);
const THREE_HALVES_LN2: f64 = f64::from_bits(0x3ff0_a2b2_0000_0000);
const TINY: f64 = f64::from_bits(0x3e30_0001_0000_0000);

/// Replaces each value by its exponential: the bits of [`libm::exp`], several values at a time.
pub(crate) fn exp_all(values: &mut [f64]) {
    let (chunks, rest) = values.as_chunks_mut::<LANES>();
    match Vectors::detect() {
        Some(vectors) => vectors.run(
            #[inline(always)]
            || {
                // Loops, not closures for iterators: those may be compiled apart, without the vectors.
                for chunk in chunks {
                    exp_chunk(chunk);
                }
            },
        ),
        None => chunks.as_flattened_mut().iter_mut().for_each(|value| *value = libm::exp(*value)),
    }
    rest.iter_mut().for_each(|value| *value = libm::exp(*value));
}

#[inline(always)]
fn exp_chunk(values: &mut [f64; LANES]) {
    // Beyond these bounds results overflow, or lose bits.
    let mut in_range = true;
    for value in &*values {
        in_range &= (-708.0..=709.0).contains(value);
    }
    if !in_range {
        return values.iter_mut().for_each(|value| *value = libm::exp(*value));
    }
    for value in values {
        *value = exp_in_range(*value);
    }
}

/// The operations of `libm` 0.2 (FreeBSD's `e_exp.c`) in their order, with selections instead of branches. `x` is between -708 and
/// 709.
#[inline(always)]
fn exp_in_range(x: f64) -> f64 {
    const LN2_HIGH: f64 = 0.6931471803691238;
    const LN2_LOW: f64 = 1.9082149292705877e-10;
    const P1: f64 = 0.16666666666666602;
    const P2: f64 = -0.0027777777777015593;
    const P3: f64 = 6.613756321437934e-05;
    const P4: f64 = -1.6533902205465252e-06;
    const P5: f64 = 4.1381367970572385e-08;

    let magnitude = x.abs();
    let half = if x < 0.0 { -0.5 } else { 0.5 };
    let nearest = (core::f64::consts::LOG2_E * x + half) as i32;
    let one = if x < 0.0 { -1 } else { 1 };
    let k = if magnitude >= THREE_HALVES_LN2 { nearest } else { one };
    let k = if magnitude >= HALF_LN2 { k } else { 0 };
    let high = x - f64::from(k) * LN2_HIGH;
    let low = f64::from(k) * LN2_LOW;
    let reduced = high - low;
    let square = reduced * reduced;
    let c = reduced - square * (P1 + square * (P2 + square * (P3 + square * (P4 + square * P5))));
    let y = 1.0 + (reduced * c / (2.0 - c) - low + high);
    let power = f64::from_bits(((1023 + i64::from(k)) as u64) << 52);
    if magnitude < TINY { 1.0 + x } else { y * power }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn bits_are_those_of_libm() {
        let mut rng = Rng::new(11);
        let bounds = [
            HALF_LN2,
            THREE_HALVES_LN2,
            TINY,
            708.0,
            709.0,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            709.782_712_893_384,
        ];
        let near = bounds.iter().flat_map(|bound: &f64| {
            (-3..=3_i64).map(|step| f64::from_bits((bound.to_bits() as i64 + step).max(0) as u64))
        });
        let spread = (0..40_000).map(|idx| rng.normal() * libm::exp2(f64::from(idx % 42 - 32)));
        let values: Vec<f64> = near.chain(spread).flat_map(|value| [value, -value]).collect();
        let mut found = values.clone();
        exp_all(&mut found);
        for (value, found) in values.iter().zip(found) {
            assert_eq!(found.to_bits(), libm::exp(*value).to_bits(), "{value:e}");
            if (-708.0..=709.0).contains(value) {
                assert_eq!(exp_in_range(*value).to_bits(), libm::exp(*value).to_bits(), "{value:e}");
            }
        }
        let mut strange = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -750.0, 710.0, -0.0, 0.0, 1.0];
        exp_all(&mut strange);
        assert!(strange[0].is_nan());
        assert_eq!(strange[1..], [f64::INFINITY, 0.0, 0.0, f64::INFINITY, 1.0, 1.0, libm::exp(1.0)]);
    }
}
