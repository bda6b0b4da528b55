//! What to know about a GGUF file: which programs run it, by its architecture, and what is missing.

use std::path::{Path, PathBuf};

use gguf_core::Header;
use hf_gguf::Json;
use model_file::entries::{ARCHITECTURE, UNKNOWN_ARCHITECTURE};

use crate::terminal::human::plural;

/// Most bytes of a config.json that is looked at.
const MAX_CONFIG: u64 = 1 << 20;

/// The folder of a language model that is converted to GGUF: the folder itself, or the one that a file with tensors of the model is in.
pub(crate) fn model_folder(path: &Path) -> Option<PathBuf> {
    let folder = if path.is_dir() {
        path
    } else {
        let name = path.file_name()?.to_str()?;
        let is_part = ["model", "pytorch_model"].iter().any(|begin| name.starts_with(begin));
        let parent = path.parent().filter(|_| is_part)?;
        if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
    };
    let config = durable_file::read(&folder.join("config.json"), MAX_CONFIG).ok()?;
    let config = Json::from_bytes("config.json", &config).ok()?;
    let class = config.get("architectures")?.as_array()?.first()?.as_str()?;
    hf_gguf::classes().any(|(own, _)| own == class).then(|| folder.to_owned())
}

/// Note that programs cannot run a GGUF file whose architecture is missing or unknown, and whether `apr predict` can (`model` is its
/// `apr.model`); `None` if the file names an architecture.
pub(crate) fn note_on_architecture(architecture: Option<&str>, model: Option<&str>) -> Option<String> {
    match architecture {
        Some(UNKNOWN_ARCHITECTURE) => {
            Some(cannot_run(&format!("the architecture of the file is `{UNKNOWN_ARCHITECTURE}`"), model))
        }
        Some(_) => None,
        None => Some(cannot_run("the file names no architecture", model)),
    }
}

fn cannot_run(why: &str, model: Option<&str>) -> String {
    let predicts = model.is_some_and(|name| apr_models::AnyModel::NAMES.contains(&name));
    let and = if predicts { " and `apr predict` predicts with it" } else { "" };
    format!(
        "{why} ({ARCHITECTURE}): programs that read GGUF find the tensors{and}, but llama.cpp cannot run the model"
    )
}

/// [`note_on_architecture`] for a file with this header; `None` for the later files of a split model, which have no architecture of their own.
pub(crate) fn note_on_header(header: &Header<'_>) -> Option<String> {
    if header.get("split.no").and_then(|value| value.to_u64()).is_some_and(|number| number > 0) {
        return None;
    }
    let model = header.get(apr_models::MODEL_KEY).and_then(|value| value.as_str());
    match header.get(ARCHITECTURE) {
        Some(value) if value.as_str().is_none() => {
            let kind = value.value_type();
            Some(cannot_run(
                &format!("the architecture of the file is a value of type {kind}, not a string"),
                model,
            ))
        }
        value => note_on_architecture(value.and_then(|value| value.as_str()), model),
    }
}

/// Which part of a model a file with this header is, from 1, and of how many.
pub(crate) fn part(header: &Header<'_>) -> Option<(u64, u64)> {
    let number = |key| header.get(key).and_then(|value| value.to_u64());
    let count = number("split.count").filter(|count| *count > 1)?;
    Some((number("split.no")?.saturating_add(1), count))
}

/// That a file is not the whole model.
pub(crate) fn note_on_part(header: &Header<'_>) -> Option<String> {
    let (number, count) = part(header)?;
    Some(format!(
        "this is shard {number} of {count}: the other files hold the rest of the model; `apr unshard` joins them"
    ))
}

/// That names of tensors will be other ones.
pub(crate) fn note_on_names(header: &Header<'_>) -> Option<String> {
    let count = header.tensors().iter().filter(|info| info.name().to_str().is_err()).count() as u64;
    let names = plural(count, "name");
    (count > 0).then(|| format!("{names} of tensors not UTF-8: what is not is escaped, as \\xff"))
}
