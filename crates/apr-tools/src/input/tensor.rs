//! One tensor of a model, with the name of its file for failures.

use core::ops::Deref;
use std::path::Path;

use apr_convert::{Piece, Transcoder};
use apr_quant::{Dtype, ErrorReport};
use hf_gguf::SourceTensor;
pub(crate) use model_file::{Totals, common_name, decodable};
use tensor_dtype::TensorType;

use super::failure_of;
use crate::error::{CODE_NOT_CARRIED, Failure};

/// A tensor and the name of its file, which its failures carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'m> {
    tensor: model_file::Tensor<'m>,
    label: &'m Path,
}

impl<'m> Deref for Tensor<'m> {
    type Target = model_file::Tensor<'m>;

    fn deref(&self) -> &Self::Target {
        &self.tensor
    }
}

impl<'m> Tensor<'m> {
    pub(super) fn new(tensor: model_file::Tensor<'m>, label: &'m Path) -> Self {
        Self { tensor, label }
    }

    fn failure(&self, error: model_file::Error) -> Failure {
        failure_of(error, "read the tensor", self.label).of_tensor(Some(self.tensor.name()))
    }

    /// Totals over these tensors.
    pub(crate) fn totals(tensors: &[Self]) -> Totals {
        let mut totals = Totals::default();
        tensors.iter().for_each(|tensor| totals.add(tensor));
        totals
    }

    /// The tensor as plans of the crate `hf-gguf` take it.
    ///
    /// # Errors
    ///
    /// For elements of a type that is not known.
    pub(crate) fn as_source(&self) -> Result<SourceTensor, Failure> {
        let TensorType::Known(dtype) = self.dtype() else {
            let what = format!("elements of type {} are not converted", self.dtype());
            return Err(Failure::new(CODE_NOT_CARRIED, what)
                .of_tensor(Some(self.name()))
                .in_file(self.label));
        };
        let shape = self.shape().iter().map(|&len| len as u64).collect();
        Ok(SourceTensor { name: self.name().to_owned(), dtype, shape })
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

    /// As [`model_file::Tensor::check_type`].
    pub(crate) fn check_type(&self) -> Result<(), Failure> {
        self.tensor.check_type().map_err(|error| self.failure(error))
    }

    /// As [`model_file::Tensor::read`].
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Failure> {
        self.tensor.read(offset, buf).map_err(|error| self.failure(error))
    }

    /// Makes another tensor of it, read by several threads if they can read it at once.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read), of the transcoder, and of `write`.
    pub(crate) fn transcode(
        &self,
        transcoder: &Transcoder<'_>,
        write: impl FnMut(Piece<'_>) -> Result<(), Failure>,
    ) -> Result<Option<ErrorReport>, Failure> {
        match self.shared() {
            Some(read) => transcoder.run_shared(read, write),
            None => transcoder.run(|offset, buf| self.read(offset, buf), write),
        }
    }

    /// [`read`](Self::read) for several threads, if they can read it at once.
    pub(crate) fn shared(&self) -> Option<impl Fn(u64, &mut [u8]) -> Result<(), Failure> + Sync + use<'m>> {
        let (tensor, name, label) = (self.tensor.shared()?, self.tensor.name(), self.label);
        Some(move |offset, buf: &mut [u8]| {
            let read = tensor.read(offset, buf);
            read.map_err(|error| failure_of(error, "read the tensor", label).of_tensor(Some(name)))
        })
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
