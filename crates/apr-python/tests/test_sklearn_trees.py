"""Trees, forests, boosted trees, isolation forests: plans against scikit-learn on real tables."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from sklearn_tables import Native, agree, fitted, split

from apr.sklearn import _trees, plan

CLASSES = ["iris", "wine", "breast_cancer", "digits"]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        DecisionTreeClassifier(max_leaf_nodes=9, class_weight="balanced", random_state=0),
        ExtraTreeClassifier(random_state=0),
        RandomForestClassifier(30, random_state=0),
        RandomForestClassifier(20, max_depth=4, max_leaf_nodes=12, random_state=0),
        ExtraTreesClassifier(20, criterion="entropy", random_state=0),
        GradientBoostingClassifier(n_estimators=10, random_state=0),
        GradientBoostingClassifier(
            n_estimators=6, max_leaf_nodes=5, subsample=0.7, init="zero", random_state=0
        ),
        HistGradientBoostingClassifier(max_iter=10),
        make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)),
        make_pipeline(MinMaxScaler(clip=True), HistGradientBoostingClassifier(max_iter=8)),
    ],
    ids=str,
)
def test_classifiers(estimator, name):
    agree(fitted(estimator, name), split(name)[1])


def test_exponential_loss():
    boosted = GradientBoostingClassifier(loss="exponential", n_estimators=10, random_state=0)
    agree(fitted(boosted, "breast_cancer"), split("breast_cancer")[1])


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer"])
@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeRegressor(random_state=0),
        ExtraTreeRegressor(random_state=0),
        RandomForestRegressor(30, random_state=0),
        RandomForestRegressor(10, criterion="absolute_error", max_depth=3, random_state=0),
        ExtraTreesRegressor(20, random_state=0),
        GradientBoostingRegressor(n_estimators=20, random_state=0),
        GradientBoostingRegressor(n_estimators=20, loss="huber", subsample=0.8, random_state=0),
        GradientBoostingRegressor(
            n_estimators=9, loss="quantile", init=DummyRegressor(strategy="median"), random_state=0
        ),
        HistGradientBoostingRegressor(max_iter=20),
        HistGradientBoostingRegressor(max_iter=20, loss="poisson"),
        HistGradientBoostingRegressor(max_iter=20, loss="gamma"),
        HistGradientBoostingRegressor(max_iter=20, loss="absolute_error"),
        make_pipeline(StandardScaler(), RandomForestRegressor(10, random_state=0)),
    ],
    ids=str,
)
def test_regressors(estimator, name):
    agree(fitted(estimator, name), split(name)[1])


@pytest.mark.parametrize(
    "estimator", [DecisionTreeRegressor(), RandomForestRegressor(8), ExtraTreesRegressor(8)], ids=str
)
def test_several_targets(estimator):
    X, held, y, _ = split("diabetes")
    agree(estimator.fit(X, np.stack([y, y**2, -y], axis=1)), held)


@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(20, random_state=0),
        ExtraTreesClassifier(10, random_state=0),
        HistGradientBoostingClassifier(max_iter=10),
        make_pipeline(MinMaxScaler(), HistGradientBoostingClassifier(max_iter=10)),
    ],
    ids=str,
)
@pytest.mark.parametrize("fitted_with", [True, False])
def test_missing_values(estimator, name, fitted_with):
    X, held, y, _ = split(name)
    holes = np.random.default_rng(0)
    X, held = (np.where(holes.random(rows.shape) < 0.1, np.nan, rows) for rows in (X, held))
    model = agree(estimator.fit(X if fitted_with else split(name)[0], y), held)
    assert model.plan["input"]["accepts"] in ("missing", "anything")


def test_trees_that_refuse_missing_values_say_so():
    X, _, y, _ = split("diabetes")
    assert plan(GradientBoostingRegressor(n_estimators=2).fit(X, y))["input"]["accepts"] == "finite"
    monotonic = DecisionTreeRegressor(monotonic_cst=[1] * X.shape[1], max_depth=2).fit(X, y)
    assert plan(monotonic)["input"]["accepts"] == "finite"
    assert plan(HistGradientBoostingRegressor(max_iter=2).fit(X, y))["input"]["accepts"] == "anything"


@pytest.mark.parametrize("name", [*CLASSES, "diabetes"])
@pytest.mark.parametrize(
    "estimator",
    [
        IsolationForest(n_estimators=40, random_state=0),
        IsolationForest(n_estimators=40, contamination=0.1, max_features=0.7, random_state=0),
        IsolationForest(n_estimators=20, max_samples=16, contamination=0.3, bootstrap=True, random_state=0),
        make_pipeline(StandardScaler(), IsolationForest(n_estimators=20, contamination=0.2, random_state=0)),
    ],
    ids=str,
)
def test_outliers(estimator, name):
    estimator = fitted(estimator, name)
    X, held, _, _ = split(name)
    # Decisions are differences of two numbers near -1/2.
    agree(estimator, held, cancels=1e-6)
    # Rows of the training table are those that lie on the limit.
    agree(estimator, X, cancels=1e-6)


def test_forest_of_single_samples_has_no_depth():
    X, held, _, _ = split("iris")
    agree(IsolationForest(n_estimators=3, max_samples=1, random_state=0).fit(X), held)


def test_limit_is_the_least_sum_that_is_no_outlier():
    for divisor, offset in ((300.5, -0.5), (1.0, -0.6180339887), (4711.25, -0.43), (0.0, -0.5)):
        cut = _trees.least_inlier(divisor, offset)
        score = lambda depths: -(2 ** -(np.divide([depths], divisor) if divisor else np.ones(1)))[
            0
        ]  # noqa: E731
        assert not score(cut) - offset < 0
        assert cut == 0 or score(np.nextafter(cut, 0.0)) - offset < 0


def test_limit_that_no_row_reaches():
    assert _trees.least_inlier(10.0, 0.5) == np.finfo(np.float64).max
    X, held, _, _ = split("iris")
    estimator = IsolationForest(n_estimators=5, random_state=0).fit(X)
    estimator.offset_ = 0.5
    assert (agree(estimator, held, cancels=1e-6).predict(held) == -1).all()


def test_thresholds_are_rounded_down():
    exact = np.float64(np.float32(0.1))
    numbers = np.array([0.1, exact, np.nextafter(exact, 0.0), 1e300, -1e300, np.inf, 1e-50, -1e-50, 0.0])
    rounded = _trees.round_down(numbers)
    assert rounded.dtype == np.float32
    assert (rounded <= numbers).all()
    assert (np.nextafter(rounded[rounded < np.inf], np.float32(np.inf)) > numbers[rounded < np.inf]).all()


def test_leaf_rows_are_stored_once():
    X, _, y, _ = split("digits")
    step = plan(RandomForestClassifier(20, random_state=0).fit(X, y))["steps"][0]
    assert len(step["leaf_rows"]) < len(step["leaves"]) / 10
    assert step["leaves"][0] == 0


def test_rows_decide_as_float32_and_float64():
    # Between a number and its float32, trees and histograms part.
    X = np.array([[0.1], [0.1 + 1e-9], [0.2], [0.3]] * 10)
    y = np.arange(40) % 4 // 2
    for estimator in (
        DecisionTreeClassifier(),
        HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=1, early_stopping=False),
    ):
        rows = np.array(
            [[np.nextafter(x, end)] for x in np.unique(X) for end in (-1.0, 1.0, x)] + [[0.15], [0.25]]
        )
        agree(estimator.fit(X, y), rows)


def test_boosting_without_a_stage():
    X, held, y, _ = split("diabetes")
    estimator = HistGradientBoostingRegressor(max_iter=1).fit(X, y)
    estimator._predictors = []
    assert (Native(plan(estimator)).predict(held) == estimator.predict(held)).all()
