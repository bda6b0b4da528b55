"""What cannot be carried is refused by name, with the option and a way out."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn_tables import split

import apr.sklearn
from apr.sklearn import NotExportable, plan

TEXTS = ["one two three", "two three four", "three four five"] * 4


class Own(LogisticRegression):
    """A subclass: it may predict anything."""


class Unrelated:
    """No estimator at all."""


def refusal(estimator) -> NotExportable:
    with pytest.raises(NotExportable) as caught:
        plan(estimator)
    return caught.value


def trained(estimator, name="iris"):
    X, _, y, _ = split(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "way_out"),
    [
        (GridSearchCV(GaussianNB(), {}), "best_estimator_"),
        (CalibratedClassifierCV(GaussianNB()), "the classifier it calibrates"),
        (HashingVectorizer(), "use CountVectorizer or TfidfVectorizer"),
        (ColumnTransformer([]), "compute the columns before"),
        (FunctionTransformer(), "compute the columns before"),
        (VotingClassifier([]), "estimators_"),
        (StackingClassifier([]), "estimators_"),
        (OneVsRestClassifier(GaussianNB()), "estimators_"),
        (BisectingKMeans(), "use KMeans"),
        (MiniBatchKMeans(), "use KMeans"),
        (BayesianGaussianMixture(), "use GaussianMixture"),
        (RidgeCV(), "alpha_"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_classes_that_are_not_carried(estimator, way_out):
    error = refusal(estimator)
    assert error.estimator == type(estimator).__name__
    assert str(error).startswith(
        f"cannot export {error.estimator}: not among the estimators that can be exported"
    )
    assert way_out in str(error)


def test_what_is_no_estimator():
    for thing in (Unrelated(), 3, None, "passthrough"):
        assert f"cannot export {type(thing).__name__}: not among" in str(refusal(thing))


def test_releases_that_are_too_old(monkeypatch):
    import sklearn

    monkeypatch.setattr(sklearn, "__version__", "1.5.2")
    error = refusal(trained(GaussianNB()))
    assert "scikit-learn 1.5.2 is installed, 1.6 or newer is needed" in str(error)
    monkeypatch.setattr(sklearn, "__version__", "1.10.dev0")
    assert plan(trained(GaussianNB()))["metadata"]["sklearn"]["version"] == "1.10.dev0"


def test_subclasses_are_other_classes():
    error = refusal(trained(Own(max_iter=500)))
    assert str(error) == (
        "cannot export Own: not among the estimators that can be exported: it is a subclass of LogisticRegression "
        "and may compute something else"
    )


@pytest.mark.parametrize(
    "estimator",
    [LinearRegression(), SVC(), RandomForestClassifier(), KMeans(), StandardScaler(), CountVectorizer()],
    ids=str,
)
def test_not_fitted(estimator):
    assert str(refusal(estimator)) == f"cannot export {type(estimator).__name__}: not fitted; call fit first"


OPTIONS = [
    (SVC(kernel=lambda a, b: a @ b.T), "kernel", "similarities"),
    (SVC(probability=True), "probability", "decisions are carried"),
    (SVC(break_ties=True, decision_function_shape="ovo"), "break_ties", "does not predict"),
    (KNeighborsClassifier(weights=lambda far: far), "weights", "use 'uniform' or 'distance'"),
    (KNeighborsClassifier(metric=lambda a, b: abs(a - b).sum()), "metric", "use a metric by name"),
    (KNeighborsClassifier(metric="canberra"), "metric", "minkowski"),
    (
        KNeighborsClassifier(metric="minkowski", metric_params={"w": [1, 1, 2, 1]}, p=2),
        "metric_params",
        "scale",
    ),
    (KNeighborsClassifier(p=0.5, algorithm="brute"), "p", "below 1"),
    (GaussianNB(var_smoothing=0.0), "var_smoothing", "raise it"),
]


@pytest.mark.parametrize(("estimator", "option", "text"), OPTIONS, ids=str)
def test_options_that_are_not_carried(estimator, option, text):
    X, _, y, _ = split("iris")
    if option == "var_smoothing":
        X = X.copy()
        X[:, 0] = y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = refusal(estimator.fit(X, y))
    assert error.option.startswith(f"{option}=")
    assert f"({option}=" in str(error) and text in str(error)


def test_precomputed_distances_and_kernels():
    X, _, y, _ = split("iris")
    far = np.abs(X[:, None] - X).sum(2)
    assert "precomputed" in str(refusal(KNeighborsClassifier(metric="precomputed").fit(far, y)))
    assert "precomputed" in str(refusal(SVC(kernel="precomputed").fit(X @ X.T, y)))


def test_start_of_boosting():
    X, _, y, _ = split("diabetes")
    error = refusal(GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, y))
    assert "cannot export GradientBoostingRegressor(init=LinearRegression())" in str(error)


def test_categories():
    X, _, y, _ = split("diabetes")
    X = X.copy()
    X[:, 1] = X[:, 1] > 0
    error = refusal(HistGradientBoostingRegressor(max_iter=2, categorical_features=[1]).fit(X, y))
    assert error.option == "categorical_features=[1]" and "encode" in str(error)


@pytest.mark.parametrize(
    "estimator", [DecisionTreeClassifier(), RandomForestClassifier(3), KNeighborsClassifier()], ids=str
)
def test_several_labels_a_row(estimator):
    X, _, y, _ = split("iris")
    assert "one classifier for each" in str(refusal(estimator.fit(X, np.stack([y, y], axis=1))))


def test_several_labels_of_a_network():
    X, _, y, _ = split("iris")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MLPClassifier((3,), max_iter=5).fit(X, np.stack([y > 0, y > 1], axis=1).astype(int))
    assert "several labels a row" in str(refusal(network))


@pytest.mark.parametrize("vectorizer", [CountVectorizer, TfidfVectorizer])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"analyzer": str.split}, "use 'word', 'char' or 'char_wb'"),
        ({"preprocessor": str.upper}, "do it before the vectorizer"),
        ({"tokenizer": str.split, "token_pattern": None}, "do it before the vectorizer"),
        ({"strip_accents": str.upper}, "use 'ascii' or 'unicode'"),
        ({"token_pattern": r"\w+|[^\w\s]"}, "use a run of one class of characters"),
        ({"ngram_range": (1, 65)}, "1 to 64"),
        ({"vocabulary": ["one", "half \ud800"]}, "surrogate"),
        ({"vocabulary": ["one", ""]}, "empty"),
    ],
    ids=str,
)
def test_options_of_texts(vectorizer, options, text):
    error = refusal(vectorizer(**options).fit(TEXTS))
    assert error.option.split("=")[0] in options
    assert text in str(error)


def test_other_texts():
    assert "use 'content'" in str(refusal(CountVectorizer(input="filename").fit([__file__])))
    model = CountVectorizer().fit(TEXTS)
    model.vocabulary_ = {"one": 0, 2: 1}
    assert "no text" in str(refusal(model))
    assert "narrow" in str(refusal(CountVectorizer(dtype=np.int8).fit(TEXTS)))


def test_place_in_a_pipeline():
    X, _, y, _ = split("iris")
    inner = make_pipeline(StandardScaler(), SVC(kernel=lambda a, b: a @ b.T))
    error = refusal(make_pipeline(StandardScaler(), "passthrough", inner).fit(X, y))
    assert error.path == "steps[2].steps[1]"
    assert str(error).startswith("cannot export SVC(kernel=<lambda>) at steps[2].steps[1]: ")


def test_pipelines_that_do_not_fit_together():
    X, _, y, _ = split("iris")
    narrow = LinearRegression().fit(X[:, :2], y)
    error = refusal(Pipeline([("a", StandardScaler().fit(X)), ("b", narrow)]))
    assert "takes 2 features, 4 reach it" in str(error) and error.path == "steps[1]"
    assert "nothing in it" in str(refusal(make_pipeline("passthrough", None).fit(X, y)))
    texts = Pipeline([("a", StandardScaler().fit(X)), ("b", CountVectorizer().fit(TEXTS))])
    assert "put it first" in str(refusal(texts))
    centred = StandardScaler().fit(np.eye(5)[:, : len(CountVectorizer().fit(TEXTS).vocabulary_)])
    assert "with_mean=False" in str(refusal(Pipeline([("a", CountVectorizer().fit(TEXTS)), ("b", centred)])))


def test_numbers_that_are_not_finite():
    model = trained(LinearRegression(), "diabetes")
    model.coef_[3] = np.nan
    error = refusal(model)
    assert "coef_ holds numbers that are not finite" in str(error)


@pytest.mark.parametrize(
    "labels",
    [[b"a", b"b"], np.array(["a", 1], dtype=object), np.array([2**63, 1], dtype=np.uint64), ["a", "\ud800"]],
    ids=["bytes", "mixed", "large", "surrogate"],
)
def test_labels_that_no_file_holds(labels):
    X, _, y, _ = split("iris")
    model = GaussianNB().fit(X[y < 2], y[y < 2])
    model.classes_ = np.asarray(labels)
    assert refusal(model).option.startswith("classes_=")


def test_samples_that_are_sparse_are_carried():
    X, _, y, _ = split("iris")
    held = plan(KNeighborsRegressor(2).fit(sparse.csr_array(X), y))["steps"][0]["samples"]
    assert held["kind"] == "sparse"


def test_every_class_of_the_table_is_one_of_scikit_learn():
    import importlib

    from apr.sklearn import _estimators

    for package, name in _estimators.CONVERTERS:
        assert hasattr(
            importlib.import_module(f"sklearn.{package}" + (".text" if "feature" in package else "")), name
        )


def test_import_imports_no_framework():
    code = "import sys, apr.sklearn; print(sorted({'sklearn', 'scipy', 'pandas'} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
    assert apr.sklearn.NotExportable.__mro__[1] is ValueError
