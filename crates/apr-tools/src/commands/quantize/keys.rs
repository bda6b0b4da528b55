//! The keys of the new file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use apr_convert::Importance;
use apr_convert::quantize::Target;
use gguf_core::{GgufBuilder, Header};

use super::Args;
use crate::args::glob::Glob;
use crate::error::{CODE_USAGE, Failure};
use crate::file_digest::{Source, placeholders};
use crate::input::{Contents, Model};

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

/// The options that decide about the bytes, as they were given; of an importance matrix, the file that was used.
pub(super) fn options_text(args: &Args, imatrix: Option<&Path>) -> String {
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
    if let Some(path) = imatrix {
        words.push(format!("--imatrix {}", path.file_name().unwrap_or(OsStr::new("-")).to_string_lossy()));
    }
    words.join(" ")
}

/// What is recorded of the origin of a file.
#[derive(Debug)]
pub(super) struct Record {
    options: String,
    format: &'static str,
    /// The files of the source; those of several with their names.
    files: Vec<(Option<String>, PathBuf)>,
    imatrix: Option<PathBuf>,
}

impl Record {
    /// Of a model that is quantized with these options.
    ///
    /// # Errors
    ///
    /// If the files of the model cannot be listed.
    pub(super) fn new(model: &Model, options: String, imatrix: Option<&Path>) -> Result<Self, Failure> {
        let parts = model.parts()?;
        let mut files: Vec<(Option<String>, PathBuf)> =
            parts.iter().map(|part| (part.shard.map(str::to_owned), part.file.path().to_owned())).collect();
        if !matches!(model.contents(), Contents::SafeTensors(_)) {
            files.push((None, model.path().to_owned()));
        }
        Ok(Self { options, format: model.format().id(), files, imatrix: imatrix.map(Path::to_owned) })
    }

    /// The files whose digests [`keys`](Self::keys) takes.
    pub(super) fn sources(&self) -> Vec<Source> {
        self.files.iter().map(|(_, path)| path).chain(&self.imatrix).cloned().map(Source::File).collect()
    }

    /// Keys of the same lengths, before the sources are hashed.
    pub(super) fn planned(&self) -> Vec<(&'static str, String)> {
        self.keys(&placeholders(self.sources().len()))
    }

    /// The keys with the digests of the sources. Of several files, there is a line for each as `sha256sum` has it.
    pub(super) fn keys(&self, digests: &[String]) -> Vec<(&'static str, String)> {
        let lines = self.files.iter().zip(digests).map(|((name, _), digest)| match name {
            Some(name) => format!("{digest}  {name}"),
            None => digest.clone(),
        });
        let mut keys = vec![
            ("apr.quantize.tool", concat!("apr ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("apr.quantize.options", self.options.clone()),
            ("apr.quantize.source.format", self.format.to_owned()),
            ("apr.quantize.source.sha256", lines.collect::<Vec<_>>().join("\n")),
        ];
        let imatrix = digests.get(self.files.len()).filter(|_| self.imatrix.is_some());
        keys.extend(imatrix.map(|digest| ("apr.quantize.imatrix.sha256", digest.clone())));
        keys
    }
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
