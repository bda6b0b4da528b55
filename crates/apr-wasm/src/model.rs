//! Models: what they are, and their answers.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use apr_container::{Metadata, Value};
use apr_models::{
    Activation, AnyModel, Error, ErrorKind, Head, Input, Label, Matrix, Model as _, Pipeline, Predictions,
    RowsAre, RowsIn, SparseRows,
};

use crate::failure::Failure;
use crate::json::{self, Json};
use crate::values::{bytes_of, floats_of};
use crate::wire::{Answer, Arguments};

/// Keys of the custom metadata with names, as `apr train` writes them.
const FEATURES: &str = "apr.features";
const TARGET: &str = "apr.target";
const CLASSES: &str = "apr.classes";

/// A model, and what its file calls its features and classes.
#[derive(Debug)]
pub(crate) struct Loaded {
    model: Rc<AnyModel>,
    features: Option<Vec<String>>,
    classes: Option<Vec<String>>,
    target: Option<String>,
}

/// What a model is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Rows of 32-bit floats.
    Rows,
    /// Rows of 64-bit floats.
    WideRows,
    Texts,
    Nothing,
}

/// What is wanted of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Predictions,
    Probabilities,
}

impl Loaded {
    pub(crate) fn new(model: impl Into<Rc<AnyModel>>) -> Self {
        Self { model: model.into(), features: None, classes: None, target: None }
    }

    pub(crate) fn named_by(mut self, metadata: &Metadata) -> Self {
        let texts = |key: &str| {
            let values = metadata.custom.get(key)?.as_array()?;
            values.iter().map(|value| value.as_str().map(ToString::to_string)).collect()
        };
        (self.features, self.classes) = (texts(FEATURES), texts(CLASSES));
        self.target = metadata.custom.get(TARGET).and_then(Value::as_str).map(ToString::to_string);
        self
    }

    fn takes(&self) -> Takes {
        match &*self.model {
            AnyModel::Pipeline(model) => match model.input() {
                Input::Texts(_) => Takes::Texts,
                _ => Takes::WideRows,
            },
            AnyModel::CountVectorizer(_) | AnyModel::TfIdf(_) | AnyModel::NgramLm(_) => Takes::Texts,
            AnyModel::Numbers(_)
            | AnyModel::QuantizedBlock(_)
            | AnyModel::Dbscan(_)
            | AnyModel::ContentRecommender(_) => Takes::Nothing,
            _ => Takes::Rows,
        }
    }

    fn gives_probabilities(&self) -> bool {
        match &*self.model {
            AnyModel::Pipeline(model) => model.n_shares().is_some(),
            AnyModel::LogisticRegression(_)
            | AnyModel::RandomForestClassifier(_)
            | AnyModel::GaussianMixture(_)
            | AnyModel::NaiveBayes(_)
            | AnyModel::KnnClassifier(_)
            | AnyModel::GradientBoostingClassifier(_) => true,
            _ => self.is_classifying_network(),
        }
    }

    /// Whether this is a network whose outputs are probabilities.
    fn is_classifying_network(&self) -> bool {
        let AnyModel::NeuralSequential(network) = &*self.model else { return false };
        let last = network.layers().last().map(|layer| (layer.activation(), layer.n_outputs()));
        matches!(last, Some((Activation::Softmax, _) | (Activation::Sigmoid, 1)))
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
        json.truth("takesText", self.takes() == Takes::Texts);
        json.truth("takesNothing", self.takes() == Takes::Nothing);
        json.truth("wide", self.takes() == Takes::WideRows);
        json.truth("givesProbabilities", self.gives_probabilities());
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
            AnyModel::NaiveBayes(model) => Some(numbers(model.classes())),
            AnyModel::KnnClassifier(model) => Some(numbers(model.classes())),
            AnyModel::GradientBoostingClassifier(model) => Some(numbers(model.classes())),
            AnyModel::Pipeline(model) if !matches!(model.head(), Head::Rows { .. }) => {
                let mut list = Json::list();
                let mut place = 0;
                // Clusters have labels without end: as many as the model tells apart.
                while let Some(label) = model.label(place).filter(|_| place < model.n_outputs().max(2)) {
                    match label {
                        Label::Integer(number) => list.item(&json::exact(number.into())),
                        Label::Text(text) => list.text_item(text),
                        Label::Boolean(truth) => list.item(if truth { "true" } else { "false" }),
                        Label::Number(number) => list.item(&json::float(number)),
                        _ => list.item("null"),
                    }
                    place += 1;
                }
                Some(list.finish())
            }
            _ => None,
        }
    }

    /// The terms that columns of answers to texts stand for.
    fn terms(&self) -> Option<String> {
        let vocabulary = match &*self.model {
            AnyModel::CountVectorizer(model) => model.vocabulary(),
            AnyModel::TfIdf(model) => model.vocabulary(),
            AnyModel::Pipeline(model) => match model.input() {
                Input::Texts(input) if model.transform_texts(&[]).is_ok() => {
                    return Some(texts(input.terms().into_iter()));
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(texts((0..).map_while(|number| vocabulary.get(number))))
    }

    /// A byte (1 for probabilities), a byte (0 rows of `f32`, 1 rows of `f64`, 2 texts), the number of columns or of texts, the data:
    /// texts behind their lengths.
    ///
    /// # Errors
    ///
    /// What the model refuses.
    pub(crate) fn predict(&self, mut args: Arguments<'_>) -> Result<Answer, Failure> {
        let wanted = if args.u8()? == 1 { Wanted::Probabilities } else { Wanted::Predictions };
        if wanted == Wanted::Probabilities && !self.gives_probabilities() {
            return Err(nothing("gives no probabilities", &self.model));
        }
        let (kind, count) = (args.u8()?, args.u32()? as usize);
        match (kind, self.takes()) {
            (0, Takes::Rows) => self.ask_rows(matrix(args.rest(), count)?, wanted),
            (1, Takes::WideRows) => {
                let AnyModel::Pipeline(model) = &*self.model else { return Err(Failure::message()) };
                let (values, _) = args.rest().as_chunks::<8>();
                let values: Vec<f64> = values.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
                let n_rows = values.len().checked_div(count).unwrap_or(0);
                check_columns(model.n_features(), count)?;
                ask_pipeline(model, RowsIn::F64(&values), n_rows, wanted)
            }
            (2, Takes::Texts) => {
                let mut texts = Vec::new();
                for _ in 0..count {
                    texts.push(args.text()?);
                }
                self.ask_texts(&texts, wanted)
            }
            (_, Takes::Nothing) => Err(nothing("predicts nothing about rows", &self.model)),
            _ => Err(Failure::new("aw-usage", "the model takes rows, or texts, and got the other")),
        }
    }

    fn ask_rows(&self, x: Matrix, wanted: Wanted) -> Result<Answer, Failure> {
        if let AnyModel::NeuralSequential(network) = &*self.model
            && self.is_classifying_network()
        {
            return Ok(match wanted {
                Wanted::Predictions => whole_numbers("class", &network.classes(&x)?),
                Wanted::Probabilities => shares(&network.outputs(&x)?),
            });
        }
        if wanted == Wanted::Probabilities {
            return Ok(shares(&self.probabilities(&x)?));
        }
        Ok(match self.model.try_predict(&x)? {
            Predictions::Numbers(values) => singles("value", 1, values.as_slice()),
            Predictions::Classes(classes) => whole_numbers("class", &classes),
            Predictions::Outliers(marks) => {
                numbers("outlier", "i32", 1, marks.iter().flat_map(|mark| mark.to_le_bytes()).collect())
            }
            Predictions::Samples(rows) => singles("row", rows.n_cols(), rows.as_slice()),
            _ => return Err(Failure::message()),
        })
    }

    fn probabilities(&self, x: &Matrix) -> Result<Matrix, Failure> {
        Ok(match &*self.model {
            AnyModel::LogisticRegression(model) => {
                let second = model.try_predict_proba(x)?;
                Matrix::from_vec(x.n_rows(), 1, second.iter().collect())?
            }
            AnyModel::RandomForestClassifier(model) => model.try_predict_proba(x)?,
            AnyModel::GaussianMixture(model) => model.try_predict_proba(x)?,
            AnyModel::NaiveBayes(model) => model.try_predict_proba(x)?,
            AnyModel::KnnClassifier(model) => model.try_predict_proba(x)?,
            AnyModel::GradientBoostingClassifier(model) => model.try_predict_proba(x)?,
            other => return Err(nothing("gives no probabilities", other)),
        })
    }

    fn ask_texts(&self, texts: &[&str], wanted: Wanted) -> Result<Answer, Failure> {
        Ok(match &*self.model {
            AnyModel::Pipeline(model) => {
                return ask_pipeline(model, RowsIn::Texts(texts), texts.len(), wanted);
            }
            AnyModel::CountVectorizer(model) => terms(&model.transform(texts)),
            AnyModel::TfIdf(model) => terms(&model.transform(texts)),
            AnyModel::NgramLm(model) => {
                let score =
                    |text: &&str| model.log_probability(&text.split_whitespace().collect::<Vec<&str>>());
                doubles("log-probability", 1, &texts.iter().map(score).collect::<Vec<f64>>())
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

fn matrix(bytes: &[u8], n_cols: usize) -> Result<Matrix, Failure> {
    let values = floats_of(bytes);
    Ok(Matrix::from_vec(values.len().checked_div(n_cols).unwrap_or(0), n_cols, values)?)
}

fn ask_pipeline(
    model: &Pipeline,
    rows: RowsIn<'_>,
    n_rows: usize,
    wanted: Wanted,
) -> Result<Answer, Failure> {
    if let Head::Rows { what, .. } = model.head() {
        if let RowsIn::Texts(texts) = rows
            && let Ok(rows) = model.transform_texts(texts)
        {
            let weights = rows.values().iter().flat_map(|value| value.to_le_bytes()).collect();
            let counts = rows.row_starts().windows(2).map(|pair| (pair[1] - pair[0]) as u64);
            return Ok(sparse("f64", counts, rows.columns().iter().copied(), weights));
        }
        let mut values = room(n_rows, model.n_outputs())?;
        model.values_into(rows, &mut values)?;
        return Ok(match (what, model.n_outputs()) {
            (RowsAre::Predictions, 1) => doubles("value", 1, &values),
            (_, width) => doubles("row", width, &values),
        });
    }
    if let Some(n_shares) = model.n_shares().filter(|_| wanted == Wanted::Probabilities) {
        let mut shares = room(n_rows, n_shares)?;
        model.shares_into(rows, &mut shares)?;
        return Ok(doubles("probability", n_shares, &shares));
    }
    let mut places = vec![0; n_rows];
    model.places_into(rows, &mut places)?;
    let kind = if matches!(model.head(), Head::Outliers(_)) { "outlier-label" } else { "label" };
    Ok(whole_numbers(kind, &places))
}

/// Zeros for `width` numbers a row.
fn room(n_rows: usize, width: usize) -> Result<Vec<f64>, Failure> {
    let len = n_rows.checked_mul(width);
    let len = len.ok_or_else(|| Error::from(ErrorKind::MatrixTooLarge { n_rows, n_cols: width }))?;
    Ok(vec![0.0; len])
}

/// Probabilities of both classes where there is one column, that of the second.
fn shares(probabilities: &Matrix) -> Answer {
    if probabilities.n_cols() != 1 {
        return singles("probability", probabilities.n_cols(), probabilities.as_slice());
    }
    let values: Vec<f32> =
        probabilities.as_slice().iter().flat_map(|&second| [1.0 - second, second]).collect();
    singles("probability", 2, &values)
}

fn singles(kind: &str, columns: usize, values: &[f32]) -> Answer {
    numbers(kind, "f32", columns, bytes_of(values.to_vec(), f32::to_le_bytes))
}

fn doubles(kind: &str, columns: usize, values: &[f64]) -> Answer {
    numbers(kind, "f64", columns, bytes_of(values.to_vec(), f64::to_le_bytes))
}

fn whole_numbers(kind: &str, values: &[usize]) -> Answer {
    numbers(kind, "u32", 1, values.iter().flat_map(|&value| (value as u32).to_le_bytes()).collect())
}

fn numbers(kind: &str, dtype: &str, columns: usize, bytes: Vec<u8>) -> Answer {
    let mut json = Json::object();
    json.text("kind", kind);
    json.text("dtype", dtype);
    json.number("columns", columns as u64);
    Answer { json: json.finish(), bytes }
}

fn terms(rows: &SparseRows) -> Answer {
    let counts = rows.rows().map(|row| row.iter().count() as u64);
    let columns = rows.rows().flat_map(|row| row.iter()).map(|(column, _)| column as u32);
    let weights = rows.rows().flat_map(|row| row.iter()).flat_map(|(_, weight)| weight.to_le_bytes());
    sparse("f32", counts, columns, weights.collect())
}

/// Rows of numbers of terms and their weights: how many in each, then the terms, then the weights.
fn sparse(
    dtype: &str,
    counts: impl Iterator<Item = u64>,
    columns: impl Iterator<Item = u32>,
    weights: Vec<u8>,
) -> Answer {
    let mut list = Json::list();
    counts.for_each(|count| list.number_item(count));
    let mut json = Json::object();
    json.text("kind", "terms");
    json.text("dtype", dtype);
    json.raw("counts", &list.finish());
    let mut bytes: Vec<u8> = columns.flat_map(u32::to_le_bytes).collect();
    bytes.extend_from_slice(&weights);
    Answer { json: json.finish(), bytes }
}

fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut list = Json::list();
    texts.for_each(|text| list.text_item(text));
    list.finish()
}
