//! The types, blocks and bits of a model's tensors.

use alloc::borrow::Cow;
use std::io::Write as _;

use super::content::by_dtype;
use crate::error::Failure;
use crate::input::{Model, Totals, common_name};
use crate::report::{self, Number, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{float, grouped, percent};
use crate::terminal::table::{Align, Dispensable, Table};
use serde::Serialize;
use tensor_dtype::TensorType;

/// Elements and bytes of a block, and bits of an element.
struct Block {
    elements: u64,
    bytes: Option<u64>,
    bits: f64,
}

/// Of a type; `None` if it is unknown.
fn block(dtype: TensorType) -> Option<Block> {
    let dtype = dtype.known()?;
    if dtype.is_quantized() {
        let (elements, bytes) = (dtype.block_len() as u64, Some(dtype.block_bytes() as u64));
        return Some(Block { elements, bytes, bits: dtype.bits_per_weight() });
    }
    let bits = dtype.bits();
    // Two elements of four bits share a byte.
    let bytes = bits.is_multiple_of(8).then_some(u64::from(bits) / 8);
    Some(Block { elements: 1, bytes, bits: bits.into() })
}

/// Bits that an element takes on average.
fn bits(totals: Totals) -> Option<f64> {
    (totals.elements > 0).then(|| totals.bytes as f64 * 8.0 / totals.elements as f64)
}

/// Prints the types of a model.
///
/// # Errors
///
/// If its tensors cannot be listed.
pub(super) fn run(model: &Model, console: &mut Console) -> Result<(), Failure> {
    let tensors = match model.table() {
        Some(table) => vec![table],
        None => model.tensors()?,
    };
    let (dtypes, totals) = by_dtype(&tensors);
    if console.is_json() {
        json(model, &dtypes, totals, console)
    } else {
        text(model, &dtypes, totals, console)
    }
}

fn text(
    model: &Model,
    dtypes: &[(TensorType, Totals)],
    totals: Totals,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut table = Table::new(&[
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
    ]);
    table.row(["TYPE", "TENSORS", "ELEMENTS", "BLOCK", "BITS/WEIGHT", "BYTES", "SHARE"]);
    for (dtype, part) in dtypes {
        let block = block(*dtype);
        let of_block = |text: fn(&Block) -> String| block.as_ref().map_or_else(|| "?".to_owned(), text);
        let (name, stored) = (common_name(*dtype), dtype.name());
        table.row([
            if name == stored { stored.to_owned() } else { format!("{name} ({stored})") },
            grouped(part.tensors),
            grouped(part.elements),
            of_block(|block| block.elements.to_string()),
            of_block(|block| float(block.bits)),
            grouped(part.bytes),
            percent(part.bytes, totals.bytes),
        ]);
    }
    table.row([
        "all".to_owned(),
        grouped(totals.tensors),
        grouped(totals.elements),
        String::new(),
        bits(totals).map_or_else(|| "-".to_owned(), float),
        grouped(totals.bytes),
        percent(totals.bytes, totals.bytes),
    ]);
    console.text(|out, style| {
        writeln!(out, "{}: {}\n", style.bold(&escape::path(model.label())), model.format().title())?;
        let mut lines = table.fitted(style, Dispensable { first: &[3, 2], last: &[1, 6] }).into_iter();
        if let Some(head) = lines.next() {
            writeln!(out, "{}", style.bold(&head))?;
        }
        lines.try_for_each(|line| writeln!(out, "{line}"))
    })
}

fn json(
    model: &Model,
    dtypes: &[(TensorType, Totals)],
    totals: Totals,
    console: &mut Console,
) -> Result<(), Failure> {
    let types = dtypes.iter().map(|&(dtype, part)| {
        let block = block(dtype);
        TypeRow {
            dtype: dtype.name(),
            common_name: common_name(dtype),
            tensors: part.tensors,
            parameters: part.elements,
            bytes: part.bytes,
            block_elements: block.as_ref().map(|block| block.elements),
            block_bytes: block.as_ref().and_then(|block| block.bytes),
            bits_per_weight: block.map(|block| Number(block.bits)),
        }
    });
    console.report(&QuantizationReport {
        file: report::path(model.label()),
        format: model.format().name(),
        version: model.format().version(),
        types: types.collect(),
        tensors: totals.tensors,
        parameters: totals.elements,
        bytes: totals.bytes,
        bits_per_weight: bits(totals).map(Number),
    })
}

/// The types of the tensors.
#[derive(Serialize)]
struct QuantizationReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    types: Vec<TypeRow>,
    tensors: u64,
    parameters: u64,
    bytes: u64,
    bits_per_weight: Option<Number>,
}

impl Report for QuantizationReport<'_> {
    const SCHEMA: &'static str = "apr.quantization/2";
}

#[derive(Serialize)]
struct TypeRow {
    dtype: &'static str,
    #[serde(rename = "type")]
    common_name: &'static str,
    tensors: u64,
    parameters: u64,
    bytes: u64,
    block_elements: Option<u64>,
    block_bytes: Option<u64>,
    bits_per_weight: Option<Number>,
}
