//! An `.apr` file of version 1: a payload that becomes a model.

use apr_container::{
    Checksum, DecodePayload, Error, ErrorKind, Expect, ModelInfo, ModelType, PayloadLayout, PayloadReader,
    ReadOptions, UncheckedSignature, check_before_reading, inspect_bytes_with, inspect_with, load_with,
    open_protected, prefix_len, verify_signature,
};
use apr_models::{AnyModel, Model as _, QuantType, Tensors};
use apr_quant::Dtype;

use super::{Rules, Source, Stored, Tensor};
use crate::error::{CODE_FOREIGN_PAYLOAD, Failure};
use crate::secrets::{Keys, SignedBy};
use crate::whole_file::advised;
use tensor_dtype::TensorType;

/// Name of the one tensor that a table of quantized numbers becomes.
const TABLE: &str = "weight";

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
    pub(crate) layout: PayloadLayout,
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
        let layout = input.layout();
        let may_be_foreign = matches!(input.model_type(), ModelType::Custom | ModelType::NeuralCustom);
        let content = match AnyModel::decode_payload(input) {
            Ok(model) => Content::Model(Box::new(model)),
            // All of it has been read: the models were tried on a copy.
            Err(error) if may_be_foreign && error.code() == "am-unknown-model" => Content::Foreign,
            Err(error) => return Err(error),
        };
        Ok(Self { content, layout })
    }
}

/// Header and metadata; with [`Checksum::Compare`], everything else is read too and compared with the checksum.
///
/// # Errors
///
/// If the file cannot be read, is not sound, or is damaged.
pub(crate) fn info(source: &Source, checksum: Checksum, rules: &Rules) -> Result<ModelInfo, Failure> {
    let inspect = |rules: &Rules| inspect_with(source.path(), checksum, &rules.apr);
    inspect(rules).map_err(|error| advised(error.into(), source, rules, |compat| inspect(compat).is_ok()))
}

/// The payload, decoded; the checksum is compared on the way.
///
/// # Errors
///
/// If the file cannot be read, is not sound, is damaged, or needs a key or a permission.
pub(crate) fn payload(source: &Source, rules: &Rules) -> Result<Payload, Failure> {
    let load = |rules: &Rules| load_with::<Payload>(source.path(), Expect::AnyKnown, &rules.apr);
    load(rules).map_err(|error| advised(error.into(), source, rules, |compat| load(compat).is_ok()))
}

/// What a file holds that was opened with keys.
#[derive(Debug)]
pub(crate) struct Protected {
    pub(crate) info: ModelInfo,
    /// `None` if it is encrypted and there is nothing to decrypt it with.
    pub(crate) payload: Option<Payload>,
    /// Whose signature was verified, if one was demanded.
    pub(crate) signer: Option<SignedBy>,
    /// Whether the payload was decrypted.
    pub(crate) is_decrypted: bool,
}

/// Longest file that is read as a whole: none that the format can describe is longer.
const FILE_LEN_MAX: u64 = 1 << 34;

/// Opens a file with the keys of its source: verifies, then looks at the metadata, then decrypts, then decodes. The file is
/// read once, so that what is used is what was verified.
///
/// # Errors
///
/// If the file cannot be read, is not sound or damaged; is not signed by whom it must be; cannot be decrypted.
pub(crate) fn protected(source: &Source, rules: &Rules) -> Result<Protected, Failure> {
    let regular = durable_file::open_regular(source.path(), FILE_LEN_MAX)
        .map_err(|error| source.relabel(Failure::from(error)))?;
    let check = |rules: &Rules| {
        check_before_reading(regular.file(), regular.len(), source.keys().trusted().trust(), &rules.apr)
    };
    check(rules).map_err(|error| advised(error.into(), source, rules, |compat| check(compat).is_ok()))?;
    let file = regular.into_bytes().map_err(|error| source.relabel(Failure::from(error)))?;
    let open = |rules: &Rules| open_bytes(&file, source.keys(), &rules.apr);
    open(rules).map_err(|error| advised(error.into(), source, rules, |compat| open(compat).is_ok()))
}

fn open_bytes(file: &[u8], keys: &Keys, options: &ReadOptions) -> Result<Protected, Error> {
    let signer = verify_signature(file, keys.trusted().trust(), options)?;
    let mut options = *options;
    if signer.is_some() {
        // It was checked just now, of these bytes.
        options.unchecked_signature = UncheckedSignature::Allow;
    }
    let info = inspect_bytes_with(file, &options)?;
    let payload = if info.encrypted && !keys.can_decrypt() {
        None
    } else {
        let access = keys.decryption();
        Some(open_protected::<Payload>(file, Expect::AnyKnown, &access, &options)?.model)
    };
    let is_decrypted = info.encrypted && payload.is_some();
    Ok(Protected { info, payload, signer: signer.map(|signer| keys.signed_by(signer)), is_decrypted })
}

impl AprModel {
    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// Those of [`payload`]; if the payload is of its maker's own type.
    pub(super) fn open(source: &Source, rules: &Rules) -> Result<Self, Failure> {
        let (info, payload) = if source.keys().is_given() {
            let Protected { info, payload, .. } = protected(source, rules)?;
            let needs_key = || source.relabel(Failure::from(Error::from(ErrorKind::Encrypted)));
            (info, payload.ok_or_else(needs_key)?)
        } else {
            (info(source, Checksum::Skip, rules)?, payload(source, rules)?)
        };
        Self::new(info, payload, source)
    }

    /// The file inside a sealed one. What protects it further is opened by no key of the sealed file.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub(super) fn of(stored: &Stored, source: &Source, rules: &Rules) -> Result<Self, Failure> {
        let refused = |error: Error| source.relabel(Failure::from(error));
        let unreadable = |error: apr_sealed::Error| source.relabel(Failure::from(error));
        let mut first = vec![0; stored.len().min(32) as usize];
        stored.read_at(0, &mut first).map_err(unreadable)?;
        // Nothing is reserved for a file that is not as long as it says.
        prefix_len(&first, stored.len(), &rules.apr).map_err(refused)?;
        let file = stored.read_all().map_err(unreadable)?;
        let opened = open_bytes(&file, &Keys::default(), &rules.apr).map_err(refused)?;
        let inner = || {
            refused(ErrorKind::Encrypted.into())
                .help("the file inside the sealed one is encrypted itself: `apr open` the sealed one first")
        };
        Self::new(opened.info, opened.payload.ok_or_else(inner)?, source)
    }

    fn new(info: ModelInfo, payload: Payload, source: &Source) -> Result<Self, Failure> {
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

    pub(crate) fn layout(&self) -> PayloadLayout {
        self.payload.layout
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
            Ok(Tensor::in_memory(name, TensorType::Known(view.dtype()), view.shape(), view.data()))
        };
        tensors.names().map(tensor).collect()
    }

    /// The table of a `QuantizedBlock` as what it is: one tensor of blocks. `None` for every other model, and for a table of an
    /// unknown block type.
    pub(crate) fn table(&self) -> Option<Tensor<'_>> {
        let Some(AnyModel::QuantizedBlock(table)) = self.model() else { return None };
        let dtype = match table.quant_type() {
            // Neighbours share a byte: not what GGUF files call Q4_0.
            QuantType::Q4_0 => TensorType::Known(Dtype::AprQ4),
            QuantType::Q8_0 => TensorType::Known(Dtype::Q8_0),
            _ => return None,
        };
        Some(Tensor::in_memory(TABLE, dtype, table.shape(), table.blocks()))
    }
}
