//! Models: what they are, and their answers.

use alloc::string::String;
use alloc::vec::Vec;

use apr_models::{
    AnyModel, Error, ErrorKind, Floats, InputKind, Label, Matrix, Model as _, OutputKind, PredictionKind,
    Predictions, Samples, SparseRows, TermWeights,
};
use model_file::NamedModel;

use crate::failure::Failure;
use crate::json::Json;
use crate::values::{bytes_of, floats_of};
use crate::wire::{Answer, Arguments};

/// Whether a model may be a pipeline: only they take 64-bit floats and have labels of their own.
const PIPELINES: bool = cfg!(feature = "every-model");

/// Writes what a model is, with the names that the metadata of its file have for features and classes.
pub(crate) fn describe_model(named: &NamedModel, json: &mut Json) {
    let model = &*named.model;
    json.open("{");
    json.text("type", model.name());
    let outputs = match model {
        AnyModel::Pipeline(model) => Some(model.n_outputs()),
        _ => None,
    };
    for (key, count) in [("inputs", model.n_features()), ("outputs", outputs)] {
        match count {
            Some(count) => json.number(key, count as u64),
            None => json.raw(key, "null"),
        }
    }
    let capabilities = model.capabilities();
    let input = capabilities.input();
    json.truth("takesText", input == Some(InputKind::Text));
    json.truth("takesNothing", input.is_none());
    json.truth("wide", input == Some(InputKind::F64));
    json.truth("givesProbabilities", capabilities.supports(OutputKind::Probabilities));
    json.optional("target", named.target.as_deref());
    for (key, names) in [("features", &named.features), ("classNames", &named.classes)] {
        match names {
            Some(names) => json.texts(key, names.iter().map(String::as_str)),
            None => json.raw(key, "null"),
        }
    }
    json.key("classes");
    write_labels(model, json);
    if let Some(terms) = model.terms() {
        json.texts("terms", terms.iter());
    }
    json.close("}");
}

/// What predicted classes stand for, by their places: for models whose answers are places of a list.
fn write_labels(model: &AnyModel, json: &mut Json) {
    match model {
        AnyModel::Pipeline(model) if PIPELINES => {
            let Some(n_classes) = model.n_classes() else { return json.value("null") };
            json.open("[");
            for label in (0..n_classes).map_while(|idx| model.label(idx)) {
                match label {
                    Label::Integer(number) => json.exact(&number, number.unsigned_abs()),
                    Label::Text(text) => json.string(text),
                    Label::Boolean(truth) => json.value(if truth { "true" } else { "false" }),
                    Label::Number(number) => json.float(number),
                    _ => json.value("null"),
                }
            }
            json.close("]");
        }
        AnyModel::Svm(_) => json.value("null"),
        model => match model.classes() {
            Some(labels) => {
                json.open("[");
                labels.iter().for_each(|&label| json.integer(label as u64));
                json.close("]");
            }
            None => json.value("null"),
        },
    }
}

/// A model that was loaded.
#[derive(Debug)]
pub(crate) struct Loaded(pub(crate) NamedModel);

impl Loaded {
    /// A byte (1 for probabilities), a byte (0 rows of `f32`, 1 rows of `f64`, 2 texts), the number of columns or of texts, the data:
    /// texts behind their lengths.
    ///
    /// # Errors
    ///
    /// What the model refuses.
    pub(crate) fn predict(&self, mut args: Arguments<'_>) -> Result<Answer, Failure> {
        let wanted = if args.u8()? == 1 { OutputKind::Probabilities } else { OutputKind::Predictions };
        let capabilities = self.0.model.capabilities();
        if wanted == OutputKind::Probabilities && !capabilities.supports(wanted) {
            return Err(nothing("gives no probabilities", &self.0.model));
        }
        let (kind, count) = (args.u8()?, args.u32()? as usize);
        let predictions = match (kind, capabilities.input()) {
            (0, Some(InputKind::F32)) => {
                let values = floats_of(args.rest());
                let x = Matrix::from_vec(values.len().checked_div(count).unwrap_or(0), count, values)?;
                self.0.model.predict(Samples::F32(x.as_slice()), x.n_rows(), wanted)?
            }
            (1, Some(InputKind::F64)) if PIPELINES => {
                let (values, _) = args.rest().as_chunks::<8>();
                let values: Vec<f64> = values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
                check_columns(self.0.model.n_features(), count)?;
                let n_rows = values.len().checked_div(count).unwrap_or(0);
                self.0.model.predict(Samples::F64(&values), n_rows, wanted)?
            }
            (2, Some(InputKind::Text)) => {
                let mut texts = Vec::new();
                for _ in 0..count {
                    texts.push(args.text()?);
                }
                self.0.model.predict(Samples::Text(&texts), texts.len(), wanted)?
            }
            (_, None) => return Err(nothing("predicts nothing about rows", &self.0.model)),
            _ => return Err(Failure::new("aw-usage", "the model takes rows, or texts, and got the other")),
        };
        self.encode(&predictions)
    }

    fn encode(&self, predictions: &Predictions) -> Result<Answer, Failure> {
        let prediction = self.0.model.capabilities().prediction();
        let kind = prediction.map_or("value", PredictionKind::name);
        Ok(match predictions {
            Predictions::Values(values) => floats(kind, 1, values),
            Predictions::Rows { values, n_columns } => floats("row", *n_columns, values),
            Predictions::Classes(classes) => {
                // Classes of a pipeline are places of its list of labels.
                let is_pipeline = matches!(&*self.0.model, AnyModel::Pipeline(_));
                whole_numbers(if is_pipeline { "label" } else { kind }, classes)
            }
            Predictions::Probabilities { values, n_columns, .. } => floats("probability", *n_columns, values),
            Predictions::Outliers(marks) => {
                numbers("outlier", "i32", 1, bytes_of(marks.clone(), i32::to_le_bytes))
            }
            Predictions::Terms(TermWeights::F32(rows)) => terms(rows),
            Predictions::Terms(TermWeights::F64(rows)) if PIPELINES => {
                let starts = rows.row_starts().iter();
                let counts = starts.clone().zip(starts.skip(1)).map(|(start, end)| (end - start) as u64);
                let weights = bytes_of(rows.values().to_vec(), f64::to_le_bytes);
                sparse("f64", counts.collect(), rows.columns().to_vec(), &weights)
            }
            _ => return Err(Failure::message()),
        })
    }
}

fn nothing(what: &str, model: &AnyModel) -> Failure {
    let mut message = String::from("a ");
    message.push_str(model.name());
    message.push(' ');
    message.push_str(what);
    Failure::new("aw-no-prediction", message)
}

fn check_columns(expected: Option<usize>, found: usize) -> Result<(), Failure> {
    match expected {
        Some(expected) if expected != found => {
            Err(Error::from(ErrorKind::FeatureCount { expected, found }).into())
        }
        _ => Ok(()),
    }
}

fn floats(kind: &str, columns: usize, values: &Floats) -> Answer {
    match values {
        Floats::F32(values) => numbers(kind, "f32", columns, bytes_of(values.clone(), f32::to_le_bytes)),
        Floats::F64(values) => numbers(kind, "f64", columns, bytes_of(values.clone(), f64::to_le_bytes)),
    }
}

fn whole_numbers(kind: &str, values: &[usize]) -> Answer {
    let values: Vec<u32> = values.iter().map(|&value| value as u32).collect();
    numbers(kind, "u32", 1, bytes_of(values, u32::to_le_bytes))
}

fn numbers(kind: &str, dtype: &str, columns: usize, bytes: Vec<u8>) -> Answer {
    let mut json = Json::object();
    json.text("kind", kind);
    json.text("dtype", dtype);
    json.number("columns", columns as u64);
    Answer { json: json.finish(), bytes }
}

fn terms(rows: &SparseRows) -> Answer {
    let (mut counts, mut columns, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows.rows() {
        let before = columns.len();
        for (column, weight) in row.iter() {
            columns.push(column as u32);
            weights.push(weight);
        }
        counts.push((columns.len() - before) as u64);
    }
    sparse("f32", counts, columns, &bytes_of(weights, f32::to_le_bytes))
}

/// Rows of numbers of terms and their weights: how many in each, then the terms, then the weights.
fn sparse(dtype: &str, counts: Vec<u64>, columns: Vec<u32>, weights: &[u8]) -> Answer {
    let mut json = Json::object();
    json.text("kind", "terms");
    json.text("dtype", dtype);
    json.key("counts");
    json.open("[");
    counts.into_iter().for_each(|count| json.integer(count));
    json.close("]");
    let mut bytes = bytes_of(columns, u32::to_le_bytes);
    bytes.extend_from_slice(weights);
    Answer { json: json.finish(), bytes }
}
