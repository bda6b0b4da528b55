//! Outputs of pipelines: in float64, many rows on several threads.

use core::num::NonZeroUsize;
use core::ops::Range;
use std::thread;

use apr_models::{
    Error, ErrorKind, Head, Input, Labels, OutputKind, OutputShape, Pipeline, Samples, SparseRows,
};

use super::method::Method;
use super::refusal::Refusal;
use super::samples::{Numbers, SampleBuffer, Values};
use super::table_rows::TableRows;

/// Minimum rows per thread, whose start takes as long as a few rows.
const ROWS_OF_THREAD: usize = 1024;

/// Rows per batch: as many as a pipeline with trees computes at once.
const ROWS_AT_ONCE: usize = 4096;

/// The samples of a prediction.
pub(crate) enum Rows {
    Numbers(SampleBuffer),
    Table(TableRows),
    Texts(Vec<String>),
}

impl Rows {
    fn n_rows(&self) -> usize {
        match self {
            Self::Numbers(samples) => samples.shape().0,
            Self::Table(rows) => rows.shape().0,
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Asks about some of the rows.
    fn ask<T>(
        &self,
        rows: Range<usize>,
        ask: impl FnOnce(Samples<'_>) -> Result<T, Error>,
    ) -> Result<T, Refusal> {
        let start = rows.start;
        let answered = match self {
            Self::Numbers(samples) => match samples.values(rows) {
                Values::F32(values) => ask(Samples::F32(&values)),
                Values::F64(values) => ask(Samples::F64(&values)),
            },
            Self::Table(table) => ask(Samples::F64(&table.numbers(rows)?)),
            Self::Texts(texts) => {
                let texts: Vec<&str> =
                    texts.iter().skip(rows.start).take(rows.len()).map(String::as_str).collect();
                ask(Samples::Text(&texts))
            }
        };
        answered.map_err(|error| error.offset_rows(start).into())
    }
}

/// Whether the input of the pipeline is strings.
pub(crate) const fn reads_texts(model: &Pipeline) -> bool {
    matches!(model.input(), Input::Texts(_))
}

/// Computes the output of a method.
pub(crate) fn answer(model: &Pipeline, method: Method, rows: &Rows) -> Result<Numbers, Refusal> {
    expect_width(model, rows)?;
    match method {
        Method::Predict => predictions(model, rows),
        Method::PredictProba => {
            let Some(width) = model.n_probabilities() else { return Err(none("probabilities")) };
            table(rows, width, |rows, out| model.predict_proba_into(rows, out))
        }
        Method::DecisionFunction => {
            let Some(width) = model.n_decisions() else { return Err(none("decision function")) };
            let ask = |rows: Samples<'_>, out: &mut [f64]| model.decision_function_into(rows, out);
            if width == 1 { flat(rows, ask) } else { table(rows, width, ask) }
        }
        Method::ScoreSamples if model.has_score_samples() => {
            flat(rows, |rows, out| model.score_samples_into(rows, out))
        }
        Method::ScoreSamples => Err(none("scores of samples")),
        Method::Transform if model.capabilities().supports(OutputKind::Transformed) => {
            table(rows, model.n_outputs(), |rows, out| model.values_into(rows, out))
        }
        Method::Transform => Err(none("transformed samples")),
        Method::Scores => table(rows, model.n_outputs(), |rows, out| model.scores_into(rows, out)),
    }
}

/// The weighted terms of each text.
pub(crate) fn terms(model: &Pipeline, texts: &[String]) -> Result<SparseRows<f64>, Refusal> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Ok(model.transform_texts(&texts)?)
}

fn none(what: &str) -> Refusal {
    Refusal::no_answer(format!("this pipeline gives no {what}"))
}

fn expect_width(model: &Pipeline, rows: &Rows) -> Result<(), Error> {
    let (n_rows, n_cols) = match rows {
        Rows::Numbers(samples) => samples.shape(),
        Rows::Table(rows) => rows.shape(),
        Rows::Texts(_) => return Ok(()),
    };
    let Input::Numbers { n_features, .. } = model.input() else { return Ok(()) };
    if n_cols != *n_features {
        return Err(ErrorKind::FeatureCount { expected: *n_features, found: n_cols }.into());
    }
    if n_rows == 0 {
        return Err(ErrorKind::EmptyMatrix { n_rows, n_cols }.into());
    }
    Ok(())
}

fn predictions(model: &Pipeline, rows: &Rows) -> Result<Numbers, Refusal> {
    if let Head::Values { shape, .. } = model.head() {
        let ask = |rows: Samples<'_>, out: &mut [f64]| model.values_into(rows, out);
        return if *shape == OutputShape::Vector {
            flat(rows, ask)
        } else {
            table(rows, model.n_outputs(), ask)
        };
    }
    let places = filled(rows, 1, |rows, out: &mut [usize]| model.predict_indices_into(rows, out))?;
    Ok(match model.head() {
        Head::Classes(head) => labels(&head.labels, &places),
        Head::Outliers(_) => Numbers::labels(places.iter().map(|&place| if place == 0 { -1 } else { 1 })),
        _ => Numbers::labels(places.iter().map(|&place| place as i64)),
    })
}

/// The labels at places that are all there.
fn labels(labels: &Labels, places: &[usize]) -> Numbers {
    let shape = vec![places.len()];
    match labels {
        Labels::Integers(labels) => Numbers::labels(places.iter().map(|&place| labels[place])),
        Labels::Booleans(labels) => {
            Numbers::Bools(places.iter().map(|&place| labels[place]).collect(), shape)
        }
        Labels::Numbers(labels) => Numbers::F64(places.iter().map(|&place| labels[place]).collect(), shape),
        Labels::Texts(labels) => Numbers::Texts {
            texts: labels.clone(),
            places: places.iter().map(|&place| place as i64).collect(),
        },
        _ => Numbers::labels(places.iter().map(|&place| place as i64)),
    }
}

fn flat(
    rows: &Rows,
    ask: impl Fn(Samples<'_>, &mut [f64]) -> Result<(), Error> + Sync,
) -> Result<Numbers, Refusal> {
    let values = filled(rows, 1, ask)?;
    let shape = vec![values.len()];
    Ok(Numbers::F64(values, shape))
}

fn table(
    rows: &Rows,
    width: usize,
    ask: impl Fn(Samples<'_>, &mut [f64]) -> Result<(), Error> + Sync,
) -> Result<Numbers, Refusal> {
    Ok(Numbers::F64(filled(rows, width, ask)?, vec![rows.n_rows(), width]))
}

/// Answers of `width` places for each row. Each row is computed alone, so nothing depends on the number of threads.
fn filled<T: Clone + Default + Send>(
    rows: &Rows,
    width: usize,
    ask: impl Fn(Samples<'_>, &mut [T]) -> Result<(), Error> + Sync,
) -> Result<Vec<T>, Refusal> {
    let n_rows = rows.n_rows();
    let too_large = || Error::from(ErrorKind::MatrixTooLarge { n_rows, n_cols: width });
    let len = n_rows.checked_mul(width).ok_or_else(too_large)?;
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| too_large())?;
    out.resize(len, T::default());
    // A row of no places has no answers to fill in.
    let width = width.max(1);
    let part = |first: usize, out: &mut [T]| {
        out.chunks_mut(ROWS_AT_ONCE.saturating_mul(width)).enumerate().try_for_each(|(idx, out)| {
            let start = first + idx * ROWS_AT_ONCE;
            rows.ask(start..start + out.len() / width, |rows| ask(rows, out))
        })
    };
    let n_threads = match n_rows / ROWS_OF_THREAD {
        0 | 1 => 1,
        most => thread::available_parallelism().map_or(1, NonZeroUsize::get).min(most),
    };
    if n_threads == 1 {
        part(0, &mut out)?;
        return Ok(out);
    }
    let rows_of_each = n_rows.div_ceil(n_threads);
    thread::scope(|scope| {
        let parts = out.chunks_mut(rows_of_each.saturating_mul(width)).enumerate();
        let work = parts.map(|(idx, out)| {
            let part = &part;
            thread::Builder::new().spawn_scoped(scope, move || part(idx * rows_of_each, out))
        });
        let threads: Vec<_> = work.collect::<Result<_, _>>().map_err(Refusal::Io)?;
        // The first of the refusals is told, as one thread would.
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok::<(), Refusal>(())
    })?;
    Ok(out)
}
