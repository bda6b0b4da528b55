//! `Q8_0`: `f16` scale, 32 signed bytes. A value is its code times the scale.

use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::{round_away, truncate};

/// The reference ignores importance here.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], _importance: Option<Importance<'_, 32>>, out: &mut [u8; 34]) {
    let (scale, inverse) = scale(x);
    write_f16(out, 0, scale);
    for (code, value) in out[2..].iter_mut().zip(x) {
        *code = truncate(round_away(value * inverse)) as u8;
    }
}

/// The scale that makes the largest magnitude 127, and one divided by it.
#[inline(always)]
pub(crate) fn scale(x: &[f32; 32]) -> (f32, f32) {
    let mut largest = 0.0;
    for value in x {
        // Not-a-number wins against what came before it and loses against what comes after.
        largest = if largest > value.abs() { largest } else { value.abs() };
    }
    let scale = largest / 127.0;
    (scale, if scale == 0.0 { 0.0 } else { 1.0 / scale })
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 34], out: &mut [f32; 32]) {
    let scale = read_f16(block, 0);
    for (value, code) in out.iter_mut().zip(&block[2..]) {
        *value = f32::from(code.cast_signed()) * scale;
    }
}
