//! A linear regression as a safetensors file.
//!
//! | tensor | dtype | shape | meaning |
//! |---|---|---|---|
//! | `coefficients` | F32 | `[n]`, `n >= 1` | one coefficient for each feature |
//! | `intercept` | F32 | `[1]` | the constant term |

use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::path::Path;

use st_core::{Dtype, Layout, SafeTensors, TensorSpec, TensorView, WriteOptions};

use crate::error::{Error, ErrorKind, Operation, Parameter};
use crate::linear_regression::LinearRegression;
use crate::vector::Vector;

const COEFFICIENTS: &str = "coefficients";
const INTERCEPT: &str = "intercept";

/// Largest file [`LinearRegression::load_safetensors`] reads: 268 million coefficients.
#[cfg(feature = "std")]
const MAX_FILE_LEN: u64 = 1 << 30;

impl LinearRegression {
    /// The model as the bytes of a safetensors file: tensors `coefficients` `[n]` and `intercept` `[1]`, both F32. Equal
    /// models give equal bytes.
    ///
    /// ```
    /// use apr_models::{LinearRegression, Vector};
    ///
    /// let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0, -1.0]), 0.5)?;
    /// let file = model.to_safetensors()?;
    /// assert!(file.ends_with(&0.5_f32.to_le_bytes()));
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`].
    pub fn to_safetensors(&self) -> Result<Vec<u8>, Error> {
        if !self.is_fitted() {
            return Err(ErrorKind::NotFitted { operation: Operation::Save }.into());
        }
        let coefficients: Vec<u8> = self.coefficients.iter().flat_map(f32::to_le_bytes).collect();
        let shape = [self.coefficients.len()];
        let tensors = [
            TensorSpec { name: COEFFICIENTS, dtype: Dtype::F32, shape: &shape },
            TensorSpec { name: INTERCEPT, dtype: Dtype::F32, shape: &[1] },
        ];
        let layout = Layout::new(tensors, &WriteOptions::default())?;
        Ok(layout.to_vec(&[&coefficients, &self.intercept.to_le_bytes()])?)
    }

    /// Reads a model from the bytes of a safetensors file. Metadata is ignored.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if the bytes are not a sound safetensors file (strictly); [`ErrorKind::MissingTensor`],
    /// [`ErrorKind::UnexpectedTensor`], [`ErrorKind::WrongDtype`], [`ErrorKind::WrongRank`],
    /// [`ErrorKind::InterceptLength`], [`ErrorKind::NoCoefficients`] if it holds something else than a linear
    /// regression; [`ErrorKind::WeightNotFinite`].
    pub fn from_safetensors(file: &[u8]) -> Result<Self, Error> {
        let file = SafeTensors::from_bytes(file)?;
        // A model with more parts computes something else: half of it would predict without complaint, and wrongly.
        if let Some((name, _)) = file.iter().find(|(name, _)| ![COEFFICIENTS, INTERCEPT].contains(name)) {
            return Err(Error::from(ErrorKind::UnexpectedTensor).of_tensor(name));
        }
        let coefficients: Vector = values(&vector(&file, COEFFICIENTS)?)?.collect();
        let intercept = vector(&file, INTERCEPT)?;
        let mut intercepts = values(&intercept)?;
        let (Some(intercept), None) = (intercepts.next(), intercepts.next()) else {
            let found = intercept.element_count();
            return Err(Error::from(ErrorKind::InterceptLength { found }).of_tensor(INTERCEPT));
        };
        Self::from_parts(coefficients, intercept).map_err(|error| {
            let intercept_alone =
                matches!(error.kind(), ErrorKind::WeightNotFinite { parameter: Parameter::Intercept });
            error.of_tensor(if intercept_alone { INTERCEPT } else { COEFFICIENTS })
        })
    }

    /// Saves the model, replacing the file at `path` if there is one. The file is complete or, on any error, as it was
    /// before; see [`to_safetensors`](Self::to_safetensors) for its content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::File`].
    #[cfg(feature = "std")]
    pub fn save_safetensors(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let file = self.to_safetensors()?;
        Ok(durable_file::write(path.as_ref(), &file)?)
    }

    /// Loads a model from a regular file of up to 1 GiB; see [`from_safetensors`](Self::from_safetensors) for larger
    /// ones.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] if the file cannot be read, and all of [`from_safetensors`](Self::from_safetensors).
    #[cfg(feature = "std")]
    pub fn load_safetensors(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = durable_file::read(path.as_ref(), MAX_FILE_LEN)?;
        Self::from_safetensors(&file)
    }
}

/// The tensor of that name, proven to hold F32 in one dimension.
fn vector<'v>(file: &'v SafeTensors<'_>, name: &'static str) -> Result<TensorView<'v>, Error> {
    let Ok(tensor) = file.tensor(name) else {
        return Err(Error::from(ErrorKind::MissingTensor).of_tensor(name));
    };
    if tensor.dtype() != Dtype::F32 {
        return Err(Error::from(ErrorKind::WrongDtype { found: tensor.dtype() }).of_tensor(name));
    }
    if tensor.shape().len() != 1 {
        return Err(Error::from(ErrorKind::WrongRank { found: tensor.shape().len() }).of_tensor(name));
    }
    Ok(tensor)
}

fn values<'v>(tensor: &TensorView<'v>) -> Result<impl Iterator<Item = f32> + use<'v>, Error> {
    Ok(tensor.elements::<f32>()?)
}
