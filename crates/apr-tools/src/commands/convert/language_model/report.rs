//! What is told of a conversion.

use alloc::borrow::Cow;
use std::path::Path;

use hf_gguf::Flaws;
use serde::Serialize;

use super::new_model::NewModel;
use super::split;
use crate::commands::quantize::{DamagedTensor, warn_of_damage};
use crate::error::Failure;
use crate::input::Format;
use crate::output::Output;
use crate::report::{self, Report, Written};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, plural};

/// What was made, or would be.
pub(super) struct Made<'a> {
    pub(super) input: &'a Path,
    pub(super) model: &'a NewModel<'a>,
    pub(super) format: Format,
    pub(super) files: &'a [NewFile<'a>],
    pub(super) output: &'a Output,
    pub(super) flaws: Flaws,
}

/// One of the new files.
pub(super) struct NewFile<'a> {
    pub(super) path: &'a Path,
    pub(super) tensors: u64,
    pub(super) bytes: u64,
}

impl<'a> NewFile<'a> {
    /// A GGUF file.
    pub(super) fn of(file: &'a split::NewFile) -> Self {
        Self {
            path: file.place.label(),
            tensors: file.layout.tensors().len() as u64,
            bytes: file.layout.file_len(),
        }
    }
}

/// Tells it, as text or as JSON.
///
/// # Errors
///
/// If standard output does not take it.
pub(super) fn print(made: &Made<'_>, console: &mut Console) -> Result<(), Failure> {
    let Made { input, model, format, files, output, flaws } = made;
    let damaged = model.damaged.borrow();
    let architecture = model.conversion.keys().get("general.architecture").and_then(|value| value.as_str());
    let architecture = architecture.unwrap_or_default();
    if console.is_json() {
        let rows = files.iter().map(|file| FileRow {
            path: report::path(file.path),
            tensors: file.tensors,
            bytes: file.bytes,
        });
        let bytes = files.iter().map(|file| file.bytes).sum();
        return console.report(&ConversionReport {
            file: Written::new(input, output.destination.label(), output.run, bytes),
            format: format.name(),
            architecture,
            type_name: &model.type_name,
            parameters: model.conversion.parameters().total,
            tensors: model.tensors.len() as u64,
            overflowed: flaws.overflowed,
            not_finite: flaws.not_finite,
            notes: model.conversion.notes(),
            remarks: model.conversion.remarks(),
            damaged: &damaged,
            files: rows.collect(),
        });
    }
    for note in model.conversion.notes() {
        console.remark(format_args!("llama.cpp's converter stops on this folder: {note}"));
    }
    for remark in model.conversion.remarks() {
        console.remark(remark);
    }
    if flaws.overflowed > 0 {
        console.remark(format_args!(
            "{} beyond the range of F16 became infinite; --type bf16 or f32 keeps them",
            plural(flaws.overflowed, "value")
        ));
    }
    if flaws.not_finite > 0 {
        let (are, stay) = if flaws.not_finite == 1 { ("is", "stays") } else { ("are", "stay") };
        let count = plural(flaws.not_finite, "value");
        console.remark(format_args!("{count} of the folder {are} infinite or not a number, and {stay} so"));
    }
    model.importance_note.iter().for_each(|note| console.remark(note));
    let remedy = format!(
        "convert with --type f32 to another file, and quantize that: `apr quantize F32.gguf OUT.gguf --type {} --tensor-type NAME=bf16` keeps \
         such a tensor in 16 bits",
        model.type_name.to_lowercase()
    );
    warn_of_damage(&damaged, &remedy, console);
    let container = if *format == Format::AprV2 { ".apr version 2, " } else { "" };
    for file in *files {
        let text = format!(
            "{}: {container}{architecture}, {}, {}, {}",
            escape::path(file.path),
            model.type_name,
            plural(file.tensors, "tensor"),
            exact_bytes(file.bytes),
        );
        output.run.tell(&text, console)?;
    }
    Ok(())
}

/// The report.
#[derive(Serialize)]
struct ConversionReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    format: &'a str,
    architecture: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    parameters: u64,
    tensors: u64,
    overflowed: u64,
    not_finite: u64,
    notes: &'a [&'static str],
    remarks: &'a [String],
    damaged: &'a [DamagedTensor<'static>],
    files: Vec<FileRow<'a>>,
}

impl Report for ConversionReport<'_> {
    const SCHEMA: &'static str = "apr.convert-model/1";
}

#[derive(Serialize)]
struct FileRow<'a> {
    path: Cow<'a, str>,
    tensors: u64,
    bytes: u64,
}
