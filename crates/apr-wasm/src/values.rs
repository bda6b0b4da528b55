//! Values of any dtype as `f32`.

use alloc::string::String;
use alloc::vec::Vec;

use st_core::{Dtype, TensorView};

use crate::failure::Failure;
use crate::wire::{Answer, Arguments};

/// The elements in whole units that a type can be read by, and their bytes: blocks, or bytes for several small elements. `(0, 0)` for a
/// type that has to be read as a whole.
pub(crate) fn unit(dtype: Option<Dtype>) -> (u64, u64) {
    match dtype.filter(|dtype| cfg!(feature = "quantize") || !dtype.is_quantized()) {
        Some(Dtype::AprQ8) | None => (0, 0),
        Some(dtype) => (dtype.block_len() as u64, dtype.block_bytes() as u64),
    }
}

/// The name of a type, the number of elements, and their bytes.
///
/// # Errors
///
/// If the type cannot be decoded, or the bytes have the wrong length.
pub(crate) fn answer(args: &mut Arguments<'_>) -> Result<Answer, Failure> {
    let (dtype, count) = (args.text()?, args.u64()?);
    let data = args.clone().rest();
    let numbers = decode(dtype, count, data)?;
    Ok(Answer { bytes: bytes_of(numbers, f32::to_le_bytes), json: String::new() })
}

/// `count` elements; 64-bit floats and integers are rounded to the nearest `f32`.
pub(crate) fn decode(dtype: &str, count: u64, data: &[u8]) -> Result<Vec<f32>, Failure> {
    let Some(plain) = Dtype::element_from_name(dtype) else { return decode_blocks(dtype, count, data) };
    let shape = [usize::try_from(count).map_err(|_| too_many())?];
    let view = TensorView::new(plain, &shape, data)?;
    let mut out = Vec::new();
    out.try_reserve_exact(shape[0]).map_err(|_| too_many())?;
    match plain {
        // The bits are copied: a conversion may change the payload of a NaN.
        Dtype::F32 => out.extend(data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
        _ => out.extend(view.to_f64()?.map(|number| number as f32)),
    }
    Ok(out)
}

pub(crate) fn too_many() -> Failure {
    Failure::new("aw-memory", "no memory for so many numbers at once: ask for a range of them")
}

#[cfg(feature = "quantize")]
fn decode_blocks(dtype: &str, count: u64, data: &[u8]) -> Result<Vec<f32>, Failure> {
    let blocks = Dtype::from_name_ignore_case(dtype).ok_or_else(|| unknown(dtype))?;
    let count = usize::try_from(count).map_err(|_| too_many())?;
    let mut out = Vec::new();
    out.try_reserve_exact(count).map_err(|_| too_many())?;
    out.resize(count, 0.0);
    apr_quant::dequantize(blocks, data, &mut out)?;
    Ok(out)
}

#[cfg(not(feature = "quantize"))]
fn decode_blocks(dtype: &str, _: u64, _: &[u8]) -> Result<Vec<f32>, Failure> {
    match dtype {
        "unknown" => Err(unknown(dtype)),
        _ if cfg!(feature = "foreign") => Err(unknown(dtype)),
        _ => Err(Failure::lacks("reading blocks")),
    }
}

fn unknown(_: &str) -> Failure {
    Failure::new("aw-dtype", "numbers of this type are not known here")
}

/// Numbers as little-endian bytes, copied as a whole on little-endian machines.
pub(crate) fn bytes_of<T: bytemuck::NoUninit, const N: usize>(
    numbers: Vec<T>,
    one: impl Fn(T) -> [u8; N],
) -> Vec<u8> {
    if cfg!(target_endian = "little") {
        return bytemuck::cast_slice(&numbers).to_vec();
    }
    numbers.into_iter().flat_map(one).collect()
}

/// Numbers from little-endian bytes; an incomplete one at the end is ignored.
#[cfg_attr(not(feature = "apr"), allow(dead_code, reason = "for `.apr` files, models and keys"))]
pub(crate) fn floats_of(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    let mut out = vec![0.0_f32; numbers.len()];
    if cfg!(target_endian = "little") {
        bytemuck::cast_slice_mut(&mut out).copy_from_slice(numbers.as_flattened());
    } else {
        out.iter_mut().zip(numbers).for_each(|(number, bytes)| *number = f32::from_le_bytes(*bytes));
    }
    out
}
