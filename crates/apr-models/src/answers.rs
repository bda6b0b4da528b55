//! What a model of any type can be asked, and what it answers.

use alloc::vec;
use alloc::vec::Vec;

use crate::any_model::{AnyModel, PIPELINES, Predictions, no_pipelines};
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::model::Model as _;
use crate::neural::Activation;
use crate::pipeline::{Head, Input, Pipeline, Samples, SparseRows64, ValueKind};
use crate::sparse::SparseRows;
use crate::vocabulary::Vocabulary;

/// Key of the custom metadata of an `.apr` file with the names of the classes, by their numbers.
pub const CLASSES_KEY: &str = "apr.classes";
/// Key of the custom metadata of an `.apr` file with the names of the features, in their order.
pub const FEATURES_KEY: &str = "apr.features";

/// What samples of a model are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputKind {
    /// Rows of 32-bit floats.
    F32,
    /// Rows of 64-bit floats.
    F64,
    /// Strings.
    Text,
}

/// What is wanted to know about each sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputKind {
    /// The prediction.
    #[default]
    Predictions,
    /// The prediction, and the probability of each class.
    Probabilities,
}

/// The answers to some rows or texts, in their order. Whoever shows them has to know each kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Answers {
    /// Numbers.
    Numbers(Vec<f32>),
    /// Classes or clusters, counted from 0.
    Classes(Vec<usize>),
    /// Classes, and a row of probabilities for each; [`AnyModel::probability_classes`] says whose its columns are.
    Probabilities(Vec<usize>, Matrix),
    /// 1, or -1 for an outlier.
    Outliers(Vec<i32>),
    /// New rows.
    Rows(Matrix),
    /// Numbers of terms with their weights.
    Terms(SparseRows),
    /// Numbers in 64 bits, and log-probabilities.
    Wide(Vec<f64>),
    /// New rows in 64 bits.
    WideRows {
        /// The rows, one after the other.
        values: Vec<f64>,
        /// Values of a row.
        width: usize,
    },
    /// Numbers of terms with their weights in 64 bits.
    WideTerms(SparseRows64),
    /// Places of a pipeline's classes, clusters or marks: see [`Pipeline::label`].
    Places(Vec<usize>),
    /// The same, and a row of probabilities for each.
    Shares {
        /// The places.
        places: Vec<usize>,
        /// The rows, one after the other.
        shares: Vec<f64>,
        /// Values of a row.
        n_probabilities: usize,
    },
}

impl Answers {
    /// Number of samples they are about.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Classes(classes) | Self::Probabilities(classes, _) => classes.len(),
            Self::Outliers(marks) => marks.len(),
            Self::Rows(rows) => rows.n_rows(),
            Self::Terms(rows) => rows.n_rows(),
            Self::Wide(values) => values.len(),
            Self::WideRows { values, width } => values.len() / (*width).max(1),
            Self::WideTerms(rows) => rows.n_rows(),
            Self::Places(places) | Self::Shares { places, .. } => places.len(),
        }
    }

    /// Whether they are about no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The terms that a model of texts counts.
#[derive(Clone, Debug)]
pub struct Terms<'m>(TermList<'m>);

#[derive(Clone, Debug)]
enum TermList<'m> {
    Vocabulary(&'m Vocabulary),
    Columns(Vec<&'m str>),
}

impl<'m> Terms<'m> {
    /// The term of that number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&'m str> {
        match &self.0 {
            TermList::Vocabulary(vocabulary) => vocabulary.get(number),
            TermList::Columns(terms) => terms.get(number).copied(),
        }
    }
}

impl AnyModel {
    /// What it is asked about; `None` of a model that says nothing about samples.
    #[must_use]
    pub fn input_kind(&self) -> Option<InputKind> {
        match self {
            Self::Pipeline(pipeline) => Some(match pipeline.input() {
                Input::Texts(_) => InputKind::Text,
                Input::Numbers { .. } => InputKind::F64,
            }),
            Self::CountVectorizer(_) | Self::TfIdf(_) | Self::NgramLm(_) => Some(InputKind::Text),
            Self::Numbers(_) | Self::QuantizedBlock(_) | Self::Dbscan(_) | Self::ContentRecommender(_) => {
                None
            }
            _ => Some(InputKind::F32),
        }
    }

    /// Whether it knows how probable each class is.
    #[must_use]
    pub fn gives_probabilities(&self) -> bool {
        match self {
            Self::Pipeline(pipeline) => pipeline.n_probabilities().is_some(),
            Self::LogisticRegression(_)
            | Self::RandomForestClassifier(_)
            | Self::GaussianMixture(_)
            | Self::NaiveBayes(_)
            | Self::KnnClassifier(_)
            | Self::GradientBoostingClassifier(_) => true,
            _ => self.is_classifying_network(),
        }
    }

    /// The classes that the columns of [`Answers::Probabilities`] stand for; `None` where they are counted from 0.
    #[must_use]
    pub fn probability_classes(&self) -> Option<&[usize]> {
        match self {
            Self::NaiveBayes(model) => Some(model.classes()),
            Self::KnnClassifier(model) => Some(model.classes()),
            Self::GradientBoostingClassifier(model) => Some(model.classes()),
            _ => None,
        }
    }

    /// The terms that [`Answers::Terms`] and [`Answers::WideTerms`] have the numbers of.
    #[must_use]
    pub fn terms(&self) -> Option<Terms<'_>> {
        Some(Terms(match self {
            Self::CountVectorizer(model) => TermList::Vocabulary(model.vocabulary()),
            Self::TfIdf(model) => TermList::Vocabulary(model.vocabulary()),
            Self::Pipeline(pipeline) => match pipeline.input() {
                Input::Texts(texts) => TermList::Columns(texts.terms()),
                Input::Numbers { .. } => return None,
            },
            _ => return None,
        }))
    }

    /// Answers for each of `n_rows` samples, which are of the kind that [`input_kind`](Self::input_kind) says.
    ///
    /// A network whose last layer gives probabilities answers with classes; [`try_predict`](Self::try_predict) gives its outputs.
    ///
    /// ```
    /// use apr_models::{AnyModel, Answers, LinearRegression, Samples, InputKind, Vector, OutputKind};
    ///
    /// let model = AnyModel::from(LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?);
    /// assert_eq!(model.input_kind(), Some(InputKind::F32));
    /// let answers = model.answers(Samples::F32(&[3.0, 4.0]), 2, OutputKind::Predictions)?;
    /// assert_eq!(answers, Answers::Numbers(vec![7.0, 9.0]));
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoPredictions`] if it says nothing about samples; [`ErrorKind::NoSuchOutput`] if it has no probabilities and they are
    /// wanted; [`ErrorKind::PartInvalid`] for samples of another kind; what the model refuses.
    pub fn answers(&self, rows: Samples<'_>, n_rows: usize, wanted: OutputKind) -> Result<Answers, Error> {
        let silent = || Error::from(ErrorKind::NoPredictions { model: self.name() });
        if wanted == OutputKind::Probabilities && !self.gives_probabilities() {
            self.input_kind().ok_or_else(silent)?;
            return Err(ErrorKind::NoSuchOutput { output: "probabilities" }.into());
        }
        let other_kind = |problem| Error::from(ErrorKind::PartInvalid { part: "samples", problem });
        match (self, self.input_kind().ok_or_else(silent)?, rows) {
            (Self::Pipeline(_), ..) if !PIPELINES => Err(no_pipelines()),
            (Self::Pipeline(pipeline), ..) => of_pipeline(pipeline, rows, n_rows, wanted),
            (Self::CountVectorizer(model), _, Samples::Text(texts)) => {
                Ok(Answers::Terms(model.transform(texts)))
            }
            (Self::TfIdf(model), _, Samples::Text(texts)) => Ok(Answers::Terms(model.transform(texts))),
            (Self::NgramLm(model), _, Samples::Text(texts)) => {
                let mut scores = Vec::with_capacity(texts.len());
                let mut words: Vec<&str> = Vec::new();
                for text in texts {
                    words.clear();
                    text.split_whitespace().for_each(|word| words.push(word));
                    scores.push(model.log_probability(&words));
                }
                Ok(Answers::Wide(scores))
            }
            (_, InputKind::F32, Samples::F32(values)) => self.of_rows(values.to_vec(), n_rows, wanted),
            (_, InputKind::F32, Samples::F64(values)) => {
                self.of_rows(values.iter().map(|&value| value as f32).collect(), n_rows, wanted)
            }
            (_, InputKind::Text, _) => Err(other_kind("the model takes texts, not rows of numbers")),
            (..) => Err(other_kind("the model takes rows of numbers, not texts")),
        }
    }

    fn of_rows(&self, values: Vec<f32>, n_rows: usize, wanted: OutputKind) -> Result<Answers, Error> {
        let Some(n_cols) = values.len().checked_div(n_rows).filter(|n_cols| n_cols * n_rows == values.len())
        else {
            return Err(ErrorKind::InputLength { n_rows, given: values.len() }.into());
        };
        let x = &Matrix::from_vec(n_rows, n_cols, values)?;
        let answers = match self {
            Self::NeuralSequential(network) if self.is_classifying_network() => {
                Answers::Classes(network.classes(x)?)
            }
            _ => match self.predict_rows(x)? {
                Predictions::Numbers(values) => Answers::Numbers(values.into_vec()),
                Predictions::Classes(classes) => Answers::Classes(classes),
                Predictions::Outliers(marks) => Answers::Outliers(marks),
                Predictions::Samples(rows) => Answers::Rows(rows),
                // Only pipelines have labels.
                Predictions::Labels(_) => return Err(ErrorKind::NoPredictions { model: self.name() }.into()),
            },
        };
        match (answers, wanted) {
            (Answers::Classes(classes), OutputKind::Probabilities) => {
                Ok(Answers::Probabilities(classes, self.probabilities(x)?))
            }
            (answers, _) => Ok(answers),
        }
    }

    fn probabilities(&self, x: &Matrix) -> Result<Matrix, Error> {
        match self {
            Self::LogisticRegression(model) => {
                both(Matrix::from_vec(x.n_rows(), 1, model.try_predict_proba(x)?.into_vec())?)
            }
            Self::RandomForestClassifier(model) => model.try_predict_proba(x),
            Self::GaussianMixture(model) => model.try_predict_proba(x),
            Self::NaiveBayes(model) => model.try_predict_proba(x),
            Self::KnnClassifier(model) => model.try_predict_proba(x),
            Self::GradientBoostingClassifier(model) => model.try_predict_proba(x),
            Self::NeuralSequential(network) => both(network.outputs(x)?),
            _ => Err(ErrorKind::NoSuchOutput { output: "probabilities" }.into()),
        }
    }

    /// Whether this is a network whose outputs are probabilities.
    fn is_classifying_network(&self) -> bool {
        let Self::NeuralSequential(network) = self else { return false };
        let last = network.layers().last().map(|layer| (layer.activation(), layer.n_outputs()));
        matches!(last, Some((Activation::Softmax, _) | (Activation::Sigmoid, 1)))
    }
}

impl Pipeline {
    /// Whether its answers to texts are weights of terms: those of a vectorizer.
    #[must_use]
    pub fn gives_terms(&self) -> bool {
        self.transform_texts(&[]).is_ok()
    }
}

fn of_pipeline(
    model: &Pipeline,
    rows: Samples<'_>,
    n_rows: usize,
    wanted: OutputKind,
) -> Result<Answers, Error> {
    if let Head::Values { kind, .. } = model.head() {
        if let Samples::Text(texts) = rows
            && model.gives_terms()
        {
            return Ok(Answers::WideTerms(model.transform_texts(texts)?));
        }
        let mut values = room(n_rows, model.n_outputs())?;
        model.values_into(rows, &mut values)?;
        return Ok(match (kind, model.n_outputs()) {
            (ValueKind::Predictions, 1) => Answers::Wide(values),
            (_, width) => Answers::WideRows { values, width },
        });
    }
    let mut places = vec![0; n_rows];
    model.predict_indices_into(rows, &mut places)?;
    let Some(n_probabilities) = model.n_probabilities().filter(|_| wanted == OutputKind::Probabilities)
    else {
        return Ok(Answers::Places(places));
    };
    let mut shares = room(n_rows, n_probabilities)?;
    model.predict_proba_into(rows, &mut shares)?;
    Ok(Answers::Shares { places, shares, n_probabilities })
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

/// Zeros for `width` numbers a row.
fn room(n_rows: usize, width: usize) -> Result<Vec<f64>, Error> {
    let len = n_rows.checked_mul(width).ok_or(ErrorKind::MatrixTooLarge { n_rows, n_cols: width })?;
    Ok(vec![0.0; len])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinearRegression, LogisticRegression, Numbers, Vector};

    #[test]
    fn what_a_model_does_not_say_is_refused() {
        let line = AnyModel::from(LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0).unwrap());
        let code = |model: &AnyModel, rows: Samples<'_>, n_rows, wanted| {
            model.answers(rows, n_rows, wanted).unwrap_err().code()
        };
        let one = Samples::F32(&[1.0]);
        assert_eq!(code(&line, one, 1, OutputKind::Probabilities), "am-no-such-output");
        assert_eq!(code(&line, Samples::Text(&["a"]), 1, OutputKind::Predictions), "am-part");
        assert_eq!(code(&line, one, 2, OutputKind::Predictions), "am-input-length");
        assert_eq!(code(&line, one, 0, OutputKind::Predictions), "am-input-length");
        assert_eq!(code(&line, Samples::F32(&[1.0, 2.0]), 1, OutputKind::Predictions), "am-feature-count");
        let numbers = AnyModel::from(Numbers::from(vec![1.0]));
        assert_eq!(numbers.input_kind(), None);
        assert_eq!(code(&numbers, one, 1, OutputKind::Predictions), "am-no-predictions");
        assert_eq!(code(&numbers, one, 1, OutputKind::Probabilities), "am-no-predictions");
    }

    #[test]
    fn both_classes_have_a_probability() {
        let x = Matrix::from_vec(4, 1, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
        let mut model = LogisticRegression::new();
        model.fit(&x, &[0, 0, 1, 1]).unwrap();
        let answers =
            AnyModel::from(model).answers(Samples::F64(&[0.0, 3.0]), 2, OutputKind::Probabilities).unwrap();
        let Answers::Probabilities(classes, shares) = answers else { panic!("{answers:?}") };
        assert_eq!(classes, [0, 1]);
        assert_eq!(shares.shape(), (2, 2));
        assert!(shares.rows().all(|row| (row[0] + row[1] - 1.0).abs() < 1e-6));
    }
}
