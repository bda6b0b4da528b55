//! Writes tensors of a model to a new file: shared by `convert`, `shard` and `unshard`.

use std::io;

use model_file::entries::Entries;
use serde::Serialize;
use serde_json::value::RawValue;
use st_core::{Change, Layout, TensorSpec, WriteOptions};

use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::input::{Format, Model, Tensor, decodable};
use crate::output::{Destination, Overwrite, Run};
use crate::report::{Report, Written};
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, grouped, plural};
use crate::terminal::{Console, Progress};

/// Most parts that are named of what the output does not hold.
const MAX_LOST: usize = 12;

/// A file to be: which tensors under which names, and every offset.
pub(crate) struct Plan<'m> {
    tensors: Vec<Tensor<'m>>,
    pub(crate) layout: Layout,
}

impl<'m> Plan<'m> {
    /// Lays out tensors under their new names.
    ///
    /// # Errors
    ///
    /// If two tensors have one name, or the header would be too large.
    pub(crate) fn new<'n>(
        tensors: impl IntoIterator<Item = (&'n str, Tensor<'m>)>,
        options: &WriteOptions,
    ) -> Result<Self, Failure>
    where
        'm: 'n,
    {
        let (names, tensors): (Vec<&str>, Vec<Tensor<'m>>) = tensors.into_iter().unzip();
        let specs = names.iter().zip(&tensors).map(|(name, tensor)| {
            let dtype = tensor.dtype().element().ok_or_else(|| not_carried(tensor))?;
            Ok(TensorSpec { name, dtype, shape: tensor.shape() })
        });
        let specs = specs.collect::<Result<Vec<_>, Failure>>()?;
        let layout = Layout::new(specs, options)?;
        Ok(Self { tensors, layout })
    }

    /// Copies the bytes of the tensors, a chunk at a time.
    ///
    /// # Errors
    ///
    /// If the input cannot be read or the output not be written; an old output stays as it was.
    pub(crate) fn write(
        &self,
        destination: &Destination,
        overwrite: Overwrite,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut buf = Vec::new();
        destination.write(&self.layout, overwrite, |planned, sink| {
            let Some(tensor) = self.tensors.get(planned.input_idx) else {
                return Err(io::Error::other("a tensor that was not given"));
            };
            progress.item(tensor.name());
            tensor.stream(&mut buf, |chunk| {
                progress.advance(chunk.len());
                sink.write_all(chunk)
            })
        })
    }

    pub(crate) fn n_tensors(&self) -> u64 {
        self.tensors.len() as u64
    }
}

/// Of a tensor whose type safetensors does not have.
fn not_carried(tensor: &Tensor<'_>) -> Failure {
    let what = format!("safetensors has no element type {}", tensor.dtype());
    let failure = Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(tensor.name()));
    match decodable(tensor.dtype()) {
        Some(_) => failure.help(
            "to make plain numbers of its blocks, add --dequantize f32 (or f16); or leave it out with --exclude",
        ),
        None => failure,
    }
}

/// The metadata of a safetensors model. Of shards that carry different values the first one counts, with a remark.
///
/// # Errors
///
/// If a shard cannot be opened.
pub(crate) fn metadata_of(model: &Model, console: &Console) -> Result<Option<Entries>, Failure> {
    let mut all: Option<Entries> = None;
    for part in model.parts()? {
        let Some(metadata) = part.file.header().metadata() else { continue };
        let all = all.get_or_insert_default();
        for (key, value) in metadata.iter() {
            let kept = all.entry(key.to_owned()).or_insert_with(|| value.to_owned());
            if kept != value {
                let (key, shard) = (escape::cut(key, 60), escape::escaped(part.shard.unwrap_or_default()));
                console.remark(format_args!("metadata `{key}` differs in {shard}: the first value is kept"));
            }
        }
    }
    Ok(all)
}

/// Writes the one output of a command and reports it: to standard error in words, or as JSON to standard output, or,
/// for a dry run, as the data the command was asked for.
///
/// # Errors
///
/// Those of [`Plan::write`].
pub(crate) fn write_and_report(
    plan: &Plan<'_>,
    job: &Job<'_>,
    options: &WriteOptions,
    console: &mut Console,
) -> Result<(), Failure> {
    let &Job { model, destination, overwrite, run, .. } = job;
    if run == Run::Write {
        let mut progress = console.progress("writing", plan.layout.file_len());
        plan.write(destination, overwrite, &mut progress)?;
    }
    let header = plan.layout.header_bytes().len() as u64;
    if console.is_json() {
        let (is_same, empty) = (model.format() == Format::SafeTensors, Entries::new());
        let content = FileContent::Tensors {
            data_start: header,
            alignment: Some(options.alignment.bytes().into()),
            tensors: plan.n_tensors(),
            metadata: MetadataFields::Entries(options.metadata.as_ref().or((!is_same).then_some(&empty))),
        };
        // Between safetensors files there is nothing to tell of a conversion.
        let report = FileReport {
            conversion: if is_same { None } else { Some(job.conversion(Format::SafeTensors)) },
            ..job.report(plan.layout.file_len(), Format::SafeTensors, content)
        };
        return console.report(&report);
    }
    let text = format!(
        "{}: {}, {}, data from byte {}",
        escape::path(destination.label()),
        plural(plan.n_tensors(), "tensor"),
        exact_bytes(plan.layout.file_len()),
        grouped(header),
    );
    job.tell(&text, console)
}

/// What a command that writes one file was asked to do.
pub(crate) struct Job<'a> {
    pub(crate) schema: &'static str,
    pub(crate) model: &'a Model,
    pub(crate) destination: &'a Destination,
    pub(crate) overwrite: Overwrite,
    pub(crate) run: Run,
    /// What of the input the output does not hold.
    pub(crate) lost: Vec<String>,
    /// Repairs of the header of the input.
    pub(crate) repaired: Vec<Change>,
}

impl Job<'_> {
    /// Says in words what was written, or would be.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn tell(&self, text: &str, console: &mut Console) -> Result<(), Failure> {
        let shown = if console.is_verbose() { usize::MAX } else { MAX_LOST };
        for change in self.repaired.iter().take(shown) {
            console.remark(format_args!("repaired: {}", escape::cut(&change.to_string(), 200)));
        }
        if let Some(more @ 1..) = self.repaired.len().checked_sub(shown) {
            console.remark(format_args!("repaired: {more} more parts, which -v lists"));
        }
        for part in self.lost.iter().take(shown) {
            console.remark(format_args!("not in the new file: {}", escape::escaped(part)));
        }
        if let Some(more @ 1..) = self.lost.len().checked_sub(shown) {
            console.remark(format_args!("not in the new file: {more} more parts, which -v lists"));
        }
        self.run.tell(text, console)
    }

    /// The report of a file of this format and length.
    pub(crate) fn report<'j>(&'j self, bytes: u64, to: Format, content: FileContent<'j>) -> FileReport<'j> {
        FileReport {
            schema: self.schema,
            file: Written::new(self.model.label(), self.destination.label(), self.run, bytes),
            content,
            repaired: self.repaired.iter().map(Repaired::new).collect(),
            conversion: Some(self.conversion(to)),
        }
    }

    fn conversion(&self, to: Format) -> Conversion<'_> {
        let from = self.model.format();
        Conversion {
            input_format: from.name(),
            input_version: from.version(),
            format: to.name(),
            version: to.version(),
            lost: &self.lost,
        }
    }
}

/// One new file.
#[derive(Serialize)]
pub(crate) struct FileReport<'a> {
    #[serde(skip)]
    schema: &'static str,
    #[serde(flatten)]
    file: Written<'a>,
    #[serde(flatten)]
    content: FileContent<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repaired: Vec<Repaired<'a>>,
    #[serde(flatten)]
    conversion: Option<Conversion<'a>>,
}

impl Report for FileReport<'_> {
    const SCHEMA: &'static str = "apr.convert/2";

    fn schema(&self) -> &'static str {
        self.schema
    }
}

/// A repair of the header of the input.
#[derive(Serialize)]
struct Repaired<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    message: String,
}

impl<'a> Repaired<'a> {
    fn new(change: &'a Change) -> Self {
        let key = match change {
            Change::MetadataValue { key, .. } => Some(key.as_str()),
            _ => None,
        };
        Self { kind: change.kind(), key, message: change.to_string() }
    }
}

/// What is in the file.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum FileContent<'a> {
    Tensors {
        data_start: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        alignment: Option<u64>,
        tensors: u64,
        metadata: MetadataFields<'a>,
    },
    Arrays {
        tensors: u64,
    },
    Model {
        model: &'a str,
        compression: Option<&'a str>,
        layout: &'a str,
        tensors: u64,
    },
}

/// Its metadata.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum MetadataFields<'a> {
    Entries(Option<&'a Entries>),
    /// JSON text.
    Raw(Box<RawValue>),
}

/// What a change of format did.
#[derive(Serialize)]
struct Conversion<'a> {
    input_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_version: Option<u32>,
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    lost: &'a [String],
}
