//! Writes tensors of one model into one new file: the work that `convert`, `shard` and `unshard` share.

use alloc::collections::BTreeMap;
use std::io::{self, Write};

use st_core::{Layout, TensorSpec, WriteOptions};

use crate::console::{Console, Progress};
use crate::error::Failure;
use crate::input::{Model, Tensor};
use crate::output::{Destination, Overwrite, Run};
use crate::render::escape;
use crate::render::human::{exact_bytes, grouped, plural};

/// Metadata as it is written.
pub(crate) type Metadata = BTreeMap<String, String>;

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
        let specs = names.iter().zip(&tensors).map(|(name, tensor)| TensorSpec {
            name,
            dtype: tensor.dtype(),
            shape: tensor.shape(),
        });
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

/// The metadata of a model. Of shards that carry different values the first one counts, with a remark.
///
/// # Errors
///
/// If a shard cannot be opened.
pub(crate) fn metadata_of(model: &Model, console: &Console) -> Result<Option<Metadata>, Failure> {
    let mut all: Option<Metadata> = None;
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
    let &Job { schema, model, destination, overwrite, run } = job;
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
            let Some(metadata) = &options.metadata else { return json.null() };
            json.object()?;
            metadata.iter().try_for_each(|(key, value)| json.field_str(key, value))?;
            json.end_object()
        });
    }
    let text = format!(
        "{}: {}, {}, data from byte {}",
        escape::path(destination.label()),
        plural(plan.n_tensors(), "tensor"),
        exact_bytes(plan.layout.file_len()),
        grouped(header),
    );
    match run {
        Run::Write => console.note(format_args!("wrote {text}")),
        Run::Dry => console.text(|out, _| writeln!(out, "would write {text}"))?,
    }
    Ok(())
}

/// What a command that writes one file was asked to do.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) schema: &'static str,
    pub(crate) model: &'a Model,
    pub(crate) destination: &'a Destination,
    pub(crate) overwrite: Overwrite,
    pub(crate) run: Run,
}
