//! A linear regression as a safetensors file.
//!
//! | tensor | dtype | shape | meaning |
//! |---|---|---|---|
//! | `coefficients` | F32 | `[n]`, `n >= 1` | one coefficient for each feature |
//! | `intercept` | F32 | `[1]` | the intercept |
//! | `fit_intercept` | F32 | `[1]` | 0; absent where training chose the intercept |
//!
//! Such a file has no metadata: readers exist that take its entry for a tensor.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::path::Path;

use crate::error::Error;
use crate::linear;
use crate::linear_regression::LinearRegression;
use crate::tensors::Tensors;

/// Largest file [`LinearRegression::load_safetensors`] reads: 268 million coefficients.
#[cfg(feature = "std")]
const MAX_FILE_LEN: u64 = 1 << 30;

impl LinearRegression {
    /// The model as the bytes of a safetensors file: tensors `coefficients` `[n]` and `intercept` `[1]`, both F32.
    /// Equal models give equal bytes.
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
    /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted).
    pub fn to_safetensors(&self) -> Result<Vec<u8>, Error> {
        let mut tensors = Tensors::new();
        self.plane.push_to(&mut tensors)?;
        linear::push_intercept_rule(&mut tensors, self.rule)?;
        tensors.to_safetensors()
    }

    /// Reads a model from the bytes of a safetensors file. Metadata is ignored.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`](crate::ErrorKind::Format) if the bytes are not a valid safetensors file (strictly);
    /// [`ErrorKind::MissingTensor`](crate::ErrorKind::MissingTensor),
    /// [`ErrorKind::UnexpectedTensor`](crate::ErrorKind::UnexpectedTensor),
    /// [`ErrorKind::WrongDtype`](crate::ErrorKind::WrongDtype), [`ErrorKind::WrongRank`](crate::ErrorKind::WrongRank),
    /// [`ErrorKind::InterceptLength`](crate::ErrorKind::InterceptLength),
    /// [`ErrorKind::NoCoefficients`](crate::ErrorKind::NoCoefficients) if it holds something else than a linear
    /// regression; [`ErrorKind::WeightNotFinite`](crate::ErrorKind::WeightNotFinite).
    pub fn from_safetensors(file: &[u8]) -> Result<Self, Error> {
        Self::from_tensors(&Tensors::from_safetensors(file)?)
    }

    /// Saves the model, replacing the file at `path` if there is one. The file is complete or, on any error, as it was
    /// before; see [`to_safetensors`](Self::to_safetensors) for its content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted), [`ErrorKind::File`](crate::ErrorKind::File).
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
    /// [`ErrorKind::File`](crate::ErrorKind::File) if the file cannot be read, and all of
    /// [`from_safetensors`](Self::from_safetensors).
    #[cfg(feature = "std")]
    pub fn load_safetensors(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = durable_file::read(path.as_ref(), MAX_FILE_LEN)?;
        Self::from_safetensors(&file)
    }
}
