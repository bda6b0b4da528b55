//! Numbers kept in 64 bits, whatever they are in files: for WebAssembly, where code for two types is twice as much to fetch.
//! Every `f32` is an `f64`, and all that is computed from either is computed in `f64`: answers have the same bits.

use alloc::vec::Vec;

use apr_container::{Error, PayloadWriter};

use super::RealSlice;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    values: Vec<f64>,
    is_single: bool,
}

impl Kept {
    pub(super) fn single(values: Vec<f32>) -> Self {
        Self { values: values.into_iter().map(f64::from).collect(), is_single: true }
    }

    pub(super) const fn double(values: Vec<f64>) -> Self {
        Self { values, is_single: false }
    }

    pub(super) const fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) const fn is_single(&self) -> bool {
        self.is_single
    }

    pub(super) fn get(&self, idx: usize) -> Option<f64> {
        self.values.get(idx).copied()
    }

    pub(super) const fn as_slice(&self) -> RealSlice<'_> {
        RealSlice::Double(self.values.as_slice())
    }

    pub(super) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        if self.is_single {
            out.variant(1)?;
            return out.f32s(&self.values.iter().map(|&value| value as f32).collect::<Vec<f32>>());
        }
        out.variant(0)?;
        out.f64s(&self.values)
    }
}
