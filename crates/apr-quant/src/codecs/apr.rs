//! The two block types of `.apr` files. Their blocks continue across the ends of rows.

use crate::blocks::{apr_q4, apr_q8};
use crate::error::{Error, ErrorKind};
use crate::rows::{Rows, refused_scale};

/// Encodes a tensor as one sequence of blocks; the last one may be padded.
#[inline(always)]
pub(super) fn encode_q4(rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
    check_finite(rows.values)?;
    let (blocks, _) = out.as_chunks_mut::<18>();
    for (idx, (x, block)) in rows.values.chunks(32).zip(blocks).enumerate() {
        apr_q4::encode(x, block);
        if block[1] & 0x7c == 0x7c {
            return Err(refused_scale(rows.dtype, x, idx * 32, false));
        }
    }
    Ok(())
}

/// Decodes `out.len()` elements.
#[inline(always)]
pub(super) fn decode_q4(bytes: &[u8], out: &mut [f32]) {
    let (blocks, _) = bytes.as_chunks::<18>();
    for (block, out) in blocks.iter().zip(out.chunks_mut(32)) {
        apr_q4::decode(block, out);
    }
}

/// Encodes a tensor with one scale; an empty one has none.
#[inline(always)]
pub(super) fn encode_q8(rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
    check_finite(rows.values)?;
    let Some((head, codes)) = out.split_first_chunk_mut() else { return Ok(()) };
    let scale = apr_q8::scale(rows.values);
    if scale == 0.0 {
        return Err(refused_scale(rows.dtype, rows.values, 0, true));
    }
    if (127.0 * scale).is_infinite() {
        return Err(refused_scale(rows.dtype, rows.values, 0, false));
    }
    *head = scale.to_le_bytes();
    apr_q8::encode(rows.values, scale, codes);
    Ok(())
}

/// Decodes `out.len()` elements.
#[inline(always)]
pub(super) fn decode_q8(bytes: &[u8], out: &mut [f32]) {
    let Some((scale, codes)) = bytes.split_first_chunk() else { return };
    apr_q8::decode(codes, f32::from_le_bytes(*scale), out);
}

/// No reference defines the result for values that are not finite, so they are refused whatever [`NonFinite`](crate::NonFinite) says.
fn check_finite(values: &[f32]) -> Result<(), Error> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(idx) => Err(ErrorKind::NonFinite { element: idx as u64 }.into()),
        None => Ok(()),
    }
}
