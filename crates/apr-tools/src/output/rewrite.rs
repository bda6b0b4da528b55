//! Writes tensors of one model into one new file: the work that `convert`, `shard` and `unshard` share.

use std::io::{self, Write};

use st_core::{Layout, TensorSpec, WriteOptions};

use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::input::{Format, Model, Tensor, decodable};
use crate::metadata::Entries;
use crate::output::{Destination, Overwrite, Run};
use crate::report::json::JsonWriter;
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
    let &Job { schema, model, destination, overwrite, run, .. } = job;
    if run == Run::Write {
        let mut progress = console.progress("writing", plan.layout.file_len());
        plan.write(destination, overwrite, &mut progress)?;
    }
    let header = plan.layout.header_bytes().len() as u64;
    if console.is_json() {
        return console.json(schema, |json| {
            json.field_str("input", &model.label().to_string_lossy())?;
            json.field_str("output", &destination.label().to_string_lossy())?;
            json.field_bool("written", run == Run::Write)?;
            json.field_uint("bytes", plan.layout.file_len())?;
            json.field_uint("data_start", header)?;
            json.field_uint("alignment", options.alignment.bytes().into())?;
            json.field_uint("tensors", plan.n_tensors())?;
            json.key("metadata")?;
            let empty = Entries::new();
            let metadata = match &options.metadata {
                Some(metadata) => metadata,
                None if model.format() == Format::SafeTensors => return json.null(),
                None => &empty,
            };
            json.object()?;
            metadata.iter().try_for_each(|(key, value)| json.field_str(key, value))?;
            json.end_object()?;
            // Between safetensors files there is nothing to tell.
            if model.format() == Format::SafeTensors {
                Ok(())
            } else {
                job.write_conversion(Format::SafeTensors, json)
            }
        });
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
}

impl Job<'_> {
    /// Says in words what was written, or would be.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn tell(&self, text: &str, console: &mut Console) -> Result<(), Failure> {
        let shown = if console.is_verbose() { self.lost.len() } else { MAX_LOST };
        for part in self.lost.iter().take(shown) {
            console.remark(format_args!("not in the new file: {}", escape::escaped(part)));
        }
        if let Some(more @ 1..) = self.lost.len().checked_sub(shown) {
            console.remark(format_args!("not in the new file: {more} more parts, which -v lists"));
        }
        match self.run {
            Run::Write => console.wrote(text),
            Run::Dry => console.text(|out, _| writeln!(out, "would write {text}"))?,
        }
        Ok(())
    }

    /// The fields about a change of format.
    pub(crate) fn write_conversion<W: Write>(&self, to: Format, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.field_str("input_format", self.model.format().name())?;
        json.field_str("format", to.name())?;
        json.field_strings("lost", self.lost.iter().map(String::as_str))
    }
}
