//! Code shared by `Q4_K` and `Q5_K`: 8 groups of 32 with 6-bit scales and minima.

use libm::sqrtf;

use crate::blocks::groups::{
    Scales, codes_with, groups, groups_mut, largest_positive, search_spans, weights_of,
};
use crate::blocks::k_search::{self, Tries, WEIGHTED};
use crate::each::each;
use crate::half_float::{f16_bits, f16_value};
use crate::importance::{Importance, sum_of_squares};
use crate::inline::shared;
use crate::round::nearest_int;

shared! {
    /// Scales and codes from 0 to `most`. With importance, a scale or minimum with the wrong sign is 255 until `fit` reduces it
    /// to six bits.
    pub(crate) fn search(
        tries: &Tries,
        most: u8,
        x: &[f32; 256],
        importance: Option<Importance<'_, 256>>,
        fit: impl Fn(&[u8; 8], &[u8; 8]) -> ([u8; 8], [u8; 8]),
    ) -> (Scales<8>, [u8; 256]) {
        let mut codes = [0; 256];
        let found = match importance {
            None => {
                let (scales, mins) = search_spans::<32, 8>(tries, most, x, &mut codes, weights);
                linear(&scales, &mins)
            }
            Some(importance) => {
                let (weights, sums) = weights_of::<32, 8>(&importance, 2.0 * sum_of_squares(x) / 256.0, x);
                let (scales, mins) = search_spans(&WEIGHTED, most, x, &mut codes, |idx, _| weights[idx]);
                let (scale, scales) = k_search::unsigned(&sums, 63, &scales);
                let (min, mins) = k_search::unsigned(&sums, 63, &mins);
                let (scales, mins) = fit(&scales, &mins);
                Scales { scale, min, scales, mins }
            }
        };
        choose_codes(&found, most, x, &mut codes);
        (found, codes)
    }

    /// Weights of a group without importance: root mean square of the group plus magnitude of the value.
    fn weights(_: usize, x: &[f32; 32]) -> [f32; 32] {
        let size = sqrtf(sum_of_squares(x) / 32.0);
        each(x, |value| size + value.abs())
    }
}

/// As [`search`], with given scales and minima, without importance.
#[inline(always)]
pub(crate) fn finish(
    tries: &Tries,
    most: u8,
    x: &[f32; 256],
    scales: &[f32; 8],
    mins: &[f32; 8],
) -> (Scales<8>, [u8; 256]) {
    let mut codes = [0; 256];
    let found = linear(scales, mins);
    let scale = f16_value(f16_bits(found.scale));
    for (idx, (x, codes)) in groups(x).iter().zip(groups_mut(&mut codes)).enumerate() {
        if scale * f32::from(found.scales[idx]) == 0.0 {
            *codes = k_search::span(tries, &weights(idx, x), most, x).codes;
        }
    }
    choose_codes(&found, most, x, &mut codes);
    (found, codes)
}

shared! {
    fn choose_codes(found: &Scales<8>, most: u8, x: &[f32; 256], codes: &mut [u8; 256]) {
        let (scale, min) = (f16_value(f16_bits(found.scale)), f16_value(f16_bits(found.min)));
        codes_with::<32>(x, codes, 0, i32::from(most), |idx| {
            (scale * f32::from(found.scales[idx]), min * f32::from(found.mins[idx]))
        });
    }
}

#[inline(always)]
pub(crate) fn at_most_63(code: u8) -> u8 {
    code.min(63)
}

shared! {
    /// The largest scale and the largest minimum get code 63.
    fn linear(scales: &[f32; 8], mins: &[f32; 8]) -> Scales<8> {
        let codes = |numbers: &[f32; 8]| {
            let largest = largest_positive(numbers);
            let inverse = if largest > 0.0 { 63.0 / largest } else { 0.0 };
            (largest / 63.0, each(numbers, |number| at_most_63(nearest_int(inverse * number) as u8)))
        };
        let ((scale, scales), (min, mins)) = (codes(scales), codes(mins));
        Scales { scale, min, scales, mins }
    }
}
