#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

#[cfg(any(feature = "rayon", test))]
extern crate alloc;

mod error;
mod dtype;

mod blocks;
mod rows;
mod codecs;
mod partial_sums;
mod dot;
mod each;
mod inline;
mod half_float;
mod importance;
#[cfg_attr(
    not(any(
        all(any(target_arch = "x86", target_arch = "x86_64"), target_feature = "sse2"),
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )),
    allow(dead_code, reason = "no SIMD code for this target")
)]
mod simd;
mod error_metrics;
#[cfg(feature = "rayon")]
mod parallel;
mod dispatch;
mod quantizer;
mod repack;
mod round;

pub use dispatch::SimdLevel;
pub use dot::{dot, dot_on};
pub use dtype::{byte_len, dtypes, is_decodable};
pub use error::{Error, ErrorKind};
pub use error_metrics::{Damage, ErrorMeter, ErrorReport, measure_error};
#[cfg(feature = "rayon")]
pub use parallel::{dequantize_parallel, pipelined};
pub use quantizer::{Quantizer, dequantize, dequantize_on, uses_importance};
pub use repack::{Repack, repack};
pub use rows::NonFinite;
pub use tensor_dtype::Dtype;
