//! The files of a model folder.

use std::fs;
use std::path::{Path, PathBuf};

use hf_gguf::{Parts, SourceTensor, Texts};
use tensor_dtype::TensorType;

use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::file_digest::sha256;
use crate::input::{Contents, Model, Rules, Tensor};
use crate::output::Run;
use crate::terminal::Console;

/// Most files and folders that are looked at.
const MAX_NAMES: usize = 100_000;
/// Most bytes of all texts; those of the largest published model have 60 MB.
const MAX_TEXTS: u64 = 512 << 20;

/// Whether this is a folder with the configuration of a language model.
pub(super) fn is_language_model(path: &Path) -> bool {
    path.join("config.json").is_file()
}

/// A folder whose texts were read, and whose files with tensors are open.
pub(super) struct Folder {
    path: PathBuf,
    pub(super) texts: Texts,
    pub(super) parts: Parts,
    models: Vec<Model>,
}

impl Folder {
    /// Reads the texts, and opens the files with tensors.
    ///
    /// # Errors
    ///
    /// If one cannot be read or is too large, or the folder has none with tensors.
    pub(super) fn open(path: &Path, rules: &Rules) -> Result<Self, Failure> {
        let mut texts = Texts::new(name(path));
        let names = listed(path)?;
        let mut left = MAX_TEXTS;
        for name in &names {
            if let Some(max_len) = Texts::max_len(name) {
                let bytes = durable_file::read(&path.join(name), max_len.min(left))?;
                left -= bytes.len() as u64;
                texts.insert(name, bytes);
            }
        }
        let in_folder = |error: hf_gguf::Error| Failure::from(error).in_file(path);
        let parts = Parts::find(&texts, names.iter().map(String::as_str)).map_err(in_folder)?;
        let models = parts.files.iter().map(|name| Model::open(&path.join(name), rules));
        let models = models.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Self { path: path.to_owned(), texts, parts, models })
    }

    /// The tensors of each file.
    ///
    /// # Errors
    ///
    /// If one cannot be listed.
    pub(super) fn tensors(&self) -> Result<Vec<Vec<Tensor<'_>>>, Failure> {
        self.models.iter().map(in_order).collect()
    }

    /// Their tables.
    ///
    /// # Errors
    ///
    /// For a tensor of a type that safetensors does not have.
    pub(super) fn tables(&self, tensors: &[Vec<Tensor<'_>>]) -> Result<Vec<Vec<SourceTensor>>, Failure> {
        let table = |(model, tensors): (&Model, &Vec<Tensor<'_>>)| {
            let of_tensor = |tensor: &Tensor<'_>| {
                let TensorType::Known(dtype) = tensor.dtype() else {
                    let what = format!("elements of type {} are not converted", tensor.dtype());
                    return Err(Failure::new(CODE_NOT_CARRIED, what)
                        .of_tensor(Some(tensor.name()))
                        .in_file(model.label()));
                };
                let shape = tensor.shape().iter().map(|&len| len as u64).collect();
                Ok(SourceTensor { name: tensor.name().to_owned(), dtype, shape })
            };
            tensors.iter().map(of_tensor).collect()
        };
        self.models.iter().zip(tensors).map(table).collect()
    }

    /// Keys that record where the new file comes from. A dry run needs only their lengths: the digests are zeros.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub(super) fn provenance(
        &self,
        options: String,
        run: Run,
        console: &Console,
    ) -> Result<Vec<(&'static str, String)>, Failure> {
        let names: Vec<&str> =
            ["config.json"].into_iter().chain(self.parts.files.iter().map(String::as_str)).collect();
        let lens = names.iter().filter_map(|name| Some(self.path.join(name).metadata().ok()?.len()));
        let mut progress = console.progress("hashing the source for its provenance record", lens.sum());
        progress.item("--no-provenance skips this");
        let lines = names.into_iter().map(|name| {
            let digest = match run {
                Run::Dry => "0".repeat(64),
                Run::Write => {
                    let digest = sha256(&self.path.join(name), |len| progress.advance(len))?;
                    base16ct::lower::encode_string(&digest)
                }
            };
            Ok(format!("{digest}  {name}"))
        });
        let lines = lines.collect::<Result<Vec<_>, Failure>>()?;
        Ok(vec![
            ("apr.convert.tool", concat!("apr ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("apr.convert.options", options),
            ("apr.convert.source.sha256", lines.join("\n")),
        ])
    }
}

/// The tensors of a file in its order.
fn in_order(model: &Model) -> Result<Vec<Tensor<'_>>, Failure> {
    let mut tensors = model.tensors()?;
    if let Contents::Foreign(file) = model.contents() {
        // Second names of tensors follow the first ones, wherever the file has them.
        tensors.sort_by_key(|tensor| file.model().position(tensor.name()));
    }
    Ok(tensors)
}

/// The name of a folder, however it was named.
fn name(path: &Path) -> String {
    let resolved = path.canonicalize();
    let name = path.file_name().or_else(|| resolved.as_deref().ok().and_then(Path::file_name));
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Names of the files of a folder, and of those of its folders that may be read, with `/`.
fn listed(path: &Path) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        let folder = path.join(&below);
        let failed = |error| Failure::io("list", &folder, &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let Ok(file_name) = entry.map_err(failed)?.file_name().into_string() else { continue };
            let name = format!("{below}{file_name}");
            let is_dir = path.join(&name).is_dir();
            if is_dir && below.is_empty() {
                folders.push(format!("{name}/"));
            } else if !is_dir && (below.is_empty() || Texts::max_len(&name).is_some()) {
                names.push(name);
            }
            if names.len() + folders.len() > MAX_NAMES {
                let what = "the folder has too many files to be that of a model";
                return Err(Failure::new(CODE_NOT_CARRIED, what).in_file(path));
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}
