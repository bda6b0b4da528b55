//! Compares the values of two tensors, in chunks.

use st_core::{Dtype, TensorView};

use crate::error::Failure;
use crate::input::Tensor;

/// Elements compared at once: 1 MiB of the widest type. A multiple of 8, so that chunks of packed types end on a byte.
const CHUNK: u64 = 1 << 17;

/// How far the values of two tensors with equally many elements are apart.
///
/// Complex numbers count as two elements, real and imaginary part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    /// Whether the values were compared. They are not if the numbers of elements differ, if one type is complex and the other
    /// real, or if a type cannot be decoded.
    pub(crate) is_comparable: bool,
    /// Elements of the tensor.
    pub(crate) elements: u64,
    /// Elements that differ: in their bits if both sides have one type, else in their value.
    pub(crate) differing: u64,
    /// Elements that are NaN on one side only.
    pub(crate) nan_on_one_side: u64,
    /// Length of the difference of the two tensors divided by that of the first, over the elements that are finite on both
    /// sides; `None` if the first is zero there.
    pub(crate) relative_error: Option<f64>,
    /// Greatest absolute difference; infinite where only one side is. Elements with a NaN are left out.
    pub(crate) max_abs: f64,
    /// Cosine of the angle between the two tensors, over the elements that are finite on both sides; `None` if one of
    /// them is zero there.
    pub(crate) cosine: Option<f64>,
}

impl Change {
    /// Whether every element is equal.
    pub(crate) fn is_equal(&self) -> bool {
        self.is_comparable && self.differing == 0
    }
}

/// Compares two tensors of any types and shapes; `None` if type, number of elements and bytes are equal. Quantized ones are
/// compared by the numbers in them. `advance` is called with the number of processed bytes of `a`.
///
/// # Errors
///
/// If one of them cannot be read.
pub(crate) fn compare(
    a: &Tensor<'_>,
    b: &Tensor<'_>,
    mut advance: impl FnMut(usize),
) -> Result<Option<Change>, Failure> {
    let may_be_same = a.dtype() == b.dtype()
        && a.elements() == b.elements()
        && a.byte_len() == b.byte_len()
        && a.check_order().is_ok() == b.check_order().is_ok();
    // What cannot be represented has no bytes: nothing is known of its values.
    if a.read(0, &mut []).is_err() || b.read(0, &mut []).is_err() {
        return Ok(Some(Change::default()));
    }
    // Most tensors of two versions of a model are equal, and equal bytes need no decoding.
    let (len, mut counted) = (a.byte_len(), 0);
    let compared = |bytes: usize| {
        counted += bytes as u64;
        advance(bytes);
    };
    if may_be_same && equal_bytes(a, b, compared)? {
        return Ok(None);
    }
    // Bytes that were compared are not counted again.
    let compared = |done: u64, count: u64| {
        let bytes = (u128::from(len) * u128::from(done) / u128::from(count.max(1))) as u64;
        advance(usize::try_from(bytes.saturating_sub(counted)).unwrap_or(usize::MAX));
        counted = counted.max(bytes);
    };
    let (Ok(a), Ok(b)) = (a.dequantized(Dtype::F32), b.dequantized(Dtype::F32)) else {
        // One of the types cannot be decoded.
        return Ok(Some(Change::default()));
    };
    let (Some(dtype_a), Some(dtype_b)) = (a.dtype().element(), b.dtype().element()) else {
        return Ok(Some(Change::default()));
    };
    if a.elements() != b.elements() || is_complex(dtype_a) != is_complex(dtype_b) {
        return Ok(Some(Change::default()));
    }
    Ok(Some(values((&a, dtype_a), (&b, dtype_b), compared)?))
}

fn is_complex(dtype: Dtype) -> bool {
    dtype == Dtype::C64
}

fn equal_bytes(a: &Tensor<'_>, b: &Tensor<'_>, mut advance: impl FnMut(usize)) -> Result<bool, Failure> {
    let (mut chunk_a, mut chunk_b) = (Vec::new(), Vec::new());
    let mut offset = 0;
    while offset < a.byte_len() {
        let len = (8 * CHUNK).min(a.byte_len() - offset) as usize;
        chunk_a.resize(len, 0);
        chunk_b.resize(len, 0);
        a.read(offset, &mut chunk_a)?;
        b.read(offset, &mut chunk_b)?;
        advance(len);
        if chunk_a != chunk_b {
            return Ok(false);
        }
        offset += len as u64;
    }
    Ok(true)
}

/// `compared` hears how many of how many elements are done.
fn values(
    a: (&Tensor<'_>, Dtype),
    b: (&Tensor<'_>, Dtype),
    mut compared: impl FnMut(u64, u64),
) -> Result<Change, Failure> {
    let mut tally = Tally::default();
    let count = a.0.elements();
    let (mut chunk_a, mut chunk_b) = (Vec::new(), Vec::new());
    let mut done = 0;
    while done < count {
        let elements = CHUNK.min(count - done);
        for ((tensor, dtype), chunk) in [(a, &mut chunk_a), (b, &mut chunk_b)] {
            let bits = u64::from(dtype.bits());
            // At most 8 * CHUNK bytes, which fits any usize.
            chunk.resize((elements * bits / 8) as usize, 0);
            tensor.read(done * bits / 8, chunk)?;
        }
        tally.add(a.1, &chunk_a, b.1, &chunk_b, elements as usize)?;
        done += elements;
        compared(done, count);
    }
    Ok(tally.change(if is_complex(a.1) { 2 * count } else { count }))
}

/// What has been seen so far.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    differing: u64,
    nan_on_one_side: u64,
    max_abs: f64,
    dot: f64,
    squares_a: f64,
    squares_b: f64,
    squares_difference: f64,
}

impl Tally {
    fn add(
        &mut self,
        dtype_a: Dtype,
        a: &[u8],
        dtype_b: Dtype,
        b: &[u8],
        elements: usize,
    ) -> Result<(), Failure> {
        // A complex number is two floats.
        let (shape, dtype_a, dtype_b) = match dtype_a {
            Dtype::C64 => ([2 * elements], Dtype::F32, Dtype::F32),
            _ => ([elements], dtype_a, dtype_b),
        };
        let (view_a, view_b) = (TensorView::new(dtype_a, &shape, a)?, TensorView::new(dtype_b, &shape, b)?);
        let pairs = || Ok::<_, Failure>(view_a.to_f64()?.zip(view_b.to_f64()?));
        pairs()?.for_each(|(a, b)| self.pair(a, b));
        let differing = if dtype_a != dtype_b {
            pairs()?.filter(|(a, b)| a != b && !(a.is_nan() && b.is_nan())).count()
        } else if dtype_a.bits().is_multiple_of(8) {
            let width = dtype_a.bits() as usize / 8;
            a.chunks_exact(width).zip(b.chunks_exact(width)).filter(|(a, b)| a != b).count()
        } else {
            // Different codes of a packed type are different values, except for zeros, whose signs differ in the bits.
            pairs()?.filter(|(a, b)| a.to_bits() != b.to_bits()).count()
        };
        self.differing += differing as u64;
        if dtype_a == dtype_b {
            self.wide_integers(&view_a, &view_b)?;
        }
        Ok(())
    }

    fn pair(&mut self, a: f64, b: f64) {
        if a.is_nan() || b.is_nan() {
            self.nan_on_one_side += u64::from(a.is_nan() != b.is_nan());
            return;
        }
        // Equal infinities have no difference, but subtracting them gives NaN.
        let difference = if a == b { 0.0 } else { (a - b).abs() };
        self.max_abs = self.max_abs.max(difference);
        if a.is_finite() && b.is_finite() {
            self.dot += a * b;
            self.squares_a += a * a;
            self.squares_b += b * b;
            self.squares_difference += difference * difference;
        }
    }

    /// 64-bit integers that are close together can be one number in an `f64`.
    fn wide_integers(&mut self, a: &TensorView<'_>, b: &TensorView<'_>) -> Result<(), Failure> {
        let greatest = match a.dtype() {
            Dtype::I64 => a.elements::<i64>()?.zip(b.elements::<i64>()?).map(|(a, b)| a.abs_diff(b)).max(),
            Dtype::U64 => a.elements::<u64>()?.zip(b.elements::<u64>()?).map(|(a, b)| a.abs_diff(b)).max(),
            _ => None,
        };
        if let Some(greatest) = greatest {
            self.max_abs = self.max_abs.max(greatest as f64);
        }
        Ok(())
    }

    fn change(self, elements: u64) -> Change {
        let norm = self.squares_a.sqrt();
        let norms = norm * self.squares_b.sqrt();
        Change {
            is_comparable: true,
            elements,
            differing: self.differing,
            nan_on_one_side: self.nan_on_one_side,
            relative_error: (norm > 0.0).then(|| self.squares_difference.sqrt() / norm),
            max_abs: self.max_abs,
            // Rounding can lead a hair beyond 1.
            cosine: (norms > 0.0).then(|| (self.dot / norms).clamp(-1.0, 1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn change(dtype_a: Dtype, a: &[u8], dtype_b: Dtype, b: &[u8], elements: usize) -> Change {
        let mut tally = Tally::default();
        tally.add(dtype_a, a, dtype_b, b, elements).unwrap();
        tally.change(elements as u64)
    }

    #[test]
    fn floats_are_measured() {
        let change = change(Dtype::F32, &f32s(&[1.0, 0.0, 2.0]), Dtype::F32, &f32s(&[1.0, -0.0, 2.5]), 3);
        assert_eq!((change.differing, change.max_abs, change.nan_on_one_side), (2, 0.5, 0));
        let cosine = 6.0 / (5.0_f64.sqrt() * 7.25_f64.sqrt());
        assert!((change.cosine.unwrap() - cosine).abs() < 1e-12);
        assert!((change.relative_error.unwrap() - 0.5 / 5.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn nan_and_infinity_do_not_spoil_the_rest() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let other_nan = f32::from_bits(nan.to_bits() | 1);
        let a = f32s(&[nan, nan, inf, inf, 1.0]);
        let b = f32s(&[other_nan, 1.0, inf, inf, 3.0]);
        let found = change(Dtype::F32, &a, Dtype::F32, &b, 5);
        assert_eq!((found.differing, found.nan_on_one_side, found.max_abs), (3, 1, 2.0));
        assert_eq!(found.cosine, Some(1.0));
        let found = change(Dtype::F32, &f32s(&[inf]), Dtype::F32, &f32s(&[1.0]), 1);
        assert_eq!((found.max_abs, found.cosine, found.relative_error), (f64::INFINITY, None, None));
    }

    #[test]
    fn types_are_compared_by_value() {
        let halves = [0x3c00_u16, 0x4000].map(u16::to_le_bytes);
        let found = change(Dtype::F16, halves.as_flattened(), Dtype::F32, &f32s(&[1.0, 2.0]), 2);
        assert!(found.is_equal());
        let found = change(Dtype::F16, halves.as_flattened(), Dtype::F32, &f32s(&[1.0, 2.25]), 2);
        assert_eq!((found.differing, found.max_abs), (1, 0.25));
    }

    #[test]
    fn close_wide_integers_differ() {
        let (a, b) = (i64::MAX.to_le_bytes(), (i64::MAX - 1).to_le_bytes());
        let found = change(Dtype::I64, &a, Dtype::I64, &b, 1);
        assert_eq!((found.differing, found.max_abs), (1, 1.0));
        let found = change(Dtype::I64, &i64::MAX.to_le_bytes(), Dtype::I64, &i64::MIN.to_le_bytes(), 1);
        assert_eq!(found.max_abs, u64::MAX as f64);
    }

    #[test]
    fn packed_elements_are_counted_one_by_one() {
        // Low half of the byte: 0.5 against 1; high half: 0 against -0.
        let found = change(Dtype::F4, &[0x01], Dtype::F4, &[0x82], 2);
        assert_eq!((found.differing, found.max_abs), (2, 0.5));
    }
}
