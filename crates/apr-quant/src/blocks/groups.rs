//! Scales of groups, shared by the formats with blocks of 256 elements.

use crate::blocks::k_search;
use crate::each::each;
use crate::importance::Importance;
use crate::inline::shared;
use crate::round::nearest_int;

/// The groups of a block.
#[inline(always)]
pub(crate) fn groups<T, const N: usize>(x: &[T; 256]) -> &[[T; N]] {
    x.as_chunks().0
}

/// The groups of a block, mutable.
#[inline(always)]
pub(crate) fn groups_mut<T, const N: usize>(x: &mut [T; 256]) -> &mut [[T; N]] {
    x.as_chunks_mut().0
}

/// Scales and minima of groups as codes, and the two factors that decode them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scales<const COUNT: usize> {
    pub(crate) scale: f32,
    pub(crate) min: f32,
    pub(crate) scales: [u8; COUNT],
    pub(crate) mins: [u8; COUNT],
}

shared! {
    /// Searches each group, with weights computed from its values.
    pub(crate) fn search_spans<const N: usize, const COUNT: usize>(
        tries: &k_search::Tries,
        most: u8,
        x: &[f32; 256],
        codes: &mut [u8; 256],
        weights: impl Fn(usize, &[f32; N]) -> [f32; N],
    ) -> ([f32; COUNT], [f32; COUNT]) {
        let (mut scales, mut mins) = ([0.0; COUNT], [0.0; COUNT]);
        for (idx, (x, codes)) in groups(x).iter().zip(groups_mut::<_, N>(codes)).enumerate() {
            let found = k_search::span(tries, &weights(idx, x), most, x);
            (scales[idx], mins[idx], *codes) = (found.scale, found.min, found.codes);
        }
        (scales, mins)
    }

    /// The largest value if it is above zero, else zero.
    pub(crate) fn largest_positive(numbers: &[f32]) -> f32 {
        numbers.iter().fold(0.0, |largest, &number| if number > largest { number } else { largest })
    }

    /// Codes from `low` to `high`, minus `low`, computed with the stored scales.
    pub(crate) fn codes_with<const N: usize>(
        x: &[f32; 256],
        codes: &mut [u8; 256],
        low: i32,
        high: i32,
        scale_and_min: impl Fn(usize) -> (f32, f32),
    ) {
        for (idx, (x, codes)) in groups::<_, N>(x).iter().zip(groups_mut::<_, N>(codes)).enumerate() {
            let (scale, min) = scale_and_min(idx);
            // If the stored scale is zero, the codes of the search are kept.
            if scale != 0.0 {
                *codes = each(x, |value| (nearest_int((value + min) / scale).min(high).max(low) - low) as u8);
            }
        }
    }

    /// Weights of all elements from the importance of their columns and this mean square.
    pub(crate) fn weights_of<const N: usize, const COUNT: usize>(
        importance: &Importance<'_, 256>,
        sigma2: f32,
        x: &[f32; 256],
    ) -> ([[f32; N]; COUNT], [f32; COUNT]) {
        let (mut weights, mut sums) = ([[0.0; N]; COUNT], [0.0; COUNT]);
        for (idx, x) in groups(x).iter().enumerate() {
            let (part, _) = importance.weights.as_chunks::<N>();
            let group = Importance { weights: &part[idx], row_sigma2: 0.0 };
            weights[idx] = group.by(sigma2, x);
            sums[idx] = weights[idx].iter().fold(0.0, |sum, weight| sum + weight);
        }
        (weights, sums)
    }
}
