//! The table of formats with their modules and limits, and the loops over rows and blocks.

mod apr;

use fearless_simd::Simd;

use crate::blocks::{self as b, Rules, Step, Weighed};
use crate::error::{Error, ErrorKind};
use crate::importance::{Importance, sum_of_squares};
use crate::inline::shared;
use crate::rows::{BF16_LIMIT, NonFinite, Rows, check_input, check_output, refuse_input};
use tensor_dtype::Dtype;

/// A set of instructions that code is compiled for.
pub(crate) trait Instructions: Copy {
    /// Runs `work`, inlined and compiled with these instructions.
    fn run<R>(self, work: impl FnOnce() -> R) -> R;
}

/// The instructions that every processor of the target has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar;

impl Instructions for Scalar {
    #[inline(always)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }
}

impl<S: Simd> Instructions for S {
    #[inline(always)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        self.vectorize(work)
    }
}

/// One line per format: its module and its rules. Formats without rules are only decoded.
macro_rules! codecs {
    (
        encoded { $($variant:ident = $codec:path, $rules:expr;)* }
        decoded { $($read:ident = $reader:path;)* }
    ) => {
        /// Encodes rows whose lengths were checked.
        pub(crate) fn encode<I: Instructions>(on: I, rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
            match rows.dtype {
                $(Dtype::$variant => {
                    use $codec as codec;
                    on.run(
                        #[inline(always)]
                        || encode_blocks::<{ Dtype::$variant.block_len() }, { Dtype::$variant.block_bytes() }>(
                            rows, const { &$rules }, out, #[inline(always)] |x, importance, out| codec::encode(x, importance, out)),
                    )
                })*
                Dtype::AprQ4 => on.run(
                    #[inline(always)]
                    || apr::encode_q4(rows, out),
                ),
                Dtype::AprQ8 => on.run(
                    #[inline(always)]
                    || apr::encode_q8(rows, out),
                ),
                dtype => Err(not_quantizable(dtype)),
            }
        }

        /// Decodes blocks whose lengths were checked.
        pub(crate) fn decode<I: Instructions>(
            on: I,
            dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
            match dtype {
                $(Dtype::$variant => {
                    use $codec as codec;
                    on.run(
                        #[inline(always)]
                        || decode_blocks::<{ Dtype::$variant.block_len() }, { Dtype::$variant.block_bytes() }>(
                            bytes, out, #[inline(always)] |block, out| codec::decode(block, out)),
                    );
                })*
                $(Dtype::$read => {
                    use $reader as codec;
                    on.run(
                        #[inline(always)]
                        || decode_blocks::<{ Dtype::$read.block_len() }, { Dtype::$read.block_bytes() }>(
                            bytes, out, #[inline(always)] |block, out| codec::decode(block, out)),
                    );
                })*
                Dtype::AprQ4 => on.run(
                    #[inline(always)]
                    || apr::decode_q4(bytes, out),
                ),
                Dtype::AprQ8 => on.run(
                    #[inline(always)]
                    || apr::decode_q8(bytes, out),
                ),
                // Refused by `check_blocks`.
                _ => {}
            }
        }

        /// Rules of a format that is encoded.
        pub(crate) const fn rules_of(dtype: Dtype) -> &'static Rules {
            match dtype {
                $(Dtype::$variant => const { &$rules },)*
                _ => const { &rules(&[], Step::Guarded) },
            }
        }

        /// Whether there is code to decode this type.
        pub(crate) const fn is_decodable(dtype: Dtype) -> bool {
            is_encodable(dtype) || matches!(dtype, $(Dtype::$read)|*)
        }

        /// Whether this crate encodes this format.
        pub(crate) const fn is_encodable(dtype: Dtype) -> bool {
            matches!(dtype, Dtype::AprQ4 | Dtype::AprQ8 $(| Dtype::$variant)*)
        }
    };
}

codecs! {
    encoded {
        F32 = b::plain::float32, known(&[], Step::Guarded);
        F64 = b::plain::float64, known(&[], Step::Guarded);
        F16 = b::plain::half, known(&[0], Step::Guarded);
        Bf16 = b::plain::brain, known(&[], Step::Guarded).below(BF16_LIMIT);
        Q4_0 = b::q4_0, known(&[0], Step::Magnitude(8.0)).by_row();
        Q4_1 = b::q4_1, known(&[0, 2], Step::Span(15.0)).by_row();
        Q5_0 = b::q5_0, known(&[0], Step::Magnitude(16.0)).by_row();
        Q5_1 = b::q5_1, known(&[0, 2], Step::Span(31.0)).by_row();
        Q8_0 = b::q8_0, known(&[0], Step::Magnitude(127.0));
        Q8_1 = b::q8_1, rules(&[0], Step::Magnitude(127.0));
        Q2_K = b::q2_k, rules(&[80, 82], Step::Searched);
        Q3_K = b::q3_k, rules(&[108], Step::Searched);
        Q4_K = b::q4_k, rules(&[0, 2], Step::Searched);
        Q5_K = b::q5_k, rules(&[0, 2], Step::Searched);
        Q6_K = b::q6_k, rules(&[208], Step::Searched);
        Q8_K = b::q8_k, rules(&[], Step::Inverse(127.0)).below(f32::MAX);
        IQ4_NL = b::iq4_nl, rules(&[0], Step::Searched);
        IQ4_XS = b::iq4_xs, rules(&[0], Step::Searched);
        TQ1_0 = b::tq1_0, rules(&[52], Step::Magnitude(1.0));
        TQ2_0 = b::tq2_0, rules(&[64], Step::Magnitude(1.0));
        MXFP4 = b::mxfp4, rules(&[], Step::Exponent);
        NVFP4 = b::nvfp4, rules(&[], Step::Guarded);
        Q1_0 = b::q1_0, rules(&[0], Step::Guarded);
        Q2_0 = b::q2_0, rules(&[0], Step::Magnitude(1.0));
    }
    decoded {
        I8 = b::plain::int8;
        I16 = b::plain::int16;
        I32 = b::plain::int32;
        I64 = b::plain::int64;
        IQ1_S = b::iq1_s;
        IQ1_M = b::iq1_m;
        IQ2_XXS = b::iq2_xxs;
        IQ2_XS = b::iq2_xs;
        IQ2_S = b::iq2_s;
        IQ3_XXS = b::iq3_xxs;
        IQ3_S = b::iq3_s;
    }
}

/// Rules of a format with `f16` scales at these byte offsets of a block.
const fn rules(halves: &'static [usize], step: Step) -> Rules {
    let (limit, weighed) = match step {
        Step::Searched => (SEARCHED, Weighed::ByBlock),
        _ => (f32::INFINITY, Weighed::Never),
    };
    Rules { halves, step, limit, non_finite_known: false, weighed }
}

/// As [`rules`], for formats whose reference output is known for input that is not finite.
const fn known(halves: &'static [usize], step: Step) -> Rules {
    Rules { non_finite_known: true, ..rules(halves, step) }
}

impl Rules {
    /// Sets the magnitude from which on a value is stored as infinity.
    const fn below(self, limit: f32) -> Self {
        Self { limit, ..self }
    }

    /// Multiplies importance weights by the mean square of the row.
    const fn by_row(self) -> Self {
        Self { weighed: Weighed::ByRow, ..self }
    }
}

/// From 2^30 on every scale is infinite, or the search itself overflows.
const SEARCHED: f32 = 1_073_741_824.0;

pub(crate) fn not_quantizable(dtype: Dtype) -> Error {
    ErrorKind::NotQuantizable { dtype, instead: instead_of(dtype) }.into()
}

/// The format to use instead of one that is only decoded.
const fn instead_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::IQ2_XXS | Dtype::IQ2_XS | Dtype::IQ2_S | Dtype::IQ1_S | Dtype::IQ1_M => "Q2_K",
        Dtype::IQ3_XXS | Dtype::IQ3_S => "Q3_K",
        Dtype::I8 => "Q8_0",
        _ => "F32",
    }
}

/// Encodes one block after the other, each with its weights.
#[inline(always)]
fn encode_blocks<const LEN: usize, const BYTES: usize>(
    rows: &Rows<'_>,
    rules: &Rules,
    out: &mut [u8],
    encode: impl Fn(&[f32; LEN], Option<Importance<'_, LEN>>, &mut [u8; BYTES]),
) -> Result<(), Error> {
    let (blocks, _) = rows.values.as_chunks::<LEN>();
    let (out, _) = out.as_chunks_mut::<BYTES>();
    let mut row_sigma2 = 0.0;
    for (idx, (x, out)) in blocks.iter().zip(out).enumerate() {
        let first = idx * LEN;
        check_input(rows, rules, x, first)?;
        let weights = match rules.weighed {
            Weighed::Never => None,
            Weighed::ByBlock | Weighed::ByRow => weights_at(rows, rules, first, &mut row_sigma2)?,
        };
        encode(x, weights, out);
        check_output(rows, rules, x, first, out)?;
    }
    Ok(())
}

shared! {
    /// Weights of the block whose first element is `first`.
    fn weights_at<'a, const LEN: usize>(
        rows: &Rows<'a>,
        rules: &Rules,
        first: usize,
        row_sigma2: &mut f32,
    ) -> Result<Option<Importance<'a, LEN>>, Error> {
        let Some(importance) = rows.importance else { return Ok(None) };
        let column = first % rows.row_len;
        if column == 0 && rules.weighed == Weighed::ByRow {
            *row_sigma2 = mean_square(rows, rules, first)?;
        }
        let weights = importance[column..].first_chunk();
        Ok(weights.map(|weights| Importance { weights, row_sigma2: *row_sigma2 }))
    }

    /// Mean of the squares of a row. If it is infinite, an element exceeds the range of every `f16` scale; the error names it here,
    /// before the mean enters the weights of each block of the row.
    fn mean_square(rows: &Rows<'_>, rules: &Rules, first: usize) -> Result<f32, Error> {
        let row = &rows.values[first..first + rows.row_len];
        let mean = sum_of_squares(row) / rows.row_len as f32;
        if !mean.is_finite() && rows.non_finite == NonFinite::Refuse {
            refuse_input(rows, rules, row, first)?;
        }
        Ok(mean)
    }
}

#[inline(always)]
fn decode_blocks<const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; LEN]),
) {
    let (blocks, _) = bytes.as_chunks::<BYTES>();
    let (out, _) = out.as_chunks_mut::<LEN>();
    for (block, out) in blocks.iter().zip(out) {
        decode(block, out);
    }
}
