//! Which of the templates answers for a model.

use apr_models::{AnyModel, Head, InputKind, Model as _};

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
        let model = &known.model;
        let silent = || {
            let what = format!("a {} predicts nothing about rows", model.name());
            Failure::new(CODE_NO_PREDICTION, what).in_file(&known.path)
        };
        let line = match model.input_kind() {
            Some(InputKind::F32) => Line::Narrow,
            Some(InputKind::F64) => Line::Wide,
            Some(InputKind::Text) => Line::Text,
            _ => return Err(silent()),
        };
        let (template, says) = match model {
            M::LinearRegression(_)
            | M::Ridge(_)
            | M::Lasso(_)
            | M::ElasticNet(_)
            | M::DecisionTreeRegressor(_)
            | M::RandomForestRegressor(_)
            | M::MixtureOfExperts(_)
            | M::KnnRegressor(_)
            | M::GradientBoostingRegressor(_) => (NUMBER, Says::Numbers),
            M::LogisticRegression(_)
            | M::DecisionTreeClassifier(_)
            | M::RandomForestClassifier(_)
            | M::KMeans(_)
            | M::GaussianMixture(_)
            | M::NaiveBayes(_)
            | M::KnnClassifier(_)
            | M::Svm(_)
            | M::GradientBoostingClassifier(_) => (CLASS, Says::Class),
            M::NeuralSequential(_) if model.gives_probabilities() => (NETWORK, Says::Class),
            M::NeuralSequential(_) | M::StandardScaler(_) | M::MinMaxScaler(_) | M::Pca(_) => {
                (ROW, Says::Numbers)
            }
            M::IsolationForest(_) => (OUTLIER, Says::Mark),
            M::CountVectorizer(_) | M::TfIdf(_) => (TERMS, Says::Numbers),
            M::NgramLm(_) => (WORDS, Says::Numbers),
            M::Pipeline(pipeline) => match pipeline.head() {
                Head::Values { .. } if pipeline.gives_terms() => (PIPELINE_TERMS, Says::Numbers),
                Head::Classes(head) => (PIPELINE_LABEL, Says::Place(head.labels.len())),
                Head::Clusters(_) => (PIPELINE_LABEL, Says::Place(pipeline.n_outputs())),
                Head::Outliers(_) => (PIPELINE_LABEL, Says::Place(2)),
                _ => (PIPELINE_VALUES, Says::Numbers),
            },
            _ => return Err(silent()),
        };
        let view = match model {
            M::LinearRegression(_) | M::Ridge(_) | M::Lasso(_) | M::ElasticNet(_) => Some("LinearView"),
            M::LogisticRegression(_) => Some("LogisticRegressionView"),
            M::KMeans(_) => Some("KMeansView"),
            _ => None,
        };
        Ok(Self { template, line, says, view })
    }
}
