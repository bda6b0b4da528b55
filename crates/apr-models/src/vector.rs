//! Vectors.

use alloc::vec::Vec;
use core::iter::Copied;
use core::ops::Index;
use core::slice;

/// A vector of `f32`: targets, predictions or coefficients. It may be empty.
///
/// ```
/// use apr_models::Vector;
///
/// let y = Vector::from_vec(vec![1.0, 2.5]);
/// assert_eq!(y.len(), 2);
/// assert_eq!(y[1], 2.5);
/// assert_eq!(y.iter().sum::<f32>(), 3.5);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vector {
    values: Vec<f32>,
}

impl Vector {
    /// Takes the values as they are.
    #[must_use]
    pub const fn from_vec(values: Vec<f32>) -> Self {
        Self { values }
    }

    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values in order.
    pub fn iter(&self) -> Copied<slice::Iter<'_, f32>> {
        self.values.iter().copied()
    }

    /// The values as a slice.
    #[must_use]
    pub const fn as_slice(&self) -> &[f32] {
        self.values.as_slice()
    }

    /// Returns the values.
    #[must_use]
    pub fn into_vec(self) -> Vec<f32> {
        self.values
    }
}

/// Panics if the index is not less than [`Vector::len`], as slices do.
impl Index<usize> for Vector {
    type Output = f32;

    fn index(&self, idx: usize) -> &f32 {
        &self.values[idx]
    }
}

impl From<Vec<f32>> for Vector {
    fn from(values: Vec<f32>) -> Self {
        Self::from_vec(values)
    }
}

impl FromIterator<f32> for Vector {
    fn from_iter<I: IntoIterator<Item = f32>>(values: I) -> Self {
        Self::from_vec(values.into_iter().collect())
    }
}

impl<'v> IntoIterator for &'v Vector {
    type Item = f32;
    type IntoIter = Copied<slice::Iter<'v, f32>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
