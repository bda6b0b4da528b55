"""Trees, forests, boosted trees, isolation forests: all one step, `trees`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._parts import (
    ACCEPTS,
    Accepts,
    Converter,
    Floats,
    Part,
    Place,
    Step,
    classes_head,
    reals,
    refuse,
    rows_head,
    share,
    width,
)

_LEAF = np.uint32(0xFFFF_FFFF)
_MISSING_LEFT = np.uint32(1 << 31)
_MAX_LEAF_ROWS = 2**32 - 1
# The initial estimators of boosting that give every row the same number.
_CONSTANT = ("prior", "most_frequent", "constant", "mean", "median", "quantile")


class _Tree(NamedTuple):
    """A tree by its nodes; ``left`` is negative at leaves. ``values`` has a row for each node, also for splits."""

    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int64]
    threshold: Floats
    missing_left: npt.NDArray[np.bool_]
    values: Floats


def _of_tree(tree: Any, values: Floats, features: Any = None) -> _Tree:
    """A ``tree_`` of scikit-learn. ``features`` are the columns that the tree was shown, if not all of them."""
    feature = np.asarray(tree.feature, dtype=np.int64)
    if features is not None:
        feature = np.where(
            feature >= 0, np.asarray(features, dtype=np.int64)[np.maximum(feature, 0)], feature
        )
    return _Tree(
        np.asarray(tree.children_left, dtype=np.int64),
        np.asarray(tree.children_right, dtype=np.int64),
        feature,
        np.asarray(tree.threshold, dtype=np.float64),
        np.asarray(tree.missing_go_to_left, dtype=bool),
        values,
    )


def _of_predictor(predictor: Any) -> _Tree:
    """A tree of histogram boosting."""
    nodes = predictor.nodes
    leaf = np.asarray(nodes["is_leaf"], dtype=bool)
    return _Tree(
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        nodes["feature_idx"].astype(np.int64),
        np.asarray(nodes["num_threshold"], dtype=np.float64),
        np.asarray(nodes["missing_go_to_left"], dtype=bool),
        np.asarray(nodes["value"], dtype=np.float64)[:, None],
    )


def walk_order(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """The nodes in the order of a walk from the root that goes left first."""
    order = []
    stack = [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if left[node] >= 0:
            stack.append(right[node])
            stack.append(left[node])
    return order


def round_down(thresholds: Floats) -> npt.NDArray[np.float32]:
    """The largest float32 not above each number: ``x <= t`` holds for the same float32 x."""
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
    above = rounded.astype(np.float64) > thresholds
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded


def _distinct(rows: Floats) -> tuple[Floats, npt.NDArray[np.uint32]]:
    """The distinct rows in order of first use, and which of them each row is. Rows are compared by their bits."""
    if len(rows) == 0:
        return rows, np.zeros(0, dtype=np.uint32)
    rows = np.ascontiguousarray(rows)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    by_use = np.argsort(first, kind="stable")
    place = np.empty_like(by_use)
    place[by_use] = np.arange(len(by_use))
    return rows[first[by_use]], place[inverse.ravel()].astype(np.uint32)


def trees_step(
    trees: Iterable[_Tree],
    *,
    n_outputs: int,
    whole: bool,
    single: bool,
    start: Floats | None = None,
    divisor: float = 1.0,
) -> Step:
    """The step `trees`.

    Args:
        n_outputs: numbers that leave the step.
        whole: every tree adds a row of ``n_outputs``; otherwise tree t adds one number to output t mod ``n_outputs``.
        single: rows are rounded to float32 before they are compared.
        start: what is added to; zeros if None.
        divisor: what the sum is divided by.
    """
    sizes, features, thresholds, leaves = [], [], [], []
    for tree in trees:
        order = np.asarray(walk_order(tree.left.tolist(), tree.right.tolist()), dtype=np.int64)
        split = tree.left[order] >= 0
        marks = tree.feature[order].astype(np.uint32) | np.where(
            tree.missing_left[order], _MISSING_LEFT, np.uint32(0)
        )
        sizes.append(len(order))
        features.append(np.where(split, marks, _LEAF))
        thresholds.append(tree.threshold[order[split]])
        leaves.append(tree.values[order[~split]])
    row_width = n_outputs if whole else 1
    rows, places = _distinct(np.concatenate(leaves) if leaves else np.zeros((0, row_width)))
    limits = np.concatenate(thresholds) if thresholds else np.zeros(0)
    return {
        "kind": "trees",
        "precision": "single" if single else "double",
        "n_outputs": n_outputs,
        "turn": "whole" if whole else "in_turns",
        "start": np.zeros(n_outputs) if start is None else np.asarray(start, dtype=np.float64).copy(),
        "divisor": float(divisor),
        "leaf_rows": rows,
        "tree_nodes": np.asarray(sizes, dtype=np.uint32),
        "features": np.concatenate(features).astype(np.uint32) if features else np.zeros(0, dtype=np.uint32),
        "thresholds": round_down(limits) if single else limits,
        "leaves": places,
    }


def _checked(estimator: Any, place: Place, step: Step) -> Step:
    for name in ("leaf_rows", "start"):
        reals(estimator, place, f"{name} of the trees", step[name])
    if len(step["leaf_rows"]) > _MAX_LEAF_ROWS or np.isnan(step["thresholds"]).any():
        refuse(estimator, place, "trees that scikit-learn does not make")
    return step


def _accepts(estimator: Any) -> Accepts:
    """Whether a tree takes missing values, as it decides itself."""
    tags = importlib.import_module("sklearn.utils").get_tags(estimator)
    return "missing" if tags.input_tags.allow_nan and estimator.monotonic_cst is None else "finite"


def _one_output(estimator: Any, place: Place) -> None:
    if estimator.n_outputs_ > 1:
        refuse(
            estimator,
            place,
            "several labels a row",
            option="n_outputs_",
            way_out="fit one classifier for each",
        )


def _averaged(estimator: Any, place: Place, members: Sequence[Any]) -> Part:
    """A tree, or the mean of several."""
    classifies = hasattr(estimator, "classes_")
    if classifies:
        _one_output(estimator, place)
    outputs = len(estimator.classes_) if classifies else int(estimator.n_outputs_)
    trees = (
        _of_tree(
            tree, np.asarray(tree.value[:, 0, :] if classifies else tree.value[:, :, 0], dtype=np.float64)
        )
        for tree in (member.tree_ for member in members)
    )
    step = trees_step(trees, n_outputs=outputs, whole=True, single=True, divisor=len(members))
    head = (
        classes_head(estimator, place, "largest", share=share("as_they_are"), n_scores=outputs)
        if classifies
        else rows_head("prediction", flat=outputs == 1)
    )
    # A forest asks its trees whether missing values may pass.
    accepts = _accepts(members[0])
    return Part(width(estimator, place), outputs, [_checked(estimator, place, step)], head, accepts)


def tree(estimator: Any, place: Place) -> Part:
    """DecisionTree*, ExtraTree*."""
    return _averaged(estimator, place, [estimator])


def forest(estimator: Any, place: Place) -> Part:
    """RandomForest*, ExtraTrees*."""
    return _averaged(estimator, place, list(estimator.estimators_))


def gradient_boosting(estimator: Any, place: Place) -> Part:
    """GradientBoosting*: start, and the learning rate times a number of each tree."""
    start_of = estimator.init_
    if not (isinstance(start_of, str) and start_of == "zero"):
        constant = type(start_of).__module__ == "sklearn.dummy" and start_of.strategy in _CONSTANT
        if not constant:
            reason = "the scores start from a model of their own"
            refuse(estimator, place, reason, option="init", way_out="fit without init")
    n_features = width(estimator, place)
    start = np.asarray(estimator._raw_predict_init(np.zeros((1, n_features)))[0], dtype=np.float64)
    rate = estimator.learning_rate
    trees = (
        _of_tree(member.tree_, rate * np.asarray(member.tree_.value[:, 0, :], dtype=np.float64))
        for member in estimator.estimators_.ravel()
    )
    step = trees_step(trees, n_outputs=len(start), whole=False, single=True, start=start)
    if not hasattr(estimator, "classes_"):
        head = rows_head("prediction", flat=True)
    elif len(start) == 1:
        factor = 2.0 if estimator.loss == "exponential" else 1.0
        head = classes_head(
            estimator, place, "at_least_zero", share=share("logistic", factor), decision="scores", n_scores=1
        )
    else:
        head = classes_head(
            estimator, place, "largest", share=share("softmax"), decision="scores", n_scores=len(start)
        )
    return Part(n_features, len(start), [_checked(estimator, place, step)], head)


def histogram_boosting(estimator: Any, place: Place) -> Part:
    """HistGradientBoosting*: float64 rows against float64 thresholds."""
    if estimator.is_categorical_ is not None:
        reason = "columns are categories"
        refuse(
            estimator, place, reason, option="categorical_features", way_out="encode them as numbers before"
        )
    start = np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel()
    trees = (_of_predictor(predictor) for stage in estimator._predictors for predictor in stage)
    step = trees_step(trees, n_outputs=len(start), whole=False, single=False, start=start)
    if not hasattr(estimator, "classes_"):
        link = "exp" if estimator.loss in ("poisson", "gamma") else "none"
        head = rows_head("prediction", flat=True, link=link)
    elif len(start) == 1:
        head = classes_head(
            estimator, place, "above_zero", share=share("logistic", 1.0), decision="scores", n_scores=1
        )
    else:
        head = classes_head(
            estimator, place, "largest", share=share("softmax"), decision="scores", n_scores=len(start)
        )
    part_width = width(estimator, place)
    return Part(part_width, len(start), [_checked(estimator, place, step)], head, ACCEPTS[-1])


def least_inlier(divisor: float, offset: float) -> float:
    """The least sum of depths that scikit-learn calls an inlier.

    The limit is found with numpy's own power, so that its last bit cannot move a row across. Searched among the bit
    patterns of the numbers from 0 on, which are ordered as the numbers are. If all sums are outliers, it is the largest number:
    no sum reaches it.
    """

    def outlier(depths: float) -> bool:
        sums = np.array([depths])
        shares = np.divide(sums, divisor, out=np.ones_like(sums), where=divisor != 0)
        return bool((-(2 ** (-shares)) - offset)[0] < 0)

    def number(bits: int) -> float:
        return float(np.array([bits], dtype=np.int64).view(np.float64)[0])

    low = 0
    high = int(np.float64(np.finfo(np.float64).max).view(np.int64))
    while low < high:
        middle = (low + high) // 2
        if outlier(number(middle)):
            low = middle + 1
        else:
            high = middle
    return number(low)


def isolation_forest(estimator: Any, place: Place) -> Part:
    """IsolationForest: depths are added up; the limit is one of the sum."""
    average = importlib.import_module("sklearn.ensemble._iforest")._average_path_length
    divisor = float(len(estimator.estimators_) * average([estimator._max_samples])[0])
    depths = (
        path + beyond - 1.0
        for path, beyond in zip(estimator._decision_path_lengths, estimator._average_path_length_per_tree)
    )
    members = zip(estimator.estimators_, estimator.estimators_features_, depths)
    trees = (
        _of_tree(member.tree_, np.asarray(leaf, dtype=np.float64)[:, None], shown)
        for member, shown, leaf in members
    )
    step = trees_step(trees, n_outputs=1, whole=True, single=True)
    offset = float(estimator.offset_)
    cut = least_inlier(divisor, offset)
    head = {"kind": "outliers", "divisor": divisor, "cut": cut, "offset": offset}
    return Part(width(estimator, place), 1, [_checked(estimator, place, step)], head, ACCEPTS[-1])


CONVERTERS: dict[tuple[str, str], Converter] = {
    **{
        ("tree", name + kind): tree
        for name in ("DecisionTree", "ExtraTree")
        for kind in ("Classifier", "Regressor")
    },
    **{
        ("ensemble", name + kind): convert
        for name, convert in {
            "RandomForest": forest,
            "ExtraTrees": forest,
            "GradientBoosting": gradient_boosting,
            "HistGradientBoosting": histogram_boosting,
        }.items()
        for kind in ("Classifier", "Regressor")
    },
    ("ensemble", "IsolationForest"): isolation_forest,
}
