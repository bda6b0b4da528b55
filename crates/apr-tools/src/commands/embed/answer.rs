//! The template for a model.

use apr_models::{AnyModel, InputKind, Model as _, PredictionKind};

use crate::error::{CODE_NO_PREDICTION, Failure};
use crate::input::NamedModel;

/// A template and its requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) template: &'static str,
    /// The kind of an input line.
    pub(super) line: Line,
    /// The kind of output.
    pub(super) says: Says,
    /// The view that the model has in place, if any.
    pub(super) view: Option<&'static str>,
}

/// The input of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// 32-bit floats.
    Narrow,
    /// 64-bit floats.
    Wide,
    Text,
}

/// The output of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Numbers,
    /// A class, cluster or outlier flag by its index.
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
    /// If the model has no predictions.
    pub(super) fn of(known: &NamedModel) -> Result<Self, Failure> {
        use AnyModel as M;
        use PredictionKind::{Class, LogProbability, Outlier, Row, Terms, Value};
        let model = &*known.model;
        let capabilities = model.capabilities();
        let silent = || {
            let what = format!("a {} predicts nothing about rows", model.name());
            Failure::new(CODE_NO_PREDICTION, what)
        };
        let line = match capabilities.input() {
            Some(InputKind::F32) => Line::Narrow,
            Some(InputKind::F64) => Line::Wide,
            Some(InputKind::Text) => Line::Text,
            _ => return Err(silent()),
        };
        let (template, says) = match (model, capabilities.prediction()) {
            (M::Pipeline(_), Some(Terms)) => (PIPELINE_TERMS, Says::Numbers),
            (M::Pipeline(pipeline), _) => match pipeline.n_classes() {
                Some(n_classes) => (PIPELINE_LABEL, Says::Place(n_classes)),
                None => (PIPELINE_VALUES, Says::Numbers),
            },
            (M::NeuralSequential(_), Some(Class)) => (NETWORK, Says::Class),
            (_, Some(Class)) => (CLASS, Says::Class),
            (_, Some(Value)) => (NUMBER, Says::Numbers),
            (_, Some(Row)) => (ROW, Says::Numbers),
            (_, Some(Outlier)) => (OUTLIER, Says::Mark),
            (_, Some(Terms)) => (TERMS, Says::Numbers),
            (_, Some(LogProbability)) => (WORDS, Says::Numbers),
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
