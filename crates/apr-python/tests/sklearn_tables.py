"""Real tables, and what it means that a plan answers as its estimator does."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from plan_rules import check as check_rules
from sklearn import datasets
from sklearn.base import clone, is_regressor
from sklearn.model_selection import train_test_split

from apr import _native
from apr.sklearn import plan

OUTPUTS = ("predict", "predict_proba", "decision_function", "score_samples", "transform")
RTOL = 1e-5


@functools.cache
def split(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, held-out rows, and their targets. Labels are of every kind: places, texts, booleans, negative."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    y = {
        "wine": lambda: np.array(["barolo", "grignolino", "a barbera"])[y],
        "breast_cancer": lambda: y == 1,
        "digits": lambda: y * 3 - 7,
    }.get(name, lambda: y)()
    return train_test_split(X, y, random_state=0, test_size=0.3)


def fitted(estimator: Any, name: str, rows: int | None = None) -> Any:
    """A clone that was fitted on the training rows; regressors learn numbers, whatever the table's labels are."""
    X, _, y, _ = split(name)
    if is_regressor(estimator) and y.dtype.kind != "f":
        y = np.unique(y, return_inverse=True)[1] + 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(X[:rows], y[:rows])


def outputs(estimator: Any, head: dict[str, Any]) -> list[str]:
    """What both sides answer. What scikit-learn answers and a plan does not is a choice; see the tests of heads."""
    if head["kind"] == "rows":
        return ["predict" if head["what"] == "prediction" else "transform"]
    found = {
        "classes": ["predict"],
        "clusters": (
            ["predict", "transform"] if head.get("decide") == "smallest" else OUTPUTS[:2] + OUTPUTS[3:4]
        ),
        "outliers": ["predict", "decision_function", "score_samples"],
    }[head["kind"]]
    if head["kind"] == "classes":
        found = ["predict", *(name for name in OUTPUTS[1:3] if hasattr(estimator, name))]
        assert (head["share"]["kind"] != "none") == hasattr(estimator, "predict_proba")
        assert (head["decision"] != "none") == hasattr(estimator, "decision_function")
    assert all(hasattr(estimator, name) for name in found)
    return list(found)


class Native:
    """A plan that follows the rules, as the model that is read back from the bytes it becomes."""

    def __init__(self, made: dict[str, Any]) -> None:
        check_rules(made)
        self.plan = made
        self.head = made["head"]
        self.bytes = _native.build_pipeline(made)
        self.model = _native.load(self.bytes)

    @property
    def metadata(self) -> dict[str, Any]:
        return self.model.metadata

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)

    def decision_function(self, X: Any) -> Any:
        return self.model.decision_function(X)

    def score_samples(self, X: Any) -> Any:
        return self.model.score_samples(X)

    def transform(self, X: Any) -> Any:
        return self.model.transform(X)


def agree(estimator: Any, rows: Any, *, cancels: float = 0.0) -> Native:
    """Asserts that the model's answers are the estimator's: labels equal, numbers within 1e-5 relative.

    A row has the same answers alone. ``cancels`` is how large the terms are that decisions and projections near 0 are the sum of.
    """
    model = Native(plan(estimator))
    for name in outputs(estimator, model.head):
        theirs = getattr(estimator, name)(rows)
        theirs = np.asarray(theirs.toarray() if hasattr(theirs, "toarray") else theirs)
        ours = getattr(model, name)(rows)
        assert ours.shape == theirs.shape, name
        if name == "predict" and model.head["kind"] != "rows":
            assert ours.dtype.kind == theirs.dtype.kind or theirs.dtype.kind == "O", (
                name,
                ours.dtype,
                theirs.dtype,
            )
            assert (ours == theirs).all(), (name, np.flatnonzero(ours != theirs))
        else:
            assert ours.dtype == np.float64, (name, ours.dtype)
            atol = RTOL * cancels if name in ("decision_function", "transform") else 0.0
            np.testing.assert_allclose(ours, theirs, rtol=RTOL, atol=atol, err_msg=name)
        np.testing.assert_array_equal(getattr(model, name)(rows[1:2]), ours[1:2], err_msg=name)
    return model
