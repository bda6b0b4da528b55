//! Values stored in 32 bits where that represents each of them exactly.

use alloc::vec::Vec;

use apr_container::{Error, PayloadWriter};

use super::RealSlice;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kept {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl Kept {
    pub(super) const fn single(values: Vec<f32>) -> Self {
        Self::Single(values)
    }

    pub(super) const fn double(values: Vec<f64>) -> Self {
        Self::Double(values)
    }

    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
        }
    }

    pub(super) const fn is_single(&self) -> bool {
        matches!(self, Self::Single(_))
    }

    pub(super) fn get(&self, idx: usize) -> Option<f64> {
        match self {
            Self::Single(values) => values.get(idx).copied().map(f64::from),
            Self::Double(values) => values.get(idx).copied(),
        }
    }

    pub(super) const fn as_slice(&self) -> RealSlice<'_> {
        match self {
            Self::Single(values) => RealSlice::Single(values.as_slice()),
            Self::Double(values) => RealSlice::Double(values.as_slice()),
        }
    }

    pub(super) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        match self {
            Self::Single(values) => {
                out.variant(1)?;
                out.f32s(values)
            }
            Self::Double(values) => {
                out.variant(0)?;
                out.f64s(values)
            }
        }
    }
}
