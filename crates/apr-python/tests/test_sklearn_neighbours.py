"""Nearest neighbours: plans against scikit-learn on real tables, and its tree replayed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_tables import Native, agree, fitted, split

from apr.sklearn import plan

METRICS = [
    {"metric": "euclidean"},
    {"metric": "manhattan"},
    {"metric": "chebyshev"},
    {"metric": "minkowski", "p": 3},
    {"metric": "minkowski", "metric_params": {"p": 1.5}},
]


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 4, 10])
def test_classifiers(name, weights, k):
    model = agree(fitted(KNeighborsClassifier(k, weights=weights, algorithm="kd_tree"), name), split(name)[1])
    assert model.plan["steps"][0]["search"]["kind"] == "kd_tree"


@pytest.mark.parametrize("name", ["diabetes", "wine"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_regressors(name, weights):
    agree(fitted(KNeighborsRegressor(weights=weights, leaf_size=7), name), split(name)[1])
    agree(fitted(make_pipeline(StandardScaler(), KNeighborsRegressor(weights=weights)), name), split(name)[1])


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
@pytest.mark.parametrize("name", ["wine", "diabetes"])
def test_metrics(metric, algorithm, name):
    if algorithm != "kd_tree" and metric["metric"] == "chebyshev":
        pytest.skip(
            "one feature of few values decides: equal distances, found in an order of its own by a ball tree, and "
            "without a tree in one that depends on the number of threads"
        )
    estimator = KNeighborsRegressor(6, weights="distance", algorithm=algorithm, **metric)
    agree(fitted(estimator, name), split(name)[1])


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_cosine(name):
    agree(
        fitted(KNeighborsClassifier(3, metric="cosine", weights="distance"), name, 400), split(name)[1][:100]
    )


def test_integer_table_in_order():
    # Distances of whole numbers are exact, so that also scikit-learn's fast path has no noise.
    model = agree(fitted(KNeighborsClassifier(1), "digits"), split("digits")[1][:150])
    assert model.plan["steps"][0]["search"]["kind"] == "in_order"


def test_row_that_is_a_sample():
    X, _, y, _ = split("iris")
    agree(KNeighborsClassifier(5, weights="distance").fit(X, y), X)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
@pytest.mark.parametrize("leaf_size", [1, 5, 30])
def test_tree_finds_the_same_neighbours_ties_included(name, leaf_size):
    X, held, y, _ = split(name)
    X, y, held = X[:500], y[:500], held[:60]
    # Each sample is a target of its own, so that the answer says who the neighbours are.
    estimator = KNeighborsRegressor(5, algorithm="kd_tree", leaf_size=leaf_size).fit(X, np.eye(len(X)))
    theirs = estimator.kneighbors(held, return_distance=False)
    for row, places in zip(agree(estimator, held).predict(held), theirs):
        assert set(np.flatnonzero(row)) == set(places.tolist())


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_sparse_samples_of_every_metric(metric, weights):
    X, held, y, _ = split("digits")
    estimator = KNeighborsRegressor(4, metric=metric, weights=weights, algorithm="brute")
    estimator.fit(sparse.csr_array(X[:200]), y[:200] * 0.5)
    model = agree_sparse(estimator, held[:60])
    kept = "sparse" if metric in ("euclidean", "cosine") else "dense"
    assert model.plan["steps"][0]["samples"]["kind"] == kept


def agree_sparse(estimator, rows):
    """As `agree`, of an estimator that is asked about sparse rows."""
    model = Native(plan(estimator))
    np.testing.assert_allclose(model.predict(rows), estimator.predict(sparse.csr_array(rows)), rtol=1e-5)
    return model


def test_cosine_of_rows_of_any_length():
    X, held, y, _ = split("wine")
    samples = np.vstack([X[:90], np.zeros((1, X.shape[1]))])
    estimator = KNeighborsRegressor(3, metric="cosine", weights="distance").fit(samples, np.arange(91.0))
    stored = agree(estimator, held * np.array([[1e-3], [1e3]] * 27)).plan["steps"][0]["samples"]["values"]
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1)[:90], 1.0)
    assert not stored[90].any()


def test_ties_of_a_grid():
    grid = np.stack(np.meshgrid(*[np.arange(6.0)] * 2), axis=-1).reshape(-1, 2)
    labels = np.arange(len(grid)) % 5
    rows = np.concatenate([grid, grid + 0.5])
    for metric in METRICS:
        for k in (1, 3, 4):
            agree(KNeighborsClassifier(k, algorithm="kd_tree", leaf_size=3, **metric).fit(grid, labels), rows)


def test_sparse_samples():
    X, held, y, _ = split("digits")
    model = agree(KNeighborsClassifier(1).fit(sparse.csr_array(X[:300]), y[:300]), held[:80])
    assert model.plan["steps"][0]["samples"]["kind"] == "sparse"


@pytest.mark.parametrize("columns", [1, 2])
def test_several_targets(columns):
    X, held, y, _ = split("diabetes")
    agree(KNeighborsRegressor(3).fit(X, np.stack([y, -y], axis=1)[:, :columns]), held)
