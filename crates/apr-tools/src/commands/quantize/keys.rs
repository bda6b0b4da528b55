//! The keys of the new file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use apr_convert::Importance;
use apr_convert::quantize::Target;
use gguf_core::{GgufBuilder, Header};

use super::Args;
use crate::args::glob::Glob;
use crate::error::{CODE_USAGE, Failure};
use crate::file_digest::sha256;
use crate::input::{Contents, Model};
use crate::output::Run;
use crate::terminal::Console;

/// Keys that llama-quantize sets again, after all others.
const VERSION: &str = "general.quantization_version";
const FILE_TYPE: &str = "general.file_type";
/// The version of ggml's blocks.
const BLOCKS_VERSION: u32 = 2;
/// Maximum bytes of a string that llama-quantize writes to a key.
const MAX_OVERRIDE: usize = 127;

/// Refuses one file of several: tensors of the others would be missing.
///
/// # Errors
///
/// If the keys say so.
pub(super) fn refuse_part(header: &Header<'_>) -> Result<(), Failure> {
    let count = header.get("split.count").and_then(|value| value.to_u64()).unwrap_or(0);
    if count < 2 {
        return Ok(());
    }
    Err(Failure::new(CODE_USAGE, format!("this is one of {count} files of a model"))
        .help("join them first: apr unshard FIRST -o OUT.gguf"))
}

/// Appends the keys as llama-quantize does.
///
/// # Errors
///
/// None of those that the builder has: the keys are valid.
pub(crate) fn set_file_type(
    builder: &mut GgufBuilder,
    target: Target,
    imatrix: Option<(&Path, &Importance)>,
) -> Result<(), Failure> {
    for key in [VERSION, FILE_TYPE, "split.no", "split.count", "split.tensors.count"] {
        builder.remove(key);
    }
    builder.set(VERSION, BLOCKS_VERSION)?;
    builder.set(FILE_TYPE, target.file_type().0)?;
    let Some((path, importance)) = imatrix else { return Ok(()) };
    builder.set("quantize.imatrix.file", cut(&path.to_string_lossy()))?;
    if let Some(dataset) = importance.datasets().first() {
        builder.set("quantize.imatrix.dataset", cut(dataset))?;
    }
    builder.set("quantize.imatrix.entries_count", u32::try_from(importance.len()).unwrap_or(u32::MAX))?;
    if let Some(chunks) = importance.chunks() {
        builder.set("quantize.imatrix.chunks_count", chunks)?;
    }
    Ok(())
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_OVERRIDE.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The options that decide about the bytes, as they were given.
pub(super) fn options_text(args: &Args) -> String {
    let mut words = vec![format!("--type {}", args.type_name)];
    let mut values = |name: &str, values: &mut dyn Iterator<Item = &str>| {
        words.extend(values.map(|value| format!("--{name} {value}")));
    };
    values("tensor-type", &mut args.tensor_type.iter().map(String::as_str));
    values("output-tensor-type", &mut args.output_tensor_type.iter().map(String::as_str));
    values("token-embedding-type", &mut args.token_embedding_type.iter().map(String::as_str));
    values("select", &mut args.selection.select().map(Glob::pattern));
    values("exclude", &mut args.selection.exclude().map(Glob::pattern));
    let flags = [
        ("leave-output-tensor", args.leave_output_tensor),
        ("pure", args.pure),
        ("allow-requantize", args.allow_requantize),
    ];
    words.extend(flags.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| format!("--{name}")));
    if let Some(path) = &args.imatrix {
        words.push(format!("--imatrix {}", path.file_name().unwrap_or(OsStr::new("-")).to_string_lossy()));
    }
    words.join(" ")
}

/// The recorded origin of a file. A dry run needs only its length: the digests are zeros.
///
/// # Errors
///
/// If a file cannot be read.
pub(super) fn provenance(
    model: &Model,
    options: String,
    imatrix: Option<&Path>,
    run: Run,
    console: &Console,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut keys = vec![
        ("apr.quantize.tool", concat!("apr ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("apr.quantize.options", options),
        ("apr.quantize.source.format", model.format().id().to_owned()),
        ("apr.quantize.source.sha256", source_digest(model, run, console)?),
    ];
    if let Some(path) = imatrix {
        keys.push(("apr.quantize.imatrix.sha256", digest(path, run, |_| ())?));
    }
    Ok(keys)
}

/// SHA-256 of the file; of several, a line for each as `sha256sum` has it.
fn source_digest(model: &Model, run: Run, console: &Console) -> Result<String, Failure> {
    let parts = model.parts()?;
    let mut files: Vec<(Option<&str>, PathBuf)> =
        parts.iter().map(|part| (part.shard, part.file.path().to_owned())).collect();
    if !matches!(model.contents(), Contents::SafeTensors(_)) {
        files.push((None, model.path().to_owned()));
    }
    let lens = files.iter().filter_map(|(_, path)| Some(path.metadata().ok()?.len()));
    let mut progress = console.progress("hashing the source for its provenance record", lens.sum());
    progress.item("--no-provenance skips this");
    let lines = files.iter().map(|(name, path)| {
        let digest = digest(path, run, |len| progress.advance(len))?;
        Ok(name.map_or_else(|| digest.clone(), |name| format!("{digest}  {name}")))
    });
    Ok(lines.collect::<Result<Vec<_>, Failure>>()?.join("\n"))
}

fn digest(path: &Path, run: Run, advance: impl FnMut(usize)) -> Result<String, Failure> {
    if run == Run::Dry {
        return Ok("0".repeat(64));
    }
    Ok(base16ct::lower::encode_string(&sha256(path, advance)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"x".repeat(200)).len(), 127);
        assert_eq!(cut(&"\u{e9}".repeat(100)).len(), 126);
        assert_eq!(cut(""), "");
    }
}
