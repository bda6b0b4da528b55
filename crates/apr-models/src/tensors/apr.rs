//! Tensors of `.apr` files of version 2.

use alloc::borrow::ToOwned as _;
use alloc::vec::Vec;

use apr_container::v2;
use st_core::Dtype;

use super::{MODEL_KEY, TRANSPOSED_KEY, Tensors};
use crate::checks;
use crate::error::{Error, ErrorKind};

impl Tensors {
    /// Reads an `.apr` file of version 2, strictly. Floats of 16 bits and blocks become F32: models
    /// compute with nothing else.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`]: the file is damaged or invalid, is compressed as a whole, or has tensors of a type whose
    /// numbers are not known here; `Q4_K` and `Q6_K` are with the feature `quantize`.
    pub fn from_apr2(file: &[u8]) -> Result<Self, Error> {
        let container = v2::Container::from_bytes(file)?;
        let mut tensors = Self::new();
        container.tensors()?.try_for_each(|view| tensors.push_stored(&view))?;
        for key in [MODEL_KEY, TRANSPOSED_KEY] {
            if let Some(text) = container.metadata().other.get(key).and_then(v2::Json::as_str) {
                tensors.set_metadata(key, &text);
            }
        }
        tensors.orient()?;
        Ok(tensors)
    }

    /// Whether a tensor of this type and shape is a matrix of weights: two dimensions, the first of them more than 1, of
    /// floats of at most 32 bits. With such tensors in fewer bits a model is nearly the same; with any other it is a
    /// different one, or none.
    #[must_use]
    pub const fn is_weight_matrix(dtype: Dtype, shape: &[usize]) -> bool {
        let is_matrix = matches!(*shape, [n_rows, n_cols] if n_rows > 1 && n_cols > 0);
        is_matrix && matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::Bf16)
    }

    /// Adds a tensor as it is stored.
    pub(crate) fn push_stored(&mut self, view: &v2::TensorView<'_>) -> Result<(), Error> {
        let shape = checks::all(view.shape().iter().map(|&dim| usize::try_from(dim)));
        let shape = shape.map_err(|_| {
            let problem = "more elements than this machine can address";
            Error::from(ErrorKind::PartInvalid { part: "shape", problem }).of_tensor(view.name())
        })?;
        let same = match view.dtype().known() {
            Some(dtype) if !dtype.is_quantized() && !matches!(dtype, Dtype::F16 | Dtype::Bf16) => dtype,
            _ => return self.push_f32(view.name(), &shape, &numbers(view)?),
        };
        self.push(view.name(), same, &shape, view.data().to_owned())
    }
}

/// The numbers of a tensor. Blocks of 256 are read where they end with the rows.
fn numbers(view: &v2::TensorView<'_>) -> Result<Vec<f32>, Error> {
    #[cfg(feature = "quantize")]
    {
        let dtype = view.dtype().known().filter(|dtype| matches!(dtype, Dtype::Q4_K | Dtype::Q6_K));
        let row_len = view.shape().last().copied().unwrap_or(1);
        if let Some(dtype) = dtype.filter(|dtype| row_len.is_multiple_of(dtype.block_len() as u64)) {
            // As many as the bytes are, which are in memory.
            let count = view.data().len() / dtype.block_bytes() * dtype.block_len();
            let mut values = alloc::vec![0.0; count];
            apr_quant::dequantize(dtype, view.data(), &mut values)
                .map_err(|error| Error::from(error).of_tensor(view.name()))?;
            return Ok(values);
        }
    }
    Ok(view.to_f32()?)
}
