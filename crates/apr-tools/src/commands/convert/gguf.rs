//! GGUF files as output.

use apr_convert::quantize::FileType;
use apr_quant::Dtype;
use gguf_core::{GgufBuilder, Layout};
use model_file::entries::{self, ARCHITECTURE, Entries, TypedValue};
use st_core::Order;

use crate::architecture::{model_folder, note_on_architecture};
use crate::error::{ALIGNMENT, ALIGNMENT_HELP, CODE_NOT_CARRIED, CODE_USAGE, Failure};
use crate::input::{Format, Tensor, decodable};
use crate::output::Run;
use crate::output::gguf_stream;
use crate::output::rewrite::{FileContent, Job, MetadataFields};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, grouped, plural};

/// Most dimensions that the format has.
const MAX_RANK: usize = 4;

/// An alignment that the format does not have can only come from `--set`: a file with one is refused before.
fn of_alignment(failure: Failure) -> Failure {
    match failure.code() {
        "gg-alignment" | "gg-alignment-type" => {
            Failure::new(CODE_USAGE, failure.what()).of_key(Some(ALIGNMENT)).help(ALIGNMENT_HELP)
        }
        _ => failure,
    }
}

/// Writes tensors as a GGUF file of version 3, and reports it.
///
/// # Errors
///
/// If the format has no place for a tensor or an entry, the input cannot be read or the output not be written.
pub(super) fn write_tensors<'n, 'm: 'n>(
    tensors: impl Iterator<Item = (&'n str, Tensor<'m>)>,
    entries: &Entries,
    typed: &[(String, TypedValue)],
    order: Order,
    job: &Job<'_>,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut tensors: Vec<(&str, Tensor<'m>)> = tensors.collect();
    if order == Order::ByName {
        tensors.sort_by_key(|(name, _)| *name);
    }
    let mut builder = GgufBuilder::new();
    let layout = lay_out(&mut builder, &tensors, entries, typed).map_err(of_alignment)?;
    let mut entries = entries.clone();
    entries.extend(typed.iter().map(|(key, value)| (key.clone(), value.text().to_owned())));
    let entry = |key: &str| entries.get(key).map(String::as_str);
    if let Some(note) = note_on_architecture(entry(ARCHITECTURE), entry(apr_models::MODEL_KEY)) {
        let source = job.model.label();
        match model_folder(source).filter(|_| !source.is_dir()) {
            Some(folder) => console.remark(format_args!(
                "{note}; the file is that of a model with config.json: `apr convert {} {}` makes one that it runs",
                escape::path(&folder),
                escape::path(job.destination.label()),
            )),
            None => console.remark(note),
        }
    }
    if job.run == Run::Write {
        write(&layout, &tensors, job, console)?;
    }
    if console.is_json() {
        let content = FileContent::Tensors {
            data_start: layout.data_start(),
            alignment: None,
            tensors: tensors.len() as u64,
            metadata: MetadataFields::Entries(Some(&entries)),
        };
        return console.report(&job.report(layout.file_len(), Format::Gguf, content));
    }
    let label = escape::path(job.destination.label());
    let (count, bytes) = (plural(tensors.len() as u64, "tensor"), exact_bytes(layout.file_len()));
    let start = grouped(layout.data_start());
    job.tell(&format!("{label}: GGUF version 3, {count}, {bytes}, data from byte {start}"), console)
}

/// Sets the entries, adds the tensors, and computes where they begin.
fn lay_out(
    builder: &mut GgufBuilder,
    tensors: &[(&str, Tensor<'_>)],
    entries: &Entries,
    typed: &[(String, TypedValue)],
) -> Result<Layout, Failure> {
    let is_quantized = tensors.iter().any(|(_, tensor)| tensor.dtype().element().is_none());
    entries::to_gguf(entries, is_quantized, builder)?;
    if is_quantized && !entries.contains_key(entries::OF_GGUF) && !entries.contains_key(entries::FILE_TYPE) {
        let dtypes =
            tensors.iter().filter_map(|(_, tensor)| Some((tensor.dtype().known()?, tensor.elements())));
        if let Some(file_type) = FileType::of(dtypes) {
            builder.set(entries::FILE_TYPE, file_type.0)?;
        }
    }
    typed.iter().try_for_each(|(key, value)| value.set(builder, key))?;
    tensors.iter().try_for_each(|(name, tensor)| add(builder, (name, tensor), tensors))?;
    Ok(builder.layout()?)
}

/// The type of its elements, if the format has it.
fn ggml_type(tensor: &Tensor<'_>) -> Option<Dtype> {
    decodable(tensor.dtype()).filter(|format| format.ggml_type().is_some())
}

/// Adds one of the tensors of the new file.
fn add(
    builder: &mut GgufBuilder,
    (name, tensor): (&str, &Tensor<'_>),
    all: &[(&str, Tensor<'_>)],
) -> Result<(), Failure> {
    let refused = |what: String| Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(tensor.name()));
    tensor.check_order()?;
    let shape: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
    if shape.len() > MAX_RANK {
        let rank = shape.len();
        return Err(refused(format!(
            "a tensor of a GGUF file has at most {MAX_RANK} dimensions, this one {rank}"
        )));
    }
    let Some(format) = ggml_type(tensor) else {
        let failure = refused(format!("a GGUF file has no element type {}", tensor.dtype()));
        return Err(failure.help(match tensor.dtype().element() {
            None => "add --dequantize f32 (or f16); `apr export` finds the nearest type by itself".to_owned(),
            Some(_) => super::lost::without(
                all.iter().map(|(_, tensor)| tensor).filter(|tensor| ggml_type(tensor).is_none()),
            ),
        }));
    };
    let row_len = shape.last().copied().unwrap_or(1);
    let n_rows = tensor.elements().checked_div(row_len).unwrap_or(0);
    if format.byte_len_of_rows(row_len, n_rows).ok() != Some(tensor.byte_len()) {
        return Err(refused(format!("its rows of {row_len} elements are not whole {format} blocks")));
    }
    Ok(builder.add_tensor(name, format, &shape)?)
}

fn write(
    layout: &Layout,
    tensors: &[(&str, Tensor<'_>)],
    job: &Job<'_>,
    console: &Console,
) -> Result<(), Failure> {
    let mut progress = console.progress("writing", layout.file_len());
    let tensor = |idx: usize| tensors.get(idx).map(|(_, tensor)| *tensor);
    job.destination
        .fill(job.overwrite, |out| gguf_stream::write(layout, tensor, out, job.destination, &mut progress))
}
