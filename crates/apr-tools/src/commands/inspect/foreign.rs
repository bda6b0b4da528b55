//! The description of a file of another program.

use alloc::borrow::Cow;
use std::io::Write as _;

use model_file::{Foreign, Warning};
use serde::Serialize;
use serde_json::value::RawValue;
use tensor_dtype::TensorType;

use super::apr_tensors::write_metadata;
use super::report::{DtypeRow, Nodes, dtype_rows, heading_of_warnings, totals, write_tree};
use super::{by_dtype, item};
use crate::error::{CODE_INTERNAL, Failure};
use crate::input::{Contents, Model, Rules, Source, Tensor, Totals};
use crate::report::{self, Fields, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human;
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::{self, Extent, Item};

/// Everything the reports show.
struct Summary<'m> {
    model: &'m Model,
    file: &'m Foreign,
    file_bytes: u64,
    items: Vec<Item<'m>>,
    dtypes: Vec<(TensorType, Totals)>,
    totals: Totals,
    warnings: Vec<Warning>,
}

/// Prints the report; the tree only to the extent given.
///
/// # Errors
///
/// If the file cannot be read or is invalid.
pub(super) fn run(
    source: Source,
    rules: &Rules,
    extent: Option<Extent>,
    console: &mut Console,
) -> Result<(), Failure> {
    let model = Model::from_source(source, rules)?;
    let Contents::Foreign(file) = model.contents() else {
        return Err(Failure::new(CODE_INTERNAL, "the file has changed its format"));
    };
    let mut tensors = model.tensors()?;
    tensors.retain(|tensor| tensor.alias_of().is_none());
    let (dtypes, totals) = by_dtype(&tensors);
    let summary = Summary {
        model: &model,
        file,
        file_bytes: model.file().file_len().map_err(|error| model.source().failure_of(error))?,
        items: tensors.iter().map(item).collect(),
        dtypes,
        totals,
        warnings: warnings(&model, &tensors),
    };
    if console.is_json() { json(&summary, console) } else { text(&summary, extent, console) }
}

/// What was left out, what cannot be represented, and names that need attention.
fn warnings(model: &Model, tensors: &[Tensor<'_>]) -> Vec<Warning> {
    let mut warnings = model.file().warnings();
    if let Some(message) = super::warnings::names(tensors) {
        warnings.push(Warning { kind: "name", message });
    }
    warnings
}

fn text(summary: &Summary<'_>, tree: Option<Extent>, console: &mut Console) -> Result<(), Failure> {
    let shorten = console.out_is_terminal() && !console.is_verbose();
    console.text(|out, style| {
        let title = style.bold(&escape::path(summary.model.label()));
        let bytes = human::exact_bytes(summary.file_bytes);
        writeln!(out, "{title}: {}, {bytes}\n", summary.model.format().title())?;
        let mut table = Table::new(&[Align::Left, Align::Left]);
        totals(&mut table, summary.totals, &summary.dtypes);
        let aliases = summary.file.model().aliases();
        if !aliases.is_empty() {
            let names: Vec<String> = aliases
                .iter()
                .map(|alias| escape::escaped(&format!("{} = {}", alias.name, alias.of)))
                .collect();
            table.row(["  aliases".to_owned(), names.join(", ")]);
        }
        table.wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        if !summary.file.model().entries().is_empty() {
            write_metadata(summary.model, shorten, out, style)?;
        }
        write_tree(&summary.items, summary.totals.bytes, tree, out, style)?;
        heading_of_warnings(&summary.warnings, out, style)
    })
}

fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let model = summary.file.model();
    let raw = |text: &str| report::raw(text).map_err(|error| Failure::new(CODE_INTERNAL, error.to_string()));
    let metadata = model.entries().iter().map(|(path, json)| Ok((path.as_str(), raw(json)?)));
    console.report(&InspectReport {
        file: report::path(summary.model.label()),
        format: summary.model.format().name(),
        file_bytes: summary.file_bytes,
        tensors: summary.totals.tensors,
        parameters: summary.totals.elements,
        data_bytes: summary.totals.bytes,
        dtypes: dtype_rows(&summary.dtypes),
        aliases: Fields(
            model.aliases().iter().map(|alias| (alias.name.as_str(), alias.of.as_str())).collect(),
        ),
        metadata: Fields(metadata.collect::<Result<_, Failure>>()?),
        tree: Nodes(&tree::build(&summary.items)),
        warnings: &summary.warnings,
    })
}

/// A file of another program.
#[derive(Serialize)]
struct InspectReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    file_bytes: u64,
    tensors: u64,
    parameters: u64,
    data_bytes: u64,
    dtypes: Vec<DtypeRow>,
    /// Other names of tensors, with the name in `tree`.
    aliases: Fields<&'a str, &'a str>,
    metadata: Fields<&'a str, Box<RawValue>>,
    tree: Nodes<'a>,
    warnings: &'a [Warning],
}

impl Report for InspectReport<'_> {
    const SCHEMA: &'static str = "apr.inspect/2";
}
