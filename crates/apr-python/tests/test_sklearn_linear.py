"""Linear models, scalers, projections, networks, densities, clusters: plans against scikit-learn on real tables."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn_tables import Native, agree, fitted, split

from apr.sklearn import plan

FLOWERS = ["iris", "wine", "breast_cancer"]
CLASSES = [*FLOWERS, "digits"]
NUMBERS = ["diabetes", "breast_cancer", "wine"]
# A loss since scikit-learn 1.7.
POISSON = (
    [MLPRegressor(loss="poisson", hidden_layer_sizes=(9,), max_iter=40, random_state=0)]
    if "loss" in MLPRegressor().get_params()
    else []
)
short = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(),
        LinearRegression(fit_intercept=False),
        Ridge(),
        Lasso(0.1),
        ElasticNet(0.1),
        make_pipeline(StandardScaler(), Ridge(3.0)),
        make_pipeline(MinMaxScaler(), PCA(3), LinearRegression()),
    ],
    ids=str,
)
def test_regressions(estimator, name):
    agree(fitted(estimator, name), split(name)[1])


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(), Lasso(), ElasticNet()], ids=str)
@pytest.mark.parametrize("columns", [1, 3])
def test_several_targets_keep_their_shape(estimator, columns):
    X, held, y, _ = split("diabetes")
    targets = np.stack([y, y**2 / 100, -y], axis=1)[:, :columns]
    agree(estimator.fit(X, targets), held)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(max_iter=200),
        make_pipeline(StandardScaler(), LogisticRegression()),
        LinearSVC(max_iter=300),
        LinearSVC(max_iter=300, multi_class="crammer_singer"),
        SVC(),
        SVC(kernel="linear", max_iter=2000),
        SVC(kernel="poly", coef0=1.0),
        SVC(kernel="sigmoid"),
        SVC(break_ties=True),
        SVC(decision_function_shape="ovo"),
        make_pipeline(MinMaxScaler(), SVC(gamma=2.0)),
    ],
    ids=str,
)
def test_classifiers(estimator, name):
    agree(fitted(estimator, name), split(name)[1], cancels=1e-6)


def test_two_classes_of_liblinear():
    agree(fitted(LogisticRegression(solver="liblinear"), "breast_cancer"), split("breast_cancer")[1])


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    "estimator",
    [
        MLPClassifier((20, 10), max_iter=15, random_state=0),
        MLPClassifier((8,), activation="tanh", max_iter=30, random_state=0),
        MLPClassifier((8,), activation="logistic", max_iter=30, random_state=0),
        make_pipeline(
            StandardScaler(), MLPClassifier((), activation="identity", max_iter=30, random_state=0)
        ),
    ],
    ids=str,
)
def test_networks_that_classify(estimator, name):
    agree(fitted(estimator, name), split(name)[1])


@pytest.mark.parametrize("name", ["diabetes", "wine"])
@pytest.mark.parametrize(
    "estimator",
    [
        MLPRegressor(hidden_layer_sizes=(20,), max_iter=40, random_state=0),
        *POISSON,
        make_pipeline(
            StandardScaler(),
            MLPRegressor(hidden_layer_sizes=(9, 4), activation="tanh", max_iter=40, random_state=0),
        ),
    ],
    ids=str,
)
def test_networks_that_predict_numbers(estimator, name):
    agree(fitted(estimator, name), split(name)[1])


@pytest.mark.parametrize("columns", [1, 2])
def test_network_of_several_targets(columns):
    X, held, y, _ = split("diabetes")
    targets = np.stack([y, -y], axis=1)[:, :columns]
    agree(MLPRegressor(hidden_layer_sizes=(5,), max_iter=20, random_state=0).fit(X, targets), held)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    "estimator",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        StandardScaler(with_mean=False, with_std=False),
        MinMaxScaler(),
        MinMaxScaler((-2, 5), clip=True),
        PCA(3),
        PCA(3, whiten=True),
        make_pipeline(StandardScaler(), PCA(4, whiten=True), MinMaxScaler(clip=True)),
        make_pipeline(StandardScaler(), "passthrough"),
    ],
    ids=str,
)
def test_transformers(estimator, name):
    agree(fitted(estimator, name), split(name)[1], cancels=1e-6)


def test_missing_values_pass_scalers():
    X, held, _, _ = split("wine")
    held = held.copy()
    held[::3, 2] = np.nan
    for scaler in (StandardScaler(), MinMaxScaler(clip=True)):
        model = agree(scaler.fit(X), held)
        assert model.plan["input"]["accepts"] == "missing"


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(5, random_state=0, n_init=2),
        make_pipeline(StandardScaler(), PCA(3), KMeans(4, random_state=0)),
        make_pipeline(KMeans(6, random_state=0, n_init=2), LogisticRegression(max_iter=200)),
        GaussianNB(),
    ],
    ids=str,
)
def test_clusters_and_bayes(estimator, name):
    agree(fitted(estimator, name), split(name)[1])


@pytest.mark.parametrize("name", FLOWERS)
@pytest.mark.parametrize("spread", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("scaled", [False, True])
def test_mixtures(spread, name, scaled):
    mixture = GaussianMixture(3, covariance_type=spread, reg_covar=1e-3, random_state=0)
    agree(fitted(make_pipeline(StandardScaler(), mixture) if scaled else mixture, name), split(name)[1])


def test_class_without_a_prior():
    X, held, y, _ = split("iris")
    model = agree(GaussianNB(priors=[0.5, 0.0, 0.5]).fit(X, y), held)
    assert model.plan["steps"][0]["peak"][1] == -np.inf


@pytest.mark.parametrize(
    "labels",
    [[5, -3], ["b", "ä"], [True, False], [2.0, -1.0], [2**40, -(2**40)], np.array(["x", "y"], dtype=object)],
    ids=str,
)
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GaussianNB(), SVC(), MLPClassifier((3,))], ids=str
)
@short
def test_labels_come_back_as_they_were(labels, estimator):
    X, held, y, _ = split("iris")
    X, y = X[y < 2], y[y < 2]
    estimator = estimator.fit(X, np.asarray(labels)[y])
    model = Native(plan(estimator))
    assert model.predict(held).tolist() == estimator.predict(held).tolist()


def test_exact_ties_of_pairs():
    # Four points in a square: the middle is on every plane, where votes alone and confidences decide differently.
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    for ties in (False, True):
        agree(
            SVC(kernel="linear", break_ties=ties).fit(X, [0, 1, 2, 3]),
            np.array([[0.5, 0.5], [0.5, 0.0]]),
            cancels=1,
        )
    agree(SVC(kernel="linear").fit(X, [0, 0, 1, 1]), np.array([[0.5, 0.5], [0.5, 0.0]]), cancels=1)


def test_names_of_features_are_kept():
    pandas = pytest.importorskip("pandas")
    X, _, y, _ = split("iris")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    assert plan(LogisticRegression(max_iter=500).fit(frame, y))["metadata"]["feature_names"] == list("abcd")
