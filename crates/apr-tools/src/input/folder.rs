//! Folders given where a model is expected.

use std::fs;
use std::path::Path;

use model_file::ModelFile;

use crate::checkpoints::Checkpoint;
use crate::error::{CODE_FOREIGN_FORMAT, Failure};
use crate::terminal::escape;
use crate::terminal::human::plural;

/// Endings of the files that this program reads.
const MODEL_ENDINGS: [&str; 4] = [".safetensors", ".apr", ".gguf", ".sealed"];

/// Most names in a message.
const NAMED: usize = 5;

/// Whether the folder itself can be read as a model: through an index of shards, or a `model.safetensors`.
pub(crate) fn holds_model(folder: &Path) -> bool {
    let is_index = |name: &String| name.ends_with(".index.json");
    folder.join("model.safetensors").exists()
        || names(folder).iter().any(is_index)
        || ModelFile::foreign_in(folder).is_some()
}

/// Of a folder without a model, the failure that says what is there instead; every other failure as it is.
pub(super) fn describe(failure: Failure, folder: &Path) -> Failure {
    if failure.code() != "sm-no-model" {
        let is_index = failure.file().and_then(Path::extension).is_some_and(|ending| ending == "json");
        return if is_index { super::index_failure(failure, folder) } else { failure };
    }
    let below = |name: &str| escape::path(&folder.join(name));
    let checkpoints = Checkpoint::all_below(folder);
    if let Some(last) = checkpoints.last() {
        let listed: Vec<String> = checkpoints.iter().map(Checkpoint::name).collect();
        let what =
            format!("the folder holds {}, not a model", plural(checkpoints.len() as u64, "checkpoint"));
        return Failure::new("sm-no-model", what)
            .in_file(folder)
            .because(some(&listed))
            .help(format!("name one of them, for example {}", below(&last.name())));
    }
    let names = names(folder);
    if let Some((title, help)) = foreign(folder, &names) {
        return Failure::new(CODE_FOREIGN_FORMAT, format!("the folder holds {title}"))
            .in_file(folder)
            .help(help);
    }
    if folder.join(".metadata").is_file() && names.iter().any(|name| name.ends_with(".distcp")) {
        return Failure::new(CODE_FOREIGN_FORMAT, "the folder holds a distributed checkpoint of PyTorch")
            .in_file(folder)
            .because("its files are parts of tensors, which only PyTorch puts together")
            .help(
                "make one file of it, which `apr convert` reads: \
                 python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER OUT.pt",
            );
    }
    let of_models = |name: &&String| MODEL_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let models: Vec<String> = names.iter().filter(of_models).cloned().collect();
    let of_set: Vec<(&String, u64)> = models
        .iter()
        .filter_map(|name| Some((name, set_size(name.strip_suffix(".safetensors")?)?)))
        .collect();
    if let Some((first, of)) = of_set.first() {
        let shards = match of_set.len() as u64 {
            count if count == *of => plural(count, "shard"),
            count => format!("{count} of {}", plural(*of, "shard")),
        };
        let index = first.split_once("-00").map_or("model", |(prefix, _)| prefix);
        return Failure::new("sm-no-model", format!("the folder has {shards}, and the index is missing"))
            .in_file(folder)
            .because(some(&models))
            .help(super::missing_index(folder).unwrap_or_else(|| format!(
                "get {index}.safetensors.index.json from where the shards come from; one shard alone can be named: {}",
                below(first)
            )));
    }
    let because =
        if names.is_empty() { "it is empty".to_owned() } else { format!("it has {}", some(&names)) };
    let failure = failure.because(because);
    let is_part = |name: &String| name.strip_suffix(".gguf").and_then(set_size).is_some();
    match models.first() {
        Some(first) if is_part(first) => failure
            .help(format!("join the shards first: apr unshard {} -o OUT.gguf", escape::path_word(folder))),
        Some(first) => failure.help(format!("name the file, for example {}", below(first))),
        None => failure,
    }
}

/// What a folder of another program holds, and what to do with it.
fn foreign(folder: &Path, names: &[String]) -> Option<(&'static str, String)> {
    let has = |name: &str| names.iter().any(|other| other == name);
    // Of a checkpoint with several items, each in a folder of its own.
    let has_orbax = |folder: &Path| {
        ["_CHECKPOINT_METADATA", "manifest.ocdbt", "_METADATA"].iter().any(|name| folder.join(name).is_file())
    };
    if has_orbax(folder) || has_orbax(&folder.join("default")) || has_orbax(&folder.join("params")) {
        let help = "`apr` does not read it: restore it with Orbax (orbax.checkpoint in Python) and save the arrays with \
             apr.safetensors.flax.save_file (a flat dict of arrays)";
        return Some(("a checkpoint of Orbax", help.to_owned()));
    }
    if has("Manifest.json") && folder.join("Data/com.apple.CoreML").is_dir() {
        let help = "`apr` does not read it: convert the original model, of which Core ML was made";
        return Some(("a Core ML package (.mlpackage)", help.to_owned()));
    }
    if has("MLmodel") {
        const MODELS: [&str; 12] = [
            "model.pkl",
            "model.joblib",
            "data/model.pth",
            "model.pth",
            "model.onnx",
            "data/model.keras",
            "data/model.h5",
            "model.skops",
            "model.ubj",
            "model.xgb",
            "model.lgb",
            "model.cb",
        ];
        let model = MODELS.iter().find(|name| folder.join(name).is_file());
        let help = match model {
            Some(model) => format!("name the model in it: {}", escape::path(&folder.join(model))),
            None => "name the model file in it: the file MLmodel says which it is".to_owned(),
        };
        return Some(("a model of MLflow", help));
    }
    None
}

/// How many files a set has by the name of one of them: `model-00001-of-00004` is one of 4.
fn set_size(stem: &str) -> Option<u64> {
    let (before, of) = stem.rsplit_once("-of-")?;
    let (_, number) = before.rsplit_once('-')?;
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(number) && is_number(of) { of.parse().ok() } else { None }
}

/// The first of some names, and how many more there are.
fn some(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named: Vec<String> = names.iter().take(NAMED).map(|name| escape::cut(name, 80)).collect();
    named.join(", ") + &more
}

/// Names in a folder, sorted; none of one that cannot be listed.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_shards_say_how_many_there_are() {
        assert_eq!(set_size("model-00001-of-00004"), Some(4));
        assert_eq!(set_size("a-b-000002-of-000012"), Some(12));
        for stem in ["model", "model-1-of-4", "model-00001", "model-0000x-of-00004", "-of-"] {
            assert_eq!(set_size(stem), None, "{stem}");
        }
    }
}
