//! Checkpoints of language models: what belongs to `apr convert`, and what is quantized already.

use std::path::{Path, PathBuf};

use hf_gguf::{coded_tensor, is_small_float};
use serde_json::Value;

use crate::error::{CODE_CODED, CODE_USAGE, Failure};
use crate::input::{Contents, Model, Tensor};
use crate::terminal::escape;

const CONFIG: &str = "config.json";
/// Most bytes of a configuration that are read.
const MAX_CONFIG: u64 = 16 << 20;

/// A folder whose `config.json` is that of a language model.
pub(super) struct LanguageModel {
    folder: PathBuf,
    /// Whether the folder is the input, and not a file in it.
    pub(super) is_input: bool,
    config: Value,
}

impl LanguageModel {
    /// The folder that the input is, or that its file is in.
    ///
    /// # Errors
    ///
    /// If the configuration cannot be read.
    pub(super) fn of(input: &Path) -> Result<Option<Self>, Failure> {
        let is_input = input.is_dir();
        let folder = if is_input { Some(input) } else { input.parent().filter(|_| input.is_file()) };
        let Some(folder) = folder else { return Ok(None) };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let path = folder.join(CONFIG);
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = durable_file::read(&path, MAX_CONFIG)?;
        let Ok(config) = serde_json::from_slice::<Value>(&bytes) else { return Ok(None) };
        let is_model = config.get("architectures").is_some() || config.get("model_type").is_some();
        Ok(is_model.then(|| Self { folder: folder.to_owned(), is_input, config }))
    }

    /// The command that makes a GGUF file of it.
    fn command(&self, output: &Path, type_name: &str) -> String {
        let [folder, output] = [&self.folder, output].map(|path| escape::word(&path.to_string_lossy()));
        format!("apr convert {folder} {output} --type {type_name}")
    }

    /// The refusal of the folder as input.
    pub(super) fn refused(&self, output: &Path, type_name: &str) -> Failure {
        let what = "a folder with config.json becomes a GGUF file by conversion: without names and keys of its architecture, no program runs the tensors";
        Failure::new(CODE_USAGE, what)
            .in_file(&self.folder)
            .help(format!("`{}` converts and quantizes in one step", self.command(output, type_name)))
    }

    /// The note on a file of the folder.
    pub(super) fn note(&self, output: &Path, type_name: &str) -> String {
        format!(
            "the new file has the tensors of a language model without its keys, and llama.cpp cannot run it; `{}` makes one that it runs",
            self.command(output, type_name)
        )
    }

    fn is_quantized(&self) -> bool {
        self.config.get("quantization_config").is_some_and(Value::is_object)
    }
}

/// Refuses tensors that are codes of another quantization, or their scales.
///
/// # Errors
///
/// The first such tensor.
pub(super) fn refuse_codes(
    model: &Model,
    tensors: &[Tensor<'_>],
    input: &Path,
    type_name: &str,
) -> Result<(), Failure> {
    if matches!(model.contents(), Contents::Gguf(_)) {
        return Ok(());
    }
    let folder = LanguageModel::of(input)?;
    let elements = tensors.iter().filter_map(|tensor| Some((tensor.name(), tensor.dtype().element()?)));
    let elements: Vec<_> = elements.collect();
    let found = coded_tensor(&elements).map(|found| (found.name, found.program));
    let is_declared = folder.as_ref().is_some_and(LanguageModel::is_quantized);
    let found = found.or_else(|| {
        // Their scales were lost.
        let codes = elements.iter().find(|(_, dtype)| is_small_float(*dtype));
        codes.filter(|_| is_declared).map(|(name, _)| (*name, "FP8"))
    });
    let Some((name, program)) = found else { return Ok(()) };
    let what = format!(
        "the model is quantized already ({program}): its tensors are codes and scales, and quantizing them makes it silently wrong"
    );
    let before = "quantize the model as it was before, its 16-bit or 32-bit file";
    Err(Failure::new(CODE_CODED, what).of_tensor(Some(name)).help(match folder {
        Some(folder) => format!(
            "`{}` decodes FP8, GPTQ, compressed-tensors and MXFP4; of other methods, {before}",
            folder.command(Path::new("OUT.gguf"), type_name)
        ),
        None => before.to_owned(),
    }))
}
