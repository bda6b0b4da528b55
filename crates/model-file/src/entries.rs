//! Metadata of every format as strings by key, the form in which models are compared and converted.
//!
//! | format | entries |
//! |---|---|
//! | safetensors | as they are |
//! | `.apr` version 1 | the model's name (`apr.model`); each string among the custom keys; `apr.metadata` is JSON of the rest; `apr.quality` if there is a score |
//! | `.apr` version 2 | each member that is a string; `apr2.metadata` is JSON of the rest |
//! | foreign formats | what is no tensor, by its path: strings as they are, other values as JSON; each alias of a tensor with the name that is kept |
//! | GGUF | each key that is a string; `gguf.metadata` is a JSON list of all keys, with the values of the others |
//!
//! [`to_apr_v1`], [`to_apr_v2`] and [`to_gguf`] convert entries to the metadata of a format. [`Exported`] names what JSON cannot represent.

#[cfg(feature = "gguf")]
mod gguf;
#[cfg(feature = "gguf")]
mod typed_value;

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use apr_container::{Metadata, ModelInfo, Value, v2};
use apr_models::{MODEL_KEY, TRANSPOSED_KEY};
use json_scan::{Escape, JsonStr};
use read_at::ReadAt;

#[cfg(feature = "gguf")]
pub use self::gguf::{
    ARCHITECTURE, FILE_TYPE, OF_GGUF, UNKNOWN_ARCHITECTURE, file_type, of_header, remove, set_dequantized,
    set_file_type, to_gguf, values,
};
#[cfg(feature = "gguf")]
pub use self::typed_value::{TypedValue, check_untyped};
use crate::apr_v1::AprV1;
use crate::error::{Error, ErrorKind};
use crate::json;
use crate::model_file::{Contents, ModelFile};
use crate::tensor::Totals;

/// Strings by key.
pub type Entries = BTreeMap<String, String>;

/// Key of the JSON with the metadata of `.apr` version 1.
pub const OF_APR_V1: &str = "apr.metadata";
/// Key of the JSON with the metadata of `.apr` version 2.
pub const OF_APR_V2: &str = "apr2.metadata";
/// Key of the quality score of `.apr` version 1.
pub const QUALITY: &str = "apr.quality";
/// The member of `.apr` version 2 metadata that names the family of models.
const MODEL_TYPE: &str = "model_type";
/// Its value where the family is not known.
const NO_MODEL_TYPE: &str = "unknown";

/// The entries of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The entries.
    pub entries: Entries,
    /// Values of the metadata that the entries do not preserve, each with the reason.
    pub lost: Vec<String>,
}

impl<R: ReadAt> ModelFile<R> {
    /// The metadata as entries. Of shards that carry different values the first one counts.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub fn entries(&self) -> Result<Exported, Error> {
        Ok(match self.contents() {
            Contents::SafeTensors(files) => {
                let mut entries = Entries::new();
                let headers = files.headers()?;
                for metadata in headers.into_iter().filter_map(st_core::Header::metadata) {
                    for (key, value) in metadata.iter() {
                        entries.entry(key.to_owned()).or_insert_with(|| value.to_owned());
                    }
                }
                Exported { entries, lost: Vec::new() }
            }
            Contents::AprV1(file) => of_apr_v1(file)?,
            Contents::AprV2(file) => {
                let totals = Totals::of(&self.tensors()?);
                Exported { entries: of_apr_v2(file.index().metadata(), totals), lost: Vec::new() }
            }
            #[cfg(feature = "gguf")]
            Contents::Gguf(file) => of_header(&file.header()?),
            #[cfg(feature = "foreign")]
            Contents::Foreign(file) => Exported { entries: of_foreign(file.model()), lost: Vec::new() },
            #[cfg(feature = "sealed")]
            Contents::Sealed(_) => Exported::default(),
        })
    }

    /// The metadata as those of `.apr` version 1: of other formats, what a conversion makes of them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidEntry`], and those of [`entries`](Self::entries).
    pub fn as_apr_v1_metadata(&self) -> Result<Metadata, Error> {
        match self.contents() {
            Contents::AprV1(file) => Ok(file.info().metadata.clone()),
            _ => to_apr_v1(&self.entries()?.entries, is_of_tensors).map(|(metadata, _)| metadata),
        }
    }
}

/// Replaces the entries that are JSON by one entry for each value in it, whose key is the path of the value.
pub fn expand(entries: &mut Entries) {
    for key in [OF_APR_V1, OF_APR_V2] {
        let Some(value) = entries.get(key).and_then(|text| json::parse(text)) else { continue };
        entries.remove(key);
        flatten("", &value, &mut |path, value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            entries.entry(path.to_owned()).or_insert(text);
        });
    }
    #[cfg(feature = "gguf")]
    gguf::expand(entries);
}

/// Calls `take` for each value with its path, the keys joined by dots. An empty map and an array are values.
pub fn flatten(path: &str, value: &Value, take: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, take);
            }
        }
        value => take(path, value),
    }
}

fn of_apr_v1(file: &AprV1) -> Result<Exported, Error> {
    let ModelInfo { metadata, quality, .. } = file.info();
    let mut rest = metadata.clone();
    let mut entries = Entries::new();
    entries.extend(file.model_entry().map(|name| (MODEL_KEY.to_owned(), name.to_owned())));
    let is_own = |key: &str| key == QUALITY || key == OF_APR_V1 || key == OF_APR_V2;
    rest.custom.retain(|key, value| {
        let Some(text) = value.as_str().filter(|_| !is_own(key)) else { return true };
        if key != MODEL_KEY {
            entries.entry(key.clone()).or_insert_with(|| text.to_owned());
        }
        // A key that the tensors have too stays here only if it says something else.
        key != MODEL_KEY && entries.get(key).map(String::as_str) != Some(text)
    });
    if let Some(score) = quality {
        entries.insert(QUALITY.to_owned(), score.to_string());
    }
    let value = rest.to_value()?;
    let (text, mut lost) = (value.to_string(), Vec::new());
    let again = json::parse(&text).and_then(|value| Metadata::from_value(&value).ok());
    if again != Some(rest) {
        flatten("", &value, &mut |path, value| {
            lost.extend(beyond_json(value).map(|what| format!("metadata {path}: {what}")));
        });
        if lost.is_empty() {
            lost.push("parts of the metadata that JSON does not hold".to_owned());
        }
    }
    entries.insert(OF_APR_V1.to_owned(), text);
    Ok(Exported { entries, lost })
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

/// Members of `.apr` version 2 metadata that are totals over all tensors.
fn members_of_all(totals: Totals) -> [(&'static str, u64); 2] {
    [("param_count", totals.elements), ("total_size", totals.bytes)]
}

/// Totals that are correct are left out: of other tensors they would be wrong, and [`to_apr_v2`] computes them.
fn of_apr_v2(metadata: &v2::Metadata, totals: Totals) -> Entries {
    let mut entries = Entries::new();
    let mut rest = BTreeMap::new();
    let json = metadata.to_json();
    // It is JSON and an object: the library wrote it.
    for (key, raw) in json::members(&json).unwrap_or_default() {
        match json_scan::unescape(raw) {
            Some(text) if key != OF_APR_V2 => drop(entries.insert(key, text.into_owned())),
            // Written whether there is a value or not.
            _ if members_of_all(totals)
                .iter()
                .any(|(name, total)| key == *name && raw == total.to_string()) => {}
            _ if raw == "null" && ["license", "data_source", "data_license"].contains(&&*key) => {}
            _ => drop(rest.insert(key, raw)),
        }
    }
    // A file of version 2 has to declare a family; the conversion to version 2 adds this value again.
    let model_type = entries.get(MODEL_TYPE);
    if model_type.is_some_and(|text| text == NO_MODEL_TYPE || entries.get(MODEL_KEY) == Some(text)) {
        entries.remove(MODEL_TYPE);
    }
    if !rest.is_empty() {
        entries.insert(OF_APR_V2.to_owned(), object(&rest));
    }
    entries
}

/// Strings as they are, other values as JSON, and the aliases as safetensors' `save_model` records them.
#[cfg(feature = "foreign")]
fn of_foreign(model: &foreign_tensors::Model) -> Entries {
    let text = |json: &String| {
        json_scan::unescape(json).map_or_else(|| json.clone(), alloc::borrow::Cow::into_owned)
    };
    let values = model.entries().iter().map(|(path, json)| (path.clone(), text(json)));
    let aliases = model.aliases().iter().map(|alias| (alias.name.clone(), alias.of.clone()));
    values.chain(aliases).collect()
}

/// An object with these members, whose values are JSON.
fn object<T: core::fmt::Display>(members: &BTreeMap<String, T>) -> String {
    let members = members.iter().map(|(key, value)| format!("{}:{value}", JsonStr(key, Escape::Minimal)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Whether a key says something about the tensors of a model, which a model of `.apr` version 1 has no use for.
#[must_use]
pub fn is_of_tensors(key: &str) -> bool {
    [MODEL_KEY, TRANSPOSED_KEY].contains(&key)
}

/// An entry that is not what this module writes.
fn invalid(key: &str, reason: impl Into<String>) -> Error {
    ErrorKind::InvalidEntry { key: key.to_owned(), reason: reason.into() }.into()
}

/// Metadata of `.apr` version 1 and the quality score. Entries that are no part of them become custom keys, except those for which
/// `is_of_tensors` holds.
///
/// # Errors
///
/// [`ErrorKind::InvalidEntry`].
pub fn to_apr_v1(
    entries: &Entries,
    is_of_tensors: impl Fn(&str) -> bool,
) -> Result<(Metadata, Option<u8>), Error> {
    let mut metadata = match entries.get(OF_APR_V1) {
        None => Metadata::default(),
        Some(text) => {
            let value = json::parse(text).ok_or_else(|| invalid(OF_APR_V1, "it is not JSON"))?;
            Metadata::from_value(&value).map_err(|error| invalid(OF_APR_V1, error.to_string()))?
        }
    };
    let score = |text: &String| match text.parse() {
        Ok(score @ 1..=100) => Ok(score),
        _ => Err(invalid(QUALITY, "a score is an integer from 1 to 100")),
    };
    let quality = entries.get(QUALITY).map(score).transpose()?;
    for (key, text) in entries {
        // Derived from the model's name when the file of version 2 was written.
        let is_derived = key == MODEL_TYPE && entries.get(MODEL_KEY) == Some(text);
        if !(key == OF_APR_V1 || key == QUALITY || is_of_tensors(key) || is_derived) {
            metadata.custom.insert(key.clone(), Value::from(text.as_str()));
        }
    }
    Ok((metadata, quality))
}

/// Metadata of `.apr` version 2. Entries that are no part of them become members.
///
/// # Errors
///
/// [`ErrorKind::InvalidEntry`]; [`ErrorKind::Apr`] for metadata beyond the limits of `options`.
pub fn to_apr_v2(
    entries: &Entries,
    totals: Totals,
    options: &apr_container::ReadOptions,
) -> Result<v2::Metadata, Error> {
    let rest = entries.get(OF_APR_V2).map(|text| json::members(text)).transpose();
    let rest = rest.map_err(|error| invalid(OF_APR_V2, error.to_string()))?.unwrap_or_default();
    let mut members: BTreeMap<String, String> =
        members_of_all(totals).map(|(key, total)| (key.to_owned(), total.to_string())).into();
    members.extend(rest.into_iter().map(|(key, raw)| (key, raw.to_owned())));
    let texts = entries.iter().filter(|(key, _)| *key != OF_APR_V2);
    members.extend(texts.map(|(key, text)| (key.clone(), JsonStr(text, Escape::Minimal).to_string())));
    let mut metadata = v2::Metadata::from_json(object(&members).as_bytes(), options)?;
    if metadata.model_type.is_empty() {
        let named = entries.get(MODEL_KEY).map(String::as_str);
        metadata.model_type = named.unwrap_or(NO_MODEL_TYPE).to_owned();
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use apr_container::Map;

    use super::*;

    #[test]
    fn metadata_of_version_2_survive_a_round_trip() {
        let json = r#"{"model_type":"llama","name":"x","license":null,"total_size":0,"param_count":7,"format":"pt","hidden":[1,{"a":1.50}],"apr2.metadata":"odd"}"#;
        let rules = apr_container::ReadOptions::STRICT;
        let before = v2::Metadata::from_json(json.as_bytes(), &rules).unwrap();
        let totals = Totals { tensors: 1, bytes: 64, elements: 7 };
        let entries = of_apr_v2(&before, totals);
        assert_eq!(entries["format"], "pt");
        assert!(entries[OF_APR_V2].contains("1.50"), "{}", entries[OF_APR_V2]);
        assert!(entries[OF_APR_V2].contains("total_size") && !entries[OF_APR_V2].contains("param_count"));
        assert_eq!(to_apr_v2(&entries, totals, &rules).unwrap(), before);
    }

    #[test]
    fn an_entry_that_was_changed_is_refused() {
        let entries = Entries::from([(OF_APR_V1.to_owned(), "{".to_owned())]);
        assert_eq!(to_apr_v1(&entries, |_| false).unwrap_err().code(), "mo-invalid-entry");
        let entries = Entries::from([(QUALITY.to_owned(), "101".to_owned())]);
        assert_eq!(to_apr_v1(&entries, |_| false).unwrap_err().code(), "mo-invalid-entry");
        let entries = Entries::from([(OF_APR_V2.to_owned(), "[]".to_owned())]);
        let rules = apr_container::ReadOptions::STRICT;
        assert_eq!(to_apr_v2(&entries, Totals::default(), &rules).unwrap_err().code(), "mo-invalid-entry");
    }

    #[test]
    fn entries_of_others_become_custom_keys() {
        let entries = Entries::from(
            [
                (OF_APR_V1, r#"{"created_at":"7","aprender_version":"0.72.3","metrics":{"r2":0.5}}"#),
                ("format", "pt"),
                (QUALITY, "9"),
            ]
            .map(|(key, text)| (key.to_owned(), text.to_owned())),
        );
        let (metadata, quality) = to_apr_v1(&entries, |_| false).unwrap();
        assert_eq!((metadata.created_at.as_str(), quality), ("7", Some(9)));
        assert_eq!(
            (metadata.metrics["r2"].as_f64(), metadata.custom["format"].as_str()),
            (Some(0.5), Some("pt"))
        );
    }

    #[test]
    fn nested_values_are_named_by_their_path() {
        let inner =
            Map::from([("b".to_owned(), Value::Bool(true)), ("c".to_owned(), Value::Map(Map::new()))]);
        let value =
            Value::Map(Map::from([("a".to_owned(), Value::Map(inner)), ("z".to_owned(), "t".into())]));
        let mut lines = Vec::new();
        flatten("", &value, &mut |path, value| lines.push(format!("{path}={value}")));
        assert_eq!(lines, ["a.b=true", "a.c={}", "z=\"t\""]);
    }

    #[test]
    fn what_json_cannot_represent_is_named() {
        assert!(beyond_json(&Value::Array(vec![Value::Nil, Value::F64(f64::NAN)])).is_some());
        assert!(beyond_json(&Value::F32(0.5)).is_some() && beyond_json(&Value::Bytes(vec![])).is_some());
        assert!(beyond_json(&Value::F64(0.5)).is_none() && beyond_json(&Value::UInt(u64::MAX)).is_none());
    }
}
