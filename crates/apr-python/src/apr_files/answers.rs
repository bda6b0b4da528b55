//! Outputs of models other than pipelines as arrays.

use apr_models::{
    AnyModel, Error, Floats, InputKind, Matrix, Model as _, OutputKind, Predictions, SparseRows,
};

use super::method::Method;
use super::refusal::Refusal;
use super::samples::Numbers;
use super::table_rows::TableRows;

/// Rows of a table that are asked about at once.
const ROWS_AT_ONCE: usize = 8192;

/// Computes the output of a method.
pub(crate) fn answer(model: &AnyModel, method: Method, x: &Matrix) -> Result<Numbers, Refusal> {
    answer_part(model, method, x, 0)
}

/// The same for rows that follow `n_before` others, from which errors count.
fn answer_part(model: &AnyModel, method: Method, x: &Matrix, n_before: usize) -> Result<Numbers, Refusal> {
    let of_table = |error: Error| error.offset_rows(n_before);
    let capabilities = model.capabilities();
    let output = match method {
        Method::Predict => OutputKind::Predictions,
        Method::PredictProba if capabilities.supports(OutputKind::Probabilities) => {
            return Ok(Numbers::table(model.predict_proba(x).map_err(of_table)?));
        }
        Method::PredictProba => OutputKind::Probabilities,
        Method::Transform => OutputKind::Transformed,
        Method::Scores if capabilities.supports(OutputKind::ScoreSamples) => OutputKind::ScoreSamples,
        Method::Scores if capabilities.supports(OutputKind::DecisionFunction) => OutputKind::DecisionFunction,
        // Models have `scores` for both.
        Method::Scores => return Err(none(model, "scores")),
        Method::DecisionFunction => return Err(none(model, OutputKind::DecisionFunction.name())),
        Method::ScoreSamples => return Err(none(model, OutputKind::ScoreSamples.name())),
    };
    if !capabilities.supports(output) || reads_texts(model) {
        return Err(none(model, output.name()));
    }
    let n_rows = x.n_rows();
    Ok(match model.predict_matrix(x, output).map_err(of_table)? {
        Predictions::Values(Floats::F32(values)) => Numbers::row(values),
        Predictions::Values(Floats::F64(values)) => Numbers::F64(values, vec![n_rows]),
        Predictions::Rows { values: Floats::F32(values), n_columns } => {
            Numbers::F32(values, vec![n_rows, n_columns])
        }
        Predictions::Rows { values: Floats::F64(values), n_columns } => {
            Numbers::F64(values, vec![n_rows, n_columns])
        }
        // Labels as Python counts: the largest that a machine has memory for fits.
        Predictions::Classes(classes) => Numbers::labels(classes.into_iter().map(|class| class as i64)),
        Predictions::Outliers(marks) => Numbers::labels(marks.into_iter().map(i64::from)),
        _ => return Err(none(model, output.name())),
    })
}

/// Whether this is a model of texts, and no pipeline.
pub(crate) fn reads_texts(model: &AnyModel) -> bool {
    !matches!(model, AnyModel::Pipeline(_)) && model.capabilities().input() == Some(InputKind::Text)
}

/// The logarithm of the probability of each text, words divided by white space.
pub(crate) fn scores_of_texts(model: &AnyModel, texts: &[String]) -> Result<Numbers, Refusal> {
    let AnyModel::NgramLm(language) = model else { return Err(none(model, "scores")) };
    let score = |text: &String| language.log_probability(&text.split_whitespace().collect::<Vec<&str>>());
    Ok(Numbers::F64(texts.iter().map(score).collect(), vec![texts.len()]))
}

/// The same for the rows of a table, some of them at a time: each row is computed alone.
pub(crate) fn answer_table(model: &AnyModel, method: Method, table: &TableRows) -> Result<Numbers, Refusal> {
    let (n_rows, _) = table.shape();
    let part = |start: usize| {
        let rows = start..n_rows.min(start + ROWS_AT_ONCE);
        answer_part(model, method, &table.matrix(rows)?, start)
    };
    let mut all = part(0)?;
    for start in (ROWS_AT_ONCE..n_rows).step_by(ROWS_AT_ONCE) {
        all.append(part(start)?);
    }
    Ok(all)
}

/// The weighted terms of each text.
pub(crate) fn terms(model: &AnyModel, texts: &[String]) -> Result<SparseRows, Refusal> {
    match model {
        AnyModel::TfIdf(model) => Ok(model.transform(texts)),
        AnyModel::CountVectorizer(model) => Ok(model.transform(texts)),
        _ => Err(none(model, "terms")),
    }
}

fn none(model: &AnyModel, what: &str) -> Refusal {
    Refusal::no_answer(format!("a {} gives no {what}", model.name()))
}
