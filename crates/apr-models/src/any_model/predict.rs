//! Predictions of models of all types, and their capabilities.

use alloc::vec;
use alloc::vec::Vec;

use super::{AnyModel, PIPELINES, no_pipelines};
use crate::error::{Error, ErrorKind};
use crate::matrix::{Matrix, zeros};
use crate::model::Model as _;
use crate::neural::Activation;
use crate::pipeline::{Accepts, Input, Label, Samples};
use crate::predictions::{
    Capabilities, Floats, InputKind, OutputKind, PredictionKind, Predictions, TermWeights,
};
use crate::vocabulary::Vocabulary;

/// Writes a model's output for samples of 32-bit floats to a slice.
type Into32<'f, T> = &'f dyn Fn(&[f32], &mut [T]) -> Result<(), Error>;

pub(super) fn values(x: &Matrix, predict_into: Into32<'_, f32>) -> Result<Predictions, Error> {
    let mut out = vec![0.0; x.n_rows()];
    predict_into(x.as_slice(), &mut out)?;
    Ok(Predictions::Values(Floats::F32(out)))
}

pub(super) fn classes(x: &Matrix, predict_into: Into32<'_, usize>) -> Result<Predictions, Error> {
    let mut out = vec![0; x.n_rows()];
    predict_into(x.as_slice(), &mut out)?;
    Ok(Predictions::Classes(out))
}

pub(super) fn rows(
    x: &Matrix,
    n_outputs: Option<usize>,
    transform_into: Into32<'_, f32>,
) -> Result<Predictions, Error> {
    let n_columns = n_outputs.unwrap_or(x.n_cols());
    let mut out = zeros(x.n_rows(), n_columns)?;
    transform_into(x.as_slice(), &mut out)?;
    Ok(Predictions::Rows { values: Floats::F32(out), n_columns })
}

fn table(rows: Matrix) -> Predictions {
    let n_columns = rows.n_cols();
    Predictions::Rows { values: Floats::F32(rows.into_vec()), n_columns }
}

/// The terms that a text model counts.
#[derive(Clone, Debug)]
pub struct Terms<'m>(TermList<'m>);

#[derive(Clone, Debug)]
enum TermList<'m> {
    Vocabulary(&'m Vocabulary),
    Columns(Vec<&'m str>),
}

impl<'m> Terms<'m> {
    /// The term of that column.
    #[must_use]
    pub fn get(&self, column: usize) -> Option<&'m str> {
        match &self.0 {
            TermList::Vocabulary(vocabulary) => vocabulary.get(column),
            TermList::Columns(terms) => terms.get(column).copied(),
        }
    }

    /// The terms in the order of their columns.
    pub fn iter(&self) -> impl Iterator<Item = &'m str> {
        (0..).map_while(|column| self.get(column))
    }
}

impl AnyModel {
    /// The outputs and the input that the model supports.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        if let Self::Pipeline(pipeline) = self
            && PIPELINES
        {
            return pipeline.capabilities();
        }
        let is_classifier = self.is_classifying_network();
        let prediction = if is_classifier { Some(PredictionKind::Class) } else { self.prediction_kind() };
        let input = prediction.map(|prediction| match prediction {
            PredictionKind::Terms | PredictionKind::LogProbability => InputKind::Text,
            _ => InputKind::F32,
        });
        Capabilities {
            input,
            accepts: Accepts::Finite,
            n_features: if input == Some(InputKind::F32) { self.n_features() } else { None },
            prediction,
            probabilities: is_classifier
                || matches!(
                    self,
                    Self::LogisticRegression(_)
                        | Self::RandomForestClassifier(_)
                        | Self::GaussianMixture(_)
                        | Self::NaiveBayes(_)
                        | Self::KnnClassifier(_)
                        | Self::GradientBoostingClassifier(_)
                ),
            decision_function: matches!(self, Self::Svm(_) | Self::GradientBoostingClassifier(_)),
            score_samples: matches!(self, Self::IsolationForest(_) | Self::GaussianMixture(_)),
            transform: is_classifier || prediction == Some(PredictionKind::Row),
        }
    }

    /// Predicts `n_samples` samples, of the type [`Capabilities::input`]; 64-bit floats are rounded for models that take 32
    /// bits.
    ///
    /// Rows are row-major: `[n_samples, n_features]`. A network whose last layer gives probabilities predicts classes;
    /// [`OutputKind::Transformed`] are its outputs.
    ///
    /// ```
    /// use apr_models::{AnyModel, Floats, LinearRegression, OutputKind, Predictions, Samples, Vector};
    ///
    /// let model = AnyModel::from(LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?);
    /// let predictions = model.predict(Samples::F32(&[3.0, 4.0]), 2, OutputKind::Predictions)?;
    /// assert_eq!(predictions, Predictions::Values(Floats::F32(vec![7.0, 9.0])));
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoPredictions`] if the model takes no samples; [`ErrorKind::NoSuchOutput`] if it lacks this output;
    /// [`ErrorKind::PartInvalid`] for samples of another type; [`ErrorKind::InputLength`], [`ErrorKind::FeatureCount`],
    /// [`ErrorKind::NotFitted`] and the other errors of the model.
    pub fn predict(
        &self,
        samples: Samples<'_>,
        n_samples: usize,
        output: OutputKind,
    ) -> Result<Predictions, Error> {
        let input = self.expect_output(output)?;
        let other_kind = |problem| Error::from(ErrorKind::PartInvalid { part: "samples", problem });
        match (self, input, samples) {
            (Self::Pipeline(_), ..) if !PIPELINES => Err(no_pipelines()),
            (Self::Pipeline(pipeline), ..) => pipeline.predict(samples, n_samples, output),
            (Self::CountVectorizer(model), _, Samples::Text(texts)) => {
                Ok(Predictions::Terms(TermWeights::F32(model.transform(texts))))
            }
            (Self::TfIdf(model), _, Samples::Text(texts)) => {
                Ok(Predictions::Terms(TermWeights::F32(model.transform(texts))))
            }
            (Self::NgramLm(model), _, Samples::Text(texts)) => {
                let mut scores = Vec::with_capacity(texts.len());
                let mut words: Vec<&str> = Vec::new();
                for text in texts {
                    words.clear();
                    text.split_whitespace().for_each(|word| words.push(word));
                    scores.push(model.log_probability(&words));
                }
                Ok(Predictions::Values(Floats::F64(scores)))
            }
            (_, InputKind::F32, Samples::F32(values)) => {
                self.output(&matrix(values.to_vec(), n_samples)?, output)
            }
            (_, InputKind::F32, Samples::F64(values)) => {
                self.output(&matrix(values.iter().map(|&value| value as f32).collect(), n_samples)?, output)
            }
            (_, InputKind::Text, _) => Err(other_kind("the model takes texts, not rows of numbers")),
            (..) => Err(other_kind("the model takes rows of numbers, not texts")),
        }
    }

    /// The predictions of no samples, which have kind, type and columns of all others.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict).
    pub fn predict_nothing(&self, output: OutputKind) -> Result<Predictions, Error> {
        let n_features = match self.expect_output(output)? {
            InputKind::Text => return self.predict(Samples::Text(&[]), 0, output),
            InputKind::F64 => return self.predict(Samples::F64(&[]), 0, output),
            InputKind::F32 => self.n_features().ok_or(ErrorKind::NoPredictions { model: self.name() })?,
        };
        // No matrix is empty.
        let row = Matrix::from_vec(1, n_features, vec![0.0; n_features])?;
        let mut predictions = self.output(&row, output)?;
        predictions.clear();
        Ok(predictions)
    }

    /// As [`predict`](Self::predict) for the rows of a matrix `x`: `[n_samples, n_features]`.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict).
    pub fn predict_matrix(&self, x: &Matrix, output: OutputKind) -> Result<Predictions, Error> {
        match self.expect_output(output)? {
            InputKind::F32 => self.output(x, output),
            _ => self.predict(Samples::F32(x.as_slice()), x.n_rows(), output),
        }
    }

    /// Predicts, or transforms, each row of `x`: `[n_samples, n_features]`.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict).
    pub fn try_predict(&self, x: &Matrix) -> Result<Predictions, Error> {
        self.predict_matrix(x, OutputKind::Predictions)
    }

    /// The probability of each class without the classes, of models that take 32-bit floats: `[n_samples, n_classes]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchOutput`], also of a pipeline; the errors of the model.
    pub fn predict_proba(&self, x: &Matrix) -> Result<Matrix, Error> {
        match self {
            Self::LogisticRegression(model) => {
                both(Matrix::from_vec(x.n_rows(), 1, model.try_predict_proba(x)?.into_vec())?)
            }
            Self::RandomForestClassifier(model) => model.try_predict_proba(x),
            Self::GaussianMixture(model) => model.try_predict_proba(x),
            Self::NaiveBayes(model) => model.try_predict_proba(x),
            Self::KnnClassifier(model) => model.try_predict_proba(x),
            Self::GradientBoostingClassifier(model) => model.try_predict_proba(x),
            Self::NeuralSequential(network) if self.is_classifying_network() => both(network.outputs(x)?),
            _ => Err(no_output(OutputKind::Probabilities)),
        }
    }

    /// The label of a predicted class: of a pipeline the one it was fitted with; clusters and classes of other models are
    /// labelled by their numbers.
    #[must_use]
    pub fn label(&self, class: usize) -> Option<Label<'_>> {
        match self {
            Self::Pipeline(pipeline) => pipeline.label(class),
            _ => i64::try_from(class).ok().map(Label::Integer),
        }
    }

    /// The class of a column of [`Predictions::Probabilities`].
    #[must_use]
    pub fn class_of_column(&self, column: usize) -> usize {
        self.classes().and_then(|classes| classes.get(column)).copied().unwrap_or(column)
    }

    /// The classes, strictly increasing, in the order of the columns of probabilities and decision functions; `None` where they
    /// are counted from 0.
    #[must_use]
    pub fn classes(&self) -> Option<&[usize]> {
        match self {
            Self::NaiveBayes(model) => Some(model.classes()),
            Self::KnnClassifier(model) => Some(model.classes()),
            Self::GradientBoostingClassifier(model) => Some(model.classes()),
            Self::Svm(model) => Some(model.classes()),
            _ => None,
        }
    }

    /// The numbers by which [`Predictions::Classes`] names classes, strictly increasing, also of those that are not
    /// [labelled](Self::classes); `None` if the model does not predict classes.
    #[must_use]
    pub fn class_numbers(&self) -> Option<Vec<usize>> {
        let n_classes = match self {
            Self::LogisticRegression(_) => 2,
            Self::DecisionTreeClassifier(model) => model.n_classes(),
            Self::RandomForestClassifier(model) => model.n_classes(),
            Self::NeuralSequential(network) if self.is_classifying_network() => {
                network.layers().last().map_or(0, |layer| layer.n_outputs().max(2))
            }
            Self::Pipeline(pipeline) if PIPELINES => pipeline.labels()?.len(),
            _ => return self.classes().map(<[usize]>::to_vec),
        };
        Some((0..n_classes).collect())
    }

    /// The terms of the columns of [`Predictions::Terms`].
    #[must_use]
    pub fn terms(&self) -> Option<Terms<'_>> {
        Some(Terms(match self {
            Self::CountVectorizer(model) => TermList::Vocabulary(model.vocabulary()),
            Self::TfIdf(model) => TermList::Vocabulary(model.vocabulary()),
            Self::Pipeline(pipeline) if PIPELINES => match pipeline.input() {
                Input::Texts(texts) => TermList::Columns(texts.terms()),
                Input::Numbers { .. } => return None,
            },
            _ => return None,
        }))
    }

    /// The type of the samples, if the model takes any and has the output.
    fn expect_output(&self, output: OutputKind) -> Result<InputKind, Error> {
        let capabilities = self.capabilities();
        let Some(input) = capabilities.input() else {
            return Err(ErrorKind::NoPredictions { model: self.name() }.into());
        };
        if capabilities.supports(output) { Ok(input) } else { Err(no_output(output)) }
    }

    /// An output of a model that takes 32-bit floats.
    fn output(&self, x: &Matrix, output: OutputKind) -> Result<Predictions, Error> {
        match (output, self) {
            (OutputKind::Predictions, Self::NeuralSequential(network)) if self.is_classifying_network() => {
                Ok(Predictions::Classes(network.classes(x)?))
            }
            (OutputKind::Predictions, _) => self.predict_rows(x),
            (OutputKind::Probabilities, _) => {
                let Predictions::Classes(classes) = self.output(x, OutputKind::Predictions)? else {
                    return Err(no_output(output));
                };
                let probabilities = self.predict_proba(x)?;
                let n_columns = probabilities.n_cols();
                let values = Floats::F32(probabilities.into_vec());
                Ok(Predictions::Probabilities { classes, values, n_columns })
            }
            (OutputKind::DecisionFunction, Self::Svm(model)) => {
                let values = Floats::F64(model.decision_function(x)?);
                Ok(Predictions::Rows { values, n_columns: model.n_decisions() })
            }
            (OutputKind::DecisionFunction, Self::GradientBoostingClassifier(model)) => {
                let n_columns = model.start().len();
                let mut values = zeros(x.n_rows(), n_columns)?;
                model.decision_function_into(x.as_slice(), &mut values)?;
                Ok(Predictions::Rows { values: Floats::F64(values), n_columns })
            }
            (OutputKind::ScoreSamples, Self::IsolationForest(model)) => {
                Ok(Predictions::Values(Floats::F32(model.try_score_samples(x)?.into_vec())))
            }
            (OutputKind::ScoreSamples, Self::GaussianMixture(model)) => {
                Ok(Predictions::Values(Floats::F32(model.try_score_samples(x)?.into_vec())))
            }
            (OutputKind::Transformed, Self::NeuralSequential(network)) => Ok(table(network.outputs(x)?)),
            (OutputKind::Transformed, _) => self.predict_rows(x),
            _ => Err(no_output(output)),
        }
    }

    /// Whether this is a network whose outputs are probabilities.
    fn is_classifying_network(&self) -> bool {
        let Self::NeuralSequential(network) = self else { return false };
        let last = network.layers().last().map(|layer| (layer.activation(), layer.n_outputs()));
        matches!(last, Some((Activation::Softmax, _) | (Activation::Sigmoid, 1)))
    }
}

fn no_output(output: OutputKind) -> Error {
    ErrorKind::NoSuchOutput { output: output.name() }.into()
}

fn matrix(values: Vec<f32>, n_rows: usize) -> Result<Matrix, Error> {
    match values.len().checked_div(n_rows).filter(|n_cols| n_cols * n_rows == values.len()) {
        Some(n_cols) => Matrix::from_vec(n_rows, n_cols, values),
        None => Err(ErrorKind::InputLength { n_rows, given: values.len() }.into()),
    }
}

/// Probabilities of both classes where there is one column, that of the second.
fn both(probabilities: Matrix) -> Result<Matrix, Error> {
    if probabilities.n_cols() != 1 {
        return Ok(probabilities);
    }
    let mut values = Vec::with_capacity(2 * probabilities.n_rows());
    for &second in probabilities.as_slice() {
        values.push(1.0 - second);
        values.push(second);
    }
    Matrix::from_vec(probabilities.n_rows(), 2, values)
}
