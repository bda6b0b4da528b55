//! `apr inspect`: describes a model file from its header.

mod apr_model;
mod apr_tensors;
mod checkpoints;
mod content;
mod foreign;
mod gguf;
mod histograms;
mod page;
mod protection;
mod quantization;
mod report;
mod sealed;
mod structure;
mod warnings;

use alloc::rc::Rc;
use std::path::PathBuf;

use st_core::{Layout, Order, TensorSpec, WriteOptions};
use st_mmap::Verification;
use tensor_dtype::Dtype;

pub(crate) use self::apr_model::{ANYONE, stored};
pub(crate) use self::apr_tensors::footer_state;
use self::content::Content;
use crate::args::{CompatArg, ForeignArgs, INPUT_HELP, SizeLimitArg};
use crate::checkpoints::{About, Checkpoint};
use crate::commands::checkpoint::list::{self, Row, View};
use crate::error::{Exit, Failure};
use crate::input::{Format, Model, Part, Rules, Source, Tensor};
use crate::secrets::KeysArgs;
use crate::terminal::Console;
use crate::terminal::tree::Extent;

const AFTER_HELP: &str = "Only the header is read (of an .apr file also the metadata, of a GGUF file the keys), so large models take no longer than small \
    ones. `apr FILE` is the same. With --verify, all of an .apr file is read: what its payload holds is \
    known only then, training data included. Of the long arrays of a GGUF file the first elements are \
    shown; -v shows all.\n\n\
    Of an .apr model the report says which of its parts are authenticated, and by what: a checksum by nothing, a \
    signature once it was verified (--signer, --trusted-keys, --any-signer), encryption once it was opened. \
    With those options all of the file is read. Of a sealed file it says what anyone can see; with --identity or a \
    password also what is inside, and with --verify all of it is read.\n\n\
    Examples:\n  apr inspect model.safetensors\n  apr inspect sharded --json\n  apr inspect model.apr --verify\n  \
    apr inspect model.gguf --quantization\n  apr inspect model.safetensors --histograms\n  apr inspect sold.apr --signer maker.key.pub\n\n\
    Exit codes: 0 success, 3 invalid file, 4 corrupted (--verify), not verified or \
    not decrypted, 5 I/O, 6 another format.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[arg(value_name = "FILE", help = INPUT_HELP)]
    input: PathBuf,
    #[command(flatten)]
    compat: CompatArg,
    /// Leave out the tree of tensors.
    #[arg(long)]
    no_tree: bool,
    /// Of an .apr file, also compare the checksum and decode the payload.
    #[arg(long)]
    verify: bool,
    /// Show only the types of the tensors: blocks, bits per weight, share of the bytes.
    #[arg(long, conflicts_with_all = ["verify", "no_tree"])]
    quantization: bool,
    /// Show only how the values of each tensor are distributed; all of the file is read.
    #[arg(long, conflicts_with_all = ["verify", "no_tree", "quantization"])]
    histograms: bool,
    #[command(flatten)]
    size_limit: SizeLimitArg,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Runs `apr inspect`.
///
/// # Errors
///
/// If the model cannot be read.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let rules = args.size_limit.apply(args.compat.rules());
    let path = args.input.as_path();
    let checkpoints = Checkpoint::all_below(path);
    if !checkpoints.is_empty() {
        args.keys.load([path])?.refuse_for("a folder of checkpoints", path)?;
        let busy = args.verify.then(|| console.busy("verifying"));
        let rows = checkpoints.into_iter().map(Row::new);
        let rows: Vec<Row> = match args.verify {
            // One without a manifest is shown as such.
            true => rows
                .map(|row| if row.has_manifest() { row.verify(&rules, Verification::Required) } else { row })
                .collect(),
            false => rows.collect(),
        };
        drop(busy);
        return list::show(path, &rows, &View::State, console);
    }
    let source = Source::open(path)?;
    if source.format() == Format::Sealed {
        return sealed::run(args, &source, console);
    }
    let keys = args.keys.load([path])?;
    let source = source.with_keys(&Rc::new(keys)).with_foreign(args.foreign.options());
    source.refuse_keys(&rules)?;
    let extent = if console.is_verbose() { Extent::ALL } else { Extent::DEFAULT };
    let extent = (!args.no_tree).then_some(extent);
    let verify = args.verify;
    if args.quantization {
        quantization::run(&Model::from_source(source, &rules.with_unchecked_signatures())?, console)?;
        return Ok(Exit::Success);
    }
    if args.histograms {
        histograms::run(&Model::from_source(source, &rules.with_unchecked_signatures())?, console)?;
        return Ok(Exit::Success);
    }
    match source.format() {
        Format::AprV1 => apr_model::run(source, &rules, verify, console)?,
        Format::AprV2 => apr_tensors::run(source, &rules, verify, extent, console)?,
        Format::Gguf => {
            if verify {
                console.remark("GGUF has no checksum: `apr check` looks at the numbers, `apr tensors --digest` gives digests");
            }
            gguf::run(source, &rules, extent, console)?;
        }
        Format::Foreign(_) => {
            if verify {
                console.remark("nothing to verify here: `apr scan` says what loading the file would run");
            }
            foreign::run(source, &rules, extent, console)?;
        }
        Format::SafeTensors | Format::Sealed => {
            if verify {
                console
                    .remark("safetensors has no checksum: `apr tensors --digest` gives digests to compare");
            }
            let model = Model::from_source(source, &rules)?;
            let checkpoint = Checkpoint::at(path).map(|found| (found.about(), found));
            let summary = Summary::new(&model, &rules, checkpoint)?;
            if console.is_json() {
                report::json(&summary, console)?;
            } else {
                report::text(&summary, extent, console)?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Everything the reports show.
struct Summary<'m> {
    content: Content<'m>,
    rules: Rules,
    files: Vec<FileSummary<'m>>,
    /// Tensors whose offset is a multiple of their element size.
    aligned_to_elements: u64,
    /// Tensors whose offset is a multiple of 64.
    aligned_to_64: u64,
    /// If the folder of a checkpoint was named.
    checkpoint: Option<(About, Checkpoint)>,
}

/// One file of the model.
struct FileSummary<'m> {
    part: Part<'m>,
    /// Bytes of the header beyond what its content needs.
    spare: u64,
    /// Whether the tensors are in the order of official writers.
    is_official_order: bool,
}

impl<'m> Summary<'m> {
    fn new(
        model: &'m Model,
        rules: &Rules,
        checkpoint: Option<(About, Checkpoint)>,
    ) -> Result<Self, Failure> {
        let tensors = model.tensors()?;
        let count =
            |aligned: fn(&Tensor<'_>) -> bool| tensors.iter().filter(|tensor| aligned(tensor)).count() as u64;
        let files: Vec<_> = model.parts()?.into_iter().map(FileSummary::new).collect();
        let warnings =
            warnings::all(model, &tensors, &files, rules, checkpoint.as_ref().map(|(about, _)| about));
        Ok(Self {
            content: Content::new(model, &tensors, warnings),
            rules: *rules,
            aligned_to_elements: count(is_aligned),
            aligned_to_64: count(|tensor| {
                tensor.file_offset().is_some_and(|offset| offset.is_multiple_of(64))
            }),
            files,
            checkpoint,
        })
    }

    const fn model(&self) -> &'m Model {
        self.content.model
    }

    fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.part.file.file_len()).sum()
    }
}

/// Whether the offset is a multiple of the element size; of packed types, every offset is.
fn is_aligned(tensor: &Tensor<'_>) -> bool {
    let bits = tensor.dtype().element().map_or(8, Dtype::bits);
    let size = u64::from(bits / 8).max(1);
    tensor.file_offset().is_some_and(|offset| offset.is_multiple_of(size))
}

impl<'m> FileSummary<'m> {
    fn new(part: Part<'m>) -> Self {
        let header = part.file.header();
        let specs = || {
            header.iter().map(|info| TensorSpec {
                name: info.name(),
                dtype: info.dtype(),
                shape: info.shape(),
            })
        };
        let metadata = header
            .metadata()
            .map(|metadata| metadata.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
        // The header, written again, shows its minimal length and the canonical order.
        let as_given = WriteOptions { metadata, order: Order::AsGiven, ..WriteOptions::default() };
        let needed = Layout::new(specs(), &as_given).map(|layout| layout.header_bytes().len() as u64);
        let official = Layout::new(specs(), &WriteOptions::default());
        Self {
            part,
            spare: needed.map_or(0, |needed| header.data_start().saturating_sub(needed)),
            is_official_order: official.is_ok_and(|layout| {
                layout.tensors().iter().enumerate().all(|(idx, planned)| planned.input_idx == idx)
            }),
        }
    }
}
