"""From an estimator to its plan: a function for each class, and the classes that cannot be carried."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from . import _neighbours, _text, _trees
from ._parts import (
    ACCEPTS,
    Converter,
    Part,
    Place,
    Plan,
    Step,
    classes_head,
    dense,
    linear,
    reals,
    refuse,
    rows_head,
    share,
    table,
    width,
)

# Classes that are asked for most, with what to do instead.
_WAYS_OUT = {
    **dict.fromkeys(
        ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"),
        "export its best_estimator_",
    ),
    **dict.fromkeys(
        ("CalibratedClassifierCV",), "export the classifier it calibrates: labels, not its probabilities"
    ),
    **dict.fromkeys(("HashingVectorizer",), "use CountVectorizer or TfidfVectorizer"),
    **dict.fromkeys(
        ("ColumnTransformer", "FeatureUnion", "FunctionTransformer"),
        "compute the columns before, and export the rest",
    ),
    **dict.fromkeys(("TransformedTargetRegressor",), "export its regressor_, and transform what it predicts"),
    **dict.fromkeys(
        (
            "VotingClassifier",
            "VotingRegressor",
            "StackingClassifier",
            "StackingRegressor",
            "BaggingClassifier",
        )
        + ("BaggingRegressor", "OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier")
        + ("MultiOutputClassifier", "MultiOutputRegressor"),
        "export its estimators_ one by one",
    ),
    **dict.fromkeys(("BisectingKMeans", "MiniBatchKMeans"), "use KMeans"),
    **dict.fromkeys(("BayesianGaussianMixture",), "use GaussianMixture"),
    **dict.fromkeys(("LogisticRegressionCV",), "fit LogisticRegression with its C_"),
    **dict.fromkeys(("RidgeCV", "LassoCV", "ElasticNetCV"), "fit the estimator without CV with its alpha_"),
    **dict.fromkeys(("NuSVC",), "use SVC"),
    **dict.fromkeys(("OrdinalEncoder", "OneHotEncoder"), "encode before, and export the rest"),
}
_MAX_STEPS = 4096
# Before, estimators do not say what they accept.
_OLDEST = (1, 6)


def _regression(estimator: Any, place: Place) -> Part:
    """LinearRegression, Ridge, Lasso, ElasticNet."""
    flat = np.ndim(estimator.coef_) == 1
    weights = np.atleast_2d(reals(estimator, place, "coef_", estimator.coef_))
    bias = reals(estimator, place, "intercept_", estimator.intercept_)
    head = rows_head("prediction", flat=flat)
    return Part(width(estimator, place), len(weights), [linear(weights, bias)], head)


def _linear_classifier(estimator: Any, place: Place) -> Part:
    """LogisticRegression, LinearSVC."""
    weights = reals(estimator, place, "coef_", dense(estimator.coef_))
    bias = reals(estimator, place, "intercept_", estimator.intercept_)
    k = len(weights)
    shares = share("none")
    if type(estimator).__name__ == "LogisticRegression":
        if getattr(estimator, "multi_class", "auto") not in ("auto", "deprecated"):
            reason = "probabilities of another kind"
            refuse(estimator, place, reason, option="multi_class", way_out="fit without it")
        if k > 1 and estimator.solver == "liblinear":
            reason = "one classifier for each class"
            refuse(estimator, place, reason, option="solver", way_out="use another solver")
        shares = share("logistic", 1.0) if k == 1 else share("softmax")
    decide = "above_zero" if k == 1 else "largest"
    head = classes_head(estimator, place, decide, share=shares, decision="scores", n_scores=k)
    return Part(width(estimator, place), k, [linear(weights, bias)], head)


def _k_means(estimator: Any, place: Place) -> Part:
    centres = reals(estimator, place, "cluster_centers_", estimator.cluster_centers_)
    step = {"kind": "centres", "n_centres": len(centres), "centres": centres}
    head = {"kind": "clusters", "decide": "smallest"}
    return Part(width(estimator, place), len(centres), [step], head, transforms=True)


def _pca(estimator: Any, place: Place) -> Part:
    components = reals(estimator, place, "components_", estimator.components_)
    # In the type of the arrays, as scikit-learn computes it: with float32, the offset is rounded more than once.
    offset = np.asarray(estimator.mean_).reshape(1, -1) @ np.asarray(estimator.components_).T
    reals(estimator, place, "mean_", estimator.mean_)
    steps: list[Step] = [linear(components, -reals(estimator, place, "the offset", offset))]
    if estimator.whiten:
        deviations = np.sqrt(np.asarray(estimator.explained_variance_))
        # scikit-learn's least deviation is that of the type it was fitted with.
        least = np.finfo(deviations.dtype).eps
        divisor = reals(estimator, place, "explained_variance_", np.maximum(deviations, least))
        steps.append({"kind": "shift_divide", "shift": None, "divisor": divisor})
    return Part(width(estimator, place), len(components), steps, rows_head("transform"), transforms=True)


def _gaussian_bayes(estimator: Any, place: Place) -> Part:
    means = reals(estimator, place, "theta_", estimator.theta_)
    variances = reals(estimator, place, "var_", estimator.var_)
    if not (variances > 0).all():
        refuse(estimator, place, "a variance of 0", option="var_smoothing", way_out="raise it")
    with np.errstate(divide="ignore"):
        peak = np.log(estimator.class_prior_) - 0.5 * np.sum(np.log(2.0 * np.pi * variances), axis=1)
    step = _normals(reals(estimator, place, "the densities", peak, infinite=True), means, variances)
    head = classes_head(estimator, place, "largest", share=share("softmax"), n_scores=len(means))
    return Part(width(estimator, place), len(means), [step], head)


def _normals(peak: Any, means: Any, variances: Any) -> Step:
    spread = {"kind": "variances", "values": variances}
    return {"kind": "normals", "peak": peak, "means": means, "spread": spread}


def _gaussian_mixture(estimator: Any, place: Place) -> Part:
    log_det = importlib.import_module("sklearn.mixture._gaussian_mixture")._compute_log_det_cholesky
    means = reals(estimator, place, "means_", estimator.means_)
    k, n_features = means.shape
    roots = reals(estimator, place, "precisions_cholesky_", estimator.precisions_cholesky_)
    spread_type = estimator.covariance_type
    with np.errstate(divide="ignore"):
        peak = np.log(estimator.weights_) + log_det(roots, spread_type, n_features)
    peak = reals(
        estimator, place, "the densities", peak - 0.5 * n_features * np.log(2.0 * np.pi), infinite=True
    )
    if spread_type in ("full", "tied"):
        factors = roots.reshape(-1, n_features, n_features)
        spread = {"kind": "factors", "n_factors": len(factors), "values": factors}
        step: Step = {"kind": "normals", "peak": peak, "means": means, "spread": spread}
    else:
        roots = roots if spread_type == "diag" else roots[:, None]
        variances = np.broadcast_to(1.0 / roots**2, (k, n_features)).copy()
        step = _normals(peak, means, reals(estimator, place, "precisions_cholesky_", variances))
    head = {"kind": "clusters", "decide": "largest"}
    return Part(width(estimator, place), k, [step], head)


def _kernel(estimator: Any, place: Place) -> dict[str, Any]:
    gamma, coef0 = float(estimator._gamma), float(estimator.coef0)
    if estimator.kernel == "rbf":
        return {"kind": "rbf", "gamma": gamma}
    if estimator.kernel == "poly":
        return {"kind": "polynomial", "gamma": gamma, "coef0": coef0, "degree": int(estimator.degree)}
    if estimator.kernel == "sigmoid":
        return {"kind": "sigmoid", "gamma": gamma, "coef0": coef0}
    reason = "similarities are computed outside the model"
    refuse(estimator, place, reason, option="kernel", way_out="use 'linear', 'rbf', 'poly' or 'sigmoid'")


def _svc(estimator: Any, place: Place) -> Part:
    """Pairs of classes, with the signs of libsvm: scikit-learn turns those of two classes around."""
    if estimator.probability not in (False, "deprecated"):
        reason = "probabilities come from a second model"
        refuse(estimator, place, reason, option="probability", way_out="fit without; decisions are carried")
    k = len(estimator.classes_)
    ties = k > 2 and estimator.break_ties
    if estimator.break_ties and estimator.decision_function_shape == "ovo":
        reason = "scikit-learn does not predict with decision_function_shape='ovo'"
        refuse(estimator, place, reason, option="break_ties", way_out="use 'ovr'")
    intercepts = reals(estimator, place, "intercept_", estimator._intercept_)
    if estimator.kernel == "linear":
        weights = reals(estimator, place, "coef_", dense(estimator.coef_))
        step = linear(-weights if k == 2 else weights, intercepts)
    else:
        step = {
            "kind": "kernel",
            "kernel": _kernel(estimator, place),
            "n_support": np.asarray(estimator._n_support, dtype=np.uint64),
            "vectors": table(estimator, place, "support_vectors_", estimator.support_vectors_),
            "dual": reals(estimator, place, "dual_coef_", dense(estimator._dual_coef_)),
            "intercepts": intercepts,
        }
    each_class = k > 2 and estimator.decision_function_shape == "ovr"
    head = classes_head(
        estimator,
        place,
        "pairs_and_confidence" if ties else "pairs",
        share=share("none"),
        decision="one_a_class" if each_class else "one_a_pair",
    )
    return Part(width(estimator, place), k * (k - 1) // 2, [step], head)


def _layers(estimator: Any, place: Place) -> list[Step]:
    steps: list[Step] = []
    last = len(estimator.coefs_) - 1
    for idx, (weights, bias) in enumerate(zip(estimator.coefs_, estimator.intercepts_)):
        weights = reals(estimator, place, f"coefs_[{idx}]", np.asarray(weights).T)
        steps.append(linear(weights, reals(estimator, place, f"intercepts_[{idx}]", bias)))
        if idx < last and estimator.activation != "identity":
            steps.append({"kind": "activation", "function": estimator.activation})
    return steps


def _mlp_classifier(estimator: Any, place: Place) -> Part:
    if estimator._label_binarizer.y_type_.startswith("multilabel"):
        reason = "several labels a row"
        refuse(estimator, place, reason, option="classes_", way_out="fit one classifier for each")
    outputs = int(estimator.n_outputs_)
    shares = share("logistic", 1.0) if outputs == 1 else share("softmax")
    decide = "above_zero" if outputs == 1 else "largest"
    head = classes_head(estimator, place, decide, share=shares, n_scores=outputs)
    return Part(width(estimator, place), outputs, _layers(estimator, place), head)


def _mlp_regressor(estimator: Any, place: Place) -> Part:
    outputs = int(estimator.n_outputs_)
    link = "exp" if estimator.out_activation_ == "exp" else "none"
    head = rows_head("prediction", flat=outputs == 1, link=link)
    return Part(width(estimator, place), outputs, _layers(estimator, place), head)


def _standard_scaler(estimator: Any, place: Place) -> Part:
    n_features = width(estimator, place)
    shift = reals(estimator, place, "mean_", estimator.mean_) if estimator.with_mean else None
    divisor = reals(estimator, place, "scale_", estimator.scale_) if estimator.with_std else None
    step: Step = {"kind": "shift_divide", "shift": shift, "divisor": divisor}
    if place.sparse:
        if shift is not None:
            refuse(
                estimator,
                place,
                "rows of texts stay sparse",
                option="with_mean",
                way_out="use with_mean=False",
            )
        # scikit-learn multiplies sparse rows by the reciprocal, and divides others.
        scale = np.ones(n_features) if divisor is None else 1.0 / divisor
        step = {"kind": "scale_add", "scale": scale, "add": np.zeros(n_features), "clip": None}
    head = rows_head("transform")
    return Part(n_features, n_features, [step], head, "missing", transforms=True, sparse=place.sparse)


def _min_max_scaler(estimator: Any, place: Place) -> Part:
    n_features = width(estimator, place)
    low, high = (float(bound) for bound in estimator.feature_range)
    step: Step = {
        "kind": "scale_add",
        "scale": reals(estimator, place, "scale_", estimator.scale_),
        "add": reals(estimator, place, "min_", estimator.min_),
        "clip": (low, high) if estimator.clip else None,
    }
    return Part(n_features, n_features, [step], rows_head("transform"), "missing", transforms=True)


def _passes(member: Any) -> bool:
    """Whether a step of a pipeline leaves the rows as they are."""
    return member is None or (isinstance(member, str) and member == "passthrough")


def members(estimator: Any) -> list[Any]:
    """The estimators that rows pass, one after another; nested pipelines are flattened."""
    if type(estimator).__name__ != "Pipeline":
        return [estimator]
    return [inner for _, member in estimator.steps if not _passes(member) for inner in members(member)]


def _pipeline(estimator: Any, place: Place) -> Part:
    """The steps of all its members, one after another. The last one's head answers."""
    parts: list[Part] = []
    stages = list(estimator.steps)
    sparse, last_idx = place.sparse, len(stages) - 1
    for idx, (_, member) in enumerate(stages):
        if _passes(member):
            continue
        inner = place.inner(idx, sparse)
        part = convert(member, inner)
        if idx < last_idx and not part.transforms:
            refuse(member, inner, "rows of it that others could follow are not carried")
        if parts and part.n_features is None:
            refuse(member, inner, "it takes texts, and numbers reach it", way_out="put it first")
        if parts and part.n_features != parts[-1].n_outputs:
            reason = f"takes {part.n_features} features, {parts[-1].n_outputs} reach it"
            refuse(member, inner, reason, way_out="fit the pipeline as a whole")
        parts.append(part)
        sparse = part.sparse
    if not parts:
        refuse(estimator, place, "nothing in it changes a row", option="steps")
    first, last = parts[0], parts[-1]
    steps = [step for part in parts for step in part.steps]
    accepts = min((part.accepts for part in parts), key=ACCEPTS.index)
    # A pipeline that ends in "passthrough" has no predict, whatever stands before it.
    head = rows_head("transform") if _passes(stages[-1][1]) else last.head
    return Part(
        first.n_features, last.n_outputs, steps, head, accepts, first.input, last.transforms, last.sparse
    )


CONVERTERS: dict[tuple[str, str], Converter] = {
    **{("linear_model", name): _regression for name in ("LinearRegression", "Ridge", "Lasso", "ElasticNet")},
    ("linear_model", "LogisticRegression"): _linear_classifier,
    ("svm", "LinearSVC"): _linear_classifier,
    ("svm", "SVC"): _svc,
    ("cluster", "KMeans"): _k_means,
    ("decomposition", "PCA"): _pca,
    ("naive_bayes", "GaussianNB"): _gaussian_bayes,
    ("mixture", "GaussianMixture"): _gaussian_mixture,
    ("neural_network", "MLPClassifier"): _mlp_classifier,
    ("neural_network", "MLPRegressor"): _mlp_regressor,
    ("preprocessing", "StandardScaler"): _standard_scaler,
    ("preprocessing", "MinMaxScaler"): _min_max_scaler,
    ("pipeline", "Pipeline"): _pipeline,
    **_trees.CONVERTERS,
    **_neighbours.CONVERTERS,
    **_text.CONVERTERS,
}


def convert(estimator: Any, place: Place) -> Part:
    """The part of any estimator, by its exact class: a subclass may compute something else."""
    kind = type(estimator)
    package, _, rest = kind.__module__.partition(".")
    function = CONVERTERS.get((rest.partition(".")[0], kind.__name__)) if package == "sklearn" else None
    if function is None:
        reason = "not among the estimators that can be exported"
        known = [base.__name__ for base in kind.__mro__[1:] if _exported(base)]
        if known:
            reason += f": it is a subclass of {known[0]} and may compute something else"
        refuse(estimator, place, reason, way_out=_WAYS_OUT.get(kind.__name__))
    if function is not _pipeline:
        _check_fitted(estimator, place)
    return function(estimator, place)


def _exported(kind: type) -> bool:
    package, _, rest = kind.__module__.partition(".")
    return package == "sklearn" and (rest.partition(".")[0], kind.__name__) in CONVERTERS


def _check_fitted(estimator: Any, place: Place) -> None:
    if hasattr(estimator, "get_stop_words"):
        # A vectorizer with a vocabulary of its own counts without having been fitted.
        fitted = hasattr(estimator, "vocabulary_")
    else:
        fitted = True
        try:
            importlib.import_module("sklearn.utils.validation").check_is_fitted(estimator)
        except importlib.import_module("sklearn.exceptions").NotFittedError:
            fitted = False
    if not fitted:
        refuse(estimator, place, "not fitted", way_out="call fit first")


def _name(estimator: Any) -> str:
    """The classes of an estimator, with those of its steps."""
    if type(estimator).__name__ != "Pipeline":
        return type(estimator).__name__ if not isinstance(estimator, str) else estimator
    return f"Pipeline({', '.join(_name(step) for _, step in estimator.steps if step is not None)})"


def _version(estimator: Any) -> str:
    """The release of scikit-learn that the estimator is of; empty if it is of none."""
    if type(estimator).__module__.partition(".")[0] != "sklearn":
        return ""
    version = str(importlib.import_module("sklearn").__version__)
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        refuse(estimator, Place(), f"scikit-learn {version} is installed, {needed} or newer is needed")
    return version


def plan(estimator: Any) -> Plan:
    """The estimator in plain values and arrays: what a file of it holds.

    Args:
        estimator: a fitted estimator of scikit-learn, or a pipeline of them.

    Raises:
        NotExportable: if its class, or an option of it, cannot be carried.
    """
    version = _version(estimator)
    part = convert(estimator, Place())
    if len(part.steps) > _MAX_STEPS:
        refuse(estimator, Place(), f"more than {_MAX_STEPS} steps")
    source = part.input or {"kind": "numbers", "n_features": part.n_features, "accepts": part.accepts}
    names = getattr(estimator, "feature_names_in_", None)
    metadata = {
        "feature_names": None if names is None else [str(name) for name in names],
        "sklearn": {"version": version, "estimator": _name(estimator)},
    }
    return {"input": source, "steps": part.steps, "head": part.head, "metadata": metadata}
