"""Nearest neighbours: the samples, and the tree that scikit-learn searches them with."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._parts import (
    Converter,
    Part,
    Place,
    Step,
    classes_head,
    dense,
    reals,
    refuse,
    rows_head,
    share,
    table,
    width,
)

_METRICS = {
    "euclidean": "euclidean",
    "l2": "euclidean",
    "manhattan": "manhattan",
    "cityblock": "manhattan",
    "l1": "manhattan",
    "chebyshev": "chebyshev",
    "cosine": "cosine",
}


def _metric(estimator: Any, place: Place) -> dict[str, Any]:
    if not isinstance(estimator.metric, str):
        reason = "distances are computed by Python code"
        refuse(estimator, place, reason, option="metric", way_out="use a metric by name")
    used = dict(estimator.effective_metric_params_)
    power = used.pop("p", None)
    if any(value is not None for value in used.values()):
        refuse(
            estimator,
            place,
            "weighted distances",
            option="metric_params",
            way_out="scale the features before",
        )
    name = estimator.effective_metric_
    if name == "minkowski":
        if power is None or not 1 <= power < np.inf:
            refuse(estimator, place, "a power below 1", option="p", value=power)
        return {"kind": "minkowski", "p": float(power)}
    if name not in _METRICS:
        known = ", ".join(sorted({*_METRICS.values(), "minkowski"}))
        refuse(estimator, place, f"distances other than {known}", option="metric")
    return {"kind": _METRICS[name]}


def _search(estimator: Any, place: Place, metric: dict[str, Any]) -> dict[str, Any]:
    """The permutation that the kd-tree was built with: its nodes follow from it, and so does the order of the search."""
    if estimator._fit_method != "kd_tree":
        return {"kind": "in_order"}
    if metric["kind"] == "cosine" or hasattr(estimator._fit_X, "toarray"):
        refuse(estimator, place, "a kd-tree that scikit-learn does not make", option="algorithm")
    leaf_size = int(estimator._tree.__getstate__()[4])
    order = np.asarray(estimator._tree.get_arrays()[1], dtype=np.uint32)
    return {"kind": "kd_tree", "leaf_size": leaf_size, "order": order}


def _samples(estimator: Any, place: Place, metric: dict[str, Any]) -> dict[str, Any]:
    """The known samples as the step takes them: of length 1 for the cosine, dense for what is no sum of products."""
    samples = estimator._fit_X
    if metric["kind"] == "cosine":
        samples = _of_length_one(samples)
    elif metric["kind"] != "euclidean":
        samples = dense(samples)
    return table(estimator, place, "the samples", samples)


def _of_length_one(samples: Any) -> Any:
    """Rows divided by their length, as scikit-learn does it: rows of zeros as they are, and dense ones shorter than 10 epsilon."""
    if not hasattr(samples, "tocsr"):
        rows = np.asarray(samples, dtype=np.float64)
        lengths = np.sqrt((rows * rows).sum(1))
        return rows / np.where(lengths < 10 * np.finfo(np.float64).eps, 1.0, lengths)[:, None]
    rows = samples.tocsr().astype(np.float64)
    squares = np.asarray(rows.multiply(rows).sum(1)).ravel()
    lengths = np.sqrt(np.where(squares == 0, 1.0, squares))
    rows.data = rows.data / np.repeat(lengths, np.diff(rows.indptr))
    return rows


def _step(estimator: Any, place: Place, answer: dict[str, Any]) -> Step:
    weights = estimator.weights if estimator.weights is not None else "uniform"
    if not isinstance(weights, str):
        reason = "weights are computed by Python code"
        refuse(estimator, place, reason, option="weights", way_out="use 'uniform' or 'distance'")
    count = int(estimator.n_neighbors)
    if count > estimator.n_samples_fit_:
        reason = f"more neighbours than the {estimator.n_samples_fit_} samples"
        refuse(estimator, place, reason, option="n_neighbors", way_out="lower it")
    metric = _metric(estimator, place)
    return {
        "kind": "neighbours",
        "k": count,
        "metric": metric,
        "weights": "uniform" if weights == "uniform" else "by_distance",
        "samples": _samples(estimator, place, metric),
        "search": _search(estimator, place, metric),
        "answer": answer,
    }


def classifier(estimator: Any, place: Place) -> Part:
    """KNeighborsClassifier."""
    if estimator.outputs_2d_:
        refuse(
            estimator,
            place,
            "several labels a row",
            option="outputs_2d_",
            way_out="fit one classifier for each",
        )
    n_classes = len(estimator.classes_)
    answer = {
        "kind": "classes",
        "n_classes": n_classes,
        "class_of": np.asarray(estimator._y, dtype=np.uint32).ravel(),
    }
    step = _step(estimator, place, answer)
    head = classes_head(estimator, place, "largest", share=share("share_of_sum"), n_scores=n_classes)
    return Part(width(estimator, place), n_classes, [step], head)


def regressor(estimator: Any, place: Place) -> Part:
    """KNeighborsRegressor."""
    targets = reals(estimator, place, "the targets", dense(estimator._y))
    flat = targets.ndim == 1
    targets = targets.reshape(len(targets), -1)
    answer = {"kind": "values", "n_outputs": targets.shape[1], "targets": targets}
    step = _step(estimator, place, answer)
    return Part(width(estimator, place), targets.shape[1], [step], rows_head("prediction", flat=flat))


CONVERTERS: dict[tuple[str, str], Converter] = {
    ("neighbors", "KNeighborsClassifier"): classifier,
    ("neighbors", "KNeighborsRegressor"): regressor,
}
