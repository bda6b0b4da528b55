//! The description of a file of another program.

use alloc::borrow::Cow;

use model_file::Warning;
use serde::Serialize;
use serde_json::value::RawValue;

use super::apr_tensors::write_metadata;
use super::content::{Content, TotalsFields, Tree};
use super::warnings::{names, warning};
use crate::error::{CODE_INTERNAL, Failure};
use crate::input::{Contents, Model, Rules, Source};
use crate::report::{self, Fields, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::Extent;

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
    let mut warnings = model.file().warnings();
    warnings.extend(warning(("name", names(&tensors))));
    let content = Content::new(&model, &tensors, warnings);
    let file_bytes = model.file().file_len().map_err(|error| model.source().failure_of(error))?;
    let (aliases, entries) = (file.model().aliases(), file.model().entries());
    if !console.is_json() {
        let mut facts = Table::new(&[Align::Left, Align::Left]);
        content.totals(&mut facts);
        if !aliases.is_empty() {
            let names: Vec<String> = aliases
                .iter()
                .map(|alias| escape::escaped(&format!("{} = {}", alias.name, alias.of)))
                .collect();
            facts.row(["  aliases".to_owned(), names.join(", ")]);
        }
        return content.print((model.format().title(), file_bytes), &facts, extent, console, |page| {
            if entries.is_empty() { Ok(()) } else { write_metadata(&model, page) }
        });
    }
    let raw = |text: &str| report::raw(text).map_err(|error| Failure::new(CODE_INTERNAL, error.to_string()));
    let metadata = entries.iter().map(|(path, json)| Ok((path.as_str(), raw(json)?)));
    console.report(&InspectReport {
        file: report::path(model.label()),
        format: model.format().name(),
        file_bytes,
        totals: content.totals_fields(),
        aliases: Fields(aliases.iter().map(|alias| (alias.name.as_str(), alias.of.as_str())).collect()),
        metadata: Fields(metadata.collect::<Result<_, Failure>>()?),
        tree: content.tree_fields(),
        warnings: content.warnings(),
    })
}

/// A file of another program.
#[derive(Serialize)]
struct InspectReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    file_bytes: u64,
    #[serde(flatten)]
    totals: TotalsFields,
    /// Other names of tensors, with the name in `tree`.
    aliases: Fields<&'a str, &'a str>,
    metadata: Fields<&'a str, Box<RawValue>>,
    tree: Tree<'a>,
    warnings: &'a [Warning],
}

impl Report for InspectReport<'_> {
    const SCHEMA: &'static str = "apr.inspect/2";
}
