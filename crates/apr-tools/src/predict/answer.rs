//! What a model can be asked, and what it answers.

use apr_models::{
    AnyModel, CountVectorizer, Input, Matrix, Model as _, NgramLm, Predictions, RowsIn, SparseRows64, TfIdf,
};

use super::pipeline::Piped;
use crate::error::{CODE_NO_PREDICTION, Failure};
use crate::known::Known;

/// What a model is asked about.
pub(super) enum Asked<'k> {
    Rows(Rows<'k>),
    Texts(Texts<'k>),
}

/// A model of numbers.
pub(super) enum Rows<'k> {
    /// One that takes 32-bit floats.
    Narrow(Narrow<'k>),
    /// One that takes 64-bit floats.
    Wide(Piped<'k>),
}

/// A model of 32-bit floats.
pub(super) struct Narrow<'k> {
    model: &'k AnyModel,
    /// Whether the probabilities of the classes are wanted, too.
    proba: Proba,
}

/// Whether probabilities are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proba {
    Wanted,
    NotWanted,
}

/// A model of text.
pub(super) enum Texts<'k> {
    Counts(&'k CountVectorizer),
    Weights(&'k TfIdf),
    Language(&'k NgramLm),
    /// A pipeline, and the terms of its columns.
    Pipeline(Piped<'k>, Vec<&'k str>),
}

/// The answers to some rows or texts, in their order.
pub(super) enum Answers {
    Numbers(Vec<f32>),
    Classes(Vec<usize>),
    /// Classes, and a row of probabilities for each.
    Probabilities(Vec<usize>, Matrix),
    /// 1, or -1 for an outlier.
    Outliers(Vec<i32>),
    Rows(Matrix),
    /// Numbers of terms with their weights.
    Terms(Vec<Vec<(usize, f32)>>),
    /// Numbers in 64 bits, and log-probabilities.
    Wide(Vec<f64>),
    WideRows {
        values: Vec<f64>,
        width: usize,
    },
    WideTerms(SparseRows64),
    /// Places of a pipeline's classes, clusters or marks.
    Places(Vec<usize>),
    /// The same, and a row of probabilities for each.
    Shares {
        places: Vec<usize>,
        shares: Vec<f64>,
        n_shares: usize,
    },
}

impl Answers {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Classes(classes) | Self::Probabilities(classes, _) => classes.len(),
            Self::Outliers(marks) => marks.len(),
            Self::Rows(rows) => rows.n_rows(),
            Self::Terms(rows) => rows.len(),
            Self::Wide(values) => values.len(),
            Self::WideRows { values, width } => values.len() / (*width).max(1),
            Self::WideTerms(rows) => rows.n_rows(),
            Self::Places(places) | Self::Shares { places, .. } => places.len(),
        }
    }
}

impl<'k> Asked<'k> {
    /// What the model can be asked.
    ///
    /// # Errors
    ///
    /// If it predicts nothing, or has no probabilities and they are wanted.
    pub(super) fn new(known: &'k Known, wants_proba: bool) -> Result<Self, Failure> {
        let proba = if wants_proba { Proba::Wanted } else { Proba::NotWanted };
        let asked = match &known.model {
            AnyModel::Pipeline(model) => {
                let piped = Piped { model, proba };
                match model.input() {
                    Input::Texts(texts) => Self::Texts(Texts::Pipeline(piped, texts.terms())),
                    _ => Self::Rows(Rows::Wide(piped)),
                }
            }
            AnyModel::CountVectorizer(model) => Self::Texts(Texts::Counts(model)),
            AnyModel::TfIdf(model) => Self::Texts(Texts::Weights(model)),
            AnyModel::NgramLm(model) => Self::Texts(Texts::Language(model)),
            AnyModel::Numbers(_)
            | AnyModel::QuantizedBlock(_)
            | AnyModel::Dbscan(_)
            | AnyModel::ContentRecommender(_) => {
                let what = format!("a {} predicts nothing about rows", known.model.name());
                return Err(Failure::new(CODE_NO_PREDICTION, what).in_file(&known.path));
            }
            model => Self::Rows(Rows::Narrow(Narrow { model, proba })),
        };
        let gives_proba = match &asked {
            Self::Texts(Texts::Pipeline(piped, _)) | Self::Rows(Rows::Wide(piped)) => {
                piped.model.n_shares().is_some()
            }
            Self::Texts(_) => false,
            Self::Rows(Rows::Narrow(rows)) => rows.has_probabilities(),
        };
        if wants_proba && !gives_proba {
            let what = format!("a {} gives no probabilities", known.model.name());
            return Err(Failure::new(CODE_NO_PREDICTION, what)
                .in_file(&known.path)
                .help("leave --proba out"));
        }
        Ok(asked)
    }

    /// What an answer is, as JSON calls it; of a model of numbers, the answers tell.
    pub(super) fn kind(&self, answers: Option<&Answers>) -> Option<&'static str> {
        Some(match (self, answers) {
            (Self::Texts(Texts::Pipeline(piped, _)) | Self::Rows(Rows::Wide(piped)), _) => piped.kind(),
            (Self::Texts(Texts::Language(_)), _) => "log-probability",
            (Self::Texts(_), _) => "terms",
            (_, None) => return None,
            (_, Some(Answers::Numbers(_))) => "value",
            (_, Some(Answers::Classes(_) | Answers::Probabilities(..))) => "class",
            (_, Some(Answers::Outliers(_))) => "outlier",
            (_, Some(_)) => "row",
        })
    }
}

impl Rows<'_> {
    pub(super) fn n_features(&self) -> Option<usize> {
        match self {
            Self::Narrow(rows) => rows.model.n_features(),
            Self::Wide(piped) => piped.model.n_features(),
        }
    }

    /// The labels that the columns of the probabilities stand for, where they are not counted from 0.
    pub(super) fn labels(&self) -> Option<&[usize]> {
        let Self::Narrow(rows) = self else { return None };
        match rows.model {
            AnyModel::NaiveBayes(model) => Some(model.classes()),
            AnyModel::KnnClassifier(model) => Some(model.classes()),
            AnyModel::GradientBoostingClassifier(model) => Some(model.classes()),
            _ => None,
        }
    }
}

impl Narrow<'_> {
    fn has_probabilities(&self) -> bool {
        matches!(
            self.model,
            AnyModel::LogisticRegression(_)
                | AnyModel::RandomForestClassifier(_)
                | AnyModel::GaussianMixture(_)
                | AnyModel::NaiveBayes(_)
                | AnyModel::KnnClassifier(_)
                | AnyModel::GradientBoostingClassifier(_)
        ) || self.is_classifying_network()
    }

    /// Whether this is a network whose outputs are probabilities.
    fn is_classifying_network(&self) -> bool {
        use apr_models::Activation::{Sigmoid, Softmax};
        let AnyModel::NeuralSequential(network) = self.model else { return false };
        let last = network.layers().last().map(|layer| (layer.activation(), layer.n_outputs()));
        matches!(last, Some((Softmax, _) | (Sigmoid, 1)))
    }

    /// Answers for each row.
    ///
    /// # Errors
    ///
    /// What the model refuses.
    pub(super) fn ask(&self, x: &Matrix) -> Result<Answers, Failure> {
        if let AnyModel::NeuralSequential(network) = self.model
            && self.is_classifying_network()
        {
            let classes = network.classes(x)?;
            return Ok(match self.proba {
                Proba::NotWanted => Answers::Classes(classes),
                Proba::Wanted => Answers::Probabilities(classes, both(network.outputs(x)?)?),
            });
        }
        let answers = match self.model.try_predict(x)? {
            Predictions::Numbers(values) => Answers::Numbers(values.iter().collect()),
            Predictions::Classes(classes) => Answers::Classes(classes),
            Predictions::Outliers(marks) => Answers::Outliers(marks),
            Predictions::Samples(rows) => Answers::Rows(rows),
            _ => return Err(Failure::new(CODE_NO_PREDICTION, "an answer of a kind that is new here")),
        };
        match (answers, self.proba) {
            (Answers::Classes(classes), Proba::Wanted) => {
                Ok(Answers::Probabilities(classes, self.probabilities(x)?))
            }
            (answers, _) => Ok(answers),
        }
    }

    fn probabilities(&self, x: &Matrix) -> Result<Matrix, Failure> {
        Ok(match self.model {
            AnyModel::LogisticRegression(model) => {
                let second = model.try_predict_proba(x)?;
                both(Matrix::from_vec(x.n_rows(), 1, second.iter().collect())?)?
            }
            AnyModel::RandomForestClassifier(model) => model.try_predict_proba(x)?,
            AnyModel::GaussianMixture(model) => model.try_predict_proba(x)?,
            AnyModel::NaiveBayes(model) => model.try_predict_proba(x)?,
            AnyModel::KnnClassifier(model) => model.try_predict_proba(x)?,
            AnyModel::GradientBoostingClassifier(model) => model.try_predict_proba(x)?,
            other => {
                let what = format!("a {} gives no probabilities", other.name());
                return Err(Failure::new(CODE_NO_PREDICTION, what));
            }
        })
    }
}

/// Probabilities of both classes where there is one column, that of the second.
fn both(probabilities: Matrix) -> Result<Matrix, Failure> {
    if probabilities.n_cols() != 1 {
        return Ok(probabilities);
    }
    let values = probabilities.as_slice().iter().flat_map(|&second| [1.0 - second, second]).collect();
    Ok(Matrix::from_vec(probabilities.n_rows(), 2, values)?)
}

impl Texts<'_> {
    /// Answers for each text.
    ///
    /// # Errors
    ///
    /// What a pipeline refuses.
    pub(super) fn ask(&self, texts: &[String]) -> Result<Answers, Failure> {
        let terms = |rows: apr_models::SparseRows| {
            Answers::Terms(rows.rows().map(|row| row.iter().collect()).collect())
        };
        Ok(match self {
            Self::Pipeline(piped, _) => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                piped.ask(RowsIn::Texts(&texts), texts.len())?
            }
            Self::Counts(model) => terms(model.transform(texts)),
            Self::Weights(model) => terms(model.transform(texts)),
            Self::Language(model) => {
                let score =
                    |text: &String| model.log_probability(&text.split_whitespace().collect::<Vec<&str>>());
                Answers::Wide(texts.iter().map(score).collect())
            }
        })
    }

    /// The term of that number.
    pub(super) fn term(&self, number: usize) -> &str {
        let vocabulary = match self {
            Self::Counts(model) => model.vocabulary(),
            Self::Weights(model) => model.vocabulary(),
            Self::Pipeline(_, terms) => return terms.get(number).copied().unwrap_or_default(),
            Self::Language(_) => return "",
        };
        vocabulary.get(number).unwrap_or_default()
    }
}
