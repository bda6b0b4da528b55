//! Exported programs (`.pt2`): a table in JSON, and a member for each weight.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use foreign_format::Format;
use json_scan::{Check, Scanner};
use located_error::Subject;
use read_at::{ReadAt, Window};
use tensor_dtype::Dtype;
use zip_core::{Archive, Entry};

use crate::archive;
use crate::error::{Error, ErrorKind};
use crate::model::Model;
use crate::options::Options;
use crate::tensor::{ElementType, Tensor};
use crate::view::View;

/// Objects and arrays within one another.
const MAX_DEPTH: usize = 64;

/// Of PyTorch before 2.8: an archive inside the archive.
const STATE_DICT: &str = "serialized_state_dict.pt";

/// What the table says of a weight.
#[derive(Default)]
struct Weight {
    path: Option<String>,
    is_pickled: bool,
    dtype: Option<u64>,
    sizes: Option<Vec<u64>>,
    strides: Option<Vec<u64>>,
    offset: u64,
}

/// Reads an exported program.
pub(super) fn read(file: &dyn ReadAt, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new(Format::TorchExport);
    let (archive, odd) = archive::open(file)?;
    if let Some(finding) = odd.first() {
        return Err(Error::from(ErrorKind::Archive { problem: finding.problem }).at(finding.offset));
    }
    if let Some(entry) = archive.entries().iter().find(|entry| entry.name().ends_with(STATE_DICT)) {
        return state_dict(file, entry, options);
    }
    options.without_object()?;
    let members: BTreeMap<&str, (u64, &Entry)> =
        archive.entries().iter().zip(0..).map(|(entry, idx)| (entry.name(), (idx, entry))).collect();
    let mut tables = archive.entries().iter().filter(|entry| entry.name().ends_with("_weights_config.json"));
    let table = match (tables.next(), tables.next()) {
        (Some(table), None) => table,
        (Some(_), Some(_)) => return Err(Error::unsupported("an exported program with several models")),
        (None, _) => return Err(Error::unsupported("an exported program without weights")),
    };
    let folder = table.name().rsplit_once('/').map_or("", |(folder, _)| folder);
    for (name, weight) in weights(&archive, table, options)? {
        let Some(path) = &weight.path else { return Err(Error::malformed("a weight without data")) };
        let path = if folder.is_empty() { path.clone() } else { format!("{folder}/{path}") };
        let Some(&(idx, entry)) = members.get(path.as_str()) else {
            return Err(Error::malformed("the data of a weight are missing"));
        };
        let shape = weight.sizes.ok_or_else(|| Error::malformed("a weight without a shape"))?;
        let dtype = weight.dtype.and_then(dtype);
        let (Some(dtype), false) = (dtype, weight.is_pickled) else {
            let what = if weight.is_pickled { "a pickled weight" } else { "a weight of another type" };
            model.add(Tensor::unsupported(name, shape, what), options)?;
            continue;
        };
        let view = View { offset: weight.offset, strides: weight.strides, ..View::whole() };
        let len = entry.len_declared();
        let place = (archive::place(entry, 0, len), len);
        let tensor = Tensor::new(name, dtype, shape, place, view, &options.limits)?;
        model.add(tensor.of_storage(idx), options)?;
    }
    if archive
        .entries()
        .iter()
        .any(|entry| entry.name().contains("/data/constants/") && !entry.name().ends_with(".json"))
    {
        model.note("", "constants of the program are not read");
    }
    model.tie();
    Ok(model)
}

fn state_dict(file: &dyn ReadAt, entry: &Entry, options: &Options) -> Result<Model, Error> {
    let in_entry = |error: Error| error.of(Subject::entry(entry.name()));
    let Some(range) = entry.stored() else {
        return Err(in_entry(Error::unsupported("a compressed archive inside an archive")));
    };
    let inner = Window::new(file, range.start, range.end - range.start)?;
    let inner =
        super::archive::read(&inner, options).map_err(|error| in_entry(error.shifted(range.start)))?;
    let mut model = inner.within(Format::TorchExport, range);
    model.note("", "constants and inputs of the program are not read");
    Ok(model)
}

fn weights(
    archive: &Archive<&dyn ReadAt>,
    table: &Entry,
    options: &Options,
) -> Result<Vec<(String, Weight)>, Error> {
    let text = archive::read(archive, table, options.limits.text_bytes)?;
    let text =
        core::str::from_utf8(&text).map_err(|_| Error::malformed("the table of weights is not UTF-8"))?;
    let mut scanner = Scanner::new(text, Check::Values);
    scanner.skip_white_space();
    let mut weights = Vec::new();
    scanner.members(|json, key, _| {
        if !key.is("config") {
            return pass(json);
        }
        json.members(|json, name, _| {
            let weight = weight(json)?;
            weights.push((name.unescape().into_owned(), weight));
            Ok::<(), Error>(())
        })
    })?;
    scanner.finish()?;
    Ok(weights)
}

fn weight(json: &mut Scanner<'_>) -> Result<Weight, Error> {
    let mut weight = Weight::default();
    json.members(|json, key, _| {
        if key.is("path_name") {
            weight.path = Some(json.string()?.unescape().into_owned());
            json.skip_white_space();
            return Ok(());
        }
        if key.is("use_pickle") {
            weight.is_pickled = json.peek() == Some(b't');
            return pass(json);
        }
        if !key.is("tensor_meta") {
            return pass(json);
        }
        json.members(|json, key, _| {
            if key.is("dtype") {
                weight.dtype = Some(json.integer()?);
                json.skip_white_space();
                Ok(())
            } else if key.is("sizes") {
                weight.sizes = Some(sizes(json)?);
                Ok(())
            } else if key.is("strides") {
                weight.strides = Some(sizes(json)?);
                Ok(())
            } else if key.is("storage_offset") {
                weight.offset = size(json)?;
                Ok(())
            } else {
                pass(json)
            }
        })
    })?;
    Ok(weight)
}

fn sizes(json: &mut Scanner<'_>) -> Result<Vec<u64>, Error> {
    let mut sizes = Vec::new();
    json.items(|json, _| {
        sizes.push(size(json)?);
        Ok::<(), Error>(())
    })?;
    Ok(sizes)
}

/// `{"as_int": 4}`.
fn size(json: &mut Scanner<'_>) -> Result<u64, Error> {
    let mut size = None;
    json.members(|json, key, _| {
        if !key.is("as_int") {
            return pass(json);
        }
        size = Some(json.integer()?);
        json.skip_white_space();
        Ok::<(), Error>(())
    })?;
    size.ok_or_else(|| Error::unsupported("a weight with a symbolic size"))
}

fn pass(json: &mut Scanner<'_>) -> Result<(), Error> {
    json.skip_value(MAX_DEPTH)?;
    json.skip_white_space();
    Ok(())
}

/// `torch._export.serde.schema.ScalarType`.
fn dtype(number: u64) -> Option<ElementType> {
    Some(ElementType::Known(match number {
        1 => Dtype::U8,
        2 => Dtype::I8,
        3 => Dtype::I16,
        4 => Dtype::I32,
        5 => Dtype::I64,
        6 => Dtype::F16,
        7 => Dtype::F32,
        8 => Dtype::F64,
        10 => Dtype::C64,
        11 => return Some(ElementType::C128),
        12 => Dtype::Bool,
        13 => Dtype::Bf16,
        28 => Dtype::U16,
        29 => Dtype::F8E4M3,
        30 => Dtype::F8E5M2,
        31 => Dtype::F8E4M3Fnuz,
        32 => Dtype::F8E5M2Fnuz,
        33 => Dtype::F8E8M0,
        34 => Dtype::U32,
        35 => Dtype::U64,
        _ => return None,
    }))
}
