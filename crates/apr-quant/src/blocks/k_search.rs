//! Search for the scale, the minimum and the codes of a group: ggml's `make_qx_quants`, `make_q3_quants`, `make_qkx2_quants`,
//! `make_qkx3_quants` and `make_qp_quants` (`ggml-quants.c`, ggml 0.25.3).
//!
//! Sums are computed in the order of the elements; each operation is rounded once, none is fused. Both determine which of two
//! scales is chosen, and so every bit of the result.

use crate::blocks::extremes::signed_largest;
use crate::each::each;
use crate::inline::shared;
use crate::round::nearest_int;

/// A group whose largest magnitude is below this is treated as zero.
pub(crate) const ZERO: f32 = 1e-15;

/// Result of a search for a scale and a minimum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<const N: usize> {
    pub(crate) scale: f32,
    /// The negated minimum; the minimum is never positive.
    pub(crate) min: f32,
    pub(crate) codes: [u8; N],
}

/// Which scales a search tries, and how it measures errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tries {
    pub(crate) first: f32,
    pub(crate) delta: f32,
    pub(crate) count: u8,
    pub(crate) error: Distance,
}

/// Measure of the difference between a value and its decoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distance {
    Absolute,
    Squared,
}

/// Tries with an importance matrix.
pub(crate) const WEIGHTED: Tries = Tries { first: -0.9, delta: 0.05, count: 36, error: Distance::Squared };

shared! {
    /// Scale and codes of signed values: codes from `-most` to `most - 1`, stored with an offset of `most`.
    pub(crate) fn signed<const N: usize>(weights: &[f32; N], most: i8, x: &[f32; N]) -> (f32, [u8; N]) {
        let largest = signed_largest(x);
        if largest.abs() < ZERO {
            return (0.0, [0; N]);
        }
        let most_f = f32::from(most);
        let first = -most_f / largest;
        let (dot, squares) = signed_sums(weights, most, x, first);
        let mut scale = if squares == 0.0 { 0.0 } else { dot / squares };
        let (mut best, mut chosen) = (scale * dot, first);
        for step in (-9_i8..=9).filter(|&step| step != 0) {
            let inverse = -(most_f + 0.1 * f32::from(step)) / largest;
            let (dot, squares) = signed_sums(weights, most, x, inverse);
            if squares > 0.0 && dot * dot > best * squares {
                scale = dot / squares;
                (best, chosen) = (scale * dot, inverse);
            }
        }
        (scale, each(x, |value| (signed_code(most, chosen * value) + i32::from(most)) as u8))
    }
}

#[inline(always)]
fn signed_code(most: i8, value: f32) -> i32 {
    nearest_int(value).min(i32::from(most) - 1).max(-i32::from(most))
}

shared! {
    /// Weighted products of values and codes, and of codes and codes.
    fn signed_sums<const N: usize>(weights: &[f32; N], most: i8, x: &[f32; N], inverse: f32) -> (f32, f32) {
        let (mut dot, mut squares) = (0.0, 0.0);
        for (&weight, &value) in weights.iter().zip(x) {
            let code = signed_code(most, inverse * value) as f32;
            dot += weight * value * code;
            squares += weight * code * code;
        }
        (dot, squares)
    }

    /// As [`signed`], but up to five sweeps over the elements change single codes while that reduces the error. Weights are
    /// squares.
    ///
    /// The codes of a group treated as zero are 0, not the middle code.
    pub(crate) fn by_sweeps<const N: usize>(most: i8, x: &[f32; N]) -> (f32, [u8; N]) {
        let largest = signed_largest(x);
        if largest.abs() < ZERO {
            return (0.0, [0; N]);
        }
        let inverse = -f32::from(most) / largest;
        let mut codes = each(x, |value| signed_code(most, inverse * value));
        let (mut dot, mut squares) = signed_sums(&each(x, |value| value * value), most, x, inverse);
        for _ in 0..5 {
            let mut changed = false;
            for (code, &value) in codes.iter_mut().zip(x) {
                let weight = value * value;
                let old = *code as f32;
                let rest = dot - weight * value * old;
                if rest > 0.0 {
                    let rest_squares = squares - weight * old * old;
                    let new_code = signed_code(most, value * rest_squares / rest);
                    if new_code != *code {
                        let new = new_code as f32;
                        let new_dot = rest + weight * value * new;
                        let new_squares = rest_squares + weight * new * new;
                        if new_squares > 0.0 && new_dot * new_dot * squares > dot * dot * new_squares {
                            (*code, dot, squares, changed) = (new_code, new_dot, new_squares, true);
                        }
                    }
                }
            }
            if !changed {
                break;
            }
        }
        let scale = if squares > 0.0 { dot / squares } else { 0.0 };
        (scale, each(&codes, |code| (code + i32::from(most)) as u8))
    }

    /// Scale, minimum and codes from 0 to `most`: each scale that is tried gets the least-squares fit of its codes.
    pub(crate) fn span<const N: usize>(tries: &Tries, weights: &[f32; N], most: u8, x: &[f32; N]) -> Span<N> {
        let (mut min, mut max) = (x[0], x[0]);
        let mut sum_weights = weights[0];
        let mut sum_values = sum_weights * x[0];
        for (&weight, &value) in weights.iter().zip(x).skip(1) {
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
            sum_weights += weight;
            sum_values += weight * value;
        }
        min = if min > 0.0 { 0.0 } else { min };
        if max == min {
            return Span { scale: 0.0, min: -min, codes: [0; N] };
        }
        let most_f = f32::from(most);
        let first = most_f / (max - min);
        let mut codes = span_codes(most, x, first, min);
        let mut scale = 1.0 / first;
        let mut best = span_error(tries.error, weights, x, &codes, scale, min);
        for step in 0..=tries.count {
            let inverse = (tries.first + tries.delta * f32::from(step) + most_f) / (max - min);
            let tried = span_codes(most, x, inverse, min);
            let (mut sum_codes, mut sum_squares, mut dot) = (0.0, 0.0, 0.0);
            for ((&weight, &value), &code) in weights.iter().zip(x).zip(&tried) {
                let code = f32::from(code);
                sum_codes += weight * code;
                sum_squares += weight * code * code;
                dot += weight * code * value;
            }
            let determinant = sum_weights * sum_squares - sum_codes * sum_codes;
            if determinant > 0.0 {
                let mut fit_scale = (sum_weights * dot - sum_values * sum_codes) / determinant;
                let mut fit_min = (sum_squares * sum_values - sum_codes * dot) / determinant;
                if fit_min > 0.0 {
                    (fit_scale, fit_min) = (dot / sum_squares, 0.0);
                }
                let error = span_error(tries.error, weights, x, &tried, fit_scale, fit_min);
                if error < best {
                    // Later tries start from this minimum as well.
                    (best, scale, min, codes) = (error, fit_scale, fit_min, tried);
                }
            }
        }
        Span { scale, min: -min, codes }
    }

    fn span_codes<const N: usize>(most: u8, x: &[f32; N], inverse: f32, min: f32) -> [u8; N] {
        each(x, |value| nearest_int(inverse * (value - min)).min(i32::from(most)).max(0) as u8)
    }

    fn span_error<const N: usize>(
        distance: Distance,
        weights: &[f32; N],
        x: &[f32; N],
        codes: &[u8; N],
        scale: f32,
        min: f32,
    ) -> f32 {
        let mut error = 0.0;
        for ((&weight, &value), &code) in weights.iter().zip(x).zip(codes) {
            let difference = scale * f32::from(code) + min - value;
            let difference = match distance {
                Distance::Absolute => difference.abs(),
                Distance::Squared => difference * difference,
            };
            error += weight * difference;
        }
        error
    }

    /// Scale and codes from 0 to `most` of nonnegative values: the scales of groups.
    pub(crate) fn unsigned<const N: usize>(weights: &[f32; N], most: u8, x: &[f32; N]) -> (f32, [u8; N]) {
        let mut largest = 0.0;
        for &value in x {
            largest = if largest > value { largest } else { value };
        }
        if largest < ZERO {
            return (0.0, [0; N]);
        }
        let most_f = f32::from(most);
        let mut inverse = most_f / largest;
        let mut best = unsigned_error(weights, x, inverse, |value| f32::from(nearest_int(value) as u8));
        let most = i32::from(most);
        for step in (-4_i8..=4).filter(|&step| step != 0) {
            let tried = (0.1 * f32::from(step) + most_f) / largest;
            let error = unsigned_error(weights, x, tried, |value| nearest_int(value).min(most) as f32);
            if error < best {
                (best, inverse) = (error, tried);
            }
        }
        let mut codes = [0_u8; N];
        let (mut dot, mut squares) = (0.0, 0.0);
        for ((&weight, &value), code) in weights.iter().zip(x).zip(&mut codes) {
            let nearest = nearest_int(inverse * value).min(most);
            *code = nearest as u8;
            dot += weight * value * nearest as f32;
            squares += weight * nearest as f32 * nearest as f32;
        }
        for _ in 0..5 {
            let mut changed = false;
            for ((&weight, &value), code) in weights.iter().zip(x).zip(&mut codes) {
                let old = f32::from(*code);
                let rest = dot - weight * value * old;
                let rest_squares = squares - weight * old * old;
                if rest > 0.0 && rest_squares > 0.0 {
                    let new_code = nearest_int(value * rest_squares / rest).min(most);
                    if new_code != i32::from(*code) {
                        let new = new_code as f32;
                        let new_dot = rest + weight * value * new;
                        let new_squares = rest_squares + weight * new * new;
                        if new_dot * new_dot * squares > dot * dot * new_squares {
                            (*code, dot, squares, changed) = (new_code as u8, new_dot, new_squares, true);
                        }
                    }
                }
            }
            if !changed {
                break;
            }
        }
        (if squares > 0.0 { dot / squares } else { 0.0 }, codes)
    }

    fn unsigned_error<const N: usize>(
        weights: &[f32; N],
        x: &[f32; N],
        inverse: f32,
        code: impl Fn(f32) -> f32,
    ) -> f32 {
        let scale = 1.0 / inverse;
        let mut error = 0.0;
        for (&weight, &value) in weights.iter().zip(x) {
            let difference = value - scale * code(inverse * value);
            error += weight * difference * difference;
        }
        error
    }
}
