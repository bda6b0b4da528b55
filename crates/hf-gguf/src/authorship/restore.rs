//! The way back: front matter and settings of sampling that give the same keys.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use json_scan::Escape;

use super::name::Names;
use super::{FIELDS, Kind, MAX_ENTRIES, SAMPLING, SOURCE_FIELDS, Source, source_of};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::keys::{Keys, Value};
use crate::restore::{Stored, float, int, text};
use crate::texts::Texts;

/// Strings that the name of the folder gives unless the front matter has them: what the file does not have is empty there.
const OF_FOLDERS: [&str; 6] = ["name", "version", "organization", "finetune", "basename", "size_label"];

/// Writes `README.md`, and `generation_config.json` if the file has settings of sampling.
/// # Errors
///
/// Those of [`Names::new`].
pub(crate) fn restore(stored: &Stored<'_>, texts: &mut Texts) -> Result<(), Error> {
    let keys = stored.keys();
    texts.insert("README.md", card(keys, &Names::new()?, stored.n_elements()).into_bytes());
    let mut config = Object::default();
    for (key, names, kind) in SAMPLING {
        let value = match (kind, keys.get(&format!("general.sampling.{key}"))) {
            (Kind::Text, Some(Value::String(own))) => text(own),
            (Kind::Integer, Some(Value::I32(number))) => int(*number),
            (Kind::Float, Some(Value::F32(number))) => float(*number),
            _ => continue,
        };
        // The last name is that of transformers.
        config.set(names.last().copied().unwrap_or_default(), value);
    }
    if config.is_empty() {
        return Ok(());
    }
    config.set("do_sample", Json::Bool(true));
    for (name, key) in [
        ("bos_token_id", "tokenizer.ggml.bos_token_id"),
        ("eos_token_id", "tokenizer.ggml.eos_token_id"),
        ("pad_token_id", "tokenizer.ggml.padding_token_id"),
    ] {
        if let Some(id) = keys.get(key).and_then(Value::as_u32) {
            config.set(name, int(id));
        }
    }
    config.set("transformers_version", text(crate::TRANSFORMERS));
    texts.insert("generation_config.json", Json::Object(config).to_text().into_bytes());
    Ok(())
}

/// The text of README.md.
fn card(keys: &Keys, forms: &Names, n_elements: u64) -> String {
    let own = |key: &str| keys.get(&format!("general.{key}")).and_then(Value::as_str);
    let mut lines: Vec<String> = vec!["---".into()];
    for field in &FIELDS {
        let Some(name) = field.names.first() else { continue };
        match own(field.key) {
            Some(value) => lines.push(format!("{name}: {}", quoted(value))),
            None if OF_FOLDERS.contains(&field.key) => lines.push(format!("{name}: \"\"")),
            None => {}
        }
    }
    let total = i64::try_from(n_elements).unwrap_or(i64::MAX);
    add_sources(&mut lines, keys, forms, "base_model", ["base_model", "base_model_sources"], total);
    add_sources(&mut lines, keys, forms, "dataset", ["datasets", "dataset_sources"], total);
    for (key, name) in [("tags", "tags"), ("languages", "language")] {
        if let Some(Value::Strings(items)) = keys.get(&format!("general.{key}")) {
            lines.push(format!("{name}:"));
            lines.extend(items.iter().map(|item| format!("- {}", quoted(item))));
        }
    }
    lines.push("---".into());
    lines.push(String::new());
    lines.push(format!("# {}", own("name").unwrap_or("Model").replace(['\n', '\r'], " ")));
    lines.push(String::new());
    lines.push("Made of a GGUF file with `apr export --format hf`.".into());
    lines.join("\n") + "\n"
}

/// Base models or datasets: as their names on the hub if these give the same strings, else string by string.
fn add_sources(lines: &mut Vec<String>, keys: &Keys, forms: &Names, key: &str, names: [&str; 2], total: i64) {
    let count = keys.get(&format!("general.{key}.count")).and_then(Value::as_u32);
    let Some(count) = count.filter(|count| *count as usize <= MAX_ENTRIES) else { return };
    let source = |idx| {
        SOURCE_FIELDS.map(|field| {
            keys.get(&format!("general.{key}.{idx}.{field}")).and_then(Value::as_str).map(ToString::to_string)
        })
    };
    let sources: Vec<Source> = (0..count).map(source).collect();
    let ids: Option<Vec<String>> = sources.iter().map(|source| id_of(source, forms, total)).collect();
    let [name, by_field] = names;
    if sources.is_empty() {
        lines.push(format!("{name}: []"));
    } else if let Some(ids) = ids {
        lines.push(format!("{name}:"));
        lines.extend(ids.iter().map(|id| format!("- {}", quoted(id))));
    } else {
        lines.push(format!("{by_field}:"));
        for source in sources {
            let mut begin = "- ";
            for (field, value) in SOURCE_FIELDS.iter().zip(source) {
                if let Some(value) = value {
                    lines.push(format!("{begin}{field}: {}", quoted(&value)));
                    begin = "  ";
                }
            }
            if begin == "- " {
                lines.push("- null".into());
            }
        }
    }
}

/// The name on the hub, or the address, that gives this source.
fn id_of(source: &Source, forms: &Names, total: i64) -> Option<String> {
    let [name, .., repo_url] = source;
    let on_hub = repo_url.as_deref().and_then(|url| url.strip_prefix("https://huggingface.co/"));
    let plain = name.as_deref().filter(|_| repo_url.is_none());
    let candidates =
        [on_hub.map(String::from), repo_url.clone(), plain.map(|name| name.replace(' ', "-")), {
            plain.map(|name| name.replace(' ', "-").to_lowercase())
        }];
    candidates.into_iter().flatten().find(|id| source_of(id, forms, total) == *source)
}

/// A string in quotes, as YAML and JSON have it.
fn quoted(value: &str) -> String {
    let mut out = String::new();
    json_scan::push_string(&mut out, value, Escape::Hazards);
    out
}
