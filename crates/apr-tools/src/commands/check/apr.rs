//! Results for `.apr` files.

use apr_container::Checksum;
use apr_models::Model as _;

use super::{Content, Payload, Sound};
use crate::commands::inspect;
use crate::error::{CODE_INTERNAL, Exit, Failure};
use crate::input::{
    self, Contents, Model, Protected, Rules, Source, Tensor, apr_info, apr_payload, apr_protected,
};

/// Judges a file of version 1: header, metadata, checksum, and the payload as far as it can be read.
pub(super) fn model(source: &Source, rules: &Rules) -> Result<Sound, Failure> {
    if source.keys().is_given() {
        return protected(source, rules);
    }
    let info = match apr_info(source, Checksum::Compare, rules) {
        Ok(info) => info,
        // The known readers load a model without a look at its metadata.
        Err(failure) if !rules.is_strict() && failure.exit() == Exit::Invalid => {
            return without_metadata(source, rules, failure);
        }
        Err(failure) => return Err(failure),
    };
    let mut warnings: Vec<String> = info.warnings().map(|warning| warning.to_string()).collect();
    let payload = if info.encrypted { Payload::Encrypted } else { decoded(source, rules, &mut warnings)? };
    let content = Content::Model {
        model_type: info.model_type.to_string(),
        bytes: info.file_size,
        payload,
        is_decrypted: false,
        signer: None,
    };
    Ok(Sound { content, warnings })
}

/// With keys: signature first, then everything else.
fn protected(source: &Source, rules: &Rules) -> Result<Sound, Failure> {
    let Protected { info, payload, signer, is_decrypted } =
        apr_protected(source, &rules.with_unchecked_signatures())?;
    let settled = |warning: &apr_container::Warning| match warning {
        apr_container::Warning::SignatureUnchecked => signer.is_some(),
        apr_container::Warning::MetadataNotEncrypted => is_decrypted,
        _ => false,
    };
    let warnings = info.warnings().filter(|warning| !settled(warning));
    let mut warnings: Vec<String> = warnings.map(|warning| warning.to_string()).collect();
    if signer.as_ref().is_some_and(|signer| signer.name.is_none()) {
        warnings.push(inspect::ANYONE.to_owned());
    }
    let payload = payload.map_or(Payload::Encrypted, |payload| judged(payload, &mut warnings));
    let (model_type, bytes) = (info.model_type.to_string(), info.file_size);
    Ok(Sound { content: Content::Model { model_type, bytes, payload, is_decrypted, signer }, warnings })
}

fn without_metadata(source: &Source, rules: &Rules, unreadable: Failure) -> Result<Sound, Failure> {
    let mut warnings = vec![format!("the metadata cannot be read: {unreadable}")];
    let Ok(payload) = decoded(source, rules, &mut warnings) else { return Err(unreadable) };
    let bytes = source.path().metadata().map_or(0, |file| file.len());
    let model_type = match payload {
        Payload::Decoded { model, .. } => model.to_owned(),
        Payload::Foreign | Payload::Encrypted => "unknown".to_owned(),
    };
    let content = Content::Model { model_type, bytes, payload, is_decrypted: false, signer: None };
    Ok(Sound { content, warnings })
}

fn decoded(source: &Source, rules: &Rules, warnings: &mut Vec<String>) -> Result<Payload, Failure> {
    Ok(judged(apr_payload(source, &rules.with_unchecked_signatures())?, warnings))
}

fn judged(payload: input::Payload, warnings: &mut Vec<String>) -> Payload {
    match payload.model {
        None => Payload::Foreign,
        Some(model) => {
            warnings.extend(model.stored_samples().map(inspect::stored));
            Payload::Decoded { model: model.name(), layout: payload.layout.version() }
        }
    }
}

/// Judges a file of version 2: everything.
pub(super) fn tensors(source: Source, rules: &Rules) -> Result<Sound, Failure> {
    let model = Model::from_source(source, &rules.with_unchecked_signatures())?;
    let Contents::AprV2(file) = model.contents() else {
        return Err(Failure::new(CODE_INTERNAL, "a file of tensors became something else"));
    };
    let tensors = model.tensors()?;
    let footer = model.checksum()?;
    let content = Content::Tensors {
        tensors: tensors.len() as u64,
        bytes: tensors.iter().map(Tensor::byte_len).sum(),
        shards: None,
        verified: None,
        checksum: Some(inspect::footer_state(Some(footer))),
    };
    let warnings = file.warnings(Some(footer)).iter().map(ToString::to_string).collect();
    Ok(Sound { content, warnings })
}
