//! SIMD kernels: across the elements of a block where scales are computed directly, across groups where they are searched for.
//!
//! Kernels handle ordinary blocks and pass the others to the scalar code of [`blocks`](crate::blocks), which gives the same
//! bits: values that are not finite, scales beyond `f16`, zeros whose sign is stored.

mod plain;
mod quick;
mod search;
mod searched;
mod unpack;

use fearless_simd::Simd;

use crate::codecs;
use crate::error::Error;
use crate::partial_sums::{row_pieces, sum};
use crate::rows::Rows;
use tensor_dtype::Dtype;

/// Encodes rows whose lengths were checked.
pub(crate) fn encode<S: Simd>(simd: S, rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
    match rows.dtype {
        Dtype::F32 => plain::f32(simd, rows, out),
        Dtype::F64 => plain::f64(simd, rows, out),
        Dtype::F16 => plain::f16(simd, rows, out),
        Dtype::Bf16 => plain::bf16(simd, rows, out),
        _ if rows.importance.is_some() => codecs::encode(simd, rows, out),
        Dtype::Q8_0 => quick::q8_0(simd, rows, out),
        Dtype::Q4_0 => quick::q4_0(simd, rows, out),
        Dtype::Q4_1 => quick::q4_1(simd, rows, out),
        Dtype::Q5_0 => quick::q5_0(simd, rows, out),
        Dtype::Q5_1 => quick::q5_1(simd, rows, out),
        Dtype::Q2_K => searched::q2_k(simd, rows, out),
        Dtype::Q3_K => searched::q3_k(simd, rows, out),
        Dtype::Q4_K => searched::q4_k(simd, rows, out),
        Dtype::Q5_K => searched::q5_k(simd, rows, out),
        Dtype::Q6_K => searched::q6_k(simd, rows, out),
        _ => codecs::encode(simd, rows, out),
    }
}

/// Decodes blocks whose lengths were checked.
pub(crate) fn decode<S: Simd>(simd: S, dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        Dtype::Q8_0 => unpack::q8_0(simd, bytes, out),
        Dtype::Q4_0 => unpack::q4_0(simd, bytes, out),
        Dtype::Q4_1 => unpack::q4_1(simd, bytes, out),
        Dtype::Q5_0 => unpack::q5_0(simd, bytes, out),
        Dtype::Q5_1 => unpack::q5_1(simd, bytes, out),
        Dtype::Q2_K => unpack::q2_k(simd, bytes, out),
        Dtype::Q3_K => unpack::q3_k(simd, bytes, out),
        Dtype::Q4_K => unpack::q4_k(simd, bytes, out),
        Dtype::Q5_K => unpack::q5_k(simd, bytes, out),
        Dtype::Q6_K => unpack::q6_k(simd, bytes, out),
        Dtype::MXFP4 => unpack::mxfp4(simd, bytes, out),
        Dtype::TQ2_0 => unpack::tq2_0(simd, bytes, out),
        _ => codecs::decode(simd, dtype, bytes, out),
    }
}

/// Dot product of a row and a vector whose lengths were checked.
pub(crate) fn dot<S: Simd>(simd: S, dtype: Dtype, row: &[u8], x: &[f32]) -> f32 {
    sum(simd, row_pieces(dtype, row, x), |bytes, values| decode(simd, dtype, bytes, values))
}

/// Name of the instructions.
pub(crate) fn name<S: Simd>(simd: S) -> &'static str {
    match simd.level() {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        fearless_simd::Level::Avx512(_) => "avx512",
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        fearless_simd::Level::Avx2(_) => "avx2",
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        fearless_simd::Level::Sse2(_) => "sse2",
        #[cfg(target_arch = "aarch64")]
        fearless_simd::Level::Neon(_) => "neon",
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        fearless_simd::Level::WasmSimd128(_) => "simd128",
        _ => "scalar",
    }
}
