//! A model with the names that its file gives to features and classes.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use apr_container::Metadata;
#[cfg(feature = "tensor-models")]
use apr_models::Tensors;
use apr_models::{AnyModel, CLASSES_KEY, FEATURES_KEY, Label, MODEL_KEY, Model as _};
use read_at::ReadAt;

#[cfg(feature = "tensor-models")]
use crate::entries;
#[cfg(feature = "tensor-models")]
use crate::error::{Error, ErrorKind};
use crate::model_file::{Contents, ModelFile};
#[cfg(feature = "tensor-models")]
use crate::tensor::Tensor;

/// Most bytes of tensors that are taken for a model if the metadata name none.
#[cfg(feature = "tensor-models")]
const MAX_UNNAMED: u64 = 1 << 30;

/// A loaded model with the metadata of its file.
#[derive(Clone, Debug)]
pub struct NamedModel {
    /// The model.
    pub model: AnyModel,
    /// The names of the features in their order.
    pub features: Option<Vec<String>>,
    /// The names of the classes by their indices.
    pub classes: Option<Vec<String>>,
    /// The metadata of the file; of formats other than `.apr` version 1, what its [`entries`] become in that format.
    pub metadata: Metadata,
}

impl NamedModel {
    pub(crate) fn new(model: AnyModel, metadata: Metadata) -> Self {
        let features = feature_names(&metadata);
        let classes = class_names(&metadata);
        Self { model, features, classes, metadata }
    }

    /// The label of a predicted class: its name, if the label is an integer that has one.
    #[must_use]
    pub fn label(&self, class: usize) -> Option<Label<'_>> {
        let label = self.model.label(class)?;
        let named = match label {
            Label::Integer(number) => self.classes.as_ref().zip(usize::try_from(number).ok()),
            _ => None,
        };
        let name = named.and_then(|(classes, number)| classes.get(number));
        Some(name.map_or(label, |name| Label::Text(name)))
    }

    /// Number of features: of their names, otherwise of the model.
    #[must_use]
    pub fn n_features(&self) -> Option<usize> {
        self.features.as_ref().map(Vec::len).or(self.model.n_features())
    }
}

/// The names of the features in their order, by the metadata of an `.apr` file of version 1.
#[must_use]
pub fn feature_names(metadata: &Metadata) -> Option<Vec<String>> {
    texts(metadata, FEATURES_KEY)
}

/// The names of the classes by their indices, by the metadata of an `.apr` file of version 1.
#[must_use]
pub fn class_names(metadata: &Metadata) -> Option<Vec<String>> {
    texts(metadata, CLASSES_KEY)
}

/// An array of strings in the custom metadata.
fn texts(metadata: &Metadata, key: &str) -> Option<Vec<String>> {
    let values = metadata.custom.get(key)?.as_array()?;
    values.iter().map(|value| Some(value.as_str()?.to_owned())).collect()
}

impl<R: ReadAt> ModelFile<R> {
    /// The name of the model that the metadata declare, without decoding a payload.
    #[must_use]
    pub fn declared_model(&self) -> Option<String> {
        match self.contents() {
            Contents::SafeTensors(files) => {
                let headers = files.headers().ok()?;
                headers.into_iter().find_map(|header| header.metadata()?.get(MODEL_KEY)).map(Into::into)
            }
            Contents::AprV1(file) => file.info().model_name().map(Into::into),
            Contents::AprV2(file) => {
                let name = file.index().metadata().other.get(MODEL_KEY)?.as_str()?;
                Some(name.into_owned())
            }
            #[cfg(feature = "gguf")]
            Contents::Gguf(file) => file.header().ok()?.get(MODEL_KEY)?.as_str().map(Into::into),
            #[cfg(feature = "sealed")]
            Contents::Sealed(_) => None,
        }
    }

    /// Whether the tensors are those of a model that this library predicts with, by the metadata; of `.apr` version 1, whether the
    /// payload was decoded and its model was fitted.
    #[must_use]
    #[cfg(feature = "tensor-models")]
    pub fn declares_known_model(&self) -> bool {
        match self.contents() {
            Contents::AprV1(file) => file.is_fitted(),
            _ => self.declared_model().is_some_and(|name| AnyModel::NAMES.contains(&&*name)),
        }
    }

    /// Loads the model, with the names that the file gives to features and classes. Quantized tensors and 16-bit floats of a model
    /// that the metadata name are decoded to `F32`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoModel`], [`ErrorKind::ModelDtype`], [`ErrorKind::ForeignPayload`], [`ErrorKind::Model`] if the tensors are of no
    /// known model, and those of [`entries`](Self::entries) and of reading.
    #[cfg(feature = "tensor-models")]
    pub fn model(&self) -> Result<NamedModel, Error> {
        if let Contents::AprV1(file) = self.contents() {
            let model = self.decoded(file)?.clone();
            return Ok(NamedModel::new(model, file.info().metadata.clone()));
        }
        let tensors = self.tensors()?;
        let entries = self.entries()?.entries;
        let name = entries.get(MODEL_KEY);
        let total: u64 = tensors.iter().map(Tensor::byte_len).fold(0, u64::saturating_add);
        if name.is_none() && total > MAX_UNNAMED {
            return Err(ErrorKind::NoModel.into());
        }
        let tensors = tensors.into_iter().map(|tensor| {
            #[cfg(feature = "quantize")]
            let tensor = if name.is_some() { tensor.widened()? } else { tensor };
            Ok((tensor.name(), tensor))
        });
        let tensors = tensors.collect::<Result<Vec<_>, Error>>()?;
        let model = AnyModel::from_tensors(&gather(tensors, name.map(String::as_str))?)?;
        let (metadata, _) = entries::to_apr_v1(&entries, |key| key == MODEL_KEY)?;
        Ok(NamedModel::new(model, metadata))
    }
}

/// Reads tensors, for the model of this name.
///
/// # Errors
///
/// [`ErrorKind::ModelDtype`], and those of reading.
#[cfg(feature = "tensor-models")]
pub fn gather<'n>(
    tensors: impl IntoIterator<Item = (&'n str, Tensor<'n>)>,
    model: Option<&str>,
) -> Result<Tensors, Error> {
    let mut all = Tensors::new();
    for (name, tensor) in tensors {
        let dtype = tensor.dtype();
        let plain = dtype
            .element()
            .ok_or_else(|| Error::from(ErrorKind::ModelDtype { found: dtype }).of_tensor(tensor.name()))?;
        all.push(name, plain, tensor.shape(), tensor.to_vec()?)?;
    }
    if let Some(model) = model {
        all.set_metadata(MODEL_KEY, model);
    }
    Ok(all)
}
