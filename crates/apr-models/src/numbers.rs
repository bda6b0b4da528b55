//! A plain list of values as a model.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::Error;
use crate::tensors::Tensors;

/// A list of `f32`, as stored under a model type without a layout in the writing implementation.
///
/// ```
/// use apr_container::{PayloadLayout, ModelType, decode_payload_from_slice, encode_payload_to_vec};
/// use apr_models::Numbers;
///
/// let numbers = Numbers::from(vec![0.5, -1.0]);
/// let payload = encode_payload_to_vec(&numbers, PayloadLayout::V0_72)?;
/// assert_eq!(payload.len(), 8 + 2 * 4);
/// assert_eq!(decode_payload_from_slice::<Numbers>(&payload, PayloadLayout::V0_72, ModelType::Pca)?, numbers);
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    values: Vec<f32>,
}

impl Numbers {
    /// The numbers.
    #[must_use]
    pub const fn as_slice(&self) -> &[f32] {
        self.values.as_slice()
    }

    /// Returns the values.
    #[must_use]
    pub fn into_vec(self) -> Vec<f32> {
        self.values
    }

    /// Reads the list from a tensor `values` of one dimension.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`](crate::ErrorKind::OtherModel),
    /// [`ErrorKind::UnexpectedTensor`](crate::ErrorKind::UnexpectedTensor), and the errors of [`Tensors`] for
    /// missing or malformed tensors.
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[VALUES])?;
        Ok(Self { values: tensors.vector(VALUES)? })
    }
}

const VALUES: &str = "values";

impl From<Vec<f32>> for Numbers {
    fn from(values: Vec<f32>) -> Self {
        Self { values }
    }
}

impl Numbers {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_f32(VALUES, &[self.values.len()], &self.values)
    }
}

stored_model! {
    Numbers "Numbers" [Custom or any]
    n_features: |_| None;
}

impl Numbers {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.f32s(&self.values)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        input.f32s().map(Self::from)
    }
}
