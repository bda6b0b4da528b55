//! Metadata of every format as entries of text, the form in which models are compared and converted.
//!
//! | format | entries |
//! |---|---|
//! | safetensors | as they are |
//! | `.apr`, version 1 | what belongs to the tensors (`apr.model`); each text among the custom keys; `apr.metadata` is JSON of all the rest; `apr.quality` if there is a score |
//! | `.apr`, version 2 | each member that is text; `apr2.metadata` is JSON of all the rest |
//! | GGUF | each key that is text; `gguf.metadata` is a JSON list of all keys, with the values of the rest |
//!
//! The way back puts every part into its place again. What JSON cannot say is reported.

pub(crate) mod gguf;

use alloc::collections::BTreeMap;

use apr_container::{Metadata, ModelInfo, Value, v2};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::input::{AprV1, Contents, Model, Tensor, Totals};
use crate::terminal::value::flatten;

/// Text by key.
pub(crate) type Entries = BTreeMap<String, String>;

/// Key of the JSON that holds the metadata of version 1.
pub(crate) const OF_MODEL: &str = "apr.metadata";
/// Key of the quality score.
pub(crate) const QUALITY: &str = "apr.quality";
/// Key of the JSON that holds the metadata of version 2.
pub(crate) const OF_TENSORS: &str = "apr2.metadata";
/// The member of `.apr` version 2 metadata that names the family of models.
const MODEL_TYPE: &str = "model_type";
/// What it says where nothing is known.
const NO_MODEL_TYPE: &str = "unknown";

/// The entries of a model, and what of its metadata they cannot carry. Of shards that carry different values the first
/// one counts.
///
/// # Errors
///
/// If a shard cannot be opened.
pub(crate) fn entries(model: &Model) -> Result<(Entries, Vec<String>), Failure> {
    let of_headers = |headers: &mut dyn Iterator<Item = &st_core::Header>| {
        let mut all = Entries::new();
        for metadata in headers.filter_map(st_core::Header::metadata) {
            for (key, value) in metadata.iter() {
                all.entry(key.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        Ok((all, Vec::new()))
    };
    match model.contents() {
        Contents::SafeTensors(files) => of_headers(&mut files.headers()?.into_iter()),
        Contents::Sealed(_) => Ok((Entries::new(), Vec::new())),
        Contents::AprV1(file) => of_model(file),
        Contents::AprV2(file) => {
            let tensors = model.tensors()?;
            Ok((of_tensors(file.index().metadata(), Tensor::totals(&tensors)), Vec::new()))
        }
        Contents::Gguf(file) => Ok(gguf::of_header(&file.header()?)),
    }
}

/// The entries of a model with JSON taken apart: one for each value, by its path.
///
/// # Errors
///
/// Those of [`entries`].
pub(crate) fn expanded(model: &Model) -> Result<Entries, Failure> {
    let (mut entries, _) = entries(model)?;
    for key in [OF_MODEL, OF_TENSORS] {
        let Some(value) = entries.get(key).and_then(|text| parse(text)) else { continue };
        entries.remove(key);
        flatten("", &value, &mut |path, value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            entries.entry(path.to_owned()).or_insert(text);
        });
    }
    gguf::expand(&mut entries);
    Ok(entries)
}

fn of_model(file: &AprV1) -> Result<(Entries, Vec<String>), Failure> {
    let ModelInfo { metadata, quality, .. } = file.info();
    let mut rest = metadata.clone();
    let mut entries = Entries::new();
    entries.extend(file.model_entry().map(|name| (apr_models::MODEL_KEY.to_owned(), name.to_owned())));
    let is_own = |key: &str| key == QUALITY || key == OF_MODEL || key == OF_TENSORS;
    rest.custom.retain(|key, value| {
        let Some(text) = value.as_str().filter(|_| !is_own(key)) else { return true };
        if key != apr_models::MODEL_KEY {
            entries.entry(key.clone()).or_insert_with(|| text.to_owned());
        }
        // A key that the tensors have too stays here only if it says something else.
        key != apr_models::MODEL_KEY && entries.get(key).map(String::as_str) != Some(text)
    });
    if let Some(score) = quality {
        entries.insert(QUALITY.to_owned(), score.to_string());
    }
    let value = rest.to_value()?;
    let (text, mut lost) = (value.to_string(), Vec::new());
    let again = parse(&text).and_then(|value| Metadata::from_value(&value).ok());
    if again != Some(rest) {
        flatten("", &value, &mut |path, value| {
            lost.extend(beyond_json(value).map(|what| format!("metadata {path}: {what}")));
        });
        if lost.is_empty() {
            lost.push("parts of the metadata that JSON does not hold".to_owned());
        }
    }
    entries.insert(OF_MODEL.to_owned(), text);
    Ok((entries, lost))
}

/// What JSON does to a value, if it does not keep it.
fn beyond_json(value: &Value) -> Option<&'static str> {
    match value {
        Value::F32(number) if number.is_finite() => Some("a number of 32 bits becomes one of 64"),
        Value::F64(number) if number.is_finite() => None,
        Value::F32(_) | Value::F64(_) => Some("a number that is not finite becomes null"),
        Value::Bytes(_) => Some("bytes become a list of numbers"),
        Value::Ext(..) => Some("an extension becomes an object"),
        Value::Array(values) => values.iter().find_map(beyond_json),
        Value::Map(entries) => entries.values().find_map(beyond_json),
        _ => None,
    }
}

/// What a file of version 2 may say of all its tensors together.
fn members_of_all(totals: Totals) -> [(&'static str, u64); 2] {
    [("param_count", totals.elements), ("total_size", totals.bytes)]
}

/// Totals that are right are left out: of other tensors they would be wrong, and the way back fills them in.
fn of_tensors(metadata: &v2::Metadata, totals: Totals) -> Entries {
    let mut entries = Entries::new();
    let mut rest = BTreeMap::new();
    let json = metadata.to_json();
    for (key, raw) in members_of(&json) {
        match serde_json::from_str::<String>(raw.get()) {
            Ok(text) if key != OF_TENSORS => drop(entries.insert(key, text)),
            // Written whether there is a value or not.
            _ if members_of_all(totals)
                .iter()
                .any(|(name, total)| key == *name && raw.get() == total.to_string()) => {}
            _ if raw.get() == "null" && ["license", "data_source", "data_license"].contains(&&*key) => {}
            _ => drop(rest.insert(key, raw)),
        }
    }
    // A file of version 2 has to say something there; the way back says it again.
    let model_type = entries.get(MODEL_TYPE);
    if model_type
        .is_some_and(|text| text == NO_MODEL_TYPE || entries.get(apr_models::MODEL_KEY) == Some(text))
    {
        entries.remove(MODEL_TYPE);
    }
    if !rest.is_empty() {
        entries.insert(OF_TENSORS.to_owned(), serde_json::to_string(&rest).unwrap_or_default());
    }
    entries
}

/// The members of a file of version 2: text as it is, everything else as JSON; none that is null.
pub(crate) fn members(metadata: &v2::Metadata) -> Entries {
    let json = metadata.to_json();
    let text = |raw: &str| serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
    let present = members_of(&json).into_iter().filter(|(_, raw)| raw.get() != "null");
    present.map(|(key, raw)| (key, text(raw.get()))).collect()
}

fn members_of(json: &str) -> BTreeMap<String, &RawValue> {
    // It is JSON and an object: the library wrote it.
    serde_json::from_str(json).unwrap_or_default()
}

/// Metadata of version 1 and the quality score, from entries; those that are no part of it become custom
/// keys. Entries for which `is_of_tensors` holds are left to the tensors.
///
/// # Errors
///
/// If an entry that this program writes has been changed into something else.
pub(crate) fn to_model(
    entries: &Entries,
    is_of_tensors: impl Fn(&str) -> bool,
) -> Result<(Metadata, Option<u8>), Failure> {
    let changed = |key: &str, why: String| {
        let failure =
            Failure::new(CODE_NOT_CARRIED, format!("the entry `{key}` is not what `apr` writes there"));
        failure.because(why).help(format!("remove it with --unset {key}, or set it right"))
    };
    let mut metadata = match entries.get(OF_MODEL) {
        None => Metadata::default(),
        Some(text) => {
            let value = parse(text).ok_or_else(|| changed(OF_MODEL, "it is not JSON".to_owned()))?;
            Metadata::from_value(&value).map_err(|error| changed(OF_MODEL, error.to_string()))?
        }
    };
    let score = |text: &String| match text.parse() {
        Ok(score @ 1..=100) => Ok(score),
        _ => Err(changed(QUALITY, "a score is a number from 1 to 100".to_owned())),
    };
    let quality = entries.get(QUALITY).map(score).transpose()?;
    for (key, text) in entries {
        // What a file of version 2 has to say of any model, and tells nothing new.
        let is_derived = key == MODEL_TYPE && entries.get(apr_models::MODEL_KEY) == Some(text);
        if !(key == OF_MODEL || key == QUALITY || is_of_tensors(key) || is_derived) {
            metadata.custom.insert(key.clone(), Value::from(text.as_str()));
        }
    }
    Ok((metadata, quality))
}

/// Metadata of version 2, from entries; those that are no part of it become members of their own.
///
/// # Errors
///
/// If an entry that this program writes has been changed into something else.
pub(crate) fn to_tensors(
    entries: &Entries,
    totals: Totals,
    rules: &apr_container::ReadOptions,
) -> Result<v2::Metadata, Failure> {
    let changed = |why: String| {
        let failure = Failure::new(
            CODE_NOT_CARRIED,
            format!("the entry `{OF_TENSORS}` is not what `apr` writes there"),
        );
        failure.because(why).help(format!("remove it with --unset {OF_TENSORS}, or set it right"))
    };
    let mut members: BTreeMap<String, Box<RawValue>> = match entries.get(OF_TENSORS) {
        None => BTreeMap::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| changed(error.to_string()))?,
    };
    let json = (|| {
        for (key, total) in members_of_all(totals) {
            if !members.contains_key(key) {
                members.insert(key.to_owned(), to_raw_value(&total)?);
            }
        }
        for (key, text) in entries.iter().filter(|(key, _)| *key != OF_TENSORS) {
            members.insert(key.clone(), to_raw_value(text)?);
        }
        serde_json::to_string(&members)
    })();
    let json = json.map_err(|error: serde_json::Error| changed(error.to_string()))?;
    let mut metadata = v2::Metadata::from_json(json.as_bytes(), rules).map_err(Failure::from)?;
    if metadata.model_type.is_empty() {
        let named = entries.get(apr_models::MODEL_KEY).map(String::as_str);
        metadata.model_type = named.unwrap_or(NO_MODEL_TYPE).to_owned();
    }
    Ok(metadata)
}

/// JSON text as a value.
fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().map(value)
}

fn value(json: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::Int(whole),
            (None, Some(whole)) => Value::UInt(whole),
            (None, None) => Value::F64(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(text),
        Json::Array(values) => Value::Array(values.into_iter().map(value).collect()),
        Json::Object(members) => {
            Value::Map(members.into_iter().map(|(key, json)| (key, value(json))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_the_second_generation_survive_the_way_there_and_back() {
        let json = r#"{"model_type":"llama","name":"x","license":null,"total_size":0,"param_count":7,"format":"pt","hidden":[1,{"a":1.50}],"apr2.metadata":"odd"}"#;
        let rules = apr_container::ReadOptions::STRICT;
        let before = v2::Metadata::from_json(json.as_bytes(), &rules).unwrap();
        let totals = Totals { tensors: 1, bytes: 64, elements: 7 };
        let entries = of_tensors(&before, totals);
        assert_eq!(entries["format"], "pt");
        assert!(entries[OF_TENSORS].contains("1.50"), "{}", entries[OF_TENSORS]);
        assert!(entries[OF_TENSORS].contains("total_size") && !entries[OF_TENSORS].contains("param_count"));
        assert_eq!(to_tensors(&entries, totals, &rules).unwrap(), before);
        assert_eq!(members(&before)["param_count"], "7");
    }

    #[test]
    fn an_entry_that_was_changed_is_refused() {
        let entries = Entries::from([(OF_MODEL.to_owned(), "{".to_owned())]);
        assert_eq!(to_model(&entries, |_| false).unwrap_err().code(), CODE_NOT_CARRIED);
        let entries = Entries::from([(QUALITY.to_owned(), "101".to_owned())]);
        assert_eq!(to_model(&entries, |_| false).unwrap_err().code(), CODE_NOT_CARRIED);
        let entries = Entries::from([(OF_TENSORS.to_owned(), "[]".to_owned())]);
        let rules = apr_container::ReadOptions::STRICT;
        assert_eq!(to_tensors(&entries, Totals::default(), &rules).unwrap_err().code(), CODE_NOT_CARRIED);
    }

    #[test]
    fn entries_of_others_become_custom_keys() {
        let entries = Entries::from(
            [
                (OF_MODEL, r#"{"created_at":"7","aprender_version":"0.72.3","metrics":{"r2":0.5}}"#),
                ("format", "pt"),
                (QUALITY, "9"),
            ]
            .map(|(key, text)| (key.to_owned(), text.to_owned())),
        );
        let (metadata, quality) = to_model(&entries, |_| false).unwrap();
        assert_eq!((metadata.created_at.as_str(), quality), ("7", Some(9)));
        assert_eq!(
            (metadata.metrics["r2"].as_f64(), metadata.custom["format"].as_str()),
            (Some(0.5), Some("pt"))
        );
    }

    #[test]
    fn what_json_cannot_say_is_named() {
        assert!(beyond_json(&Value::Array(vec![Value::Nil, Value::F64(f64::NAN)])).is_some());
        assert!(beyond_json(&Value::F32(0.5)).is_some() && beyond_json(&Value::Bytes(vec![])).is_some());
        assert!(beyond_json(&Value::F64(0.5)).is_none() && beyond_json(&Value::UInt(u64::MAX)).is_none());
    }
}
