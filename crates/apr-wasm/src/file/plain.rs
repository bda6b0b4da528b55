//! safetensors files.

use alloc::vec::Vec;

use apr_models::{MODEL_KEY, Tensors};
use read_at::{CachedPages, ReadAt as _};
use st_core::Header;

use super::{Listed, Rules, list_tensor, named_model, prefix, whole};
use crate::json::Json;
use crate::model::{Loaded, of_tensors};
use crate::wire::Outcome;

fn header(pages: &CachedPages, rules: &Rules) -> Result<Header, Outcome> {
    let first = pages.available_prefix().first_chunk::<8>();
    let prefix_len = match first {
        Some(first) => 8 + Header::declared_len(*first, pages.total_len(), &rules.safetensors)?,
        None => pages.total_len(),
    };
    Ok(Header::from_prefix(prefix(pages, prefix_len)?, pages.total_len(), &rules.safetensors)?)
}

pub(super) fn describe(pages: &CachedPages, rules: &Rules, json: &mut Json) -> Result<(), Outcome> {
    let header = header(pages, rules)?;
    let mut list = Json::list();
    for info in header.iter() {
        let range = info.file_range();
        let (name, dtype) = (info.name(), info.dtype().name());
        let listed = Listed { name, dtype, offset: Some(range.start), bytes: info.byte_len() };
        let shape: Vec<u64> = info.shape().iter().map(|&dim| dim as u64).collect();
        list_tensor(&mut list, &listed, &shape);
    }
    let mut metadata = Json::object();
    if let Some(items) = header.metadata() {
        for (key, value) in items.iter() {
            metadata.foreign_key(key);
            metadata.bare_text(value);
        }
    }
    json.number("dataStart", header.data_start());
    json.raw("metadata", &metadata.finish());
    json.raw("tensors", &list.finish());
    named_model(json, header.metadata().and_then(|metadata| metadata.get(MODEL_KEY)));
    Ok(())
}

pub(super) fn model(pages: &CachedPages, rules: &Rules) -> Result<Loaded, Outcome> {
    header(pages, rules)?;
    of_tensors(|| Ok(Tensors::from_safetensors(whole(pages)?)?))
}
