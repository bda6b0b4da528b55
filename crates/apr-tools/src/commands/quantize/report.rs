//! The report per tensor and in total.

use alloc::borrow::Cow;
use std::io::Write as _;

use apr_convert::TargetFormat;
use apr_convert::quantize::{Decision, TensorSpec};
use apr_quant::ErrorReport;
use serde::Serialize;

use super::work::{Errors, Work};
use crate::error::Failure;
use crate::input::{Format, Tensor};
use crate::output::{Destination, Output, Run};
use crate::report::{self, Each, Number};
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, exact_bytes, plural};
use crate::terminal::table::{Align, Dispensable, Table};

/// Everything there is to tell.
pub(super) struct Report<'a> {
    pub(super) work: &'a Work<'a>,
    pub(super) output: &'a Output,
    pub(super) file_len: u64,
    /// By decision.
    pub(super) errors: &'a Errors,
    /// What of the model's metadata the new file does not hold.
    pub(super) lost: &'a [String],
}

impl Report<'_> {
    /// Prints the report: a table on standard output unless the model is written there, the totals on standard error.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(super) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(&self.json());
        }
        if !(self.output.run == Run::Write && self.output.destination == Destination::Stdout) {
            let table = self.table();
            console.text(|out, style| {
                let mut lines =
                    table.fitted(style, Dispensable { first: &[1, 6, 2], last: &[4] }).into_iter();
                if let Some(head) = lines.next() {
                    writeln!(out, "{}", style.bold(&head))?;
                }
                lines.try_for_each(|line| writeln!(out, "{line}"))
            })?;
        }
        for part in self.lost {
            console.remark(format_args!("not in the new file: {}", escaped(part)));
        }
        for line in self.sums() {
            console.note(line);
        }
        warn_of_damage(&self.damaged(), "`--tensor-type NAME=bf16` keeps such a tensor in 16 bits", console);
        let label = escape::path(self.output.destination.label());
        let text = format!("{label}: {}, {}", self.title(), exact_bytes(self.file_len));
        self.output.run.tell(&text, console)
    }

    const fn title(&self) -> &'static str {
        match self.work.options.format {
            TargetFormat::Gguf => "GGUF",
            TargetFormat::Apr => ".apr version 2",
            _ => "safetensors",
        }
    }

    fn format(&self) -> Format {
        match self.work.options.format {
            TargetFormat::Gguf => Format::Gguf,
            TargetFormat::Apr => Format::AprV2,
            _ => Format::SafeTensors,
        }
    }

    /// The rows with their results.
    fn rows(&self) -> impl Iterator<Item = (&Decision, &TensorSpec<'_>, &Tensor<'_>, Option<&ErrorReport>)> {
        self.work
            .rows()
            .zip(self.errors)
            .map(|((decision, spec, tensor), error)| (decision, spec, tensor, error.as_ref()))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            Align::Left,
            Align::Left,
            Align::Left,
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Left,
        ]);
        table.row(["NAME", "SHAPE", "FROM", "TO", "BYTES", "ERROR", "WHY"]);
        for (decision, spec, tensor, error) in self.rows() {
            table.row([
                escaped(spec.name),
                human::shape(&spec.shape.iter().map(|&dim| dim as usize).collect::<Vec<_>>()),
                tensor.dtype().to_string(),
                decision.to.map_or_else(|| tensor.dtype().to_string(), |format| format.to_string()),
                after(decision, tensor).to_string(),
                error.map_or_else(|| "-".to_owned(), |error| share(error.relative_rmse())),
                decision.reason.to_string(),
            ]);
        }
        table
    }

    /// Sizes before and after, fallbacks, the worst error.
    fn sums(&self) -> Vec<String> {
        let totals = self.work.plan.totals();
        let mut lines = vec![format!(
            "{} of {} converted: {} to {} ({}), {:.2} bits per number",
            totals.converted,
            plural(self.work.copies.tensors.len() as u64, "tensor"),
            human::bytes(self.bytes_before()),
            human::bytes(self.bytes_after()),
            human::percent(self.bytes_after(), self.bytes_before()),
            self.bits(),
        )];
        let worst = self.rows().filter_map(|(_, spec, _, error)| Some((spec.name, error?.relative_rmse())));
        if let Some((name, error)) = worst.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
            lines.push(format!("worst tensor: {}, relative RMSE {}", escaped(name), share(error)));
        }
        if totals.fallbacks > 0 {
            let text = "got another type: row length is not a multiple of the block size";
            lines.push(format!("{} {text}", plural(totals.fallbacks, "tensor")));
        }
        lines
    }

    /// The tensors that lost their content.
    fn damaged(&self) -> Vec<DamagedTensor<'_>> {
        let found = self.rows().filter_map(|(_, spec, _, error)| DamagedTensor::of(spec.name, error?));
        found.collect()
    }

    fn bytes_before(&self) -> u64 {
        self.rows().map(|(_, _, tensor, _)| tensor.byte_len()).sum()
    }

    fn bytes_after(&self) -> u64 {
        self.rows().map(|(decision, _, tensor, _)| after(decision, tensor)).sum()
    }

    fn bits(&self) -> f64 {
        let count = self.work.plan.totals().count;
        if count == 0 { 0.0 } else { self.bytes_after() as f64 * 8.0 / count as f64 }
    }

    fn json(&self) -> QuantizeReport<'_, impl Serialize> {
        let Self { work, output, .. } = self;
        let totals = work.plan.totals();
        let rows = move || {
            self.rows().map(|(decision, spec, tensor, error)| TensorRow {
                name: spec.name,
                shape: spec.shape,
                from: tensor.dtype().name(),
                to: decision.to.map_or(tensor.dtype().name(), |format| format.name()),
                reason: decision.reason.code(),
                bytes_before: tensor.byte_len(),
                bytes: after(decision, tensor),
                error: error.map(Into::into),
            })
        };
        QuantizeReport {
            input: report::path(work.model.label()),
            output: report::path(output.destination.label()),
            written: output.run == Run::Write,
            input_format: work.model.format().name(),
            input_version: work.model.format().version(),
            format: self.format().name(),
            version: self.format().version(),
            target: work.options.target.name(),
            bytes: self.file_len,
            tensor_bytes_before: self.bytes_before(),
            tensor_bytes: self.bytes_after(),
            elements: totals.count,
            bits_per_number: Number(self.bits()),
            converted: totals.converted,
            fallbacks: totals.fallbacks,
            lost: self.lost,
            damaged: self.damaged(),
            tensors: Each(rows),
        }
    }
}

/// The report.
#[derive(Serialize)]
struct QuantizeReport<'a, T> {
    input: Cow<'a, str>,
    output: Cow<'a, str>,
    written: bool,
    input_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_version: Option<u32>,
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(rename = "type")]
    target: &'a str,
    bytes: u64,
    tensor_bytes_before: u64,
    tensor_bytes: u64,
    elements: u64,
    bits_per_number: Number,
    converted: u64,
    fallbacks: u64,
    lost: &'a [String],
    damaged: Vec<DamagedTensor<'a>>,
    tensors: T,
}

impl<T: Serialize> report::Report for QuantizeReport<'_, T> {
    const SCHEMA: &'static str = "apr.quantize/2";
}

/// A tensor that lost its content.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DamagedTensor<'a> {
    name: Cow<'a, str>,
    damage: &'static str,
    relative_rmse: Number,
}

impl<'a> DamagedTensor<'a> {
    /// `None` of a sound tensor.
    pub(crate) fn of(name: impl Into<Cow<'a, str>>, error: &ErrorReport) -> Option<Self> {
        let damage = error.damage()?.code();
        Some(Self { name: name.into(), damage, relative_rmse: Number(error.relative_rmse()) })
    }

    fn line(&self) -> String {
        let name = escaped(&self.name);
        match self.damage {
            "zeros" => format!("all values of tensor {name} became zero"),
            _ => format!(
                "tensor {name} has little left of its values: relative RMSE {}",
                share(self.relative_rmse.0)
            ),
        }
    }
}

/// Warns of damaged tensors, and says what keeps them.
pub(crate) fn warn_of_damage(damaged: &[DamagedTensor<'_>], remedy: &str, console: &Console) {
    const NAMED: usize = 10;
    damaged.iter().take(NAMED).for_each(|tensor| console.warn(tensor.line()));
    if let Some(more) = damaged.len().checked_sub(NAMED).filter(|more| *more > 0) {
        console.warn(format_args!("{} more of this kind", plural(more as u64, "tensor")));
    }
    if !damaged.is_empty() {
        console.note(remedy);
    }
}

#[derive(Serialize)]
struct TensorRow<'a> {
    name: &'a str,
    shape: &'a [u64],
    from: &'a str,
    to: &'a str,
    reason: &'a str,
    bytes_before: u64,
    bytes: u64,
    error: Option<ErrorFields>,
}

#[derive(Serialize)]
struct ErrorFields {
    measured: u64,
    rmse: Number,
    sigma: Number,
    relative_rmse: Number,
    max: Number,
    cosine: Number,
    saturated: Option<u64>,
}

impl From<&ErrorReport> for ErrorFields {
    fn from(error: &ErrorReport) -> Self {
        Self {
            measured: error.count,
            rmse: Number(error.rmse),
            sigma: Number(error.sigma),
            relative_rmse: Number(error.relative_rmse()),
            max: Number(error.max_error),
            cosine: Number(error.cosine),
            saturated: error.saturated,
        }
    }
}

/// Bytes of the new tensor.
fn after(decision: &Decision, tensor: &Tensor<'_>) -> u64 {
    if decision.to.is_some() { decision.bytes.1 } else { tensor.byte_len() }
}

/// A part of one in percent, with three digits that count.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    match percent {
        _ if !percent.is_finite() => "all".to_owned(),
        0.0 => "0 %".to_owned(),
        _ if percent < 0.001 => format!("{percent:.0e} %"),
        _ if percent < 0.1 => format!("{percent:.4} %"),
        _ if percent < 1.0 => format!("{percent:.3} %"),
        _ => format!("{percent:.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_short() {
        let shown = [0.0, 1e-7, 0.00021, 0.00534, 0.0859, 1.5, f64::INFINITY].map(share);
        assert_eq!(shown, ["0 %", "1e-5 %", "0.0210 %", "0.534 %", "8.59 %", "150.00 %", "all"]);
    }
}
