//! A model that can be asked, with what its file says about features and classes.

use alloc::rc::Rc;
use std::path::Path;

use apr_container::{Metadata, Value};
pub(crate) use apr_models::FEATURES_KEY as FEATURES;
use apr_models::{AnyModel, CLASSES_KEY, Label, MODEL_KEY, Tensors};

use crate::error::{CODE_NO_PREDICTION, Failure};
use crate::input::{Contents, Model, Rules, Source, Tensor};
use crate::metadata;
use crate::secrets::Keys;

/// Key of the custom metadata with the name of what is predicted.
pub(crate) const TARGET: &str = "apr.target";

/// Most bytes of tensors that are taken for a model if nothing says that they are one.
const MAX_UNNAMED: u64 = 1 << 30;

/// A loaded model.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) model: AnyModel,
    /// The names of the features in their order.
    pub(crate) features: Option<Vec<String>>,
    /// The names of the classes, by their numbers.
    pub(crate) classes: Option<Vec<String>>,
    /// Name of the model, and when its file was made, in seconds since 1970.
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only the server asks for it"))]
    pub(crate) name: Option<String>,
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only the server asks for it"))]
    pub(crate) created_at: Option<u64>,
    pub(crate) path: std::path::PathBuf,
}

impl Known {
    /// Loads the model in a file of any format, also of one inside a sealed file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, opened with these keys, or is not sound, or holds no model that is known here.
    pub(crate) fn load(path: &Path, rules: &Rules, keys: &Rc<Keys>) -> Result<Self, Failure> {
        Self::of(&Model::of_content(Source::open(path)?.with_keys(keys), rules)?)
    }

    /// Loads the model in an open file of any format.
    ///
    /// # Errors
    ///
    /// If it holds no model that is known here, or a tensor cannot be read.
    pub(crate) fn of(opened: &Model) -> Result<Self, Failure> {
        let path = opened.label();
        if let Contents::AprV1(file) = opened.contents()
            && let Some(model) = file.model()
        {
            return Ok(Self::new(model.clone(), &file.info().metadata, path));
        }
        let tensors = opened.tensors()?;
        let (entries, _) = metadata::entries(opened)?;
        let total: u64 = tensors.iter().map(Tensor::byte_len).sum();
        if total > MAX_UNNAMED && !entries.contains_key(MODEL_KEY) {
            let failure = Failure::new(CODE_NO_PREDICTION, "these tensors say of no model that they are one");
            return Err(failure
                .in_file(path)
                .help("metadata with `apr.model` name it: see `apr convert --set`"));
        }
        // Whatever says which model it is was quantized deliberately.
        let is_named = entries.contains_key(MODEL_KEY);
        let named = tensors.iter().map(|tensor| match is_named {
            true => Ok((tensor.name(), tensor.widened()?)),
            false => Ok((tensor.name(), *tensor)),
        });
        let model = named
            .collect::<Result<Vec<_>, Failure>>()
            .and_then(|named| gathered(named.into_iter(), entries.get(MODEL_KEY)))
            .and_then(|gathered| Ok(AnyModel::from_tensors(&gathered)?))
            .map_err(|failure| failure.in_file(path))?;
        let (metadata, _) = metadata::to_model(&entries, |key| key == MODEL_KEY)?;
        Ok(Self::new(model, &metadata, path))
    }

    fn new(model: AnyModel, metadata: &Metadata, path: &Path) -> Self {
        let texts = |key: &str| {
            let values = metadata.custom.get(key)?.as_array()?;
            values.iter().map(|value| Some(value.as_str()?.to_owned())).collect::<Option<Vec<String>>>()
        };
        Self {
            features: texts(FEATURES),
            classes: texts(CLASSES_KEY),
            model,
            name: metadata.model_name.clone(),
            created_at: metadata.created_at_unix(),
            path: path.to_owned(),
        }
    }

    /// The label of a predicted class: its name, if the class is a number that has one.
    pub(crate) fn label(&self, class: usize) -> Option<Label<'_>> {
        let label = self.model.label(class)?;
        let named = match label {
            Label::Integer(number) => self.classes.as_ref().zip(usize::try_from(number).ok()),
            _ => None,
        };
        let name = named.and_then(|(classes, number)| classes.get(number));
        Some(name.map_or(label, |name| Label::Text(name)))
    }
}

/// Whether a file says which model of those known here it holds.
///
/// # Errors
///
/// If a shard cannot be opened.
pub(crate) fn is_named(model: &Model) -> Result<bool, Failure> {
    let is_known = |name: &str| AnyModel::NAMES.contains(&name);
    match model.contents() {
        Contents::AprV1(file) => Ok(file.is_fitted()),
        // Of all its keys the one: vocabularies are long.
        Contents::Gguf(file) => {
            Ok(file.header()?.get(MODEL_KEY).is_some_and(|value| value.as_str().is_some_and(is_known)))
        }
        _ => Ok(metadata::entries(model)?.0.get(MODEL_KEY).is_some_and(|name| is_known(name))),
    }
}

/// Tensors with their bytes, and the name of the model they are.
///
/// # Errors
///
/// If no model has such a tensor, or one cannot be read.
pub(crate) fn gathered<'n, 'm: 'n>(
    tensors: impl Iterator<Item = (&'n str, Tensor<'m>)>,
    model: Option<&String>,
) -> Result<Tensors, Failure> {
    let mut all = Tensors::new();
    for (name, tensor) in tensors {
        let dtype = tensor.dtype().element().ok_or_else(|| {
            let what = format!("no model has tensors of type {}", tensor.dtype());
            Failure::new(CODE_NO_PREDICTION, what).of_tensor(Some(tensor.name()))
        })?;
        let mut data = Vec::new();
        tensor.stream(&mut Vec::new(), |chunk| {
            data.extend_from_slice(chunk);
            Ok::<(), Failure>(())
        })?;
        all.push(name, dtype, tensor.shape(), data)?;
    }
    if let Some(model) = model {
        all.set_metadata(MODEL_KEY, model);
    }
    Ok(all)
}

/// A list of names as metadata store it.
pub(crate) fn names(names: &[String]) -> Value {
    Value::Array(names.iter().map(|name| Value::from(name.as_str())).collect())
}
