//! What a file says about itself, as JSON.

#[cfg(feature = "crypto")]
use apr_container::KeyHint;
use apr_container::Value;
#[cfg(feature = "apr")]
use apr_container::v1::Flags;
#[cfg(feature = "apr")]
use apr_container::v2;
#[cfg(feature = "apr")]
use apr_models::AnyModel;
#[cfg(feature = "crypto")]
use apr_sealed::StanzaKind;
#[cfg(feature = "gguf")]
use model_file::MetadataValue;
#[cfg(feature = "apr")]
use model_file::ModelFormat;
use model_file::{Contents, Tensor};

use super::ModelFile;
use crate::failure::Failure;
use crate::json::Json;
#[cfg(feature = "apr")]
use crate::model::describe_model;
use crate::values;

/// The description of a file, as an object that is not finished.
pub(super) fn describe(file: &ModelFile) -> Result<Json, Failure> {
    let mut json = Json::object();
    let format = file.format();
    json.text("format", format.name());
    if let Some(version) = format.version() {
        json.number("version", version.into());
    }
    json.key("warnings");
    json.open("[");
    for warning in file.warnings() {
        json.open("{");
        json.text("kind", warning.kind);
        json.text("message", &warning.message);
        json.close("}");
    }
    json.close("]");
    let is_undecoded = describe_format(file, &mut json)?;
    json.key("tensors");
    json.open("[");
    if !is_undecoded {
        file.tensors()?.iter().for_each(|tensor| describe_tensor(tensor, &mut json));
    }
    json.close("]");
    #[cfg(feature = "apr")]
    if format == ModelFormat::AprV1 {
        if !is_undecoded {
            json.key("model");
            describe_model(&file.model()?, &mut json);
        }
    } else if let Some(name) = file.declared_model().filter(|name| AnyModel::NAMES.contains(&name.as_str())) {
        json.key("model");
        json.open("{");
        json.text("type", &name);
        json.close("}");
    }
    Ok(json)
}

/// Metadata, and what only this format has. `true` if there is a payload that is not decoded, or that no model is in.
fn describe_format(file: &ModelFile, json: &mut Json) -> Result<bool, Failure> {
    #[cfg_attr(not(feature = "apr"), allow(unused_mut, reason = "payloads are those of `.apr` files"))]
    let mut is_undecoded = false;
    match file.contents() {
        Contents::SafeTensors(files) => {
            for header in files.headers()? {
                json.number("dataStart", header.data_start());
                json.key("metadata");
                json.open("{");
                if let Some(metadata) = header.metadata() {
                    for (key, value) in metadata.iter() {
                        json.foreign_key(key);
                        json.string(value);
                    }
                }
                json.close("}");
            }
        }
        #[cfg(feature = "apr")]
        Contents::AprV1(file) => {
            let info = file.info();
            json.key("metadata");
            write_value(&info.metadata.to_value()?, json);
            json.text("modelType", info.model_type.name().unwrap_or("unknown"));
            json.text("compression", &info.compression.to_string());
            json.number("payloadSize", info.payload_size);
            json.number("uncompressedSize", info.uncompressed_size);
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
            is_undecoded = file.payload().is_none();
            json.truth("needsDecoding", is_undecoded);
            is_undecoded |= file.model().is_none();
        }
        #[cfg(feature = "apr")]
        Contents::AprV2(file) => {
            let index = file.index();
            json.truth("encrypted", index.warnings().contains(&v2::Warning::Encrypted));
            // As in the file: this JSON has no numbers that need a mark.
            json.raw("plainMetadata", &index.metadata().to_json());
        }
        #[cfg(feature = "gguf")]
        Contents::Gguf(gguf) => {
            json.key("metadata");
            json.open("{");
            for (key, value) in file.metadata() {
                json.foreign_key(&key);
                write_metadata(&value, json);
            }
            json.close("}");
            let header = gguf.header()?;
            json.number("version", u64::from(header.version()));
            json.truth("bigEndian", header.endian() == gguf_core::Endian::Big);
            json.number("dataStart", header.data_start());
        }
        #[cfg(feature = "crypto")]
        Contents::Sealed(header) => {
            json.key("metadata");
            json.open("{");
            for (key, value) in header.public_declared() {
                json.foreign_key(key);
                json.string(value);
            }
            json.close("}");
            json.truth("encrypted", header.is_encrypted());
            json.truth("signed", header.is_signed());
            let has = |kind: StanzaKind| header.stanzas().contains(&kind);
            let lock = match header.is_encrypted() {
                true if has(StanzaKind::Password) && !has(StanzaKind::Recipient) => Some("password"),
                true => Some("recipient"),
                false => None,
            };
            json.optional("lock", lock);
            let declared = header.signer_declared();
            let declared = declared.and_then(|key| apr_crypto::VerifyingKey::from_bytes(&key).ok());
            let declared = declared.map(|key| crate::keys::signer_json(&key, false));
            json.raw("declaredSigner", declared.as_deref().unwrap_or("null"));
        }
        #[cfg(feature = "foreign")]
        Contents::Foreign(file) => {
            // As the reader wrote it: this JSON has no numbers that need a mark.
            json.key("plainMetadata");
            json.open("{");
            for (path, value) in file.model().entries() {
                json.raw(path, value);
            }
            json.close("}");
        }
        #[allow(unreachable_patterns, reason = "kinds that other crates of a build enable in model-file")]
        _ => return Err(Failure::message()),
    }
    Ok(is_undecoded)
}

/// The description of an `.apr` file of version 2 before it is decompressed.
pub(super) const OF_COMPRESSED: &str =
    r#"{"format":"apr","version":2,"metadata":{},"tensors":[],"needsDecoding":true}"#;

fn describe_tensor(tensor: &Tensor<'_>, json: &mut Json) {
    let (unit_len, unit_bytes) = values::unit(tensor.dtype().known());
    json.open("{");
    json.text("name", tensor.name());
    json.text("dtype", tensor.dtype().name());
    json.key("shape");
    json.open("[");
    tensor.shape().iter().for_each(|&dim| json.integer(dim as u64));
    json.close("]");
    match tensor.file_offset() {
        Some(offset) => json.number("offset", offset),
        None => json.raw("offset", "null"),
    }
    json.number("bytes", tensor.byte_len());
    json.number("elements", tensor.elements());
    json.number("unitElements", unit_len);
    json.number("unitBytes", unit_bytes);
    #[cfg(feature = "foreign")]
    if let Some(name) = tensor.alias_of() {
        json.text("aliasOf", name);
    }
    json.close("}");
}

#[cfg(feature = "gguf")]
fn write_metadata(value: &MetadataValue, json: &mut Json) {
    match value {
        MetadataValue::Value(value) => write_value(value, json),
        MetadataValue::Array { element_type, len, first } => {
            json.open("{");
            json.text("type", element_type);
            json.number("length", *len);
            json.key("preview");
            json.open("[");
            first.iter().for_each(|value| write_value(value, json));
            json.close("]");
            json.close("}");
        }
        _ => json.value("null"),
    }
}

#[cfg_attr(not(feature = "apr"), allow(dead_code, reason = "for `.apr` files, models and keys"))]
fn write_value(value: &Value, json: &mut Json) {
    match value {
        Value::Bool(true) => json.value("true"),
        Value::Bool(false) => json.value("false"),
        Value::Int(number) => json.exact(number, number.unsigned_abs()),
        Value::UInt(number) => json.exact(number, *number),
        Value::F32(number) => json.float(f64::from(*number)),
        Value::F64(number) => json.float(*number),
        Value::String(text) => json.string(text),
        Value::Bytes(bytes) | Value::Ext(_, bytes) => {
            json.open("[");
            bytes.iter().for_each(|&byte| json.integer(byte.into()));
            json.close("]");
        }
        Value::Array(values) => {
            json.open("[");
            values.iter().for_each(|value| write_value(value, json));
            json.close("]");
        }
        Value::Map(values) => {
            json.open("{");
            for (key, value) in values {
                json.foreign_key(key);
                write_value(value, json);
            }
            json.close("}");
        }
        _ => json.value("null"),
    }
}

/// A value of a GGUF file with all elements of an array.
#[cfg(feature = "gguf")]
pub(super) fn write_gguf_value(value: gguf_core::Value<'_>, json: &mut Json) {
    match value.as_array() {
        Some(array) => {
            json.open("[");
            array.iter().for_each(|value| write_gguf_value(value, json));
            json.close("]");
        }
        None => write_value(&model_file::gguf_scalar(value), json),
    }
}
