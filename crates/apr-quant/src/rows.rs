//! Rows of values to encode, and the checks of their input and output.

use crate::blocks::Rules;
use crate::error::{Error, ErrorKind};
use crate::inline::shared;
use tensor_dtype::Dtype;

/// Handling of input that no block type represents: values that are not finite, and blocks whose scale would be infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NonFinite {
    /// An error that names the element.
    #[default]
    Refuse,
    /// The bytes that the reference gives on x86-64, where they are known; an error elsewhere.
    AsReference,
}

/// Whole rows of values, and how they are encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) dtype: Dtype,
    pub(crate) values: &'a [f32],
    pub(crate) row_len: usize,
    pub(crate) importance: Option<&'a [f32]>,
    pub(crate) non_finite: NonFinite,
}

/// The midpoint between the largest `BF16` and the next power of two: from it on, rounding gives infinity.
pub(crate) const BF16_LIMIT: f32 = f32::from_bits(0x7f7f_8000);

shared! {
    /// Refuses values that are not finite or above the limit of the format, unless [`NonFinite`] permits them. Returns whether all
    /// values are finite and below the limit.
    pub(crate) fn check_input(rows: &Rows<'_>, rules: &Rules, x: &[f32], first: usize) -> Result<bool, Error> {
        let largest = x.iter().fold(0, |max: u32, value| max.max(value.to_bits() & 0x7fff_ffff));
        if largest < rules.limit.to_bits() {
            return Ok(true);
        }
        refuse_input(rows, rules, x, first)?;
        Ok(false)
    }
}

#[cold]
pub(crate) fn refuse_input(rows: &Rows<'_>, rules: &Rules, x: &[f32], first: usize) -> Result<(), Error> {
    let as_reference = rows.non_finite == NonFinite::AsReference;
    match x.iter().position(|value| !value.is_finite()) {
        Some(_) if as_reference && rules.non_finite_known => Ok(()),
        Some(idx) => Err(ErrorKind::NonFinite { element: (first + idx) as u64 }.into()),
        None if as_reference => Ok(()),
        None => Err(refused_scale(rows.dtype, x, first, false)),
    }
}

shared! {
    /// Refuses a block whose scale is infinite, not a number, or too small to divide by.
    pub(crate) fn check_output(
        rows: &Rows<'_>,
        rules: &Rules,
        x: &[f32],
        first: usize,
        block: &[u8],
    ) -> Result<(), Error> {
        if rows.non_finite == NonFinite::AsReference {
            return Ok(());
        }
        let mut small = rules.halves.is_empty();
        for (idx, &at) in rules.halves.iter().enumerate() {
            let magnitude = u16::from_le_bytes([block[at], block[at + 1]]) & 0x7fff;
            if magnitude > 0x7c00 && rows.importance.is_some() {
                let element = largest_element(x, first);
                return Err(ErrorKind::ImportanceZero { dtype: rows.dtype, element }.into());
            }
            if magnitude >= 0x7c00 {
                return Err(refused_scale(rows.dtype, x, first, false));
            }
            small |= idx == 0 && magnitude == 0;
        }
        if small && rules.step.is_too_small(x) {
            return Err(refused_scale(rows.dtype, x, first, true));
        }
        Ok(())
    }
}

/// Index of the value with the largest magnitude, which determines the scale.
fn largest_element(x: &[f32], first: usize) -> u64 {
    let mut largest = 0;
    for (idx, value) in x.iter().enumerate() {
        if value.abs() > x[largest].abs() {
            largest = idx;
        }
    }
    (first + largest) as u64
}

#[cold]
pub(crate) fn refused_scale(dtype: Dtype, x: &[f32], first: usize, small: bool) -> Error {
    let element = largest_element(x, first);
    if small {
        ErrorKind::ScaleTooSmall { dtype, element }.into()
    } else {
        ErrorKind::ScaleTooLarge { dtype, element }.into()
    }
}
