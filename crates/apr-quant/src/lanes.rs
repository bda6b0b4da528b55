//! The same codes, many at once: elements beside each other where a block is quick, groups where it is searched.
//!
//! Each kernel answers for ordinary blocks alone and hands others to the code of [`blocks`](crate::blocks), which the same bits are
//! asked of: numbers that are not finite, scales beyond `f16`, zeros whose sign counts.

mod quick;
mod search;
mod searched;

use fearless_simd::Simd;

use crate::error::Error;
use crate::format::BlockFormat;
use crate::rows::{self, Rows};

/// Encodes rows whose lengths were checked.
pub(crate) fn encode<S: Simd>(simd: S, rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
    if rows.importance.is_some() {
        return rows::encode(simd, rows, out);
    }
    match rows.format {
        BlockFormat::Q8_0 => quick::q8_0(simd, rows, out),
        BlockFormat::Q4_0 => quick::q4_0(simd, rows, out),
        BlockFormat::Q4_1 => quick::q4_1(simd, rows, out),
        BlockFormat::Q5_0 => quick::q5_0(simd, rows, out),
        BlockFormat::Q5_1 => quick::q5_1(simd, rows, out),
        BlockFormat::Q2_K => searched::q2_k(simd, rows, out),
        BlockFormat::Q3_K => searched::q3_k(simd, rows, out),
        BlockFormat::Q4_K => searched::q4_k(simd, rows, out),
        BlockFormat::Q5_K => searched::q5_k(simd, rows, out),
        BlockFormat::Q6_K => searched::q6_k(simd, rows, out),
        _ => rows::encode(simd, rows, out),
    }
}
