//! Models with weights quantized to 8 or 4 bits.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::path::Path;

use apr_container::v2;
use apr_quant::Quantizer;
use st_core::Dtype;

use crate::any_model::AnyModel;
use crate::error::{Error, ErrorKind};
use crate::model::Model;
use crate::quant_type::QuantType;
use crate::tensors::{MODEL_KEY, Tensors};

/// A model whose weight matrices are blocks of 8 or 4 bits: what [`Model::quantize`] makes, to be saved.
///
/// Its file is an `.apr` file of version 2, with the tensors that `apr quantize` gives it. [`AnyModel`] loads it:
/// the blocks become `f32` while it is read.
///
/// ```
/// use apr_models::{Activation, AnyModel, Model, NeuralSequential, QuantType};
///
/// let model = NeuralSequential::random(64, &[(32, Activation::Relu), (3, Activation::Softmax)], 1)?;
/// let mut quantized = model.quantize(QuantType::Q4_0)?;
/// quantized.metadata_mut().license = Some("MIT".into());
/// let file = quantized.to_vec()?;
/// assert!(file.len() < 4 * (64 * 32 + 32 * 3) / 3);
///
/// let loaded = AnyModel::from_bytes(&file)?;
/// assert_eq!(loaded, quantized.to_model()?);
/// assert_eq!(loaded.name(), "NeuralSequential");
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedModel {
    name: &'static str,
    quant_type: QuantType,
    tensors: Vec<Stored>,
    metadata: v2::Metadata,
}

#[derive(Clone, Debug, PartialEq)]
struct Stored {
    name: String,
    dtype: v2::AprType,
    shape: Vec<u64>,
    data: Vec<u8>,
}

impl QuantizedModel {
    /// Quantizes the weight matrices of a model: those of its tensors for which [`Tensors::is_weight_matrix`] holds. The
    /// others stay as they are.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotWritable`] for other types than `Q8_0` and `Q4_0`; [`ErrorKind::NotFitted`];
    /// [`ErrorKind::NoWeightMatrices`]; [`ErrorKind::Quant`] for weights that no block can hold, with the tensor and the
    /// element; what the model refuses if its weights in fewer bits are none.
    pub fn new<M: Model + ?Sized>(model: &M, quant_type: QuantType) -> Result<Self, Error> {
        let (block, block_type) = match quant_type {
            QuantType::Q8_0 => (Dtype::AprQ8, v2::AprType::AprQ8),
            QuantType::Q4_0 => (Dtype::AprQ4, v2::AprType::AprQ4),
            _ => return Err(ErrorKind::NotWritable { quant_type }.into()),
        };
        let (name, tensors) = (model.name(), model.to_tensors()?);
        let views = tensors.names().map(|name| tensors.view(name)).collect::<Result<Vec<_>, _>>()?;
        if !views.iter().any(|view| Tensors::is_weight_matrix(view.dtype(), view.shape())) {
            return Err(ErrorKind::NoWeightMatrices { model: name }.into());
        }
        let mut quantized = Self { name, quant_type, tensors: Vec::new(), metadata: v2::Metadata::new(name) };
        for (name, view) in tensors.names().zip(views) {
            let (dtype, data) = if Tensors::is_weight_matrix(view.dtype(), view.shape()) {
                (block_type, blocks(block, &tensors.array(name)?.1).map_err(|error| error.of_tensor(name))?)
            } else {
                (apr_type(view.dtype()).map_err(|error| error.of_tensor(name))?, view.data().to_owned())
            };
            let shape = view.shape().iter().map(|&dim| dim as u64).collect();
            quantized.tensors.push(Stored { name: name.to_owned(), dtype, shape, data });
        }
        // Refused on writing, before a reader refuses the file.
        quantized.to_model()?;
        let elements = |stored: &Stored| stored.shape.iter().product::<u64>();
        let metadata = &mut quantized.metadata;
        metadata.param_count = quantized.tensors.iter().map(elements).sum();
        metadata.total_size = quantized.tensors.iter().map(|stored| stored.data.len() as u64).sum();
        metadata.other.insert(MODEL_KEY.to_owned(), v2::Json::from(name));
        Ok(quantized)
    }

    /// The model's type here, for example `NeuralSequential`.
    #[must_use]
    pub const fn model_name(&self) -> &'static str {
        self.name
    }

    /// How its weights are held.
    #[must_use]
    pub const fn quant_type(&self) -> QuantType {
        self.quant_type
    }

    /// What the file says about the model.
    #[must_use]
    pub const fn metadata(&self) -> &v2::Metadata {
        &self.metadata
    }

    /// What the file says about the model, to be changed. Without its entry [`MODEL_KEY`], the file is told by the names of
    /// its tensors.
    pub const fn metadata_mut(&mut self) -> &mut v2::Metadata {
        &mut self.metadata
    }

    /// The tensors as they are stored, by name.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Result<v2::TensorView<'_>, Error>> {
        self.tensors
            .iter()
            .map(|stored| Ok(v2::TensorView::new(&stored.name, stored.dtype, &stored.shape, &stored.data)?))
    }

    /// The model that the file holds, its weights as `f32` again: it predicts, and shows what the fewer bits cost.
    ///
    /// # Errors
    ///
    /// None after [`new`](Self::new).
    pub fn to_model(&self) -> Result<AnyModel, Error> {
        let mut tensors = Tensors::of_model(self.name);
        self.tensors().try_for_each(|view| tensors.push_stored(&view?))?;
        AnyModel::from_tensors(&tensors)
    }

    /// The file in memory; equal models and metadata give equal bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`] for metadata of 4 GiB.
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let tensors = self.tensors().collect::<Result<Vec<_>, _>>()?;
        Ok(v2::to_vec(&tensors, &self.options())?)
    }

    /// Saves the file. An old one is replaced completely or left untouched.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`].
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let tensors = self.tensors().collect::<Result<Vec<_>, _>>()?;
        Ok(v2::save(path, &tensors, &self.options())?)
    }

    fn options(&self) -> v2::WriteOptions {
        let flags = v2::Flags::default().with(v2::Flags::QUANTIZED);
        v2::WriteOptions { flags, ..v2::WriteOptions::new(self.metadata.clone()) }
    }
}

/// Saves a model with quantized weights: [`Model::quantize`] and [`QuantizedModel::save`].
///
/// ```
/// use apr_models::{Activation, AnyModel, Matrix, NeuralSequential, QuantType, save_quantized};
///
/// # let path = std::env::temp_dir().join(format!("apr-models-quantized-{}.apr", std::process::id()));
/// let model = NeuralSequential::random(64, &[(3, Activation::Softmax)], 1)?;
/// save_quantized(&model, QuantType::Q8_0, &path)?;
///
/// let loaded = AnyModel::load(&path)?;
/// let x = Matrix::from_vec(1, 64, vec![0.5; 64])?;
/// assert!(loaded.try_predict(&x).is_ok());
/// # std::fs::remove_file(&path).expect("it was saved");
/// # Ok::<(), apr_models::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`QuantizedModel::new`] and [`QuantizedModel::save`].
#[cfg(feature = "std")]
pub fn save_quantized<M: Model + ?Sized>(
    model: &M,
    quant_type: QuantType,
    path: impl AsRef<Path>,
) -> Result<(), Error> {
    QuantizedModel::new(model, quant_type)?.save(path)
}

/// Blocks of these two types run through the whole tensor.
fn blocks(dtype: Dtype, values: &[f32]) -> Result<Vec<u8>, Error> {
    let len = usize::try_from(apr_quant::byte_len(dtype, values.len() as u64, 1)?);
    let mut blocks = vec![0; len.map_err(|_| apr_quant::Error::from(apr_quant::ErrorKind::TooLong))?];
    Quantizer::new(dtype)?.quantize(values, values.len(), &mut blocks)?;
    Ok(blocks)
}

/// The identifier of an element type in `.apr` files.
fn apr_type(dtype: Dtype) -> Result<v2::AprType, Error> {
    dtype.apr_type().ok_or_else(|| {
        let problem = "whole numbers beyond 63 bits have no type in .apr files";
        ErrorKind::PartInvalid { part: "tensor", problem }.into()
    })
}
