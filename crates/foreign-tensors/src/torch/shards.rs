//! `pytorch_model.bin.index.json`: the names of tensors and the files that they are in.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use foreign_format::Format;
use json_scan::{Check, Scanner};
use located_error::Subject;
use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::files::Companions;
use crate::model::Model;
use crate::options::Options;

/// Objects and arrays within one another.
const MAX_DEPTH: usize = 64;

/// Files of a model.
const MAX_SHARDS: usize = 4096;

/// Reads an index and its shards.
pub(super) fn read(
    file: &dyn ReadAt,
    companions: &dyn Companions,
    options: &Options,
) -> Result<Model, Error> {
    let allowed = options.limits.text_bytes;
    if file.total_len() > allowed {
        return Err(ErrorKind::Limit { limit: "text_bytes", allowed }.into());
    }
    let mut text = crate::tensor::reserved(file.total_len())?;
    text.resize(file.total_len() as usize, 0);
    file.read_exact_at(0, &mut text)?;
    let text = core::str::from_utf8(&text).map_err(|_| Error::malformed("the index is not UTF-8"))?;

    let mut shards: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut scanner = Scanner::new(text, Check::Values);
    scanner.skip_white_space();
    scanner.members(|json, key, _| {
        if !key.is("weight_map") {
            json.skip_value(MAX_DEPTH)?;
            json.skip_white_space();
            return Ok(());
        }
        json.members(|json, name, _| {
            let shard = json.string()?.unescape().into_owned();
            json.skip_white_space();
            shards.entry(shard).or_default().insert(name.unescape().into_owned());
            Ok::<(), Error>(())
        })
    })?;
    scanner.finish()?;
    if shards.is_empty() || shards.len() > MAX_SHARDS {
        return Err(Error::malformed("the index names no files, or too many"));
    }

    let mut model = Model::new(Format::TorchIndex);
    for (path, names) in shards {
        let in_shard = |error: Error| error.of(Subject::entry(&path));
        let shard = companions.open(&path)?;
        let read = super::read_one(&*shard, options).map_err(in_shard)?;
        let found: BTreeSet<&str> = read
            .tensors()
            .iter()
            .map(crate::Tensor::name)
            .chain(read.aliases().iter().map(|alias| alias.name.as_str()))
            .collect();
        let is_whole = options.object.is_empty() && options.exclude.is_empty();
        if let Some(missing) = names.iter().find(|name| is_whole && !found.contains(name.as_str())) {
            return Err(in_shard(
                Error::malformed("a tensor of the index is not in its file").of(Subject::tensor(missing)),
            ));
        }
        model.absorb(&path, read, shard)?;
    }
    Ok(model)
}
