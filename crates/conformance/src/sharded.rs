//! Folders of shards with an index: huggingface_hub's convention.

use alloc::collections::BTreeMap;

use st_core::{Header, ReadOptions, ShardIndex, ShardPlan, ShardProblem};

use crate::matrix::{Outcome, Suite};
use crate::vectors::{self, Sharded, Split, StrictVerdict, Vectors};
use crate::{official, ours};

/// Name of the index in a folder.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

const COLUMNS: &[&str] = &["index", "index against shards", "same split", "same index bytes", "crate 0.8.0"];

const ABOUT: &str = "\
Good folders were made by huggingface_hub 2.4.0: our index has to parse, agree with the headers of its
shards, and our plan for the same tensors and limit has to give the same files and the same index, byte for
byte. Broken ones have to be refused or reported with the recorded fault; there is no official judge of
these.";

/// Runs every sharded folder of the vectors.
///
/// # Errors
///
/// A file of a folder that cannot be read from disk.
pub fn suite(vectors: &Vectors) -> Result<Suite, vectors::Error> {
    let mut suite = Suite::new("safetensors: shards", ABOUT, COLUMNS);
    for folder in &vectors.sharded {
        let index = vectors::read(&format!("{}/{INDEX_FILE}", folder.dir))?;
        let mut shards = BTreeMap::new();
        for file in vectors::list(&folder.dir)? {
            if file.ends_with(".safetensors") {
                shards.insert(file.clone(), vectors::read(&format!("{}/{file}", folder.dir))?);
            }
        }
        let row = folder.rule.as_ref().map_or_else(|| "good".to_owned(), |rule| format!("broken: {rule}"));
        suite.record(&row, &folder.dir, outcomes(folder, &index, &shards));
    }
    Ok(suite)
}

fn outcomes(folder: &Sharded, index: &[u8], shards: &BTreeMap<String, Vec<u8>>) -> [Outcome; 5] {
    let (parsed, checked) = match (ShardIndex::from_json(index), &folder.strict) {
        (Ok(index), expected) => (Outcome::Expected("read"), check(&index, shards, expected)),
        (Err(error), StrictVerdict::Refuse { code, .. }) if error.code() == code => {
            (Outcome::Expected("refused"), Outcome::NotApplicable)
        }
        (Err(error), _) => (Outcome::Wrong(error.to_string()), Outcome::NotApplicable),
    };
    let Some(split) = &folder.split else {
        return [parsed, checked, Outcome::NotApplicable, Outcome::NotApplicable, Outcome::NotApplicable];
    };
    let sizes = split.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.bytes));
    let plan = match ShardPlan::new(sizes, split.max_shard_size) {
        Ok(plan) => plan,
        Err(error) => {
            let wrong = Outcome::Wrong(error.to_string());
            return [parsed, checked, wrong.clone(), wrong, Outcome::NotApplicable];
        }
    };
    [
        parsed,
        checked,
        Outcome::from_failure("equal", split_differs(&plan, split)),
        Outcome::from_failure("equal", index_differs(&plan, index)),
        Outcome::from_failure("read", shards.iter().find_map(|(file, bytes)| shard_differs(file, bytes))),
    ]
}

fn check(index: &ShardIndex, shards: &BTreeMap<String, Vec<u8>>, expected: &StrictVerdict) -> Outcome {
    let mut headers = BTreeMap::new();
    for (file, bytes) in shards {
        match Header::from_bytes(bytes, &ReadOptions::STRICT) {
            Ok(header) => headers.insert(file.as_str(), header),
            Err(error) => return Outcome::Wrong(format!("{file}: {error}")),
        };
    }
    let problems = index.check(|shard| headers.get(shard));
    let found: Vec<&str> = problems.iter().map(problem_name).collect();
    match expected {
        StrictVerdict::Accept if found.is_empty() => Outcome::Expected("agree"),
        StrictVerdict::Refuse { code, .. } if found == [code.as_str()] => Outcome::Expected("reported"),
        expected => Outcome::Wrong(format!("{found:?}, expected {expected:?}")),
    }
}

/// The name of a problem in a sidecar.
#[must_use]
pub fn problem_name(problem: &ShardProblem) -> &'static str {
    match problem {
        ShardProblem::MissingShard { .. } => "missing shard",
        ShardProblem::GhostTensor { .. } => "ghost tensor",
        ShardProblem::UnlistedTensor { .. } => "unlisted tensor",
        ShardProblem::WrongTotalSize { .. } => "wrong total size",
        _ => "unknown problem",
    }
}

fn split_differs(plan: &ShardPlan, split: &Split) -> Option<String> {
    let planned: BTreeMap<&str, Vec<&str>> = plan
        .shards()
        .iter()
        .map(|shard| {
            let names = shard.tensors.iter().filter_map(|idx| split.tensors.get(*idx));
            (shard.file_name.as_str(), names.map(|tensor| tensor.name.as_str()).collect())
        })
        .collect();
    let recorded: BTreeMap<&str, Vec<&str>> = split
        .shards
        .iter()
        .map(|(file, names)| (&file[..], names.iter().map(String::as_str).collect()))
        .collect();
    (planned != recorded).then(|| format!("{planned:?} instead of {recorded:?}"))
}

fn index_differs(plan: &ShardPlan, recorded: &[u8]) -> Option<String> {
    let Some(index) = plan.index() else { return Some("no index planned".to_owned()) };
    let text = index.to_json();
    (text.as_bytes() != recorded).then(|| format!("{text} written"))
}

fn shard_differs(file: &str, bytes: &[u8]) -> Option<String> {
    match (official::read(bytes), ours::read(bytes, &ReadOptions::STRICT)) {
        (Ok(theirs), Ok(own)) if theirs == own => None,
        _ => Some(format!("{file} is not read alike")),
    }
}
