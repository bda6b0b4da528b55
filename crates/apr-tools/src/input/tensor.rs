//! One tensor of a model, with the name of its file for failures.

use std::path::Path;

use apr_quant::Dtype;
pub(crate) use model_file::{Totals, common_name, decodable};
use tensor_dtype::TensorType;

use super::failure_of;
use crate::error::Failure;

/// A tensor and its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'m> {
    tensor: model_file::Tensor<'m>,
    label: &'m Path,
}

impl<'m> Tensor<'m> {
    pub(super) fn new(tensor: model_file::Tensor<'m>, label: &'m Path) -> Self {
        Self { tensor, label }
    }

    /// The tensor.
    pub(crate) fn inner(&self) -> model_file::Tensor<'m> {
        self.tensor
    }

    fn failure(&self, error: model_file::Error) -> Failure {
        failure_of(error, "read the tensor", self.label).of_tensor(Some(self.tensor.name()))
    }

    /// Totals over these tensors.
    pub(crate) fn totals(tensors: &[Self]) -> Totals {
        let mut totals = Totals::default();
        tensors.iter().for_each(|tensor| totals.add(&tensor.tensor));
        totals
    }

    /// Adds the tensor to totals.
    pub(crate) fn add_to(&self, totals: &mut Totals) {
        totals.add(&self.tensor);
    }

    /// As [`model_file::Tensor::dequantized`].
    pub(crate) fn dequantized(self, to: Dtype) -> Result<Self, Failure> {
        let tensor = self.tensor.dequantized(to).map_err(|error| self.failure(error))?;
        Ok(Self { tensor, ..self })
    }

    /// As [`model_file::Tensor::widened`].
    pub(crate) fn widened(self) -> Result<Self, Failure> {
        let tensor = self.tensor.widened().map_err(|error| self.failure(error))?;
        Ok(Self { tensor, ..self })
    }

    /// As [`model_file::Tensor::has_rows_of`].
    pub(crate) fn has_rows_of(&self, format: Dtype) -> bool {
        self.tensor.has_rows_of(format)
    }

    /// As [`model_file::Tensor::repacked`].
    pub(crate) fn repacked(self, to: Dtype) -> Option<Self> {
        Some(Self { tensor: self.tensor.repacked(to)?, ..self })
    }

    /// As [`model_file::Tensor::with_half_scale`].
    pub(crate) fn with_half_scale(self) -> Result<Option<(Self, f64)>, Failure> {
        let scaled = self.tensor.with_half_scale().map_err(|error| self.failure(error))?;
        Ok(scaled.map(|(tensor, difference)| (Self { tensor, ..self }, difference)))
    }

    /// As [`model_file::Tensor::as_stored`].
    #[must_use]
    pub(crate) fn as_stored(self) -> Self {
        Self { tensor: self.tensor.as_stored(), ..self }
    }

    /// As [`model_file::Tensor::check_order`].
    pub(crate) fn check_order(&self) -> Result<(), Failure> {
        self.tensor.check_order().map_err(|error| self.failure(error))
    }

    pub(crate) fn name(&self) -> &'m str {
        self.tensor.name()
    }

    pub(crate) fn dtype(&self) -> TensorType {
        self.tensor.dtype()
    }

    pub(crate) fn shape(&self) -> &'m [usize] {
        self.tensor.shape()
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.tensor.byte_len()
    }

    pub(crate) fn elements(&self) -> u64 {
        self.tensor.elements()
    }

    pub(crate) fn file_offset(&self) -> Option<u64> {
        self.tensor.file_offset()
    }

    /// Name of the shard it is in.
    pub(crate) fn shard(&self) -> Option<&'m str> {
        self.tensor.shard()
    }

    /// As [`model_file::Tensor::read`].
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Failure> {
        self.tensor.read(offset, buf).map_err(|error| self.failure(error))
    }

    /// Passes all bytes to `take`, a chunk at a time.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read) and of `take`.
    pub(crate) fn stream<E: From<Failure>>(
        &self,
        buf: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        enum Stop<E> {
            Read(model_file::Error),
            Take(E),
        }
        impl<E> From<model_file::Error> for Stop<E> {
            fn from(error: model_file::Error) -> Self {
                Self::Read(error)
            }
        }
        let streamed = self.tensor.stream(buf, |chunk| take(chunk).map_err(Stop::Take));
        streamed.map_err(|stop| match stop {
            Stop::Read(error) => self.failure(error).into(),
            Stop::Take(error) => error,
        })
    }
}
