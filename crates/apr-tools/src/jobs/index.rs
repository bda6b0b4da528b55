//! The indexes of sets whose shards were inputs of their own.

use alloc::collections::BTreeMap;
use std::path::Path;

use st_core::ShardIndex;

use super::outcome::Outcome;
use super::plan::Plan;
use super::record::Record;
use crate::error::{CODE_OUTPUT_EXISTS, Failure};
use crate::input::{Model, Rules};
use crate::output;

/// Longest index that is compared with one that is there.
const MAX_INDEX: u64 = 100_000_000;

/// Writes an index beside the outputs of each set of which every shard became a file. It is the last file of the set.
///
/// # Errors
///
/// If an output is no safetensors file, tensors of a set have the same name, or an index is in the way.
pub(super) fn write(plan: &Plan, records: &[Record]) -> Result<(), Failure> {
    let (inputs, sets) = plan.sets();
    let results = records.iter().flat_map(|record| &record.results);
    let results: BTreeMap<&str, &Outcome> =
        inputs.iter().map(|input| input.path.as_str()).zip(results).collect();
    for set in sets {
        let made = |shard: &String| match &results.get(shard.as_str())?.outputs[..] {
            [output] => Some(output.path.as_str()),
            _ => None,
        };
        let Some(outputs) = set.shards.iter().map(made).collect::<Option<Vec<&str>>>() else { continue };
        let place = plan.to().join(&set.path);
        let index = of_files(plan.to(), &outputs).map_err(|failure| failure.in_file(&place))?;
        let known = durable_file::read(&place, MAX_INDEX);
        if known.is_ok_and(|known| known == index.as_bytes()) {
            continue;
        }
        output::write_file(&place, index.as_bytes(), plan.overwrite()).map_err(|failure| {
            match failure.code() {
                CODE_OUTPUT_EXISTS => failure
                    .help("the outputs are in their places: remove this index, and run the command again"),
                _ => failure,
            }
        })?;
    }
    Ok(())
}

/// The index of some files of a folder.
fn of_files(folder: &Path, files: &[&str]) -> Result<String, Failure> {
    let mut weights: Vec<(String, String)> = Vec::new();
    let mut bytes = 0_u64;
    for file in files {
        let path = folder.join(file);
        let model = Model::open(&path, &Rules::STRICT)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for tensor in model.tensors()? {
            bytes += tensor.byte_len();
            weights.push((tensor.name().to_owned(), name.clone()));
        }
    }
    let pairs = weights.iter().map(|(tensor, file)| (tensor.as_str(), file.as_str()));
    Ok(ShardIndex::new(pairs, Some(bytes))?.to_json())
}
