//! `.apr` files of version 1: a payload that becomes a model.

use alloc::rc::Rc;
use alloc::string::String;

#[cfg(feature = "crypto")]
use apr_container::KeyHint;
use apr_container::v1::Flags;
use apr_container::{
    DecodePayload, Error, Expect, ModelInfo, ModelType, PayloadReader, UncheckedSignature, Value, Warning,
    inspect_prefix, prefix_len,
};
use apr_models::AnyModel;
#[cfg(feature = "tensors-of-models")]
use apr_models::Model as _;
use read_at::{CachedPages, ReadAt as _};

use super::{Decoded, Rules, prefix, warn, whole};
use crate::failure::Failure;
use crate::json::{self, Json};
use crate::wire::{Arguments, Outcome};

/// A model, or none if the payload is of a type that only its maker's program can decode.
struct Content(Option<AnyModel>);

impl DecodePayload for Content {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let may_be_foreign = matches!(input.model_type(), ModelType::Custom | ModelType::NeuralCustom);
        match AnyModel::decode_payload(input) {
            Ok(model) => Ok(Self(Some(model))),
            // All of it has been read: the models were tried on a copy.
            Err(error) if may_be_foreign && error.code() == "am-unknown-model" => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn describe(pages: &CachedPages, rules: &Rules, json: &mut Json) -> Result<ModelInfo, Outcome> {
    let first = prefix(pages, 32)?;
    let prefix = prefix(pages, prefix_len(first, pages.total_len(), &rules.apr)?)?;
    let info = inspect_prefix(prefix, pages.total_len(), &rules.apr)?;

    json.text("modelType", info.model_type.name().unwrap_or("unknown"));
    json.text("compression", &info.compression.to_string());
    json.number("payloadSize", info.payload_size);
    json.number("uncompressedSize", info.uncompressed_size);
    json.raw("metadata", &value_json(&info.metadata.to_value()?));
    json.raw("tensors", "[]");
    json.raw("model", "null");
    json.truth("needsDecoding", true);
    json.truth("encrypted", info.encrypted);
    json.truth("signed", info.signed);
    #[cfg(feature = "crypto")]
    json.optional(
        "lock",
        info.key_hint().filter(|_| info.encrypted).map(|hint| match hint {
            KeyHint::Recipient => "recipient",
            _ => "password",
        }),
    );
    json.truth("asksStreaming", info.flags.contains(Flags::STREAMING));
    json.truth("asksNativeAlignment", info.flags.contains(Flags::TRUENO_NATIVE));
    let mut warnings = Json::list();
    for warning in info.warnings() {
        let kind = match warning {
            Warning::UnknownModelType(_) => "unknown-model-type",
            Warning::NewerVersion(_) => "newer-version",
            Warning::ReservedInUse => "reserved",
            Warning::MetadataNotEncrypted => "metadata-not-encrypted",
            Warning::SignatureUnchecked => "signature-unchecked",
            Warning::UnknownLayout => "unknown-layout",
            Warning::Expansion { .. } => "expansion",
            _ => "other",
        };
        warn(&mut warnings, kind, &warning);
    }
    json.raw("warnings", &warnings.finish());
    Ok(info)
}

/// A value of the metadata.
fn value_json(value: &Value) -> String {
    match value {
        Value::Bool(true) => String::from("true"),
        Value::Bool(false) => String::from("false"),
        Value::Int(number) => json::exact((*number).into()),
        Value::UInt(number) => json::exact((*number).into()),
        Value::F32(number) => json::float(f64::from(*number)),
        Value::F64(number) => json::float(*number),
        Value::String(text) => json::quoted(text),
        Value::Bytes(bytes) | Value::Ext(_, bytes) => {
            let mut list = Json::list();
            bytes.iter().for_each(|&byte| list.number_item(byte.into()));
            list.finish()
        }
        Value::Array(values) => {
            let mut list = Json::list();
            values.iter().for_each(|value| list.item(&value_json(value)));
            list.finish()
        }
        Value::Map(values) => {
            let mut object = Json::object();
            for (key, value) in values {
                object.foreign_key(key);
                object.bare(&value_json(value));
            }
            object.finish()
        }
        _ => String::from("null"),
    }
}

/// The model, and who signed it if that was asked for.
#[cfg(feature = "crypto")]
fn open(file: &[u8], rules: &Rules, args: &mut Arguments<'_>, json: &mut Json) -> Result<Content, Failure> {
    let keys = crate::keys::Keys::read(args)?;
    let options = apr_container::LoadOptions { read: rules.apr, access: keys.access() };
    let model = apr_container::load_from_bytes_with::<Content>(file, Expect::AnyKnown, options)?;
    let signer = apr_container::verify_signature(file, options.access.trust(), &rules.apr)?;
    json.raw("signer", signer.and_then(|signer| keys.signer(signer)).as_deref().unwrap_or("null"));
    Ok(model)
}

#[cfg(not(feature = "crypto"))]
fn open(file: &[u8], rules: &Rules, _: &mut Arguments<'_>, _: &mut Json) -> Result<Content, Failure> {
    Ok(apr_container::load_from_bytes_with::<Content>(file, Expect::AnyKnown, &rules.apr)?)
}

/// Whether the caller only looks (a byte), then the keys.
pub(super) fn decode(
    pages: &CachedPages,
    rules: &Rules,
    args: &mut Arguments<'_>,
    json: &mut Json,
) -> Result<Decoded, Outcome> {
    let file = whole(pages)?;
    let mut rules = *rules;
    // Inspection reports that the signature is unchecked; using the model needs an explicit option.
    if args.u8()? != 0 {
        rules.apr.unchecked_signature = UncheckedSignature::Allow;
    }
    let Content(model) = open(file, &rules, args, json)?;
    let model = model.map(Rc::new);
    #[cfg(not(feature = "tensors-of-models"))]
    {
        json.truth("lacksTensors", true);
        Ok(Decoded { model })
    }
    #[cfg(feature = "tensors-of-models")]
    {
        let tensors = match model.as_ref().map(|model| model.to_tensors()) {
            Some(Ok(tensors)) => Some(tensors),
            Some(Err(error)) if error.code() != "am-not-fitted" => return Err(error.into()),
            _ => None,
        };
        Ok(Decoded { model, tensors })
    }
}

/// The checksum of the whole file; the signature, if the keys demand one.
#[cfg(feature = "crypto")]
pub(super) fn verify(
    pages: &CachedPages,
    rules: &Rules,
    args: &mut Arguments<'_>,
    json: &mut Json,
) -> Result<(), Outcome> {
    let keys = crate::keys::Keys::read(args)?;
    let file = whole(pages)?;
    let signer = apr_container::verify_signature(file, keys.trust(), &rules.apr)?;
    json.raw("signer", signer.and_then(|signer| keys.signer(signer)).as_deref().unwrap_or("null"));
    Ok(())
}

#[cfg(not(feature = "crypto"))]
pub(super) fn verify(
    pages: &CachedPages,
    rules: &Rules,
    _: &mut Arguments<'_>,
    json: &mut Json,
) -> Result<(), Outcome> {
    apr_container::v1::Container::from_bytes_with(whole(pages)?, &rules.apr)?;
    json.raw("signer", "null");
    Ok(())
}
