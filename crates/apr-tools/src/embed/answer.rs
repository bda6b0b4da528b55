//! Which of the templates answers for a model.

use apr_models::{Activation, AnyModel, Head, Input, Model as _};

use crate::error::{CODE_NO_PREDICTION, Failure};
use crate::known::Known;

/// A template, and what it needs of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) template: &'static str,
    /// What a line is.
    pub(super) line: Line,
    /// What is said of it.
    pub(super) says: Says,
    /// The view that the model has in place, if any.
    pub(super) view: Option<&'static str>,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// 32-bit floats.
    Narrow,
    /// 64-bit floats.
    Wide,
    Text,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Numbers,
    /// A class, cluster or mark by its number.
    Class,
    /// One of these many names.
    Place(usize),
    Mark,
}

const NUMBER: &str = include_str!("template/answer/number.rs.txt");
const CLASS: &str = include_str!("template/answer/class.rs.txt");
const NETWORK: &str = include_str!("template/answer/network.rs.txt");
const OUTLIER: &str = include_str!("template/answer/outlier.rs.txt");
const ROW: &str = include_str!("template/answer/row.rs.txt");
const TERMS: &str = include_str!("template/answer/terms.rs.txt");
const WORDS: &str = include_str!("template/answer/words.rs.txt");
const PIPELINE_LABEL: &str = include_str!("template/answer/pipeline_label.rs.txt");
const PIPELINE_VALUES: &str = include_str!("template/answer/pipeline_values.rs.txt");
const PIPELINE_TERMS: &str = include_str!("template/answer/pipeline_terms.rs.txt");

impl Answer {
    /// The template for this model.
    ///
    /// # Errors
    ///
    /// If it predicts nothing.
    pub(super) fn of(known: &Known) -> Result<Self, Failure> {
        use AnyModel as M;
        let (template, line, says) = match &known.model {
            M::LinearRegression(_)
            | M::Ridge(_)
            | M::Lasso(_)
            | M::ElasticNet(_)
            | M::DecisionTreeRegressor(_)
            | M::RandomForestRegressor(_)
            | M::MixtureOfExperts(_)
            | M::KnnRegressor(_)
            | M::GradientBoostingRegressor(_) => (NUMBER, Line::Narrow, Says::Numbers),
            M::LogisticRegression(_)
            | M::DecisionTreeClassifier(_)
            | M::RandomForestClassifier(_)
            | M::KMeans(_)
            | M::GaussianMixture(_)
            | M::NaiveBayes(_)
            | M::KnnClassifier(_)
            | M::Svm(_)
            | M::GradientBoostingClassifier(_) => (CLASS, Line::Narrow, Says::Class),
            M::NeuralSequential(network) => {
                let last = network.layers().last().map(|layer| (layer.activation(), layer.n_outputs()));
                match last {
                    Some((Activation::Softmax, _) | (Activation::Sigmoid, 1)) => {
                        (NETWORK, Line::Narrow, Says::Class)
                    }
                    _ => (ROW, Line::Narrow, Says::Numbers),
                }
            }
            M::StandardScaler(_) | M::MinMaxScaler(_) | M::Pca(_) => (ROW, Line::Narrow, Says::Numbers),
            M::IsolationForest(_) => (OUTLIER, Line::Narrow, Says::Mark),
            M::CountVectorizer(_) | M::TfIdf(_) => (TERMS, Line::Text, Says::Numbers),
            M::NgramLm(_) => (WORDS, Line::Text, Says::Numbers),
            M::Pipeline(pipeline) => {
                let line = if matches!(pipeline.input(), Input::Texts(_)) { Line::Text } else { Line::Wide };
                match pipeline.head() {
                    Head::Rows { .. } if line == Line::Text && pipeline.transform_texts(&[]).is_ok() => {
                        (PIPELINE_TERMS, line, Says::Numbers)
                    }
                    Head::Classes(head) => (PIPELINE_LABEL, line, Says::Place(head.labels.len())),
                    Head::Clusters(_) => (PIPELINE_LABEL, line, Says::Place(pipeline.n_outputs())),
                    Head::Outliers(_) => (PIPELINE_LABEL, line, Says::Place(2)),
                    _ => (PIPELINE_VALUES, line, Says::Numbers),
                }
            }
            other => {
                let what = format!("a {} predicts nothing about rows", other.name());
                return Err(Failure::new(CODE_NO_PREDICTION, what).in_file(&known.path));
            }
        };
        let view = match &known.model {
            M::LinearRegression(_) | M::Ridge(_) | M::Lasso(_) | M::ElasticNet(_) => Some("LinearView"),
            M::LogisticRegression(_) => Some("LogisticRegressionView"),
            M::KMeans(_) => Some("KMeansView"),
            _ => None,
        };
        Ok(Self { template, line, says, view })
    }
}
