"""Comparison of a model with its estimator, and what a file is written for."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn_tables import Native, fitted, split

from apr import _native
from apr.sklearn import NotExportable, PredictionsDiffer, Report, _export, check, export, plan

TEXTS = ["one two three", "two three four", "three four five", "five six"] * 5


class Changed(Native):
    """A model that errs in one cell of one output."""

    def __init__(self, made, output, row, change):
        super().__init__(made)
        self.wrong = (output, row, change)

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name.startswith("_") or name not in ("predict", "predict_proba", "decision_function", "transform"):
            return found
        output, row, change = self.wrong
        if name != output:
            return found

        def changed(X):
            answers = np.array(found(X))
            cell = (row,) if answers.ndim == 1 else (row, 0)
            answers[cell] = change(answers[cell])
            return answers

        return changed


CASES = [
    (LinearRegression(), ("predict",)),
    (LogisticRegression(max_iter=300), ("predict", "predict_proba", "decision_function")),
    (SVC(), ("predict", "decision_function")),
    (SVC(kernel="poly"), ("predict", "decision_function")),
    (SVC(kernel="linear", decision_function_shape="ovo"), ("predict", "decision_function")),
    (GaussianNB(), ("predict", "predict_proba")),
    (RandomForestClassifier(5, random_state=0), ("predict", "predict_proba")),
    (KMeans(3, random_state=0, n_init=1), ("predict", "transform")),
    (make_pipeline(StandardScaler(), KMeans(3, random_state=0, n_init=1)), ("predict", "transform")),
    (GaussianMixture(2, random_state=0), ("predict", "predict_proba", "score_samples")),
    (IsolationForest(n_estimators=9, random_state=0), ("predict", "decision_function", "score_samples")),
    (make_pipeline(StandardScaler(), PCA(2)), ("transform",)),
    (make_pipeline(PCA(2), "passthrough"), ("transform",)),
    (make_pipeline(StandardScaler(), make_pipeline(PCA(3), SVC())), ("predict", "decision_function")),
]


@pytest.mark.parametrize(("estimator", "outputs"), CASES, ids=str)
@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_every_output_is_compared(estimator, outputs, name):
    estimator = fitted(estimator, name)
    held = split(name)[1]
    report = check(estimator, Native(plan(estimator)), held)
    assert report.outputs == outputs
    assert report.rows_compared == len(held)
    assert report.largest_difference <= 1e-5
    assert set(report.differences) == set(outputs) - ({"predict"} if len(outputs) > 1 else set())
    assert report.path is None and report.bytes is None and report.differences_float32 == {}


def test_label_that_differs():
    estimator = fitted(LogisticRegression(max_iter=500), "wine")
    held = split("wine")[1]
    wrong = Changed(plan(estimator), "predict", 4, lambda label: "another"[: len(label)])
    with pytest.raises(PredictionsDiffer) as caught:
        check(estimator, wrong, held)
    error = caught.value
    assert (error.output, error.count, [row[0] for row in error.rows]) == ("predict", 1, [4])
    assert "predict of 1 of 54 rows is not what scikit-learn's LogisticRegression says: row 4: " in str(error)


@pytest.mark.parametrize("output", ["predict_proba", "decision_function"])
@pytest.mark.parametrize(
    "change", [lambda x: x * (1 + 2e-5), lambda x: np.nan, lambda x: np.inf], ids=["far", "nan", "inf"]
)
def test_number_that_differs(output, change):
    estimator = fitted(LogisticRegression(max_iter=500), "iris")
    held = split("iris")[1]
    with pytest.raises(PredictionsDiffer) as caught:
        check(estimator, Changed(plan(estimator), output, 7, change), held)
    assert (caught.value.output, caught.value.count) == (output, 1)
    near = Changed(plan(estimator), output, 7, lambda x: x * (1 + 5e-6))
    assert 4e-6 < check(estimator, near, held).largest_difference < 6e-6
    with pytest.raises(PredictionsDiffer):
        check(estimator, near, held, rtol=1e-6)
    assert check(estimator, near, held, rtol=1e-6, atol=1e-3)


def test_rest_of_a_sum_near_zero():
    # 1e9 x - 1e9 y at x = y: nothing is left but rounding.
    model = LinearRegression(fit_intercept=False).fit(np.eye(2), [1e9, -1e9])
    rows = np.array([[1.0, 1.0], [2.0, 1.0]])

    class Rounded(Native):
        def predict(self, X):
            return super().predict(X) + np.array([1e-7, 0.0])

    report = check(model, Rounded(plan(model)), rows)
    assert report.near_zero == 1 and 0 < report.largest_difference < 1e-11

    class Wrong(Native):
        def predict(self, X):
            return super().predict(X) + np.array([1.0, 0.0])

    with pytest.raises(PredictionsDiffer, match="predict of 1 of 2 rows"):
        check(model, Wrong(plan(model)), rows)


def test_answers_of_another_shape():
    estimator = fitted(LinearRegression(), "diabetes")

    class Wide(Native):
        def predict(self, X):
            return super().predict(X)[:, None]

    with pytest.raises(PredictionsDiffer, match=r"an array of \(133,\) there, one of \(133, 1\) here"):
        check(estimator, Wide(plan(estimator)), split("diabetes")[1])


def test_sample_of_float32():
    estimator = fitted(make_pipeline(StandardScaler(), LogisticRegression()), "wine")
    held = split("wine")[1].astype(np.float32)
    report = check(estimator, Native(plan(estimator)), held)
    assert report.largest_difference < 1e-9
    # scikit-learn rounds between scaler and classifier: it is said, not judged.
    assert set(report.differences_float32) == {"predict_proba", "decision_function"}
    assert max(report.differences_float32.values()) > report.largest_difference


def test_components_of_float32(tmp_path):
    """Their offset is rounded to float32 by scikit-learn."""
    x = (np.random.default_rng(0).normal(size=(500, 6)) + 5).astype(np.float32)
    report = export(PCA(3).fit(x), tmp_path / "a.apr", sample=x)
    assert report.differences["transform"] < 1e-12


def test_sample_of_integers():
    """scikit-learn computes some mixtures of them in another order."""
    x = np.random.default_rng(1).integers(0, 50, size=(300, 3))
    for seed in range(5):
        estimator = GaussianMixture(3, random_state=seed).fit(x.astype(float))
        check(estimator, Native(plan(estimator)), x)


def test_clusters_of_float32_refuse_other_rows():
    held = split("iris")[1].astype(np.float32)
    estimator = KMeans(3, random_state=0, n_init=1).fit(split("iris")[0].astype(np.float32))
    assert check(estimator, Native(plan(estimator)), held, rtol=1e-4).rows_compared == len(held)


def test_sparse_sample():
    X, held, y, _ = split("digits")
    estimator = RandomForestClassifier(5, random_state=0).fit(X, y)
    for make in (sparse.csr_array, sparse.coo_matrix, sparse.csc_array):
        assert check(estimator, Native(plan(estimator)), make(held)).rows_compared == len(held)


def test_frames():
    pandas = pytest.importorskip("pandas")
    X, held, y, _ = split("iris")
    frame, rows = (pandas.DataFrame(part, columns=list("abcd")) for part in (X, held))
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, y)
    model = Native(plan(estimator))
    assert check(estimator, model, rows).rows_compared == len(held)
    assert check(estimator, model, rows.astype(np.float32)).differences_float32
    with pytest.raises(ValueError, match="another order"):
        check(estimator, model, rows[list("badc")])
    with pytest.raises(TypeError, match="holds object"):
        check(estimator, model, rows.assign(a="text"))


def test_texts():
    labels = [0, 1, 1, 0] * 5
    estimator = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, labels)
    assert check(estimator, Native(plan(estimator)), TEXTS[:3]).rows_compared == 3
    alone = CountVectorizer().fit(TEXTS)
    assert check(alone, Native(plan(alone)), tuple(TEXTS)).outputs == ("transform",)
    for sample, text in (
        ("one two", "give a list"),
        ([1, 2], "a text is a str"),
        ([b"a"], "a text is a str"),
    ):
        with pytest.raises(TypeError, match=text):
            check(estimator, Native(plan(estimator)), sample)
    with pytest.raises(ValueError, match="half a surrogate pair"):
        check(estimator, Native(plan(estimator)), ["fine", "half \udc00"])


def test_terms_are_compared_in_blocks(monkeypatch):
    from apr.sklearn import _compare

    monkeypatch.setattr(_compare, "_BLOCK", 20)
    estimator = TfidfVectorizer().fit(TEXTS)
    assert check(estimator, Native(plan(estimator)), TEXTS).rows_compared == len(TEXTS)

    class Wrong(Native):
        def transform(self, X):
            return super().transform(X) + [["five" in text and "six" in text] for text in X]

    with pytest.raises(PredictionsDiffer, match=f"of {len(TEXTS)} rows") as caught:
        check(estimator, Wrong(plan(estimator)), TEXTS)
    assert caught.value.rows[0][0] == 3


@pytest.mark.parametrize(
    ("sample", "error", "text"),
    [
        (np.zeros((0, 4)), ValueError, "no rows"),
        (np.zeros(4), ValueError, "1 dimensions"),
        (np.zeros((2, 3)), ValueError, "3 features: the estimator was fitted with 4"),
        (np.zeros((2, 4), dtype=complex), TypeError, "complex128"),
        (np.array([["a"] * 4]), TypeError, "<U1"),
        (np.zeros((2, 4), dtype=object), TypeError, "object"),
        (np.zeros((2, 4), dtype="M8[s]"), TypeError, "datetime64"),
    ],
    ids=str,
)
def test_samples_that_do_not_fit(sample, error, text):
    estimator = fitted(GaussianNB(), "iris")
    with pytest.raises(error, match=text):
        check(estimator, Native(plan(estimator)), sample)


class Saved(Native):
    """A model that can be saved: the stand-in for the native one."""

    def save(self, path, *, compression=None, metadata=None, **options):
        self.saved = (compression, metadata, options)
        with open(path, "wb") as file:
            file.write(b"a file")


def stand_in(monkeypatch, make=Saved):
    models = []

    def built(made):
        models.append(make(made))
        return models[-1]

    monkeypatch.setattr(_export, "_built", built)
    return models


def test_export_compares_and_writes(monkeypatch, tmp_path):
    models = stand_in(monkeypatch)
    estimator = fitted(make_pipeline(StandardScaler(), SVC()), "iris")
    held = split("iris")[1]
    path = tmp_path / "flowers.apr"
    report = export(
        estimator,
        path,
        sample=held,
        feature_names=list("abcd"),
        compression="zstd",
        metadata={"model_name": "flowers", "custom": {"author": "me"}},
        sign_key="k",
    )
    assert isinstance(report, Report)
    assert "<td>predict</td>" in report._repr_html_() and "flowers.apr" in report._repr_html_()
    assert (report.path, report.bytes, report.rows_compared) == (path, 6, len(held))
    compression, metadata, options = models[0].saved
    assert (compression, options) == ("zstd", {"sign_key": "k"})
    assert metadata["model_name"] == "flowers" and metadata["custom"]["author"] == "me"
    assert metadata["custom"]["apr.features"] == list("abcd")
    origin = metadata["custom"]["apr.sklearn"]
    assert origin["estimator"] == "Pipeline(StandardScaler, SVC)"
    assert origin["rows_compared"] == len(held)
    assert origin["largest_relative_difference"] == report.largest_difference


def test_nothing_is_written_if_predictions_differ(monkeypatch, tmp_path):
    class Wrong(Saved):
        def predict(self, X):
            return super().predict(X) + 1

    stand_in(monkeypatch, Wrong)
    estimator = fitted(KNeighborsClassifier(), "iris")
    path = tmp_path / "old.apr"
    path.write_bytes(b"old")
    with pytest.raises(PredictionsDiffer) as caught:
        export(estimator, path, sample=split("iris")[1])
    assert caught.value.count == 45 and len(caught.value.rows) == 5
    assert str(caught.value).endswith(f"{str(path)!r} is an older file and stays as it was")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["old.apr"]


def test_nothing_is_written_of_what_is_refused(tmp_path):
    for estimator in (GaussianNB(), SVC(kernel="precomputed")):
        with pytest.raises(NotExportable, match="not fitted") as caught:
            export(estimator, tmp_path / "a.apr", sample=[[0.0]])
        assert "older file" not in str(caught.value)
    estimator = fitted(GaussianNB(), "iris")
    with pytest.raises(ValueError, match="3 names for 4 features"):
        export(estimator, tmp_path / "a.apr", sample=split("iris")[1], feature_names=list("abc"))
    with pytest.raises(ValueError, match="two features have the name 'a'"):
        export(estimator, tmp_path / "a.apr", sample=split("iris")[1], feature_names=list("abca"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("estimator", "outputs"), CASES, ids=str)
def test_files_predict_what_the_estimator_predicts(estimator, outputs, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = fitted(estimator, "iris")
    path = tmp_path / "model.apr"
    report = export(estimator, path, sample=split("iris")[1])
    assert report.outputs == outputs
    assert check(estimator, _native.load(path), split("iris")[1]).rows_compared == 45
