//! Types without blocks, 64 elements at a time.

use fearless_simd::Simd;

use crate::codecs::rules_of;
use crate::error::Error;
use crate::half_float::{bf16_bits, f16_bits};
use crate::rows::{BF16_LIMIT, Rows, check_input, check_output};

/// Elements that share one check of the largest magnitude.
const AT_ONCE: usize = 64;

/// Encodes 64 elements at a time if all magnitudes are below `limit`, else one by one.
#[inline(always)]
fn encode<const BYTES: usize>(
    rows: &Rows<'_>,
    out: &mut [u8],
    limit: f32,
    encode: impl Fn(f32) -> [u8; BYTES],
) -> Result<(), Error> {
    let (out, _) = out.as_chunks_mut::<BYTES>();
    for (idx, (x, out)) in rows.values.chunks(AT_ONCE).zip(out.chunks_mut(AT_ONCE)).enumerate() {
        if let (Ok(x), Ok(out)) =
            (<&[f32; AT_ONCE]>::try_from(x), <&mut [[u8; BYTES]; AT_ONCE]>::try_from(&mut *out))
        {
            let largest = x.iter().fold(0, |max: u32, x| max.max(x.to_bits() & 0x7fff_ffff));
            if largest < limit.to_bits() {
                for (out, &x) in out.iter_mut().zip(x) {
                    *out = encode(x);
                }
                continue;
            }
        }
        let rules = rules_of(rows.dtype);
        for (place, (&x, out)) in x.iter().zip(out).enumerate() {
            let first = AT_ONCE * idx + place;
            check_input(rows, rules, &[x], first)?;
            *out = encode(x);
            check_output(rows, rules, &[x], first, out)?;
        }
    }
    Ok(())
}

macro_rules! floats {
    ($($dtype:ident: below $limit:expr, $encode:expr;)*) => {
        $(pub(super) fn $dtype<S: Simd>(simd: S, rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
            simd.vectorize(
                #[inline(always)]
                || encode(rows, out, $limit, #[inline(always)] $encode),
            )
        })*
    };
}

floats! {
    f32: below f32::INFINITY, |x| x.to_bits().to_le_bytes();
    f64: below f32::INFINITY, |x| f64::from(x).to_le_bytes();
    f16: below 65_520.0, |x| f16_bits(x).to_le_bytes();
    bf16: below BF16_LIMIT, |x| bf16_bits(x).to_le_bytes();
}
