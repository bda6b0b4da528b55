#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - Regression: [`LinearRegression`], [`Ridge`], [`Lasso`], [`ElasticNet`], [`DecisionTreeRegressor`], [`RandomForestRegressor`],
//!   [`GradientBoostingRegressor`], [`KnnRegressor`].
//! - Classification: [`LogisticRegression`], [`DecisionTreeClassifier`], [`RandomForestClassifier`], [`GradientBoostingClassifier`],
//!   [`KnnClassifier`], [`NaiveBayes`], [`Svm`].
//! - Clusters and outliers: [`KMeans`], [`GaussianMixture`], [`Dbscan`], [`IsolationForest`].
//! - Features: [`StandardScaler`], [`MinMaxScaler`], [`Pca`].
//! - Texts: [`CountVectorizer`], [`TfIdf`], [`NgramLm`], [`ContentRecommender`].
//! - Models of scikit-learn, in `f64`: [`Pipeline`].
//! - Networks and ensembles: [`NeuralSequential`], [`MixtureOfExperts`].
//! - User-defined types: [`Custom`] and [`NeuralCustom`] around a payload or, with the feature `serde`, a serde type; [`Numbers`].
//!
//! Each is created by fitting or from its parts, predicts into a slice of the caller ([`Regressor`], [`Classifier`],
//! [`Transformer`]), and is stored as an `.apr` payload or as [tensors](Tensors) in a safetensors file. [`AnyModel`] is any of
//! them, as a file contains it.
//!
//! # Untrusted input
//!
//! A payload is checked while it is read: lengths that fit each other, indices inside their tables, trees that end. Nothing
//! a file contains causes a panic, and memory stays in proportion to its size. Weights that are not finite are
//! kept as the payload has them; construction from parts and from tensors refuses them. Values given to a training are
//! checked too. Methods that panic say when; their `try_` twins do not.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[macro_use]
mod stored;

mod any_model;
mod checks;
mod classes;
mod content_recommender;
mod convergence;
mod count_vectorizer;
mod custom;
mod dbscan;
mod decision_tree;
mod error;
mod gaussian_mixture;
mod gradient_boosting;
mod grow;
mod inherent;
mod isolation_forest;
mod kernels;
mod kmeans;
mod knn;
mod lasso;
mod least_squares;
mod linear;
mod linear_regression;
mod logistic_regression;
mod lowercase;
mod matrix;
mod metrics;
mod mixture_of_experts;
mod model;
mod naive_bayes;
mod neural;
mod newton;
mod ngram_lm;
mod numbers;
mod payload;
mod pca;
mod pipeline;
mod platt;
mod prediction_columns;
mod predictions;
mod probability;
mod quant_type;
mod quantized_block;
#[cfg(feature = "quantize")]
mod quantized_model;
mod random_forest;
mod resample;
mod ridge;
mod rng;
mod scaler;
mod scratch;
mod sparse;
mod split;
mod standard;
mod svm;
mod tensors;
mod terms;
mod text_list;
mod tf_idf;
mod tree;
mod vector;
mod vocabulary;
mod weighting;
mod workers;

pub use crate::any_model::{AnyModel, Terms};
pub use crate::classes::check_class_numbers;
pub use crate::content_recommender::{ContentRecommender, Recommendation};
pub use crate::convergence::Convergence;
pub use crate::count_vectorizer::{CountVectorizer, CountVectorizerOptions, DocumentCount};
pub use crate::custom::{Custom, NeuralCustom};
pub use crate::dbscan::Dbscan;
pub use crate::decision_tree::{DecisionTreeClassifier, DecisionTreeRegressor, TreeOptions};
pub use crate::error::{Error, ErrorKind, Operation, Parameter};
pub use crate::gaussian_mixture::{CovarianceType, GaussianMixture, GaussianMixtureOptions};
pub use crate::gradient_boosting::{
    BoostedClassifierParts, BoostedRegressorParts, BoostingOptions, BoostingReport, EarlyStopping,
    GradientBoostingClassifier, GradientBoostingRegressor,
};
pub use crate::isolation_forest::{Contamination, IsolationForest, IsolationOptions};
pub use crate::kmeans::{KMeans, KMeansView};
pub use crate::knn::{KnnClassifier, KnnRegressor, KnnWeights, Neighbour};
pub use crate::lasso::{ElasticNet, Lasso};
pub use crate::linear::{Intercept, LinearView};
pub use crate::linear_regression::LinearRegression;
pub use crate::logistic_regression::{FitMode, LogisticRegression, LogisticRegressionView};
pub use crate::matrix::{Matrix, Rows};
pub use crate::metrics::{
    ClassMetrics, ClassScores, ClassificationMetrics, ClassificationScorer, RegressionMetrics,
    RegressionScorer,
};
pub use crate::mixture_of_experts::{
    GatingNetwork, MixtureOfExperts, MoeBuilder, MoeConfig, MoeTraining, SoftmaxGating, WeightedRegressor,
};
pub use crate::model::{Classifier, Model, Regressor, Transformer};
pub use crate::naive_bayes::{NaiveBayes, NaiveBayesOptions, NaiveBayesParts};
pub use crate::neural::{
    Activation, Dense, NeuralLoss, NeuralOptions, NeuralReport, NeuralSequential, NeuralTargets, Optimizer,
    SoftTargets, SoftmaxOptions,
};
pub use crate::ngram_lm::{NgramCounts, NgramLm, NgramLmOptions, NgramLmParts, Smoothing};
pub use crate::numbers::Numbers;
pub use crate::pca::{Pca, PcaOptions, PcaParts, PcaScaling};
pub use crate::pipeline::{
    AccentFold, Accepts, CentroidDistances, CharacterClass, ClassHead, ClusterRule, Column, Columns,
    Covariance, DecisionFunction, DecisionRule, GaussianLogDensity, HangulRule, Head, Input, KernelStep,
    Label, Labels, LinearStep, Link, NeighbourMetric, NeighbourOutput, NeighbourSearch, NeighboursParts,
    NeighboursStep, OtherCharacters, OutlierHead, OutputShape, Pipeline, ProbabilityRule, Reals, Samples,
    ScaleAdd, ShiftDivide, Step, StepActivation, StepKernel, Table, TextInput, TextParts, TextTerms,
    TfIdfWeights, TreeOutputs, TreeThresholds, TreesParts, TreesStep, ValueKind,
};
pub use crate::platt::{DecisionPairs, PlattScaling};
pub use crate::prediction_columns::{ColumnValues, PredictionColumn};
pub use crate::predictions::{
    CATEGORIES_KEY, CLASSES_KEY, Capabilities, FEATURES_KEY, Float, Floats, InputKind, OutputKind,
    PredictionKind, Predictions, TARGET_KEY, TermWeights, UNKNOWN_CATEGORY_KEY,
};
pub use crate::quant_type::QuantType;
pub use crate::quantized_block::QuantizedBlock;
#[cfg(feature = "quantize")]
pub use crate::quantized_model::QuantizedModel;
#[cfg(all(feature = "quantize", feature = "std"))]
pub use crate::quantized_model::save_quantized;
pub use crate::random_forest::{
    ForestOptions, MaxFeatures, RandomForestClassifier, RandomForestRegressor, TrainingData, TreeSamples,
};
pub use crate::resample::{bootstrap_interval, mixed_samples};
pub use crate::ridge::Ridge;
pub use crate::scaler::{MinMaxScaler, StandardScaler};
pub use crate::sparse::{SparseRow, SparseRows};
pub use crate::split::{folds, held_out};
pub use crate::svm::{KernelParts, KernelSvmOptions, LinearParts, LinearSvmOptions, Svm, SvmKernel};
pub use crate::tensors::{MODEL_KEY, TRANSPOSED_KEY, Tensors, transposed};
pub use crate::terms::{LetterCase, TermCount, TextRules, TokenRule};
pub use crate::tf_idf::{InverseFrequency, RowNorm, TermFrequency, TfIdf, TfIdfOptions, TfIdfParts};
pub use crate::tree::TreeNode;
pub use crate::vector::Vector;
pub use crate::vocabulary::Vocabulary;
pub use crate::weighting::ClassWeight;
pub use crate::workers::{Alone, Job, Workers};
pub use located_error::Subject;
