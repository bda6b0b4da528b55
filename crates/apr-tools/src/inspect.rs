//! `apr inspect`: what a model file holds, from its header alone.

mod report;
mod warnings;

use alloc::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command};
use st_core::{Dtype, Layout, Order, ReadOptions, TensorSpec, WriteOptions};

use self::warnings::Warning;
use crate::console::Console;
use crate::error::{Exit, Failure};
use crate::input::{self, Model, Part, Tensor};
use crate::render::tree::{Extent, Item};

pub(crate) fn command() -> Command {
    Command::new("inspect")
        .about("Show what a model holds: tensors, parameters, types, shapes, metadata, warnings")
        .arg(input::input_arg())
        .arg(input::compat_arg())
        .arg(
            Arg::new("no-tree")
                .long("no-tree")
                .action(ArgAction::SetTrue)
                .help("Leave out the tree of tensors"),
        )
        .after_help(
            "Only the header is read, so large models take no longer than small ones. `apr FILE` is the same.\n\n\
             Examples:\n  apr inspect model.safetensors\n  apr inspect sharded --json\n\n\
             Exit codes: 0 shown, 3 not a sound safetensors file, 5 I/O, 6 another format.",
        )
}

/// Runs `apr inspect`.
///
/// # Errors
///
/// If the model cannot be read.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let (path, options) = input::input(matches);
    let model = Model::open(&path, &options)?;
    let summary = Summary::new(&model, &options)?;
    if console.is_json() {
        report::json(&summary, console)?;
    } else {
        let extent = if console.is_verbose() { Extent::ALL } else { Extent::DEFAULT };
        report::text(&summary, (!matches.get_flag("no-tree")).then_some(extent), console)?;
    }
    Ok(Exit::Success)
}

/// Everything the reports show.
struct Summary<'m> {
    model: &'m Model,
    options: ReadOptions,
    files: Vec<FileSummary<'m>>,
    items: Vec<Item<'m>>,
    /// By share of the bytes, the largest first.
    dtypes: Vec<(Dtype, Totals)>,
    totals: Totals,
    /// Tensors whose offset is a multiple of their element size.
    aligned_to_elements: u64,
    /// Tensors whose offset is a multiple of 64.
    aligned_to_64: u64,
    warnings: Vec<Warning>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    tensors: u64,
    elements: u64,
    bytes: u64,
}

impl Totals {
    fn add(&mut self, tensor: &Tensor<'_>) {
        self.tensors += 1;
        self.elements = self.elements.saturating_add(tensor.info.element_count());
        self.bytes = self.bytes.saturating_add(tensor.byte_len());
    }
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
    fn new(model: &'m Model, options: &ReadOptions) -> Result<Self, Failure> {
        let tensors = model.tensors()?;
        let mut dtypes: BTreeMap<Dtype, Totals> = BTreeMap::new();
        let mut totals = Totals::default();
        for tensor in &tensors {
            totals.add(tensor);
            dtypes.entry(tensor.dtype()).or_default().add(tensor);
        }
        let mut dtypes: Vec<_> = dtypes.into_iter().collect();
        dtypes.sort_by_key(|(_, totals)| core::cmp::Reverse(totals.bytes));
        let count =
            |aligned: fn(&Tensor<'_>) -> bool| tensors.iter().filter(|tensor| aligned(tensor)).count() as u64;
        let files: Vec<_> = model.parts()?.into_iter().map(FileSummary::new).collect();
        Ok(Self {
            model,
            options: *options,
            items: tensors.iter().map(item).collect(),
            dtypes,
            totals,
            aligned_to_elements: count(is_aligned),
            aligned_to_64: count(|tensor| tensor.info.file_range().start.is_multiple_of(64)),
            warnings: warnings::all(&tensors, &files, options),
            files,
        })
    }

    fn file_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.part.file.file_len()).sum()
    }
}

fn item<'m>(tensor: &Tensor<'m>) -> Item<'m> {
    Item {
        name: tensor.name(),
        dtype: tensor.dtype().name(),
        shape: tensor.shape(),
        elements: tensor.info.element_count(),
        bytes: tensor.byte_len(),
    }
}

/// Whether the offset is a multiple of the element size; of packed types, every offset is.
fn is_aligned(tensor: &Tensor<'_>) -> bool {
    let size = u64::from(tensor.dtype().bits() / 8).max(1);
    tensor.info.file_range().start.is_multiple_of(size)
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
        // The same header, written again, says how long it has to be and in which order a writer would put it.
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
