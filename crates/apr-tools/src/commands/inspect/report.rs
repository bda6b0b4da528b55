//! The summary of a model as text and as JSON.

use alloc::borrow::Cow;
use core::iter;
use std::io;

use model_file::Warning;
use serde::{Serialize, Serializer};
use st_core::Metadata;

use super::content::{TotalsFields, Tree};
use super::page::{Page, text_value};
use super::{FileSummary, Summary, checkpoints, structure};
use crate::commands::checkpoint::list::AboutFields;
use crate::error::Failure;
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape::escaped;
use crate::terminal::human::{self, grouped, plural};
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::Extent;

/// Prints the report; the tree only to the extent given.
pub(super) fn text(
    summary: &Summary<'_>,
    tree: Option<Extent>,
    console: &mut Console,
) -> Result<(), Failure> {
    let shards = if summary.model().is_sharded() {
        format!(" in {}", plural(summary.files.len() as u64, "shard"))
    } else {
        String::new()
    };
    let what = (&*format!("safetensors{shards}"), summary.file_bytes());
    summary.content.print(what, &facts(summary), tree, console, |page| {
        if summary.model().is_sharded() {
            write_shards(summary, page)?;
        }
        if let Some((about, checkpoint)) = &summary.checkpoint {
            checkpoints::section(checkpoint, about, page)?;
        }
        if let [file] = summary.files.as_slice() {
            structure::section(file.part.file.header(), tree, page)?;
        }
        write_metadata(summary, page)
    })
}

fn facts(summary: &Summary<'_>) -> Table {
    let mut table = Table::new(&[Align::Left, Align::Left]);
    summary.content.totals(&mut table);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    if let [file] = summary.files.as_slice() {
        line("header", header(file));
    }
    line("alignment", alignment(summary));
    line("mode", summary.rules.name().to_owned());
    table
}

fn header(file: &FileSummary<'_>) -> String {
    let header = file.part.file.header();
    let spare =
        if file.spare > 0 { format!(", {} of them spare", grouped(file.spare)) } else { String::new() };
    format!(
        "{} bytes{spare}; data begins at byte {}",
        grouped(header.header_len()),
        grouped(header.data_start())
    )
}

fn alignment(summary: &Summary<'_>) -> String {
    let all = summary.content.totals.tensors;
    let elements = match summary.aligned_to_elements {
        n if n == all => "every tensor to its elements".to_owned(),
        n => format!("{} of {} tensors to their elements", grouped(n), grouped(all)),
    };
    let lines = match summary.aligned_to_64 {
        n if n == all => "all".to_owned(),
        n => format!("{} of {}", grouped(n), grouped(all)),
    };
    format!("{elements}; {lines} to 64 bytes")
}

fn write_shards(summary: &Summary<'_>, page: &mut Page<'_>) -> io::Result<()> {
    page.heading("Shards")?;
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]);
    for file in summary.files.iter().take(page.shown()) {
        let tensors = plural(file.part.file.header().len() as u64, "tensor");
        let name = escaped(file.part.shard.unwrap_or_default());
        table.row([format!("  {name}"), tensors, human::bytes(file.part.file.file_len())]);
    }
    table.lines().iter().try_for_each(|line| writeln!(page.out, "{line}"))?;
    page.more(summary.files.len())
}

/// The metadata; of shards, that of the first, because they normally all carry the same.
fn write_metadata(summary: &Summary<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let Some(metadata) = summary.files.first().and_then(of) else { return Ok(()) };
    let entries = |metadata: Metadata<'_>| -> Vec<(String, String)> {
        metadata.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let all_alike = summary.files.iter().skip(1).all(|file| of(file).map(entries) == Some(entries(metadata)));
    let whose = match (all_alike, summary.files.len()) {
        (_, 1) => "",
        (true, _) => " (the same in every shard)",
        (false, _) => " of the first shard (others differ; --json shows all)",
    };
    let heading = format!("Metadata{whose}");
    if metadata.is_empty() {
        return page.list(&heading, iter::once("(an empty map)".to_owned()));
    }
    let shorten = page.shorten;
    // A structure has a section of its own.
    let entries: Vec<_> =
        metadata.iter().filter(|(key, _)| summary.files.len() > 1 || !structure::is_part(key)).collect();
    match entries.is_empty() {
        true => Ok(()),
        false => {
            page.entries(&heading, entries.into_iter().map(|(key, value)| (key, text_value(value, shorten))))
        }
    }
}

fn of<'m>(file: &FileSummary<'m>) -> Option<Metadata<'m>> {
    file.part.file.header().metadata()
}

pub(super) fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let files = summary.files.iter().map(|file| {
        let header = file.part.file.header();
        FileFields {
            shard: file.part.shard,
            bytes: file.part.file.file_len(),
            header_bytes: header.header_len(),
            spare_header_bytes: file.spare,
            data_start: header.data_start(),
            tensors: header.len(),
            official_order: file.is_official_order,
            metadata: header.metadata().map(MetadataFields),
        }
    });
    console.report(&InspectReport {
        file: report::path(summary.model().label()),
        format: summary.model().format().name(),
        mode: summary.rules.name(),
        sharded: summary.model().is_sharded(),
        file_bytes: summary.file_bytes(),
        totals: summary.content.totals_fields(),
        alignment: Alignment {
            aligned_to_elements: summary.aligned_to_elements,
            aligned_to_64: summary.aligned_to_64,
        },
        files: files.collect(),
        tree: summary.content.tree_fields(),
        checkpoint: summary
            .checkpoint
            .as_ref()
            .map(|(about, checkpoint)| AboutFields::new(checkpoint, about)),
        warnings: summary.content.warnings(),
    })
}

/// A safetensors model.
#[derive(Serialize)]
struct InspectReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    mode: &'a str,
    sharded: bool,
    file_bytes: u64,
    #[serde(flatten)]
    totals: TotalsFields,
    alignment: Alignment,
    files: Vec<FileFields<'a>>,
    tree: Tree<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<AboutFields<'a>>,
    warnings: &'a [Warning],
}

impl Report for InspectReport<'_> {
    const SCHEMA: &'static str = "apr.inspect/2";
}

/// How many tensors begin at such a multiple.
#[derive(Serialize)]
struct Alignment {
    aligned_to_elements: u64,
    aligned_to_64: u64,
}

#[derive(Serialize)]
struct FileFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<&'a str>,
    bytes: u64,
    header_bytes: u64,
    spare_header_bytes: u64,
    data_start: u64,
    tensors: usize,
    official_order: bool,
    metadata: Option<MetadataFields<'a>>,
}

struct MetadataFields<'a>(Metadata<'a>);

impl Serialize for MetadataFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}
