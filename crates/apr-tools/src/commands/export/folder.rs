//! `apr export --format hf`: the folder of the Hugging Face hub that a GGUF model came from.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use durable_file::StagedDir;
use hf_gguf::{Keys, Output, Part, Producer, Restoration, RestoreOptions, SourceTensor, Texts};
use model_file::entries::OF_GGUF;
use serde::Serialize;
use st_core::{Layout, TensorSpec, WriteOptions};
use tensor_dtype::Dtype;

use crate::error::{
    CODE_FOREIGN_FORMAT, CODE_NO_SPACE, CODE_NOT_CARRIED, CODE_OUTPUT_EXISTS, CODE_OUTPUT_KIND, CODE_USAGE,
    Exit, Failure,
};
use crate::input::{Contents, Model, Rules, Tensor};
use crate::output::check_inputs;
use crate::output::{self, Destination, Overwrite, Run};
use crate::remote;
use crate::report::{Report, Written};
use crate::terminal::escape;
use crate::terminal::human::{bytes, exact_bytes, plural};
use crate::terminal::{Console, Progress};

/// Most differences that are told one by one.
const MAX_TOLD: usize = 12;

/// A value of `--dtype`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum FolderType {
    F32,
    F16,
    Bf16,
}

impl FolderType {
    const fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::Bf16 => Dtype::Bf16,
        }
    }
}

/// What to write, and how.
pub(super) struct Request<'a> {
    pub(super) input: &'a Path,
    pub(super) output: &'a Path,
    pub(super) rules: Rules,
    pub(super) dtype: Option<FolderType>,
    pub(super) overwrite: Overwrite,
    pub(super) run: Run,
}

/// Writes the folder.
///
/// # Errors
///
/// If the model is no GGUF file of an architecture that folders are made of, cannot be read, or the folder cannot be written.
pub(super) fn run(request: &Request<'_>, console: &mut Console) -> Result<Exit, Failure> {
    let &Request { input, output, overwrite, run, .. } = request;
    check_inputs([input])?;
    check_folder(output, overwrite)?;
    let model = Model::open(input, &request.rules)?;
    let Contents::Gguf(file) = model.contents() else {
        let what = format!("this is {}, not GGUF", model.format().title());
        let failure = Failure::new(CODE_FOREIGN_FORMAT, what).in_file(model.label());
        return Err(failure.help(match model.contents() {
            Contents::AprV2(_) if model.entries()?.entries.contains_key(OF_GGUF) => {
                "folders are made of GGUF files: `apr convert MODEL MODEL.gguf` makes the one that the keys of this file are of"
            }
            _ => "folders are made of GGUF files: `apr export MODEL --format safetensors` writes the tensors",
        }));
    };
    let in_model = |failure: Failure| failure.in_file(model.label());
    let header = file.header().map_err(Failure::from).map_err(in_model)?;
    if header.get("split.count").and_then(|value| value.to_u64()).is_some_and(|count| count > 1) {
        return Err(Failure::new(CODE_USAGE, "the file is one of several of a model")
            .in_file(model.label())
            .help("join them first: apr unshard FOLDER -o MODEL.gguf"));
    }
    let (keys, left_out) = Keys::from_header(&header);
    let tensors = numbers(&model)?;
    let table = tensors.iter().map(|(table, _)| table.clone()).collect::<Vec<_>>();
    let values = generated(&table, &tensors)?;
    let mut options = RestoreOptions::default();
    options.dtype = request.dtype.map(FolderType::dtype);
    let restoration = Restoration::new(&keys, &table, &values, &options);
    let restoration = restoration.map_err(Failure::from).map_err(advised).map_err(in_model)?;
    let mut files = Vec::with_capacity(restoration.parts().len());
    for part in restoration.parts() {
        files.push(NewFile { part, layout: layout(part)? });
    }
    let folder = NewFolder { restoration: &restoration, files, tensors: &tensors };
    let flaws = match run {
        Run::Write => {
            folder.check_space(output)?;
            folder.write(output, overwrite, console)?
        }
        Run::Dry => hf_gguf::Flaws::default(),
    };
    print(&Made { request, model: &model, folder: &folder, left_out: &left_out, flaws }, console)?;
    Ok(Exit::Success)
}

/// The failure, with advice about the GGUF file: that of most codes is about a folder, which this one is planned as.
fn advised(failure: Failure) -> Failure {
    const OF_FILES: [&str; 5] = [
        "hg-key-missing",
        "hg-key-value",
        "hg-restore-architecture",
        "hg-restore-factors",
        "hg-stored-tensor",
    ];
    match failure.code() {
        code if code.starts_with("hg-") && !OF_FILES.contains(&code) => failure.help(
            "no folder can be made of the keys and tensors of this file, which `apr inspect` lists: take another file, or write \
             the tensors alone with --format safetensors",
        ),
        _ => failure,
    }
}

/// Refuses, before any work is done, a folder that could not be written in the end.
fn check_folder(path: &Path, overwrite: Overwrite) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "a folder is not written to standard output"));
    }
    remote::refuse_folder(path)?;
    let Ok(found) = path.metadata() else {
        return match path.symlink_metadata() {
            Ok(_) => Err(Failure::new(CODE_OUTPUT_KIND, "the output is a link to nothing").in_file(path)),
            Err(_) => Ok(()),
        };
    };
    if !found.is_dir() {
        return Err(Failure::new(CODE_OUTPUT_KIND, "the output exists and is not a folder").in_file(path));
    }
    let mut entries = fs::read_dir(path).map_err(|error| Failure::io("list the folder", path, &error))?;
    match overwrite {
        Overwrite::Refuse if entries.next().is_some() => {
            Err(Failure::new(CODE_OUTPUT_EXISTS, "the output exists and is not empty")
                .in_file(path)
                .help("--force replaces the files of a model in it, and leaves others"))
        }
        _ => Ok(()),
    }
}

/// The tensors of a file as its header has them, and as numbers.
type Numbers<'m> = Vec<(SourceTensor, Tensor<'m>)>;

fn numbers(model: &Model) -> Result<Numbers<'_>, Failure> {
    let tensors = model.tensors()?.into_iter();
    tensors.map(|tensor| Ok((tensor.as_source()?, tensor.dequantized(Dtype::F32)?))).collect()
}

/// The values of the tensors that the configuration gives.
fn generated(table: &[SourceTensor], tensors: &Numbers<'_>) -> Result<BTreeMap<String, Vec<f32>>, Failure> {
    let mut values = BTreeMap::new();
    for (source, tensor) in Restoration::needed(table).into_iter().filter_map(|number| tensors.get(number)) {
        let tensor = tensor.widened()?;
        // As short as the library says that such tensors are.
        let mut raw = vec![0; usize::try_from(tensor.byte_len()).unwrap_or_default()];
        tensor.read(0, &mut raw)?;
        let numbers = raw.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        values.insert(source.name.clone(), numbers.collect());
    }
    Ok(values)
}

/// The offsets of a file of tensors.
fn layout(part: &Part) -> Result<Layout, Failure> {
    let shape = |output: &Output| {
        let dims = output.shape.iter().map(|&len| usize::try_from(len));
        dims.collect::<Result<Vec<usize>, _>>().map_err(|_| {
            Failure::new(CODE_NOT_CARRIED, "a dimension is too large for this computer")
                .of_tensor(Some(&output.name))
        })
    };
    let shapes = part.tensors.iter().map(shape).collect::<Result<Vec<_>, Failure>>()?;
    let specs = part.tensors.iter().zip(&shapes);
    let specs = specs.map(|(output, shape)| TensorSpec { name: &output.name, dtype: output.dtype, shape });
    // Without this entry transformers does not load the file.
    let metadata = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
    Ok(Layout::new(specs, &WriteOptions { metadata: Some(metadata), ..WriteOptions::default() })?)
}

/// A file of tensors to be.
struct NewFile<'r> {
    part: &'r Part,
    layout: Layout,
}

/// A folder to be.
struct NewFolder<'r> {
    restoration: &'r Restoration,
    files: Vec<NewFile<'r>>,
    tensors: &'r Numbers<'r>,
}

impl NewFolder<'_> {
    /// Bytes of all files.
    fn len(&self) -> u64 {
        let texts = self.restoration.texts().map(|(_, bytes)| bytes.len() as u64);
        self.files.iter().map(|file| file.layout.file_len()).chain(texts).sum()
    }

    fn check_space(&self, path: &Path) -> Result<(), Failure> {
        let above = path.ancestors().skip(1).find(|folder| !folder.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        match durable_file::available_space(above) {
            Some(available) if available < self.len() => {
                let (needed, available) = (bytes(self.len()), bytes(available));
                let what = format!("the new folder has {needed}, and the disk has space for {available}");
                Err(Failure::new(CODE_NO_SPACE, what).in_file(above))
            }
            _ => Ok(()),
        }
    }

    /// Writes all files. A new folder appears as a whole; in one that exists, files of an older model that would be read beside the new ones
    /// are removed at the end.
    fn write(&self, path: &Path, overwrite: Overwrite, console: &Console) -> Result<hf_gguf::Flaws, Failure> {
        let mut progress = console.progress("writing", self.len());
        if !path.exists() {
            let staged = StagedDir::create(path)?;
            let filled = self.fill(staged.path(), overwrite, &mut progress, console);
            let flaws = filled.map_err(|failure| failure.moved(staged.path(), path))?;
            staged.commit()?;
            return Ok(flaws);
        }
        let flaws = self.fill(path, overwrite, &mut progress, console)?;
        output::remove_old(&self.stale(path)?, console)?;
        Ok(flaws)
    }

    fn fill(
        &self,
        folder: &Path,
        overwrite: Overwrite,
        progress: &mut Progress,
        console: &Console,
    ) -> Result<hf_gguf::Flaws, Failure> {
        let mut producer = Producer::new();
        for NewFile { part, layout } in &self.files {
            console.detail(format_args!("writing {}", part.name));
            let place = Destination::File(folder.join(&part.name));
            place.write(layout, overwrite, |planned, sink| {
                let Some(output) = part.tensors.get(planned.input_idx) else {
                    return Err(io::Error::other("a tensor that was not given"));
                };
                progress.item(&output.name);
                let mut broken = None;
                let made = producer.run(
                    output,
                    self.restoration.inputs(),
                    |number, offset, buf| match self.tensors.get(number) {
                        Some((_, tensor)) => tensor.read(offset, buf),
                        // Rows that the file does not have.
                        None => {
                            buf.fill(0);
                            Ok(())
                        }
                    },
                    |piece, _| {
                        progress.advance(piece.len());
                        sink.write_all(piece).map_err(|error| {
                            let failure = place.write_failure(&error);
                            broken = Some(error);
                            failure
                        })
                    },
                );
                match (broken, made) {
                    (Some(error), _) => Err(error),
                    (None, made) => Ok(made?),
                }
            })?;
        }
        for (name, text) in self.restoration.texts() {
            let path = folder.join(name);
            if let Some(above) = path.parent().filter(|above| *above != folder) {
                fs::create_dir_all(above).map_err(|error| Failure::io("make the folder", above, &error))?;
            }
            output::write_file(&path, text, overwrite)?;
        }
        Ok(producer.flaws())
    }

    /// Files in the folder that a conversion would read and that are not new.
    fn stale(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        output::old_files(folder, |name| {
            let is_new = self.files.iter().any(|file| file.part.name == name)
                || self.restoration.texts().any(|(own, _)| own == name);
            let is_of_tensors = [("model", ".safetensors"), ("pytorch_model", ".bin")]
                .iter()
                .any(|(begin, end)| name.starts_with(begin) && name.ends_with(end));
            !is_new && (is_of_tensors || Texts::max_len(name).is_some())
        })
    }
}

/// What was made, or would be.
struct Made<'a> {
    request: &'a Request<'a>,
    model: &'a Model,
    folder: &'a NewFolder<'a>,
    left_out: &'a [String],
    flaws: hf_gguf::Flaws,
}

impl Made<'_> {
    /// The options with which the folder becomes the same file again.
    fn options(&self) -> Option<String> {
        let restoration = self.folder.restoration;
        let output_type = restoration.output_type()?;
        let mut options = format!("--type {output_type}");
        if let Some(pre) = restoration.needs_pre() {
            options += &format!(" --pre {}", escape::word(pre));
        }
        Some(options)
    }

    fn differences(&self) -> Vec<String> {
        let left_out = self.left_out.iter().map(|name| format!("{name} is left out"));
        self.folder.restoration.differences().iter().cloned().chain(left_out).collect()
    }
}

/// Tells it, as text or as JSON.
fn print(made: &Made<'_>, console: &mut Console) -> Result<(), Failure> {
    let Made { request, model, folder, flaws, .. } = made;
    let restoration = folder.restoration;
    let n_tensors = restoration.parts().iter().map(|part| part.tensors.len() as u64).sum();
    let differences = made.differences();
    let options = made.options();
    if console.is_json() {
        let files = folder.files.iter().map(|file| FileRow {
            file: &file.part.name,
            tensors: file.part.tensors.len() as u64,
            bytes: file.layout.file_len(),
        });
        return console.report(&FolderReport {
            file: Written::new(model.label(), request.output, request.run, folder.len()),
            class: restoration.class(),
            tensors: n_tensors,
            overflowed: flaws.overflowed,
            not_finite: flaws.not_finite,
            files: files.collect(),
            texts: restoration.texts().map(|(name, _)| Cow::Borrowed(name)).collect(),
            options: options.as_deref(),
            pre: restoration.needs_pre(),
            differences: &differences,
            notes: restoration.notes(),
        });
    }
    for note in restoration.notes() {
        console.remark(escape::escaped(note));
    }
    if flaws.overflowed > 0 {
        let count = plural(flaws.overflowed, "value");
        console.remark(format_args!(
            "{count} beyond the range of F16 became infinite; --dtype bf16 or f32 keeps them"
        ));
    }
    for difference in differences.iter().take(MAX_TOLD) {
        console.remark(format_args!("converted back: {}", escape::escaped(difference)));
    }
    if let Some(more @ 1..) = differences.len().checked_sub(MAX_TOLD) {
        console.remark(format_args!("converted back: {more} more differences, which --json lists"));
    }
    if let Some(options) = &options {
        let options = escape::escaped(options);
        console
            .remark(format_args!("converts back with: apr convert DIR OUT.gguf {options} --no-provenance"));
    }
    let text = format!(
        "{}: {}, {} in {}, {}",
        escape::path(request.output),
        restoration.class(),
        plural(n_tensors, "tensor"),
        plural(folder.files.len() as u64, "file"),
        exact_bytes(folder.len()),
    );
    request.run.tell(&text, console)
}

/// The report.
#[derive(Serialize)]
struct FolderReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    class: &'a str,
    tensors: u64,
    overflowed: u64,
    not_finite: u64,
    files: Vec<FileRow<'a>>,
    texts: Vec<Cow<'a, str>>,
    options: Option<&'a str>,
    pre: Option<&'a str>,
    differences: &'a [String],
    notes: &'a [String],
}

impl Report for FolderReport<'_> {
    const SCHEMA: &'static str = "apr.export-folder/1";
}

#[derive(Serialize)]
struct FileRow<'a> {
    file: &'a str,
    tensors: u64,
    bytes: u64,
}
