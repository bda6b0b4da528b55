//! Estimators of scikit-learn and what lies in them: classes, constructors of compiled code, functions as values.
//!
//! From dumps of all estimators of scikit-learn 1.9 with the settings that users make; private modules have had these names since 0.22.

use super::Kind::{Plain, Scalar, Sibling};
use super::{ATTRIBUTES, Arguments, Group, Use, group};

/// Distances, without those that call a function of Python.
const DISTANCES: &str = "BrayCurtisDistance BrayCurtisDistance32 BrayCurtisDistance64 CanberraDistance \
    CanberraDistance32 CanberraDistance64 ChebyshevDistance ChebyshevDistance32 ChebyshevDistance64 DiceDistance \
    DiceDistance32 DiceDistance64 EuclideanDistance EuclideanDistance32 EuclideanDistance64 HammingDistance \
    HammingDistance32 HammingDistance64 HaversineDistance HaversineDistance32 HaversineDistance64 JaccardDistance \
    JaccardDistance32 JaccardDistance64 MahalanobisDistance MahalanobisDistance32 MahalanobisDistance64 \
    ManhattanDistance ManhattanDistance32 ManhattanDistance64 MinkowskiDistance MinkowskiDistance32 MinkowskiDistance64 \
    RogersTanimotoDistance RogersTanimotoDistance32 RogersTanimotoDistance64 RussellRaoDistance RussellRaoDistance32 \
    RussellRaoDistance64 SEuclideanDistance SEuclideanDistance32 SEuclideanDistance64 SokalMichenerDistance \
    SokalMichenerDistance32 SokalMichenerDistance64 SokalSneathDistance SokalSneathDistance32 SokalSneathDistance64";

/// Makes an object of a class of its own module.
const NEW: Use = Use::Function(Arguments::Object(&[Sibling], 1));

/// Compiled losses: a number, or nothing.
const LOSS: Use = Use::Function(Arguments::Kinds(&[Scalar], 0));

const SCORE: Use = Use::Value(&[
    "_Scorer._score_func",
    "_CurveScorer._score_func",
    "_PredictScorer._score_func",
    "_ProbaScorer._score_func",
    "_ThresholdScorer._score_func",
]);

const SELECTION: Use = Use::Value(&[
    "SelectKBest.score_func",
    "SelectPercentile.score_func",
    "SelectFpr.score_func",
    "SelectFdr.score_func",
    "SelectFwe.score_func",
    "GenericUnivariateSelect.score_func",
]);

/// Public methods of estimators: no key of a state.
pub(crate) const METHODS: &str = "aic apply bic build_analyzer build_preprocessor build_tokenizer correct_covariance \
    cost_complexity_pruning_path dbscan_clustering decision_function decision_path decode densify error_norm fit \
    fit_predict fit_transform get_covariance get_depth get_feature_names_out get_indices get_metadata_routing \
    get_n_leaves get_params get_precision get_shape get_stop_words get_submatrix get_support gibbs inverse_transform \
    kneighbors kneighbors_graph latent_mean_and_variance log_marginal_likelihood mahalanobis partial_fit \
    predict predict_joint_log_proba predict_log_proba predict_proba radius_neighbors radius_neighbors_graph \
    reconstruction_error restrict reweight_covariance sample sample_y score score_samples set_callbacks set_output \
    set_params sparsify staged_decision_function staged_predict staged_predict_proba staged_score transform";

pub(super) const GROUPS: &[Group] = &[
    group(
        "sklearn._loss._loss",
        "CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss CyHalfPoissonLoss \
         CyHalfSquaredError CyHalfTweedieLoss CyHalfTweedieLossIdentity CyHuberLoss CyPinballLoss",
        LOSS,
    ),
    group(
        "sklearn.linear_model._sgd_fast",
        "EpsilonInsensitive Hinge Huber Log ModifiedHuber SquaredEpsilonInsensitive SquaredHinge SquaredLoss",
        LOSS,
    ),
    group("sklearn.tree._tree", "Tree", Use::Function(Arguments::Object(&[Scalar, Plain, Scalar], 3))),
    group("sklearn.metrics._dist_metrics", "newObj", NEW),
    group("sklearn.metrics._dist_metrics", DISTANCES, Use::Argument),
    group("sklearn.neighbors._ball_tree", "newObj", NEW),
    group("sklearn.neighbors._ball_tree", "BallTree BallTree32 BallTree64", Use::Argument),
    group("sklearn.neighbors._kd_tree", "newObj", NEW),
    group("sklearn.neighbors._kd_tree", "KDTree KDTree32 KDTree64", Use::Argument),
    // Its attributes are named as methods are.
    group("sklearn.utils._metadata_requests", "MetadataRequest", ATTRIBUTES),
    group("sklearn.cluster._bisect_k_means", "_BisectingTree", ATTRIBUTES),
    group("sklearn.utils.validation", "check_array", Use::Value(&["partial.func"])),
    group(
        "sklearn.cluster._kmeans",
        "_kmeans_single_lloyd _kmeans_single_elkan",
        Use::Value(&["BisectingKMeans._kmeans_single"]),
    ),
    group("sklearn.feature_selection._mutual_info", "mutual_info_classif mutual_info_regression", SELECTION),
    group(
        "sklearn.feature_selection._univariate_selection",
        "chi2 f_classif f_oneway f_regression r_regression",
        SELECTION,
    ),
    group(
        "sklearn.metrics._classification",
        "accuracy_score balanced_accuracy_score brier_score_loss cohen_kappa_score d2_brier_score d2_log_loss_score \
         f1_score fbeta_score hamming_loss hinge_loss jaccard_score log_loss matthews_corrcoef precision_score \
         recall_score zero_one_loss",
        SCORE,
    ),
    group(
        "sklearn.metrics._ranking",
        "average_precision_score coverage_error dcg_score label_ranking_average_precision_score label_ranking_loss \
         ndcg_score roc_auc_score top_k_accuracy_score",
        SCORE,
    ),
    group(
        "sklearn.metrics._regression",
        "d2_absolute_error_score d2_pinball_score d2_tweedie_score explained_variance_score max_error \
         mean_absolute_error mean_absolute_percentage_error mean_gamma_deviance mean_pinball_loss mean_poisson_deviance \
         mean_squared_error mean_squared_log_error mean_tweedie_deviance median_absolute_error r2_score \
         root_mean_squared_error root_mean_squared_log_error",
        SCORE,
    ),
    group("sklearn.metrics._scorer", "negative_likelihood_ratio positive_likelihood_ratio", SCORE),
    group(
        "sklearn.metrics.cluster._supervised",
        "adjusted_mutual_info_score adjusted_rand_score completeness_score fowlkes_mallows_score homogeneity_score \
         mutual_info_score normalized_mutual_info_score rand_score v_measure_score",
        SCORE,
    ),
    group(
        "sklearn.metrics.cluster._unsupervised",
        "calinski_harabasz_score davies_bouldin_score silhouette_score",
        SCORE,
    ),
];

/// Whether it is a class whose objects are created without constructor, with a dict of attributes.
pub(super) fn is_class(module: &str, name: &str) -> bool {
    classes(module).is_some_and(|names| super::has(names, name))
}

pub(super) fn has_module(module: &str) -> bool {
    classes(module).is_some()
}

fn classes(module: &str) -> Option<&'static str> {
    let found = CLASSES.binary_search_by(|(listed, _)| (*listed).cmp(module));
    found.ok().and_then(|idx| CLASSES.get(idx)).map(|(_, names)| *names)
}

/// Modules, sorted, and their classes.
const CLASSES: &[(&str, &str)] = &[
    ("sklearn._loss.link", "HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit"),
    (
        "sklearn._loss.loss",
        "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss \
        HalfPoissonLoss HalfSquaredError HalfTweedieLoss HalfTweedieLossIdentity HuberLoss \
        PinballLoss",
    ),
    ("sklearn.calibration", "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration"),
    ("sklearn.cluster._affinity_propagation", "AffinityPropagation"),
    ("sklearn.cluster._agglomerative", "AgglomerativeClustering FeatureAgglomeration"),
    ("sklearn.cluster._bicluster", "SpectralBiclustering SpectralCoclustering"),
    ("sklearn.cluster._birch", "Birch _CFNode _CFSubcluster"),
    ("sklearn.cluster._bisect_k_means", "BisectingKMeans"),
    ("sklearn.cluster._dbscan", "DBSCAN"),
    ("sklearn.cluster._hdbscan.hdbscan", "HDBSCAN"),
    ("sklearn.cluster._kmeans", "KMeans MiniBatchKMeans"),
    ("sklearn.cluster._mean_shift", "MeanShift"),
    ("sklearn.cluster._optics", "OPTICS"),
    ("sklearn.cluster._spectral", "SpectralClustering"),
    ("sklearn.compose._column_transformer", "ColumnTransformer make_column_selector"),
    ("sklearn.compose._target", "TransformedTargetRegressor"),
    ("sklearn.covariance._elliptic_envelope", "EllipticEnvelope"),
    ("sklearn.covariance._empirical_covariance", "EmpiricalCovariance"),
    ("sklearn.covariance._graph_lasso", "GraphicalLasso GraphicalLassoCV"),
    ("sklearn.covariance._robust_covariance", "MinCovDet"),
    ("sklearn.covariance._shrunk_covariance", "LedoitWolf OAS ShrunkCovariance"),
    ("sklearn.cross_decomposition._pls", "CCA PLSCanonical PLSRegression PLSSVD"),
    ("sklearn.decomposition._dict_learning", "DictionaryLearning MiniBatchDictionaryLearning SparseCoder"),
    ("sklearn.decomposition._factor_analysis", "FactorAnalysis"),
    ("sklearn.decomposition._fastica", "FastICA"),
    ("sklearn.decomposition._incremental_pca", "IncrementalPCA"),
    ("sklearn.decomposition._kernel_pca", "KernelPCA"),
    ("sklearn.decomposition._lda", "LatentDirichletAllocation"),
    ("sklearn.decomposition._nmf", "MiniBatchNMF NMF"),
    ("sklearn.decomposition._pca", "PCA"),
    ("sklearn.decomposition._sparse_pca", "MiniBatchSparsePCA SparsePCA"),
    ("sklearn.decomposition._truncated_svd", "TruncatedSVD"),
    ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis"),
    ("sklearn.dummy", "DummyClassifier DummyRegressor"),
    ("sklearn.ensemble._bagging", "BaggingClassifier BaggingRegressor"),
    (
        "sklearn.ensemble._forest",
        "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier RandomForestRegressor \
        RandomTreesEmbedding",
    ),
    ("sklearn.ensemble._gb", "GradientBoostingClassifier GradientBoostingRegressor"),
    ("sklearn.ensemble._hist_gradient_boosting.binning", "_BinMapper"),
    (
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting",
        "HistGradientBoostingClassifier HistGradientBoostingRegressor",
    ),
    ("sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor"),
    ("sklearn.ensemble._iforest", "IsolationForest"),
    ("sklearn.ensemble._stacking", "StackingClassifier StackingRegressor"),
    ("sklearn.ensemble._voting", "VotingClassifier VotingRegressor"),
    ("sklearn.ensemble._weight_boosting", "AdaBoostClassifier AdaBoostRegressor"),
    ("sklearn.feature_extraction._dict_vectorizer", "DictVectorizer"),
    ("sklearn.feature_extraction._hash", "FeatureHasher"),
    ("sklearn.feature_extraction.image", "PatchExtractor"),
    ("sklearn.feature_extraction.text", "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer"),
    ("sklearn.feature_selection._from_model", "SelectFromModel"),
    ("sklearn.feature_selection._rfe", "RFE RFECV"),
    ("sklearn.feature_selection._sequential", "SequentialFeatureSelector"),
    (
        "sklearn.feature_selection._univariate_selection",
        "GenericUnivariateSelect SelectFdr SelectFpr SelectFwe SelectKBest SelectPercentile",
    ),
    ("sklearn.feature_selection._variance_threshold", "VarianceThreshold"),
    ("sklearn.frozen._frozen", "FrozenEstimator"),
    ("sklearn.gaussian_process._gpc", "GaussianProcessClassifier _BinaryGaussianProcessClassifierLaplace"),
    ("sklearn.gaussian_process._gpr", "GaussianProcessRegressor"),
    (
        "sklearn.gaussian_process.kernels",
        "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern \
        PairwiseKernel Product RBF RationalQuadratic Sum WhiteKernel",
    ),
    ("sklearn.impute._base", "MissingIndicator SimpleImputer"),
    ("sklearn.impute._knn", "KNNImputer"),
    ("sklearn.isotonic", "IsotonicRegression"),
    (
        "sklearn.kernel_approximation",
        "AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler SkewedChi2Sampler",
    ),
    ("sklearn.kernel_ridge", "KernelRidge"),
    ("sklearn.linear_model._base", "LinearRegression"),
    ("sklearn.linear_model._bayes", "ARDRegression BayesianRidge"),
    (
        "sklearn.linear_model._coordinate_descent",
        "ElasticNet ElasticNetCV Lasso LassoCV MultiTaskElasticNet MultiTaskElasticNetCV \
        MultiTaskLasso MultiTaskLassoCV",
    ),
    ("sklearn.linear_model._glm.glm", "GammaRegressor PoissonRegressor TweedieRegressor"),
    ("sklearn.linear_model._huber", "HuberRegressor"),
    ("sklearn.linear_model._least_angle", "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC"),
    ("sklearn.linear_model._logistic", "LogisticRegression LogisticRegressionCV"),
    ("sklearn.linear_model._omp", "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV"),
    ("sklearn.linear_model._passive_aggressive", "PassiveAggressiveClassifier PassiveAggressiveRegressor"),
    ("sklearn.linear_model._perceptron", "Perceptron"),
    ("sklearn.linear_model._quantile", "QuantileRegressor"),
    ("sklearn.linear_model._ransac", "RANSACRegressor"),
    ("sklearn.linear_model._ridge", "Ridge RidgeCV RidgeClassifier RidgeClassifierCV"),
    ("sklearn.linear_model._stochastic_gradient", "SGDClassifier SGDOneClassSVM SGDRegressor"),
    ("sklearn.linear_model._theil_sen", "TheilSenRegressor"),
    ("sklearn.manifold._classical_mds", "ClassicalMDS"),
    ("sklearn.manifold._isomap", "Isomap"),
    ("sklearn.manifold._locally_linear", "LocallyLinearEmbedding"),
    ("sklearn.manifold._mds", "MDS"),
    ("sklearn.manifold._spectral_embedding", "SpectralEmbedding"),
    ("sklearn.manifold._t_sne", "TSNE"),
    (
        "sklearn.metrics._scorer",
        "_CurveScorer _MultimetricScorer _PassthroughScorer _PredictScorer _ProbaScorer _Scorer \
        _ThresholdScorer",
    ),
    ("sklearn.mixture._bayesian_mixture", "BayesianGaussianMixture"),
    ("sklearn.mixture._gaussian_mixture", "GaussianMixture"),
    (
        "sklearn.model_selection._classification_threshold",
        "FixedThresholdClassifier TunedThresholdClassifierCV",
    ),
    ("sklearn.model_selection._search", "GridSearchCV RandomizedSearchCV"),
    ("sklearn.model_selection._search_successive_halving", "HalvingGridSearchCV HalvingRandomSearchCV"),
    (
        "sklearn.model_selection._split",
        "GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut \
        PredefinedSplit RepeatedKFold RepeatedStratifiedKFold ShuffleSplit StratifiedGroupKFold \
        StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit",
    ),
    ("sklearn.multiclass", "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier _ConstantPredictor"),
    ("sklearn.multioutput", "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain"),
    ("sklearn.naive_bayes", "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB"),
    ("sklearn.neighbors._classification", "KNeighborsClassifier RadiusNeighborsClassifier"),
    ("sklearn.neighbors._graph", "KNeighborsTransformer RadiusNeighborsTransformer"),
    ("sklearn.neighbors._kde", "KernelDensity"),
    ("sklearn.neighbors._lof", "LocalOutlierFactor"),
    ("sklearn.neighbors._nca", "NeighborhoodComponentsAnalysis"),
    ("sklearn.neighbors._nearest_centroid", "NearestCentroid"),
    ("sklearn.neighbors._regression", "KNeighborsRegressor RadiusNeighborsRegressor"),
    ("sklearn.neighbors._unsupervised", "NearestNeighbors"),
    ("sklearn.neural_network._multilayer_perceptron", "MLPClassifier MLPRegressor"),
    ("sklearn.neural_network._rbm", "BernoulliRBM"),
    ("sklearn.neural_network._stochastic_optimizers", "AdamOptimizer SGDOptimizer"),
    ("sklearn.pipeline", "FeatureUnion Pipeline"),
    (
        "sklearn.preprocessing._data",
        "Binarizer KernelCenterer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer \
        QuantileTransformer RobustScaler StandardScaler",
    ),
    ("sklearn.preprocessing._discretization", "KBinsDiscretizer"),
    ("sklearn.preprocessing._encoders", "OneHotEncoder OrdinalEncoder"),
    ("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    ("sklearn.preprocessing._label", "LabelBinarizer LabelEncoder MultiLabelBinarizer"),
    ("sklearn.preprocessing._polynomial", "PolynomialFeatures SplineTransformer"),
    ("sklearn.preprocessing._target_encoder", "TargetEncoder"),
    ("sklearn.random_projection", "GaussianRandomProjection SparseRandomProjection"),
    ("sklearn.semi_supervised._label_propagation", "LabelPropagation LabelSpreading"),
    ("sklearn.semi_supervised._self_training", "SelfTrainingClassifier"),
    ("sklearn.svm._classes", "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR"),
    (
        "sklearn.tree._classes",
        "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
    ),
    ("sklearn.utils._bunch", "Bunch"),
    ("sklearn.utils._metadata_requests", "MethodMetadataRequest"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_sorted() {
        assert!(CLASSES.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(CLASSES.iter().all(|(_, names)| names.split(' ').all(|name| !name.is_empty())));
    }
}
