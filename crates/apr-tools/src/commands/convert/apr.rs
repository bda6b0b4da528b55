//! `.apr` files as output.

use std::io::Write;

use apr_container::v2::{self, TensorSpec};
use apr_container::{Compression, ErrorKind, PayloadLayout, SaveOptions, to_vec};
use apr_models::{AnyModel, MODEL_KEY, Model as _, TRANSPOSED_KEY};

use model_file::entries::{self, Entries};
use model_file::gather;

use super::lost;
use super::target::{Target, remark_on_size};
use crate::architecture::model_folder;
use crate::error::{CODE_INTERNAL, CODE_NOT_CARRIED, CODE_USAGE, Failure};
use crate::input::{Contents, Format, Model, Rules, Tensor};
use crate::output::rewrite::{FileContent, Job, MetadataFields};
use crate::output::{Destination, Overwrite, Run, buffered};
use crate::report;
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, plural};

/// How to write tensors as a file of version 2.
///
/// # Errors
///
/// If the entries cannot become metadata.
pub(super) fn tensor_options(
    model: &Model,
    entries: &Entries,
    tensors: &[Tensor<'_>],
    order: st_core::Order,
    rules: &Rules,
) -> Result<v2::WriteOptions, Failure> {
    let metadata = entries::to_apr_v2(entries, Tensor::totals(tensors), &rules.apr)?;
    let flags = match model.contents() {
        Contents::AprV2(file) => v2::WriteOptions::like(file.index()).flags,
        _ if tensors.iter().any(|tensor| tensor.dtype().element().is_none()) => v2::Flags::QUANTIZED,
        _ => v2::Flags::default(),
    };
    let order = match (order, model.contents()) {
        // So that the same GGUF file can be made of it again.
        (st_core::Order::AsGiven, _) | (st_core::Order::Official, Contents::Gguf(_)) => v2::Order::AsGiven,
        _ => v2::Order::ByName,
    };
    Ok(v2::WriteOptions { metadata, flags, order })
}

/// Writes tensors as a file of version 2, and reports it.
///
/// # Errors
///
/// If the format has no place for a tensor, the input cannot be read or the output not be written.
pub(super) fn write_tensors<'n, 'm: 'n>(
    tensors: impl Iterator<Item = (&'n str, Tensor<'m>)>,
    options: v2::WriteOptions,
    job: &Job<'_>,
    console: &mut Console,
) -> Result<(), Failure> {
    let source = job.model.label();
    if let Some(folder) = model_folder(source).filter(|_| !source.is_dir()) {
        console.remark(format_args!(
            "configuration and tokenizer of the model are not in the new file: `apr convert {} {}` keeps them",
            escape::path(&folder),
            escape::path(job.destination.label()),
        ));
    }
    let (names, tensors): (Vec<&str>, Vec<Tensor<'m>>) = tensors.unzip();
    let shapes: Vec<Vec<u64>> =
        tensors.iter().map(|tensor| tensor.shape().iter().map(|&dim| dim as u64).collect()).collect();
    let specs = names.iter().zip(&tensors).zip(&shapes).map(|((name, tensor), shape)| {
        let dtype = tensor.dtype().apr_type().ok_or_else(|| {
            no_type(tensor.dtype(), tensor.name()).help(match tensor.dtype().element() {
                Some(_) => lost::without(tensors.iter().filter(|tensor| tensor.dtype().apr_type().is_none())),
                None => "add --dequantize f32 (or f16) to make plain numbers of the blocks, or write GGUF: --format gguf".to_owned(),
            })
        })?;
        Ok(TensorSpec { name, dtype, shape, byte_len: Some(tensor.byte_len()) })
    });
    let specs = specs.collect::<Result<Vec<_>, Failure>>()?;
    let layout = v2::Layout::new(specs, &options).map_err(Failure::from).map_err(super::of_names)?;
    if job.run == Run::Write {
        let mut progress = console.progress("writing", layout.file_len());
        let mut buf = Vec::new();
        write_layout(&layout, job.destination, job.overwrite, |idx, write| {
            let Some(tensor) = tensors.get(idx) else { return Ok(()) };
            progress.item(tensor.name());
            tensor.stream(&mut buf, |chunk| {
                progress.advance(chunk.len());
                write(chunk)
            })
        })?;
    }
    if console.is_json() {
        let metadata = report::raw(&options.metadata.to_json());
        let metadata = metadata.map_err(|error| Failure::new(CODE_INTERNAL, error.to_string()))?;
        let content = FileContent::Tensors {
            data_start: layout.prefix_bytes().len() as u64,
            alignment: Some(64),
            tensors: tensors.len() as u64,
            metadata: MetadataFields::Raw(metadata),
        };
        return console.report(&job.report(layout.file_len(), Format::AprV2, content));
    }
    let label = escape::path(job.destination.label());
    let (count, bytes) = (plural(tensors.len() as u64, "tensor"), exact_bytes(layout.file_len()));
    job.tell(&format!("{label}: .apr version 2, {count}, {bytes}"), console)
}

/// The failure for a tensor whose type `.apr` files do not have.
pub(super) fn no_type(dtype: impl core::fmt::Display, tensor: &str) -> Failure {
    let what = format!("an .apr file has no element type {dtype}");
    Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(tensor))
}

/// Writes a file of version 2; `make` is called for each tensor with its number and what takes its bytes.
///
/// # Errors
///
/// Those of `make`; if the output cannot be written.
pub(super) fn write_layout(
    layout: &v2::Layout,
    destination: &Destination,
    overwrite: Overwrite,
    mut make: impl FnMut(usize, &mut dyn FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut stop = None;
    let mut stream = |out: &mut dyn Write| -> Result<(), Failure> {
        let written = buffered(out, |out| {
            layout.write_streamed(out, |planned, sink| {
                let made = make(planned.input_idx, &mut |piece| {
                    sink.write_all(piece).map_err(|error| destination.write_failure(&error))
                });
                made.map_err(|failure| {
                    stop = Some(failure);
                    std::io::Error::other("stopped").into()
                })
            })
        });
        written.map_err(|error| match (stop.take(), error.kind()) {
            (Some(failure), _) => failure,
            (None, ErrorKind::Io { error }) => destination.write_failure(error),
            (None, _) => Failure::from(error),
        })
    };
    destination.fill(overwrite, |out| stream(out))
}

/// The model that tensors are, with what of them it does not hold, or the model itself if nothing was done to it.
///
/// # Errors
///
/// If the tensors are those of no model, or only a part of a model is selected.
pub(super) fn content<'n, 'm: 'n>(
    model: &Model,
    tensors: impl Iterator<Item = (&'n str, Tensor<'m>)>,
    is_whole: bool,
    entries: &Entries,
) -> Result<(AnyModel, Vec<String>), Failure> {
    if let Contents::AprV1(file) = model.contents()
        && let Some(model) = file.model()
    {
        return match is_whole {
            true => Ok((without_training_data(model), Vec::new())),
            false => Err(Failure::new(CODE_USAGE, "a model is converted as a whole")
                .help("leave --select, --exclude and --rename out, or choose --format apr2")),
        };
    }
    let tensors: Vec<_> = tensors.collect();
    let is_plain = tensors.iter().all(|(_, tensor)| tensor.dtype().element().is_some());
    // Models compute with 32 bits; nothing is lost on the way there.
    let tensors = tensors.into_iter().map(|(name, tensor)| match tensor.dtype().element() {
        Some(_) => Ok((name, tensor.widened()?)),
        None => Ok((name, tensor)),
    });
    let tensors = tensors.collect::<Result<Vec<_>, Failure>>()?;
    let tensors = tensors.iter().map(|(name, tensor)| (*name, **tensor));
    let entry = |key: &str| entries.get(key).map(String::as_str);
    let gathered = gather(tensors, entry(MODEL_KEY), entry(TRANSPOSED_KEY));
    let made = gathered.map_err(Failure::from).and_then(|gathered| {
        let made = AnyModel::from_tensors(&gathered)?;
        let lost = lost::in_model(&gathered, &made)?;
        Ok((made, lost))
    });
    made.map_err(|failure| {
        let failure = failure.in_file(model.label());
        failure.help(match is_plain {
            true => "these tensors are no model that `apr` knows: --format apr2 keeps them as tensors",
            false => "a model of version 1 holds plain numbers: add --dequantize f32",
        })
    })
}

/// Removes the training data that a model stores: converting a model should not publish it.
fn without_training_data(model: &AnyModel) -> AnyModel {
    let mut model = model.clone();
    match &mut model {
        AnyModel::RandomForestClassifier(forest) => forest.forget_training_data(),
        AnyModel::RandomForestRegressor(forest) => forest.forget_training_data(),
        _ => {}
    }
    model
}

/// Writes a model as a file of version 1, and reports it.
///
/// # Errors
///
/// If the entries cannot become metadata, or the output cannot be written.
pub(super) fn write_model(
    content: &AnyModel,
    target: &Target,
    entries: &Entries,
    mut job: Job<'_>,
    console: &mut Console,
) -> Result<(), Failure> {
    check_readers(content, target.layout)?;
    let (metadata, quality) = entries::to_apr_v1(entries, entries::is_of_tensors)?;
    let (mut model_type, mut compression, mut layout) = (
        content.model_type(),
        Compression::default(),
        PayloadLayout::from_version(&metadata.aprender_version),
    );
    if let Contents::AprV1(file) = job.model.contents() {
        // Several model types can hold bare values: the file keeps its type.
        model_type = file.info().model_type;
        (compression, layout) = (file.info().compression, file.layout());
    }
    let options = SaveOptions {
        compression: target.compression.unwrap_or(compression),
        metadata,
        layout: target.layout.or(layout).unwrap_or_default(),
        quality,
        protection: apr_container::Protection::default(),
    };
    let bytes = to_vec(content, model_type, &options)?;
    if target.compression.is_some() {
        remark_on_size(&bytes, console);
    }
    job.lost.extend(lost::in_layout(content, &bytes, options.layout)?);
    if job.run == Run::Write {
        job.destination.fill(job.overwrite, |out| {
            out.write_all(&bytes).map_err(|error| job.destination.write_failure(&error))
        })?;
    }
    let n_tensors = content.to_tensors().map_or(0, |tensors| tensors.len() as u64);
    if console.is_json() {
        let content = FileContent::Model {
            model: content.name(),
            compression: options.compression.name(),
            layout: options.layout.version(),
            tensors: n_tensors,
        };
        return console.report(&job.report(bytes.len() as u64, Format::AprV1, content));
    }
    let label = escape::path(job.destination.label());
    let how = match options.compression {
        Compression::None => "not compressed".to_owned(),
        other => other.to_string(),
    };
    let (name, layout) = (content.name(), options.layout.version());
    let text = format!(
        "{label}: .apr version 1, {name}, layout {layout}, {how}, {}",
        exact_bytes(bytes.len() as u64)
    );
    job.tell(&text, console)
}

/// Refuses a requested layout if the releases that use it do not read the model.
fn check_readers(content: &AnyModel, layout: Option<PayloadLayout>) -> Result<(), Failure> {
    let Some(layout) = layout.filter(|layout| content.oldest_reader().is_none_or(|oldest| *layout < oldest))
    else {
        return Ok(());
    };
    let what = format!("aprender {layout} does not read models of type {}", content.name());
    Err(Failure::new(CODE_NOT_CARRIED, what).help(match content.oldest_reader() {
        Some(oldest) => format!("choose --layout {oldest}, the oldest that does, or leave --layout out"),
        None => "leave --layout out: no release of aprender reads such models".to_owned(),
    }))
}
