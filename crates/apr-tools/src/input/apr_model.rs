//! An `.apr` file of the first generation: a payload that becomes a model.

use apr_container::{
    Checksum, DecodePayload, Error, Expect, Generation, ModelInfo, ModelType, PayloadReader, inspect_with,
    load_with,
};
use apr_models::{AnyModel, Model as _, Tensors};

use super::{Rules, Source, Tensor};
use crate::error::{CODE_FOREIGN_PAYLOAD, Exit, Failure};

/// A loaded file: the model, and the tensors it becomes.
#[derive(Debug)]
pub(crate) struct AprModel {
    info: ModelInfo,
    payload: Payload,
    /// None of a model that has not been trained.
    tensors: Option<Tensors>,
}

/// A decoded payload.
#[derive(Debug)]
pub(crate) struct Payload {
    pub(crate) content: Content,
    /// The layout it has.
    pub(crate) generation: Generation,
}

/// What a payload holds.
#[derive(Debug)]
pub(crate) enum Content {
    Model(Box<AnyModel>),
    /// A type of some user's own, which only that user's program can decode.
    Foreign,
}

impl DecodePayload for Payload {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let generation = input.generation();
        let may_be_foreign = matches!(input.model_type(), ModelType::Custom | ModelType::NeuralCustom);
        let content = match AnyModel::decode_payload(input) {
            Ok(model) => Content::Model(Box::new(model)),
            // All of it has been read: the models were tried on a copy.
            Err(error) if may_be_foreign && error.code() == "am-unknown-model" => Content::Foreign,
            Err(error) => return Err(error),
        };
        Ok(Self { content, generation })
    }
}

/// Header and metadata; with [`Checksum::Compare`], everything else is read too and compared with the checksum.
///
/// # Errors
///
/// If the file cannot be read, is not sound, or is damaged.
pub(crate) fn info(source: &Source, checksum: Checksum, rules: &Rules) -> Result<ModelInfo, Failure> {
    let inspect = |rules: &Rules| inspect_with(source.path(), checksum, &rules.apr);
    inspect(rules).map_err(|error| refused(error, source, rules, |compat| inspect(compat).is_ok()))
}

/// The payload, decoded; the checksum is compared on the way.
///
/// # Errors
///
/// If the file cannot be read, is not sound, is damaged, or needs a key or a permission.
pub(crate) fn payload(source: &Source, rules: &Rules) -> Result<Payload, Failure> {
    let load = |rules: &Rules| load_with::<Payload>(source.path(), Expect::AnyKnown, &rules.apr);
    load(rules).map_err(|error| refused(error, source, rules, |compat| load(compat).is_ok()))
}

/// The failure, with what helps if other readers are less strict.
fn refused(
    error: Error,
    source: &Source,
    rules: &Rules,
    is_accepted: impl FnOnce(&Rules) -> bool,
) -> Failure {
    let failure = source.relabel(Failure::from(error));
    let compat = Rules { apr: Rules::COMPAT.apr.with_limits(rules.apr.limits), ..Rules::COMPAT };
    if rules.is_strict() && failure.exit() == Exit::Invalid && is_accepted(&compat) {
        return failure.help("other readers accept this file: if you trust it, repeat with --compat");
    }
    failure
}

impl AprModel {
    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// Those of [`payload`]; if the payload is of its maker's own type.
    pub(super) fn open(source: &Source, rules: &Rules) -> Result<Self, Failure> {
        let info = info(source, Checksum::Skip, rules)?;
        let payload = payload(source, rules)?;
        let tensors = match &payload.content {
            Content::Model(model) => match model.to_tensors() {
                Ok(tensors) => Some(tensors),
                Err(error) if error.code() == "am-not-fitted" => None,
                Err(error) => return Err(Failure::from(error).in_file(source.label())),
            },
            Content::Foreign => {
                let what = format!("the payload is of a type of its maker's own ({})", info.model_type);
                return Err(Failure::new(CODE_FOREIGN_PAYLOAD, what).in_file(source.label()));
            }
        };
        Ok(Self { info, payload, tensors })
    }

    pub(crate) fn info(&self) -> &ModelInfo {
        &self.info
    }

    pub(crate) fn generation(&self) -> Generation {
        self.payload.generation
    }

    /// The model; always there, since files without one are not opened.
    pub(crate) fn model(&self) -> Option<&AnyModel> {
        match &self.payload.content {
            Content::Model(model) => Some(model),
            Content::Foreign => None,
        }
    }

    /// The name that goes with the tensors, so that they become the same model again.
    pub(crate) fn model_entry(&self) -> Option<&str> {
        self.tensors.as_ref()?.model()
    }

    /// Whether the model has been trained.
    pub(crate) fn is_fitted(&self) -> bool {
        self.tensors.is_some()
    }

    pub(super) fn tensors(&self) -> Result<Vec<Tensor<'_>>, Failure> {
        let Some(tensors) = &self.tensors else { return Ok(Vec::new()) };
        let tensor = |name| {
            let view = tensors.view(name)?;
            Ok(Tensor::in_memory(name, view.dtype(), view.shape(), view.data()))
        };
        tensors.names().map(tensor).collect()
    }
}
