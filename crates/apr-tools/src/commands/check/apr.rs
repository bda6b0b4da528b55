//! Results for `.apr` files.

use std::path::Path;

use apr_container::{Expect, load_with};
use apr_models::Model as _;

use super::{Content, Payload, Sound};
use crate::commands::inspect;
use crate::error::{CODE_INTERNAL, Exit, Failure};
use crate::input::{Contents, Model, Rules, Source};

/// Validates a file of version 1: header, metadata, checksum, and the payload as far as it can be read. With keys, the signature is
/// verified first.
pub(super) fn model(source: Source, rules: &Rules) -> Result<Sound, Failure> {
    let path = source.path().to_owned();
    let rules = rules.with_unchecked_signatures();
    let model = match Model::undecoded(source, &rules) {
        Ok(model) => model,
        // Other readers load a model without reading its metadata.
        Err(failure) if !rules.is_strict() && failure.exit() == Exit::Invalid => {
            return without_metadata(&path, &rules, failure);
        }
        Err(failure) => return Err(failure),
    };
    if !model.source().keys().is_given() {
        model.verify_apr_v1(&rules)?;
    }
    let (file, signer) = (model.apr_v1()?, model.signed_by());
    let (info, is_decrypted) = (file.info(), file.is_decrypted());
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
    let payload = file.payload().map_or(Payload::Encrypted, |payload| judged(payload, &mut warnings));
    let (model_type, bytes) = (info.model_type.to_string(), info.file_size);
    Ok(Sound { warnings, ..Sound::new(Content::Model { model_type, bytes, payload, is_decrypted, signer }) })
}

fn without_metadata(path: &Path, rules: &Rules, unreadable: Failure) -> Result<Sound, Failure> {
    let mut warnings = vec![format!("the metadata cannot be read: {unreadable}")];
    let Ok(payload) = load_with(path, Expect::AnyKnown, rules.apr) else { return Err(unreadable) };
    let payload = judged(&payload, &mut warnings);
    let bytes = path.metadata().map_or(0, |file| file.len());
    let model_type = match payload {
        Payload::Decoded { model, .. } => model.to_owned(),
        Payload::Foreign | Payload::Encrypted => "unknown".to_owned(),
    };
    let content = Content::Model { model_type, bytes, payload, is_decrypted: false, signer: None };
    Ok(Sound { warnings, ..Sound::new(content) })
}

fn judged(payload: &model_file::Payload, warnings: &mut Vec<String>) -> Payload {
    match &payload.model {
        None => Payload::Foreign,
        Some(model) => {
            warnings.extend(model.stored_samples().map(inspect::stored));
            Payload::Decoded { model: model.name(), layout: payload.layout.version() }
        }
    }
}

/// Validates a file of version 2: everything.
pub(super) fn tensors(source: Source, rules: &Rules) -> Result<Sound, Failure> {
    let model = Model::from_source(source, &rules.with_unchecked_signatures())?;
    let Contents::AprV2(file) = model.contents() else {
        return Err(Failure::new(CODE_INTERNAL, "a file of tensors became something else"));
    };
    let tensors = model.tensors()?;
    let footer = model.checksum()?;
    let content = Content::Tensors {
        tensors: tensors.len() as u64,
        bytes: tensors.iter().map(|tensor| tensor.byte_len()).sum(),
        shards: None,
        verified: None,
        checksum: Some(inspect::footer_state(Some(footer))),
    };
    let warnings = file.warnings(Some(footer)).iter().map(ToString::to_string).collect();
    Ok(Sound { warnings, ..Sound::new(content) })
}
