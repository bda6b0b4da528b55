//! GGUF files.

use alloc::string::String;
use alloc::vec::Vec;

use apr_models::{MODEL_KEY, Tensors};
use gguf_core::{Array, Endian, Header, Prefix, TensorInfo, Value};
use read_at::{CachedPages, ReadAt as _};
use st_core::Dtype;

use super::{Listed, Rules, list_tensor, named_model, whole};
use crate::failure::Failure;
use crate::json::{self, Json};
use crate::model::{Loaded, of_tensors};
use crate::values;
use crate::wire::{Answer, Outcome};

/// Elements of an array that a description shows.
const SHOWN: usize = 8;

fn header<'p>(pages: &'p CachedPages, rules: &Rules) -> Result<Header<'p>, Outcome> {
    let head = pages.available_prefix();
    match Header::from_prefix(head, pages.total_len(), &rules.gguf)? {
        Prefix::Header(header) => {
            header.check_file_len(pages.total_len(), rules.gguf.strictness)?;
            Ok(header)
        }
        // The reader knows the end of what it was reading; what follows may be as long again.
        Prefix::More { needed } => {
            let here = head.len() as u64;
            let until = needed.max(here.saturating_mul(2)).min(pages.total_len());
            Err(Outcome::Need { offset: here, len: until - here })
        }
    }
}

pub(super) fn describe(pages: &CachedPages, rules: &Rules, json: &mut Json) -> Result<(), Outcome> {
    let header = header(pages, rules)?;
    let mut metadata = Json::object();
    for entry in header.entries() {
        metadata.foreign_key(&entry.key().to_str_lossy());
        metadata.bare(&value_json(entry.value()));
    }
    let mut list = Json::list();
    for info in header.tensors() {
        let name = info.name().to_str_lossy();
        let (dtype, offset) = (dtype_name(info), Some(info.file_range().start));
        let listed = Listed { name: &name, dtype, offset, bytes: info.byte_len() };
        list_tensor(&mut list, &listed, &info.shape().collect::<Vec<u64>>());
    }
    json.number("version", u64::from(header.version()));
    json.truth("bigEndian", header.endian() == Endian::Big);
    json.number("dataStart", header.data_start());
    json.raw("metadata", &metadata.finish());
    json.raw("tensors", &list.finish());
    named_model(json, header.get(MODEL_KEY).and_then(|value| value.as_str()));
    json.raw("warnings", "[]");
    Ok(())
}

/// As safetensors spells it where that has the type.
fn dtype_name(info: &TensorInfo<'_>) -> &'static str {
    info.dtype().name()
}

fn value_json(value: Value<'_>) -> String {
    match value {
        Value::Array(array) => {
            let mut preview = Json::list();
            array.iter().take(SHOWN).for_each(|value| preview.item(&value_json(value)));
            let mut json = Json::object();
            json.text("type", array.element_type().name());
            json.number("length", array.len() as u64);
            json.raw("preview", &preview.finish());
            json.finish()
        }
        _ => scalar_json(value),
    }
}

fn scalar_json(value: Value<'_>) -> String {
    if let Some(truth) = value.as_bool() {
        return String::from(if truth { "true" } else { "false" });
    }
    if let Some(text) = value.as_text() {
        return json::quoted(&text.to_str_lossy());
    }
    if let Some(number) = value.to_i64() {
        return json::exact(number.into());
    }
    if let Some(number) = value.to_u64() {
        return json::exact(number.into());
    }
    value.to_f64().map_or_else(|| String::from("null"), json::float)
}

fn all_json(array: Array<'_>) -> String {
    let mut list = Json::list();
    for value in array.iter() {
        match value {
            Value::Array(inner) => list.item(&all_json(inner)),
            _ => list.item(&scalar_json(value)),
        }
    }
    list.finish()
}

pub(super) fn entry(pages: &CachedPages, rules: &Rules, key: &str) -> Result<Answer, Outcome> {
    let header = header(pages, rules)?;
    let value = header.get(key).ok_or_else(|| Failure::new("aw-no-entry", "the file has no such key"))?;
    let json = match value {
        Value::Array(array) => all_json(array),
        _ => scalar_json(value),
    };
    Ok(Answer { json, bytes: Vec::new() })
}

/// The model whose tensors the file has, blocks and half-precision floats widened.
pub(super) fn model(pages: &CachedPages, rules: &Rules) -> Result<Loaded, Outcome> {
    let file = whole(pages)?;
    let header = header(pages, rules)?;
    if header.endian() == Endian::Big {
        return Err(Failure::new("aw-byte-order", "models are not read from big-endian files").into());
    }
    let mut tensors = Tensors::new();
    for info in header.tensors() {
        let name = info.name().to_str_lossy();
        let shape: Vec<usize> = info.shape().map(|dim| usize::try_from(dim).unwrap_or(usize::MAX)).collect();
        let range = info.file_range();
        let data = file.get(range.start as usize..range.end as usize).ok_or_else(Failure::message)?;
        match Dtype::element_from_name(dtype_name(info)) {
            Some(dtype) if !matches!(dtype, Dtype::F16 | Dtype::Bf16) => {
                tensors.push(&name, dtype, &shape, data.to_vec())?;
            }
            _ => tensors.push_f32(
                &name,
                &shape,
                &values::decode(dtype_name(info), info.element_count(), data)?,
            )?,
        }
    }
    if let Some(name) = header.get(MODEL_KEY).and_then(|value| value.as_str()) {
        tensors.set_metadata(MODEL_KEY, name);
    }
    of_tensors(|| Ok(tensors))
}
