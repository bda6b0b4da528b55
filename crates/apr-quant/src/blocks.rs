//! One module per format, or per family of them: a block of numbers to bytes and back.
//!
//! Their functions are inlined into the loops over rows, and with these compiled once for each kind of processor. A module for
//! WebAssembly is for one kind: what several formats share is there a function, which is smaller and no slower.

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

/// What there is to know of a format before and after a block is encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Places of `f16` scales and minima in a block: infinite ones are refused.
    pub(crate) halves: &'static [usize],
    /// How the step between codes comes about, where the reference divides by it.
    pub(crate) step: Step,
    /// Magnitudes from here on become infinite, or end the search for a scale.
    pub(crate) limit: f32,
    /// Whether the reference's result for input that is not finite is known.
    pub(crate) non_finite_known: bool,
    /// What importance weights count with.
    pub(crate) weighed: Weighed,
}

/// What the importance weights of a block are multiplied by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Weighed {
    /// Nothing: the format has no use for weights.
    Never,
    /// The size of the numbers in their block.
    ByBlock,
    /// The size of the numbers in their row.
    ByRow,
}

/// The step of a block, before it is rounded to what is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Nothing is divided by it, or never by one that is too small.
    Guarded,
    /// A search finds it.
    Searched,
    /// The largest magnitude, divided by this.
    Magnitude(f32),
    /// The inverse of the largest magnitude, times this.
    Inverse(f32),
    /// A power of two in one byte, which ends at a quarter of the smallest normal number.
    Exponent,
    /// The distance from the smallest to the largest number, divided by this.
    Span(f32),
}

impl Step {
    /// Whether the block is not zero and yet so small that one divided by its step is infinite.
    pub(crate) fn is_too_small(self, x: &[f32]) -> bool {
        let step = match self {
            Self::Guarded | Self::Searched => return false,
            Self::Inverse(codes) => {
                let largest = largest(x);
                return largest != 0.0 && (codes / largest).is_infinite();
            }
            // The logarithm of the largest magnitude less 2 has to be -127 at least.
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
