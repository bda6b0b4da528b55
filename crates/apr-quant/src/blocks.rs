//! Encoding and decoding of one block: one module per format or family of formats.
//!
//! Their functions are inlined into the loops over rows and compiled with them once for each SIMD level. WebAssembly has one
//! level: there, functions that several formats share are not inlined, which is smaller and no slower.

pub(crate) mod plain;
pub(crate) mod q8_0;
pub(crate) mod q4_0;
pub(crate) mod q4_1;
pub(crate) mod q5_0;
pub(crate) mod q5_1;
pub(crate) mod q8_1;
pub(crate) mod q2_k;
pub(crate) mod q3_k;
pub(crate) mod q4_k;
pub(crate) mod q5_k;
pub(crate) mod q6_k;
pub(crate) mod q8_k;
pub(crate) mod iq4_nl;
pub(crate) mod iq4_xs;
pub(crate) mod tq1_0;
pub(crate) mod tq2_0;
pub(crate) mod mxfp4;
pub(crate) mod nvfp4;
pub(crate) mod q1_0;
pub(crate) mod q2_0;
pub(crate) mod iq1_s;
pub(crate) mod iq1_m;
pub(crate) mod iq2_xxs;
pub(crate) mod iq2_xs;
pub(crate) mod iq2_s;
pub(crate) mod iq3_xxs;
pub(crate) mod iq3_s;
pub(crate) mod apr_q4;
pub(crate) mod apr_q8;

mod bits;
mod codebook;
mod extremes;
mod four_five_k;
mod fp4;
mod groups;
pub(crate) mod k_search;
pub(crate) mod six_bit;
mod ternary;
mod two_bit;
mod uneven;

/// Limits of a format, checked before and after a block is encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Byte offsets of `f16` scales and minima in a block: infinite ones are refused.
    pub(crate) halves: &'static [usize],
    /// How the step between codes is computed, where the reference divides by it.
    pub(crate) step: Step,
    /// Smallest magnitude that becomes infinite or makes the search for a scale overflow.
    pub(crate) limit: f32,
    /// Whether the reference's result for input that is not finite is known.
    pub(crate) non_finite_known: bool,
    /// What importance weights are multiplied by.
    pub(crate) weighed: Weighed,
}

/// What the importance weights of a block are multiplied by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Weighed {
    /// Nothing: the format ignores weights.
    Never,
    /// `sqrt(s + x * x)`, with the mean square `s` of the block (or of a group of it).
    ByBlock,
    /// `sqrt(s + x * x)`, with the mean square `s` of the row.
    ByRow,
}

/// The step of a block, before it is rounded to what is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The reference never divides by a step that is too small.
    Guarded,
    /// Found by a search.
    Searched,
    /// The largest magnitude, divided by this.
    Magnitude(f32),
    /// The inverse of the largest magnitude, times this.
    Inverse(f32),
    /// A power of two in one byte, at least a quarter of the smallest normal number.
    Exponent,
    /// The difference between the largest and the smallest value, divided by this.
    Span(f32),
}

impl Step {
    /// Whether the block is not zero and the inverse of its step is infinite.
    pub(crate) fn is_too_small(self, x: &[f32]) -> bool {
        let step = match self {
            Self::Guarded | Self::Searched => return false,
            Self::Inverse(codes) => {
                let largest = largest(x);
                return largest != 0.0 && (codes / largest).is_infinite();
            }
            // The logarithm of the largest magnitude, minus 2, must be at least -127.
            Self::Exponent => {
                let largest = largest(x);
                return largest != 0.0 && largest < 2.0 * f32::MIN_POSITIVE;
            }
            Self::Magnitude(codes) => largest(x) / codes,
            Self::Span(codes) => {
                let (min, max) = x
                    .iter()
                    .fold((f32::MAX, f32::MIN), |(min, max), &value| (value.min(min), value.max(max)));
                (max - min) / codes
            }
        };
        step != 0.0 && (1.0 / step).is_infinite()
    }
}

fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |max: f32, value| max.max(value.abs()))
}
