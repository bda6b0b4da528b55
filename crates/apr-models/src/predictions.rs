//! What a model takes and returns: data without behaviour, so that pipelines and [`AnyModel`](crate::AnyModel) share it.

use alloc::vec::Vec;

use crate::pipeline::input::Accepts;
use crate::sparse::SparseRows;

/// Key of the custom metadata of an `.apr` file with the names of the classes, by their numbers.
pub const CLASSES_KEY: &str = "apr.classes";
/// Key of the custom metadata of an `.apr` file with the names of the features, in their order.
pub const FEATURES_KEY: &str = "apr.features";
/// Key of the custom metadata with the name of what is predicted.
pub const TARGET_KEY: &str = "apr.target";
/// Key of the custom metadata with a list for each feature: the names of its categories, in the order of the numbers that the model
/// knows them by, or nothing if its values are numbers.
pub const CATEGORIES_KEY: &str = "apr.categories";
/// Key of the custom metadata with what is done about a category that is not among them: `ignore`, which gives it the number -1; without
/// it such a sample is refused.
pub const UNKNOWN_CATEGORY_KEY: &str = "apr.unknown_category";

/// Type of the samples that a model takes.
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

/// What a caller wants of a model; the names are those of scikit-learn's methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputKind {
    /// `predict`: a value, a class or a mark for each sample. Of a transformer the transformed sample, of a vectorizer the
    /// weights of the terms, of a language model the logarithm of the probability.
    #[default]
    Predictions,
    /// `predict_proba`: the class, and the probability of each class.
    Probabilities,
    /// `decision_function`: a score for each class or pair of classes, or for how far a sample is from being an outlier.
    DecisionFunction,
    /// `score_samples`: the logarithm of the density, or the opposite of the anomaly score.
    ScoreSamples,
    /// `transform`: the transformed sample, of a network its outputs, of clusters the distances from their centres.
    Transformed,
}

impl OutputKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Predictions,
        Self::Probabilities,
        Self::DecisionFunction,
        Self::ScoreSamples,
        Self::Transformed,
    ];

    /// Its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Predictions => "predictions",
            Self::Probabilities => "probabilities",
            Self::DecisionFunction => "decision function",
            Self::ScoreSamples => "scores of samples",
            Self::Transformed => "transformed samples",
        }
    }
}

/// What [`OutputKind::Predictions`] of a model are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PredictionKind {
    /// A value: regression.
    Value,
    /// A class or a cluster.
    Class,
    /// A mark: 1 for an inlier, -1 for an outlier.
    Outlier,
    /// A row of values: transformation, or regression of several targets.
    Row,
    /// The weights of the terms of a text.
    Terms,
    /// The logarithm of the probability of a text.
    LogProbability,
}

impl PredictionKind {
    /// Its name in reports: `value`, `class`, `outlier`, `row`, `terms` or `log-probability`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Class => "class",
            Self::Outlier => "outlier",
            Self::Row => "row",
            Self::Terms => "terms",
            Self::LogProbability => "log-probability",
        }
    }
}

/// What a model can do.
///
/// ```
/// use apr_models::{AnyModel, InputKind, LinearRegression, OutputKind, PredictionKind, Vector};
///
/// let model = AnyModel::from(LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?);
/// let capabilities = model.capabilities();
/// assert_eq!(capabilities.input(), Some(InputKind::F32));
/// assert_eq!(capabilities.n_features(), Some(1));
/// assert_eq!(capabilities.prediction(), Some(PredictionKind::Value));
/// assert!(!capabilities.supports(OutputKind::Probabilities));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub(crate) input: Option<InputKind>,
    pub(crate) accepts: Accepts,
    pub(crate) n_features: Option<usize>,
    pub(crate) prediction: Option<PredictionKind>,
    pub(crate) probabilities: bool,
    pub(crate) decision_function: bool,
    pub(crate) score_samples: bool,
    pub(crate) transform: bool,
}

impl Capabilities {
    /// Type of its samples; `None` of a model that takes none.
    #[must_use]
    pub const fn input(&self) -> Option<InputKind> {
        self.input
    }

    /// Which values a feature may have: [`Accepts::Finite`] of all models but some pipelines.
    #[must_use]
    pub const fn accepts(&self) -> Accepts {
        self.accepts
    }

    /// Features of a sample; `None` of models that take texts, take rows of any length, or are not fitted.
    #[must_use]
    pub const fn n_features(&self) -> Option<usize> {
        self.n_features
    }

    /// What its predictions are; `None` of a model that takes no samples.
    #[must_use]
    pub const fn prediction(&self) -> Option<PredictionKind> {
        self.prediction
    }

    /// Whether the model has this output.
    #[must_use]
    pub const fn supports(&self, output: OutputKind) -> bool {
        match output {
            OutputKind::Predictions => self.input.is_some(),
            OutputKind::Probabilities => self.probabilities,
            OutputKind::DecisionFunction => self.decision_function,
            OutputKind::ScoreSamples => self.score_samples,
            OutputKind::Transformed => self.transform,
        }
    }
}

/// Floats in the precision that a model computes with.
#[derive(Clone, Debug, PartialEq)]
pub enum Floats {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
}

/// One of [`Floats`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Float {
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
}

impl Floats {
    fn clear(&mut self) {
        match self {
            Self::F32(values) => values.clear(),
            Self::F64(values) => values.clear(),
        }
    }

    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at that index.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<Float> {
        match self {
            Self::F32(values) => values.get(idx).copied().map(Float::F32),
            Self::F64(values) => values.get(idx).copied().map(Float::F64),
        }
    }

    /// The values of row `idx` of rows of `n_columns` values; none beyond the last row.
    pub fn row(&self, idx: usize, n_columns: usize) -> impl Iterator<Item = Float> {
        let start = idx.saturating_mul(n_columns);
        (start..start.saturating_add(n_columns)).map_while(|idx| self.get(idx))
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = Float> {
        (0..self.len()).map_while(|idx| self.get(idx))
    }
}

impl Float {
    /// The value as a 32-bit float, rounded to nearest.
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        match self {
            Self::F32(value) => value,
            Self::F64(value) => value as f32,
        }
    }

    /// The value as a 64-bit float.
    #[must_use]
    pub const fn to_f64(self) -> f64 {
        match self {
            Self::F32(value) => value as f64,
            Self::F64(value) => value,
        }
    }
}

/// Weights of terms, sparse: `[n_samples, n_terms]`.
#[derive(Clone, Debug, PartialEq)]
pub enum TermWeights {
    /// In 32-bit floats.
    F32(SparseRows),
    /// In 64-bit floats.
    F64(SparseRows<f64>),
}

impl TermWeights {
    /// Number of rows.
    #[must_use]
    pub const fn n_rows(&self) -> usize {
        match self {
            Self::F32(rows) => rows.n_rows(),
            Self::F64(rows) => rows.n_rows(),
        }
    }

    /// Columns and weights of a row, of terms that have a weight; none beyond the last row.
    pub fn row(&self, idx: usize) -> impl Iterator<Item = (usize, Float)> {
        let (narrow, wide) = match self {
            Self::F32(rows) => (rows.row(idx), None),
            Self::F64(rows) => (None, rows.row(idx)),
        };
        let (narrow, wide) =
            (narrow.into_iter().flat_map(|row| row.iter()), wide.into_iter().flat_map(|row| row.iter()));
        let narrow = narrow.map(|(column, weight)| (column, Float::F32(weight)));
        narrow.chain(wide.map(|(column, weight)| (column, Float::F64(weight))))
    }
}

/// What a model returned for some samples, in their order.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Predictions {
    /// A value for each sample: `[n_samples]`.
    Values(Floats),
    /// A row of values for each sample, row-major: `[n_samples, n_columns]`.
    Rows {
        /// The values.
        values: Floats,
        /// Values of a row.
        n_columns: usize,
    },
    /// A class or a cluster for each sample: `[n_samples]`; see [`AnyModel::label`](crate::AnyModel::label).
    Classes(Vec<usize>),
    /// The classes, and a row of probabilities for each sample, row-major: `[n_samples, n_columns]`.
    Probabilities {
        /// The class of each sample.
        classes: Vec<usize>,
        /// The probabilities.
        values: Floats,
        /// Probabilities of a row; [`AnyModel::class_of_column`](crate::AnyModel::class_of_column) has their classes.
        n_columns: usize,
    },
    /// 1 for an inlier, -1 for an outlier: `[n_samples]`.
    Outliers(Vec<i32>),
    /// Weights of terms: `[n_samples, n_terms]`; [`AnyModel::terms`](crate::AnyModel::terms) has the terms.
    Terms(TermWeights),
}

impl Predictions {
    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Rows { values, n_columns } => values.len() / (*n_columns).max(1),
            Self::Classes(classes) | Self::Probabilities { classes, .. } => classes.len(),
            Self::Outliers(marks) => marks.len(),
            Self::Terms(rows) => rows.n_rows(),
        }
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all samples of a model that takes numbers: kind, type and columns stay.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Values(values) | Self::Rows { values, .. } => values.clear(),
            Self::Classes(classes) => classes.clear(),
            Self::Probabilities { classes, values, .. } => {
                classes.clear();
                values.clear();
            }
            Self::Outliers(marks) => marks.clear(),
            // Of models that take texts.
            Self::Terms(_) => {}
        }
    }
}
