//! `.apr` files of version 2: tensors behind an index.

use alloc::boxed::Box;

use apr_container::v2::{Footer, Index, Inflated, Json as StoredJson, Stored, Warning};
use apr_models::{MODEL_KEY, Tensors};
use read_at::{CachedPages, ReadAt as _};

use super::{Listed, Rules, list_tensor, named_model, prefix, warn, whole};
use crate::json::Json;
use crate::model::{Loaded, of_tensors};
use crate::values::apr_name;
use crate::wire::Outcome;

pub(super) fn describe(pages: &CachedPages, rules: &Rules, json: &mut Json) -> Result<(), Outcome> {
    let first = prefix(pages, 64)?;
    let index = match first.len() {
        64 => match Index::prefix_len(first, pages.total_len(), &rules.apr) {
            Ok(len) => Index::from_prefix(prefix(pages, len)?, pages.total_len(), &rules.apr),
            Err(error) => Err(error),
        },
        _ => Index::from_prefix(first, pages.total_len(), &rules.apr),
    };
    match index {
        Ok(index) => describe_index(&index, IsIn::File, json),
        Err(error) if error.code() == "ac-v2-compressed" => {
            json.raw("metadata", "{}");
            json.raw("tensors", "[]");
            json.raw("model", "null");
            json.truth("needsDecoding", true);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsIn {
    File,
    Memory,
}

fn describe_index(index: &Index, is_in: IsIn, json: &mut Json) {
    let mut list = Json::list();
    for info in index.iter() {
        let offset = (is_in == IsIn::File).then(|| info.file_range().start);
        let listed =
            Listed { name: info.name(), dtype: apr_name(info.dtype()), offset, bytes: info.byte_len() };
        list_tensor(&mut list, &listed, info.shape());
    }
    let metadata = index.metadata();
    // As in the file, `$` and all: JSON cannot carry what would need a mark.
    json.raw("plainMetadata", &metadata.to_json());
    json.raw("tensors", &list.finish());
    let name = metadata.other.get(MODEL_KEY).and_then(StoredJson::as_str);
    named_model(json, name.as_deref());
    let mut warnings = Json::list();
    for warning in index.warnings() {
        let kind = match warning {
            Warning::OtherVersion(_) => "newer-version",
            Warning::ReservedInUse => "reserved",
            Warning::NotCompressed { .. } => "not-compressed",
            Warning::Inflated { .. } => "compressed",
            Warning::Encrypted => "encrypted",
            Warning::SignatureUnchecked => "signature-unchecked",
            Warning::UnknownDtypes => "unknown-dtype",
            Warning::OverlappingTensors => "overlap",
            _ => "other",
        };
        warn(&mut warnings, kind, warning);
    }
    json.raw("warnings", &warnings.finish());
    json.truth("encrypted", index.warnings().contains(&Warning::Encrypted));
}

pub(super) fn inflate(pages: &CachedPages, rules: &Rules, json: &mut Json) -> Result<Box<Inflated>, Outcome> {
    let inflated = Inflated::from_bytes(whole(pages)?, &rules.apr)?;
    describe_index(inflated.container().index(), IsIn::Memory, json);
    Ok(Box::new(inflated))
}

/// The checksum at the end.
pub(super) fn verify(pages: &CachedPages, rules: &Rules, json: &mut Json) -> Result<(), Outcome> {
    let stored = Stored::from_bytes(whole(pages)?, &rules.apr)?;
    stored.container().tensors().map(drop)?;
    json.raw("signer", "null");
    json.truth("hasChecksum", !matches!(stored.container().footer(), Footer::Absent));
    Ok(())
}

pub(super) fn model(pages: &CachedPages) -> Result<Loaded, Outcome> {
    of_tensors(|| Ok(Tensors::from_apr2(whole(pages)?)?))
}
