//! Lists of values in the narrowest type that represents each of them exactly.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};

/// Values in `f64`, stored as `f32` if every one of them is an `f32` exactly: tables of whole numbers, and models
/// that were fitted in single precision.
///
/// The type follows from the values, so equal numbers are equal lists and have equal bytes in files.
///
/// ```
/// use apr_models::Reals;
///
/// assert!(Reals::from(vec![1.0, -2.5]).is_single());
/// assert!(!Reals::from(vec![1.0, 0.1]).is_single());
/// assert_eq!(Reals::from(vec![1.0, 0.1]).iter().sum::<f64>(), 1.1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Reals {
    pub(super) kept: Kept,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kept {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

/// Evaluates an expression in which `$slice` is the numbers in the type they are kept in: once written, compiled for both,
/// since no closure can be generic.
macro_rules! with_slice {
    ($reals:expr, $slice:ident => $body:expr) => {
        match &$reals.kept {
            $crate::pipeline::reals::Kept::Single($slice) => $body,
            $crate::pipeline::reals::Kept::Double($slice) => $body,
        }
    };
}
pub(crate) use with_slice;

impl Reals {
    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.kept {
            Kept::Single(values) => values.len(),
            Kept::Double(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they are kept, and stored, in 32 bits.
    #[must_use]
    pub const fn is_single(&self) -> bool {
        matches!(self.kept, Kept::Single(_))
    }

    /// The value at that index.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<f64> {
        match &self.kept {
            Kept::Single(values) => values.get(idx).copied().map(f64::from),
            Kept::Double(values) => values.get(idx).copied(),
        }
    }

    /// The values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f64> + Clone {
        (0..self.len()).map(|idx| self.get(idx).unwrap_or_default())
    }

    pub(crate) fn expect_len(&self, part: &'static str, expected: usize) -> Result<(), Error> {
        checks::expect_len(part, expected, self.len())
    }

    pub(crate) fn expect_finite(&self, part: &'static str) -> Result<(), Error> {
        match self.iter().position(|value| !value.is_finite()) {
            Some(idx) => Err(ErrorKind::PartNotFinite { part, idx }.into()),
            None => Ok(()),
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.variant(self.is_single().into())?;
        match &self.kept {
            Kept::Single(values) => out.f32s(values),
            Kept::Double(values) => out.f64s(values),
        }
    }

    /// Reads values; 64-bit values that could be stored as 32-bit ones are refused, since equal lists have equal bytes.
    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        if input.variant(2)? == 1 {
            return Ok(Self::from(input.f32s()?));
        }
        let values = input.f64s()?;
        match values.iter().all(|&value| is_single(value)) {
            true => Err(input.invalid("64-bit numbers that are all 32-bit ones, which are stored as those")),
            false => Ok(Self { kept: Kept::Double(values) }),
        }
    }
}

impl From<Vec<f32>> for Reals {
    fn from(values: Vec<f32>) -> Self {
        Self { kept: Kept::Single(values) }
    }
}

impl From<Vec<f64>> for Reals {
    fn from(values: Vec<f64>) -> Self {
        let kept = match values.iter().all(|&value| is_single(value)) {
            true => Kept::Single(values.iter().map(|&value| value as f32).collect()),
            false => Kept::Double(values),
        };
        Self { kept }
    }
}

impl From<&[f64]> for Reals {
    fn from(values: &[f64]) -> Self {
        match values.iter().all(|&value| is_single(value)) {
            true => Self::from(values.iter().map(|&value| value as f32).collect::<Vec<_>>()),
            false => Self { kept: Kept::Double(values.to_vec()) },
        }
    }
}

impl FromIterator<f64> for Reals {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self::from(values.into_iter().collect::<Vec<_>>())
    }
}

/// Whether the way to 32 bits and back keeps the number, its sign included.
fn is_single(value: f64) -> bool {
    f64::from(value as f32).to_bits() == value.to_bits()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn numbers_are_narrow_if_none_loses_a_bit() {
        for (values, narrow) in [
            (vec![], true),
            (vec![0.0, -0.0, 1.5, f64::NEG_INFINITY], true),
            (vec![f64::from(f32::MIN_POSITIVE) / 8.0], true),
            (vec![16_777_217.0], false),
            (vec![1.0, 1e300], false),
            (vec![5e-324], false),
        ] {
            let reals = Reals::from(values.clone());
            assert_eq!(reals.is_single(), narrow, "{values:?}");
            let bits = |values: &mut dyn Iterator<Item = f64>| values.map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&mut reals.iter()), bits(&mut values.iter().copied()));
            assert_eq!(reals, Reals::from(values.as_slice()));
            assert_eq!(reals.get(values.len()), None);
        }
    }

    #[test]
    fn what_is_not_finite_is_found() {
        let reals = Reals::from(vec![1.0, f64::INFINITY]);
        let error = reals.expect_finite("weights").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::PartNotFinite { part: "weights", idx: 1 }));
    }
}
