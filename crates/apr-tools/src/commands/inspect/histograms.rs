//! `apr inspect --histograms`: how the values of each tensor are distributed.

use alloc::borrow::Cow;
use std::io::Write as _;

use model_file::{Histogram, Scan, Statistics};
use serde::Serialize;

use crate::error::Failure;
use crate::input::{Model, Tensor};
use crate::report::{self, Each, Number, Report};
use crate::tensor_fold::fold;
use crate::terminal::Console;
use crate::terminal::escape::escaped;
use crate::terminal::human;
use crate::terminal::table::{Align, Dispensable, Table};

/// Parts of the range, cells of the chart.
const BINS: usize = 16;
/// Heights of a cell.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Prints the report.
///
/// # Errors
///
/// If the tensors cannot be read.
pub(super) fn run(model: &Model, console: &mut Console) -> Result<(), Failure> {
    let tensors: Vec<_> = model.tensors()?.into_iter().filter(|tensor| tensor.alias_of().is_none()).collect();
    let scans = fold(&tensors, "reading values", console, |_, dtype| Scan::new(dtype))?;
    let statistics: Vec<Option<Statistics>> = scans.into_iter().map(|scan| scan.map(Scan::finish)).collect();
    let range = |idx: usize| statistics.get(idx).and_then(|found| found.as_ref()?.range);
    let histograms = fold(&tensors, "counting values", console, |idx, _| {
        range(idx).map(|range| Histogram::new(range, BINS))
    })?;
    let rows: Vec<Row<'_>> = tensors
        .iter()
        .zip(statistics)
        .zip(histograms)
        .map(|((tensor, statistics), histogram)| Row { tensor, statistics, histogram })
        .collect();
    if console.is_json() {
        let fields = || rows.iter().map(RowFields::new);
        return console
            .report(&HistogramsReport { file: report::path(model.label()), tensors: Each(fields) });
    }
    let right = Align::Right;
    let mut table = Table::new(&[Align::Left, Align::Left, right, right, right, right, right, Align::Left]);
    table.row(["NAME", "DTYPE", "VALUES", "MIN", "MAX", "MEAN", "STD", "HISTOGRAM"]);
    rows.iter().for_each(|row| table.row(row.cells()));
    console.text(|out, style| {
        let mut lines = table.fitted(style, Dispensable { first: &[1, 2], last: &[5, 6] }).into_iter();
        if let Some(head) = lines.next() {
            writeln!(out, "{}", style.bold(&head))?;
        }
        lines.try_for_each(|line| writeln!(out, "{line}"))
    })
}

/// One tensor.
struct Row<'m> {
    tensor: &'m Tensor<'m>,
    /// `None` of a type whose values are not known.
    statistics: Option<Statistics>,
    /// `None` if there is no finite value.
    histogram: Option<Histogram>,
}

impl Row<'_> {
    fn cells(&self) -> [String; 8] {
        let mut cells: [String; 8] = Default::default();
        cells[0] = escaped(self.tensor.name());
        cells[1] = self.tensor.dtype().to_string();
        let Some(statistics) = &self.statistics else { return cells };
        cells[2] = human::grouped(statistics.count);
        if let Some(((low, high), histogram)) = statistics.range.zip(self.histogram.as_ref()) {
            let moments = [low, high, histogram.mean(), histogram.standard_deviation()];
            cells[3..7].iter_mut().zip(moments).for_each(|(cell, value)| *cell = human::float(value));
            cells[7] = chart(histogram.counts());
        }
        let special = [(statistics.nan, "NaN"), (statistics.infinite, "infinite")];
        for (count, what) in special.into_iter().filter(|&(count, _)| count > 0) {
            cells[7] += &format!(" {} {what}", human::grouped(count));
        }
        cells
    }
}

/// A cell for each part, as high as its share of the most frequent one; what occurs has a height.
fn chart(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let level = |&count: &u64| {
        let height = u128::from(count) * (LEVELS.len() as u128 - 1);
        LEVELS[height.div_ceil(most.into()) as usize]
    };
    counts.iter().map(level).collect()
}

#[derive(Serialize)]
struct HistogramsReport<'a, T> {
    file: Cow<'a, str>,
    tensors: T,
}

impl<T: Serialize> Report for HistogramsReport<'_, T> {
    const SCHEMA: &'static str = "apr.histograms/1";
}

#[derive(Serialize)]
struct RowFields<'a> {
    name: &'a str,
    dtype: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<ValueFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<RangeFields<'a>>,
}

#[derive(Serialize)]
struct ValueFields {
    count: u64,
    nan: u64,
    infinite: u64,
    subnormal: u64,
    zeros: u64,
}

/// Of the finite values.
#[derive(Serialize)]
struct RangeFields<'a> {
    min: Number,
    max: Number,
    mean: Number,
    standard_deviation: Number,
    /// Counts of equal parts of the range.
    histogram: &'a [u64],
}

impl<'a> RowFields<'a> {
    fn new(row: &'a Row<'_>) -> Self {
        let values = row.statistics.as_ref().map(|found| ValueFields {
            count: found.count,
            nan: found.nan,
            infinite: found.infinite,
            subnormal: found.subnormal,
            zeros: found.zeros,
        });
        let range = row.statistics.as_ref().and_then(|found| found.range).zip(row.histogram.as_ref());
        Self {
            name: row.tensor.name(),
            dtype: row.tensor.dtype().name().into(),
            values,
            range: range.map(|((low, high), histogram)| RangeFields {
                min: Number(low),
                max: Number(high),
                mean: Number(histogram.mean()),
                standard_deviation: Number(histogram.standard_deviation()),
                histogram: histogram.counts(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurs_has_a_height() {
        assert_eq!(chart(&[0, 1, 500, 1000]), " ▁▄█");
        assert_eq!(chart(&[0, 0]), "  ");
        assert_eq!(chart(&[u64::MAX, 1]), "█▁");
    }
}
