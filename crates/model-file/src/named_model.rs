//! A model with the names that its file gives to features and classes.

#[cfg(feature = "tensor-models")]
use alloc::borrow::Cow;
use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use apr_container::{Metadata, Value};
use apr_models::{AnyModel, CLASSES_KEY, FEATURES_KEY, Label, MODEL_KEY, Model as _, TARGET_KEY};
#[cfg(feature = "categories")]
use apr_models::{CATEGORIES_KEY, UNKNOWN_CATEGORY_KEY};
#[cfg(feature = "tensor-models")]
use apr_models::{TRANSPOSED_KEY, Tensors};
use read_at::ReadAt;

#[cfg(feature = "categories")]
use crate::categories::{Categories, UnknownCategory};
#[cfg(feature = "tensor-models")]
use crate::entries::OF_APR_V1;
use crate::error::{Error, ErrorKind};
#[cfg(feature = "tensor-models")]
use crate::json;
use crate::model_file::{Contents, ModelFile};
#[cfg(feature = "tensor-models")]
use crate::tensor::Tensor;

/// Most bytes of tensors that are taken for a model if the metadata name none.
#[cfg(feature = "tensor-models")]
const MAX_UNNAMED: u64 = 1 << 30;

/// A loaded model with the names in the metadata of its file.
#[derive(Clone, Debug)]
pub struct NamedModel {
    /// The model, shared with the open file if that has decoded it.
    pub model: Arc<AnyModel>,
    /// The names of the features in their order.
    pub features: Option<Vec<String>>,
    /// The names of the classes by their indices.
    pub classes: Option<Vec<String>>,
    /// The name of what the model predicts.
    pub target: Option<String>,
    /// The categories of the features, if some have categories instead of numbers.
    #[cfg(feature = "categories")]
    pub categories: Option<Categories>,
}

impl NamedModel {
    /// A model of an `.apr` file of version 1.
    pub(crate) fn of_apr_v1(model: Arc<AnyModel>, metadata: &Metadata) -> Self {
        let texts_of = |values: &Value| {
            let mut texts = Vec::new();
            for value in values.as_array()? {
                texts.push(value.as_str()?.to_owned());
            }
            Some(texts)
        };
        let texts = |key| texts_of(metadata.custom.get(key)?);
        Self {
            model,
            features: texts(FEATURES_KEY),
            classes: texts(CLASSES_KEY),
            target: metadata.custom.get(TARGET_KEY).and_then(Value::as_str).map(Into::into),
            #[cfg(feature = "categories")]
            categories: metadata.custom.get(CATEGORIES_KEY).and_then(|categories| {
                let of_features = categories.as_array()?.iter().map(texts_of).collect::<Option<_>>()?;
                let unknown = metadata.custom.get(UNKNOWN_CATEGORY_KEY).and_then(Value::as_str);
                Some(Categories { of_features, unknown: UnknownCategory::of(unknown) })
            }),
        }
    }

    /// The label of a predicted class: its name, if the label is an integer that has one.
    #[must_use]
    pub fn label(&self, class: usize) -> Option<Label<'_>> {
        self.model.named_label(class, self.classes.as_deref())
    }

    /// Number of features: of their names, otherwise of the model.
    #[must_use]
    pub fn n_features(&self) -> Option<usize> {
        self.features.as_ref().map(Vec::len).or(self.model.n_features())
    }
}

impl<R: ReadAt> ModelFile<R> {
    /// The name of the model that the metadata declare, without decoding a payload.
    #[must_use]
    pub fn declared_model(&self) -> Option<String> {
        match self.contents() {
            Contents::AprV1(file) => file.info().model_name().map(Into::into),
            _ => self.text(MODEL_KEY),
        }
    }

    /// The string of this key in the metadata of a format other than `.apr` version 1.
    fn text(&self, key: &str) -> Option<String> {
        match self.contents() {
            Contents::SafeTensors(files) => {
                for header in files.headers().ok()? {
                    if let Some(value) = header.metadata().and_then(|metadata| metadata.get(key)) {
                        return Some(value.into());
                    }
                }
                None
            }
            Contents::AprV1(_) => None,
            Contents::AprV2(file) => Some(file.index().metadata().other.get(key)?.as_str()?.into_owned()),
            #[cfg(feature = "gguf")]
            Contents::Gguf(file) => file.header().ok()?.get(key)?.as_str().map(Into::into),
            // No other program names our models.
            #[cfg(feature = "foreign")]
            Contents::Foreign(_) => None,
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
    /// known model, and those of reading. Without the feature `tensor-models`, [`ErrorKind::ForeignFormat`] of files of tensors.
    pub fn model(&self) -> Result<NamedModel, Error> {
        match self.contents() {
            Contents::AprV1(file) => {
                Ok(NamedModel::of_apr_v1(Arc::clone(self.decoded(file)?), &file.info().metadata))
            }
            #[cfg(feature = "foreign")]
            Contents::Foreign(_) => Err(ErrorKind::NoModel.into()),
            #[cfg(feature = "tensor-models")]
            _ => self.tensor_model(),
            #[cfg(not(feature = "tensor-models"))]
            _ => Err(ErrorKind::ForeignFormat { found: crate::FileKind::Model(self.format()) }.into()),
        }
    }
}

#[cfg(feature = "tensor-models")]
impl<R: ReadAt> ModelFile<R> {
    fn tensor_model(&self) -> Result<NamedModel, Error> {
        let tensors = self.tensors()?;
        let name = self.declared_model();
        let total: u64 = tensors.iter().map(Tensor::byte_len).fold(0, u64::saturating_add);
        if name.is_none() && total > MAX_UNNAMED {
            return Err(ErrorKind::NoModel.into());
        }
        let mut read = Tensors::new();
        for tensor in tensors {
            // Blocks of a model that names none are those of a language model.
            if name.is_none() && tensor.dtype().element().is_none() {
                return Err(ErrorKind::NoModel.into());
            }
            #[cfg(feature = "quantize")]
            let tensor = if name.is_some() { tensor.widened()? } else { tensor };
            push(&mut read, tensor.name(), tensor)?;
        }
        if let Some(name) = &name {
            read.set_metadata(MODEL_KEY, name);
            if let Some(names) = self.text(TRANSPOSED_KEY) {
                read.set_metadata(TRANSPOSED_KEY, &names);
                read.orient()?;
            }
        }
        let model = AnyModel::from_tensors(&read).map_err(|error| match error.code() {
            // No name promised a model.
            "am-unknown-model" if name.is_none() => Error::from(ErrorKind::NoModel),
            _ => error.into(),
        })?;
        let converted = self.text(OF_APR_V1);
        let names = |key| strings(custom(converted.as_deref()?, key)?);
        Ok(NamedModel {
            model: Arc::new(model),
            features: names(FEATURES_KEY),
            classes: names(CLASSES_KEY),
            target: self.text(TARGET_KEY),
            #[cfg(feature = "categories")]
            categories: converted.as_deref().and_then(|metadata| {
                let lists = json::items(custom(metadata, CATEGORIES_KEY)?).ok()?;
                let of_features = lists.into_iter().map(strings).collect::<Option<_>>()?;
                let unknown = self.text(UNKNOWN_CATEGORY_KEY);
                Some(Categories { of_features, unknown: UnknownCategory::of(unknown.as_deref()) })
            }),
        })
    }
}

/// The value of a custom key of `.apr` version 1 metadata, which a converted file holds as JSON.
#[cfg(feature = "tensor-models")]
fn custom<'m>(metadata: &'m str, key: &str) -> Option<&'m str> {
    let member = |object, wanted| {
        let members = json::members(object).ok()?;
        members.into_iter().rfind(|(key, _)| key == wanted).map(|(_, value)| value)
    };
    member(member(metadata, "custom")?, key)
}

/// The strings of an array.
#[cfg(feature = "tensor-models")]
fn strings(array: &str) -> Option<Vec<String>> {
    let names = json::items(array).ok()?;
    names.into_iter().map(|name| json_scan::unescape(name).map(Cow::into_owned)).collect()
}

/// Reads tensors, for the model of this name, of which those of the list are stored transposed ([`TRANSPOSED_KEY`]).
///
/// # Errors
///
/// [`ErrorKind::ModelDtype`], and those of reading.
#[cfg(feature = "tensor-models")]
pub fn gather<'n>(
    tensors: impl IntoIterator<Item = (&'n str, Tensor<'n>)>,
    model: Option<&str>,
    transposed: Option<&str>,
) -> Result<Tensors, Error> {
    let mut all = Tensors::new();
    for (name, tensor) in tensors {
        push(&mut all, name, tensor)?;
    }
    if let Some(model) = model {
        all.set_metadata(MODEL_KEY, model);
    }
    if let Some(names) = transposed {
        all.set_metadata(TRANSPOSED_KEY, names);
        all.orient()?;
    }
    Ok(all)
}

/// Reads one tensor.
#[cfg(feature = "tensor-models")]
fn push(all: &mut Tensors, name: &str, tensor: Tensor<'_>) -> Result<(), Error> {
    let dtype = tensor.dtype();
    let plain = dtype
        .element()
        .ok_or_else(|| Error::from(ErrorKind::ModelDtype { found: dtype }).of_tensor(tensor.name()))?;
    Ok(all.push(name, plain, tensor.shape(), tensor.to_vec()?)?)
}
