//! A model of any type, as a file determines it.

mod predict;

#[cfg(feature = "std")]
use std::path::Path;

use apr_container::v1::Container;
use apr_container::{
    DecodePayload, EncodePayload, Expect, ModelType, PayloadLayout, PayloadReader, PayloadWriter,
    ReadOptions, Strictness, v2,
};

use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::model::{Classifier as _, Model, Regressor as _, Transformer as _};
use crate::pipeline::Pipeline;
use crate::predictions::{PredictionKind, Predictions};
use crate::tensors::Tensors;

/// Most bytes of a payload that fits a model by chance. Longer ones fit to the last byte only what they are, and the
/// tensors of many small parts, made to ask, would take more memory than a file of this length may.
const SHORT: usize = 1 << 14;

/// Whether `AnyModel` may be a pipeline. Without the feature none is read, written or used, and the code that would do it is
/// not compiled: constants decide, not whatever an optimizer makes of a function.
const PIPELINES: bool = cfg!(feature = "pipelines");

const fn is_built_in(name: &str) -> bool {
    PIPELINES || !matches!(name.as_bytes(), b"Pipeline")
}

fn no_pipelines() -> Error {
    ErrorKind::NotBuiltIn { what: "pipelines" }.into()
}

/// Returns from the function around it unless the model of this name is built in.
macro_rules! built_in {
    ($name:literal) => {
        if const { !is_built_in($name) } {
            return Err(no_pipelines().into());
        }
    };
}

/// Predicts with a model of the table below, by its role there.
macro_rules! predictions {
    (regressor, $model:expr, $x:expr) => {
        predict::values($x, &|rows, out| $model.predict_into(rows, out))
    };
    (classifier, $model:expr, $x:expr) => {
        predict::classes($x, &|rows, out| $model.predict_into(rows, out))
    };
    (transformer, $model:expr, $x:expr) => {
        predict::rows($x, $model.n_outputs(), &|rows, out| $model.transform_into(rows, out))
    };
    (outlier_detector, $model:expr, $x:expr) => {
        $model.try_predict($x).map(Predictions::Outliers)
    };
    ($other:ident, $model:expr, $x:expr) => {
        Err(ErrorKind::NoPredictions { model: $model.name() }.into())
    };
}

/// The prediction of a model, by its role in the table below.
macro_rules! prediction_kind {
    (regressor) => {
        Some(PredictionKind::Value)
    };
    (classifier) => {
        Some(PredictionKind::Class)
    };
    (transformer) => {
        Some(PredictionKind::Row)
    };
    (outlier_detector) => {
        Some(PredictionKind::Outlier)
    };
    (vectorizer) => {
        Some(PredictionKind::Terms)
    };
    (language_model) => {
        Some(PredictionKind::LogProbability)
    };
    (other) => {
        None
    };
}

macro_rules! oldest_layout {
    () => {
        None
    };
    ($layout:ident) => {
        Some(PayloadLayout::$layout)
    };
}

pub use self::predict::Terms;

type Decode = fn(&mut PayloadReader<'_>) -> Result<AnyModel, apr_container::Error>;

/// How a model is found and read.
struct Known {
    name: &'static str,
    /// Container types it is looked for under.
    types: &'static [ModelType],
    /// `None` if it is not built in.
    decode: Option<Decode>,
}

fn decode<M: DecodePayload + Into<AnyModel>>(
    input: &mut PayloadReader<'_>,
) -> Result<AnyModel, apr_container::Error> {
    M::decode_payload(input).map(Into::into)
}

/// `Variant(Type) "name in files" [container types it is looked for under] role since layout;`, where the layout is that of the
/// oldest aprender releases that read such models, if there are any.
///
/// Where a file does not name its model, the models are tried in this order.
macro_rules! any_model {
    ($($(#[$doc:meta])* $variant:ident($model:ty) $name:literal [$($model_type:ident)*] $role:ident $(since $since:ident)?;)*) => {
        /// A model of any type this crate knows.
        ///
        /// ```
        /// use apr_container::{ModelType, SaveOptions, to_vec};
        /// use apr_container::v1::Container;
        /// use apr_models::{AnyModel, Floats, LinearRegression, Matrix, Model, Predictions, Vector};
        ///
        /// let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?;
        /// let file = to_vec(&model, ModelType::LinearRegression, &SaveOptions::default())?;
        ///
        /// let loaded = AnyModel::from_container(&Container::from_bytes(&file)?)?;
        /// assert_eq!(loaded.name(), "LinearRegression");
        /// let x = Matrix::from_vec(1, 1, vec![3.0])?;
        /// assert_eq!(loaded.try_predict(&x)?, Predictions::Values(Floats::F32(vec![7.0])));
        /// # Ok::<(), apr_models::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum AnyModel {
            $($(#[$doc])* $variant($model),)*
        }

        $(impl From<$model> for AnyModel {
            fn from(model: $model) -> Self {
                Self::$variant(model)
            }
        })*

        impl AnyModel {
            /// The names of all models, as files have them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Predicts with a model that takes 32-bit floats.
            fn predict_rows(&self, x: &Matrix) -> Result<Predictions, Error> {
                match self {
                    $(Self::$variant(model) => predictions!($role, model, x),)*
                }
            }

            /// The prediction of the model, by the table only.
            const fn prediction_kind(&self) -> Option<PredictionKind> {
                match self {
                    $(Self::$variant(_) => prediction_kind!($role),)*
                }
            }

            /// The layout of the oldest aprender releases that read such models; `None` if no known release does. Later ones
            /// read them too.
            #[must_use]
            pub const fn oldest_reader(&self) -> Option<PayloadLayout> {
                match self {
                    $(Self::$variant(_) => oldest_layout!($($since)?),)*
                }
            }

            /// Models in the order of the table.
            const KNOWN: &'static [Known] = &[$(Known {
                name: $name,
                types: &[$(ModelType::$model_type),*],
                decode: if is_built_in($name) { Some(decode::<$model>) } else { None },
            }),*];

            /// How each is read from tensors, in the order of the table.
            const FROM_TENSORS: &'static [Option<fn(&Tensors) -> Result<Self, Error>>] = &[$(
                if is_built_in($name) {
                    Some(|tensors| <$model>::from_tensors(tensors).map(Self::$variant))
                } else {
                    None
                }
            ),*];

            /// Reads whichever model the tensors are of: the one that the metadata name, else the first that has tensors
            /// of exactly these names.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::UnknownModel`], and the errors of the named model.
            pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
                if let Some(name) = tensors.model() {
                    let place = Self::NAMES.iter().position(|&known| known == name);
                    let Some(&from_tensors) = place.and_then(|place| Self::FROM_TENSORS.get(place)) else {
                        return Err(ErrorKind::UnknownModel.into());
                    };
                    return from_tensors.ok_or_else(no_pipelines)?(tensors);
                }
                for from_tensors in Self::FROM_TENSORS.iter().flatten() {
                    if let Ok(model) = from_tensors(tensors) {
                        return Ok(model);
                    }
                }
                Err(ErrorKind::UnknownModel.into())
            }
        }

        impl Model for AnyModel {
            fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(model) => model.name(),)*
                }
            }

            fn model_type(&self) -> ModelType {
                match self {
                    $(Self::$variant(model) => model.model_type(),)*
                }
            }

            fn n_features(&self) -> Option<usize> {
                match self {
                    $(Self::$variant(model) => model.n_features(),)*
                }
            }

            fn to_tensors(&self) -> Result<Tensors, Error> {
                match self {
                    $(Self::$variant(model) => {
                        built_in!($name);
                        model.to_tensors()
                    })*
                }
            }
        }

        /// The model of a file can be written again, also an unfitted one.
        impl EncodePayload for AnyModel {
            fn model_name(&self) -> Option<&str> {
                match self {
                    $(Self::$variant(model) => EncodePayload::model_name(model),)*
                }
            }

            fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
                match self {
                    $(Self::$variant(model) => {
                        built_in!($name);
                        model.encode_payload(out)
                    })*
                }
            }
        }
    };
}

any_model! {
    /// Ordinary least squares.
    LinearRegression(crate::LinearRegression) "LinearRegression" [LinearRegression] regressor since V0_10;
    /// Least squares with a penalty on squares.
    Ridge(crate::Ridge) "Ridge" [LinearRegression] regressor since V0_10;
    /// A linear regression trained with a penalty on absolute values.
    Lasso(crate::Lasso) "Lasso" [LinearRegression] regressor since V0_10;
    /// A linear regression trained with both penalties.
    ElasticNet(crate::ElasticNet) "ElasticNet" [LinearRegression] regressor since V0_10;
    /// Logistic regression with two classes.
    LogisticRegression(crate::LogisticRegression) "LogisticRegression" [LogisticRegression] classifier since V0_10;
    /// Decision tree classifier (Breiman, Friedman, Olshen and Stone, *Classification and Regression Trees*, 1984):
    /// each split tests `x[feature] <= threshold`, each leaf has a class. It is read or made from nodes, not grown
    /// here.
    DecisionTreeClassifier(crate::DecisionTreeClassifier) "DecisionTreeClassifier" [DecisionTree] classifier since V0_10;
    /// Decision tree regressor: as the classifier, each leaf has a value.
    DecisionTreeRegressor(crate::DecisionTreeRegressor) "DecisionTreeRegressor" [DecisionTree] regressor since V0_10;
    /// Trees that vote.
    RandomForestClassifier(crate::RandomForestClassifier) "RandomForestClassifier" [RandomForest] classifier since V0_10;
    /// Trees that are averaged.
    RandomForestRegressor(crate::RandomForestRegressor) "RandomForestRegressor" [RandomForest] regressor since V0_10;
    /// Clusters by nearest centre.
    KMeans(crate::KMeans) "KMeans" [KMeans] classifier since V0_10;
    /// Linear regressions selected by a gate.
    MixtureOfExperts(crate::MixtureOfExperts<crate::LinearRegression>) "MixtureOfExperts" [MixtureOfExperts] regressor since V0_15;
    /// Features with mean and deviation taken out.
    StandardScaler(crate::StandardScaler) "StandardScaler" [Custom] transformer since V0_10;
    /// Features mapped to a range.
    MinMaxScaler(crate::MinMaxScaler) "MinMaxScaler" [Custom] transformer since V0_10;
    /// Clusters by density.
    Dbscan(crate::Dbscan) "DBSCAN" [Custom] other since V0_10;
    /// Gaussian mixture models.
    GaussianMixture(crate::GaussianMixture) "GaussianMixture" [Custom] classifier since V0_10;
    /// Outliers by random cuts.
    IsolationForest(crate::IsolationForest) "IsolationForest" [Custom] outlier_detector since V0_10;
    /// Projection onto the directions of most variance.
    Pca(crate::Pca) "Pca" [Pca] transformer;
    /// Normal distributions of features in classes.
    NaiveBayes(crate::NaiveBayes) "NaiveBayes" [NaiveBayes] classifier;
    /// Classification by the majority of neighbours.
    KnnClassifier(crate::KnnClassifier) "KnnClassifier" [Knn] classifier;
    /// Regression by the mean of the neighbours' targets.
    KnnRegressor(crate::KnnRegressor) "KnnRegressor" [Knn] regressor;
    /// Classes by planes or support vectors.
    Svm(crate::Svm) "Svm" [Svm] classifier;
    /// Boosted trees for regression.
    GradientBoostingRegressor(crate::GradientBoostingRegressor) "GradientBoostingRegressor" [GradientBoosting] regressor;
    /// Boosted trees for classification.
    GradientBoostingClassifier(crate::GradientBoostingClassifier) "GradientBoostingClassifier" [GradientBoosting] classifier;
    /// Words after words.
    NgramLm(crate::NgramLm) "NgramLm" [NgramLm] language_model;
    /// TF-IDF weights of terms in documents.
    TfIdf(crate::TfIdf) "TfIdf" [TfIdf] vectorizer;
    /// Counts of terms in documents.
    CountVectorizer(crate::CountVectorizer) "CountVectorizer" [CountVectorizer] vectorizer;
    /// Dense layers.
    NeuralSequential(crate::NeuralSequential) "NeuralSequential" [NeuralSequential] transformer;
    /// Content-based recommendation: similar items.
    ContentRecommender(crate::ContentRecommender) "ContentRecommender" [ContentRecommender] other;
    /// Numbers in few bits.
    QuantizedBlock(crate::QuantizedBlock) "QuantizedBlock" [NeuralSequential] other since V0_10;
    /// Steps one after the other, in `f64`.
    Pipeline(Pipeline) "Pipeline" [Custom] other;
    /// A plain list of numbers.
    Numbers(crate::Numbers) "Numbers" [
        GradientBoosting Pca NaiveBayes Knn Svm NgramLm TfIdf CountVectorizer NeuralSequential NeuralCustom
        ContentRecommender Custom
    ] other since V0_10;
}

/// The model that the file names. Without a name the first of its type whose payload has exactly this length,
/// fitted ones before unfitted ones; for this the whole payload is read into memory first. In compatible reading, bytes that belong
/// to no field may follow the model that the type is named after.
///
/// Without the feature `unnamed`, a file without a name holds what its type is named after.
impl DecodePayload for AnyModel {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let found = input.model_type();
        let of_type = |known: &&Known| known.types.contains(&found);
        if let Some(name) = input.model_name()
            && let Some(known) = Self::KNOWN.iter().filter(of_type).find(|known| known.name == name)
        {
            return known.decode.ok_or_else(no_pipelines)?(input);
        }
        if cfg!(feature = "unnamed") {
            return decode_unnamed(input);
        }
        let first = Self::KNOWN.iter().filter(of_type).find_map(|known| known.decode);
        match first.filter(|_| found != ModelType::Custom) {
            Some(decode) => decode(input),
            None => {
                let what = "models of this type that their files do not name";
                Err(Error::from(ErrorKind::NotBuiltIn { what }).into())
            }
        }
    }
}

/// Whatever fits.
fn decode_unnamed(input: &mut PayloadReader<'_>) -> Result<AnyModel, apr_container::Error> {
    let found = input.model_type();
    let payload = input.rest()?;
    let of_type = || {
        let known = AnyModel::KNOWN.iter().zip(AnyModel::FROM_TENSORS);
        let of_type = known.filter(|(known, _)| known.types.contains(&found));
        of_type.filter_map(|(known, &from_tensors)| Some((known.decode?, from_tensors?)))
    };
    // What a container type is named after may be anything, also unfitted, and its error says most. The
    // others are short when they are unfitted, and fit much that is something else: they are taken only
    // if nothing worth storing fits, and never for what may be anyone's own type.
    let is_custom = found == ModelType::Custom;
    let is_long = payload.len() > SHORT;
    let rounds: &[bool] = if is_custom { &[false] } else { &[false, true] };
    let mut first_error = None;
    for &takes_unfitted in rounds {
        let mut is_first = !is_custom;
        for (decode, from_tensors) in of_type() {
            match input.decode_part(&payload, decode) {
                Ok(model) if is_first || is_long || is_worth_storing(&model, from_tensors) => {
                    return Ok(model);
                }
                Ok(model) if takes_unfitted && model.is_plausible() => return Ok(model),
                Err(error) if is_first => first_error = Some(error),
                _ => {}
            }
            is_first = false;
        }
    }
    let left_over = match first_error.as_ref().map(apr_container::Error::kind) {
        Some(&apr_container::ErrorKind::PayloadTrailing { count }) => count,
        _ => 0,
    };
    // Known readers ignore what follows a model.
    if input.strictness() == Strictness::Compat && left_over > 0 {
        let len = (payload.len() as u64).saturating_sub(left_over) as usize;
        let payload = payload.get(..len).unwrap_or_default();
        if let Some((decode, _)) = of_type().next() {
            return input.decode_part(payload, decode);
        }
    }
    Err(first_error.unwrap_or_else(|| Error::from(ErrorKind::UnknownModel).into()))
}

/// Whether the model is fitted and made of parts that its constructor accepts.
fn is_worth_storing(model: &AnyModel, from_tensors: fn(&Tensors) -> Result<AnyModel, Error>) -> bool {
    model.to_tensors().is_ok_and(|tensors| from_tensors(&tensors).is_ok())
}

impl AnyModel {
    /// Whether settings are such as people choose. A damaged model of another type that is read as one without weights
    /// has numbers out of the middle of something: the length of a list is a penalty of 1e-42.
    fn is_plausible(&self) -> bool {
        let is_plain = |value: f32| value == 0.0 || (value.is_normal() && value > 0.0);
        match self {
            Self::Ridge(model) => is_plain(model.alpha()),
            Self::Lasso(model) => is_plain(model.alpha()) && is_plain(model.tol()),
            Self::ElasticNet(model) => {
                let share = model.l1_ratio();
                is_plain(model.alpha()) && is_plain(model.tol()) && is_plain(share) && share <= 1.0
            }
            _ => true,
        }
    }

    /// Number of training samples in the model, which anyone with its file can read; `None` if it has none.
    ///
    /// Models of neighbours are their training data. Forests read from files of other implementations may have theirs
    /// beside the trees, and lose them when they are written here.
    ///
    /// ```
    /// use apr_models::{AnyModel, KnnRegressor, KnnWeights, Matrix, Vector};
    ///
    /// let x = Matrix::from_vec(3, 1, vec![1.0, 2.0, 3.0])?;
    /// let y = Vector::from_vec(vec![0.1, 0.2, 0.3]);
    /// let model = AnyModel::from(KnnRegressor::fit(x, y, 1, KnnWeights::Uniform)?);
    /// assert_eq!(model.stored_samples(), Some(3));
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    #[must_use]
    pub fn stored_samples(&self) -> Option<usize> {
        match self {
            Self::KnnClassifier(model) => Some(model.samples().n_rows()),
            Self::KnnRegressor(model) => Some(model.samples().n_rows()),
            Self::RandomForestClassifier(forest) => forest.stored_samples(),
            Self::RandomForestRegressor(forest) => forest.stored_samples(),
            Self::Pipeline(pipeline) => pipeline.stored_samples(),
            _ => None,
        }
    }

    /// Reads the model of a container.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`]: the payload is encrypted or damaged, or holds no model this crate knows.
    pub fn from_container(container: &Container<'_>) -> Result<Self, Error> {
        Ok(container.payload().plain()?.decode()?)
    }

    /// Reads the model of an `.apr` file in memory, for example from `include_bytes!`. One of version 2 holds the
    /// tensors of a model, quantized or not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`]; of version 2 also those of [`Tensors::from_apr2`] and of
    /// [`from_tensors`](Self::from_tensors).
    pub fn from_bytes(file: &[u8]) -> Result<Self, Error> {
        if v2::Magic::of(file).is_some() {
            return Self::from_tensors(&Tensors::from_apr2(file)?);
        }
        Ok(apr_container::load_from_bytes_with(file, Expect::AnyKnown, ReadOptions::STRICT)?)
    }

    /// Loads the model of an `.apr` file of either version.
    ///
    /// # Errors
    ///
    /// As [`from_bytes`](Self::from_bytes); [`ErrorKind::File`].
    #[cfg(feature = "std")]
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        match apr_container::load_with(path, Expect::AnyKnown, ReadOptions::STRICT) {
            Err(error) if matches!(error.kind(), apr_container::ErrorKind::Version2) => {
                Self::from_bytes(&durable_file::read(path, u64::MAX)?)
            }
            loaded => Ok(loaded?),
        }
    }

    /// Reads the model of a safetensors file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`], and all of [`from_tensors`](Self::from_tensors).
    pub fn from_safetensors(file: &[u8]) -> Result<Self, Error> {
        Self::from_tensors(&Tensors::from_safetensors(file)?)
    }
}
