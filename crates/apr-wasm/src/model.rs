//! Models: what they are, and their answers.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{Metadata, Value};
use apr_models::{
    AnyModel, Error, ErrorKind, Floats, InputKind, Label, Matrix, Model as _, OutputKind, PredictionKind,
    Predictions, Samples, SparseRows, Tensors, TermWeights,
};

use crate::failure::Failure;
use crate::json::{self, Json};
use crate::values::{bytes_of, floats_of};
use crate::wire::{Answer, Arguments, Outcome};

/// Keys of the custom metadata with names, as `apr train` writes them.
const FEATURES: &str = "apr.features";
const TARGET: &str = "apr.target";
const CLASSES: &str = "apr.classes";

/// Whether a model may be a pipeline: only they take 64-bit floats and have labels of their own.
const PIPELINES: bool = cfg!(feature = "every-model");

/// A model, and what its file calls its features and classes.
#[derive(Debug)]
pub(crate) struct Loaded {
    model: Rc<AnyModel>,
    features: Option<Vec<String>>,
    classes: Option<Vec<String>>,
    target: Option<String>,
}

impl Loaded {
    pub(crate) fn new(model: impl Into<Rc<AnyModel>>) -> Self {
        Self { model: model.into(), features: None, classes: None, target: None }
    }

    pub(crate) fn named_by(mut self, metadata: &Metadata) -> Self {
        let texts = |key: &str| {
            let mut texts = Vec::new();
            for value in metadata.custom.get(key)?.as_array()? {
                texts.push(String::from(value.as_str()?));
            }
            Some(texts)
        };
        (self.features, self.classes) = (texts(FEATURES), texts(CLASSES));
        self.target = metadata.custom.get(TARGET).and_then(Value::as_str).map(String::from);
        self
    }

    /// What the model is, as JSON.
    pub(crate) fn describe(&self) -> String {
        let mut json = Json::object();
        json.text("type", self.model.name());
        match self.model.n_features() {
            Some(n_features) => json.number("inputs", n_features as u64),
            None => json.raw("inputs", "null"),
        }
        let outputs = match &*self.model {
            AnyModel::Pipeline(model) => Some(model.n_outputs()),
            _ => None,
        };
        match outputs {
            Some(outputs) => json.number("outputs", outputs as u64),
            None => json.raw("outputs", "null"),
        }
        let capabilities = self.model.capabilities();
        let input = capabilities.input();
        json.truth("takesText", input == Some(InputKind::Text));
        json.truth("takesNothing", input.is_none());
        json.truth("wide", input == Some(InputKind::F64));
        json.truth("givesProbabilities", capabilities.supports(OutputKind::Probabilities));
        json.optional("target", self.target.as_deref());
        for (key, names) in [("features", &self.features), ("classNames", &self.classes)] {
            match names {
                Some(names) => json.raw(key, &texts(names.iter().map(String::as_str))),
                None => json.raw(key, "null"),
            }
        }
        json.raw("classes", self.labels().as_deref().unwrap_or("null"));
        if let Some(terms) = self.terms() {
            json.raw("terms", &terms);
        }
        json.finish()
    }

    /// What predicted classes stand for, by their places: for models whose answers are places of a list.
    fn labels(&self) -> Option<String> {
        let numbers = |labels: &[usize]| {
            let mut list = Json::list();
            labels.iter().for_each(|&label| list.number_item(label as u64));
            list.finish()
        };
        match &*self.model {
            AnyModel::Pipeline(model) if PIPELINES => {
                let mut list = Json::list();
                for label in (0..model.n_classes()?).map_while(|idx| model.label(idx)) {
                    match label {
                        Label::Integer(number) => list.item(&json::exact(number.into())),
                        Label::Text(text) => list.text_item(text),
                        Label::Boolean(truth) => list.item(if truth { "true" } else { "false" }),
                        Label::Number(number) => list.item(&json::float(number)),
                        _ => list.item("null"),
                    }
                }
                Some(list.finish())
            }
            AnyModel::Svm(_) => None,
            model => model.classes().map(numbers),
        }
    }

    /// The terms that columns of answers to texts stand for.
    fn terms(&self) -> Option<String> {
        let terms = self.model.terms()?;
        Some(texts(terms.iter()))
    }

    /// A byte (1 for probabilities), a byte (0 rows of `f32`, 1 rows of `f64`, 2 texts), the number of columns or of texts, the data:
    /// texts behind their lengths.
    ///
    /// # Errors
    ///
    /// What the model refuses.
    pub(crate) fn predict(&self, mut args: Arguments<'_>) -> Result<Answer, Failure> {
        let wanted = if args.u8()? == 1 { OutputKind::Probabilities } else { OutputKind::Predictions };
        let capabilities = self.model.capabilities();
        if wanted == OutputKind::Probabilities && !capabilities.supports(wanted) {
            return Err(nothing("gives no probabilities", &self.model));
        }
        let (kind, count) = (args.u8()?, args.u32()? as usize);
        let predictions = match (kind, capabilities.input()) {
            (0, Some(InputKind::F32)) => {
                let values = floats_of(args.rest());
                let x = Matrix::from_vec(values.len().checked_div(count).unwrap_or(0), count, values)?;
                self.model.predict(Samples::F32(x.as_slice()), x.n_rows(), wanted)?
            }
            (1, Some(InputKind::F64)) if PIPELINES => {
                let (values, _) = args.rest().as_chunks::<8>();
                let values: Vec<f64> = values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
                check_columns(self.model.n_features(), count)?;
                let n_rows = values.len().checked_div(count).unwrap_or(0);
                self.model.predict(Samples::F64(&values), n_rows, wanted)?
            }
            (2, Some(InputKind::Text)) => {
                let mut texts = Vec::new();
                for _ in 0..count {
                    texts.push(args.text()?);
                }
                self.model.predict(Samples::Text(&texts), texts.len(), wanted)?
            }
            (_, None) => return Err(nothing("predicts nothing about rows", &self.model)),
            _ => return Err(Failure::new("aw-usage", "the model takes rows, or texts, and got the other")),
        };
        self.encode(&predictions)
    }

    fn encode(&self, predictions: &Predictions) -> Result<Answer, Failure> {
        let prediction = self.model.capabilities().prediction();
        let kind = prediction.map_or("value", PredictionKind::name);
        Ok(match predictions {
            Predictions::Values(values) => floats(kind, 1, values),
            Predictions::Rows { values, n_columns } => floats("row", *n_columns, values),
            Predictions::Classes(classes) => {
                // Classes of a pipeline are places of its list of labels.
                let is_pipeline = matches!(&*self.model, AnyModel::Pipeline(_));
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

/// The model that the tensors of a file are.
///
/// # Errors
///
/// What `tensors` and the model refuse.
pub(crate) fn of_tensors(tensors: impl FnOnce() -> Result<Tensors, Outcome>) -> Result<Loaded, Outcome> {
    if !cfg!(feature = "every-model") {
        return Err(Failure::lacks("models in files of tensors").into());
    }
    Ok(Loaded::new(AnyModel::from_tensors(&tensors()?)?))
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
    let mut list = Json::list();
    counts.into_iter().for_each(|count| list.number_item(count));
    let mut json = Json::object();
    json.text("kind", "terms");
    json.text("dtype", dtype);
    json.raw("counts", &list.finish());
    let mut bytes = bytes_of(columns, u32::to_le_bytes);
    bytes.extend_from_slice(weights);
    Answer { json: json.finish(), bytes }
}

fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut list = Json::list();
    texts.for_each(|text| list.text_item(text));
    list.finish()
}
