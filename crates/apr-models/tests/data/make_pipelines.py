"""Writes `pipelines/*.apr`: files that `apr.sklearn.export` makes, and `pipelines.json`: what scikit-learn says about some rows.

    python make_pipelines.py

Needs scikit-learn and this repository's Python package `apr-tools`. Seeds are fixed and one thread computes.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

os.environ.update(SOURCE_DATE_EPOCH="1767225600", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np  # noqa: E402
import scipy  # noqa: E402
import sklearn  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge  # noqa: E402
from sklearn.mixture import GaussianMixture  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor  # noqa: E402
from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, StandardScaler  # noqa: E402
from sklearn.svm import SVC, LinearSVC  # noqa: E402

from apr.sklearn import _compare, export, plan  # noqa: E402

HERE = Path(__file__).parent
ROWS = 8
CORPUS = json.loads((HERE / "corpus.json").read_text())
OUTPUTS = {
    "predict": "predict",
    "predict_proba": "shares",
    "decision_function": "decisions",
    "score_samples": "score_samples",
    "transform": "values",
}


def table(load: Any, names: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, their targets, and rows that are asked about; numbers of four digits, so that JSON holds them exactly."""
    x, y = load(return_X_y=True)
    x = np.round(x, 4)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order] if names is None else np.asarray(names)[y[order]]
    return x[ROWS:90], y[ROWS:90], x[:ROWS]


def holes(rows: np.ndarray) -> np.ndarray:
    rows = rows.copy()
    rows[::2, 1] = np.nan
    rows[3, :] = np.nan
    return rows


def cases() -> dict[str, tuple[Any, Any]]:
    iris, flowers, asked = table(load_iris)
    wine, barrels, poured = table(load_wine, ["barolo", "grignolino", "barbera"])
    cells, tumours, seen = table(load_breast_cancer, [True, False])
    patients, progress, others = table(load_diabetes)
    three = np.stack([progress, progress**2 / 100, -progress], axis=1)
    texts, labels = CORPUS["documents"], np.arange(len(CORPUS["documents"])) % 3 * 5 - 5
    unseen = [*CORPUS["unseen"], "Crème brûlée à la carte, ½ naïve", ""]
    made = {
        "ridge_of_three": (make_pipeline(StandardScaler(), Ridge()).fit(patients, three), others),
        "logistic": (make_pipeline(StandardScaler(), LogisticRegression()).fit(wine, barrels), poured),
        "linear_svc": (make_pipeline(MinMaxScaler(clip=True), LinearSVC()).fit(cells, tumours), seen),
        "svc": (make_pipeline(StandardScaler(), SVC(break_ties=True)).fit(wine, barrels), poured),
        "svc_polynomial": (SVC(kernel="poly", coef0=1.0, degree=2).fit(iris, flowers), asked),
        "random_forest": (RandomForestClassifier(7, random_state=0).fit(iris, flowers), asked),
        "extra_trees": (
            ExtraTreesRegressor(3, max_depth=5, random_state=0).fit(patients, three[:, :2]),
            others,
        ),
        "gradient_boosting": (
            GradientBoostingClassifier(n_estimators=6, random_state=0).fit(wine, barrels),
            poured,
        ),
        "histogram_boosting": (
            HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5).fit(holes(cells), tumours),
            holes(seen),
        ),
        "isolation_forest": (
            IsolationForest(n_estimators=6, max_samples=24, contamination=0.3, random_state=0).fit(iris),
            asked,
        ),
        "k_means": (make_pipeline(StandardScaler(), KMeans(3, random_state=0, n_init=2)).fit(iris), asked),
        "pca": (make_pipeline(MinMaxScaler(), PCA(3, whiten=True)).fit(wine), poured),
        "gaussian_mixture": (GaussianMixture(3, random_state=0, reg_covar=1e-3).fit(iris), asked),
        "gaussian_nb": (GaussianNB().fit(iris, flowers), asked),
        "neighbours_by_tree": (
            KNeighborsClassifier(5, weights="distance", algorithm="kd_tree", leaf_size=4).fit(iris, flowers),
            asked,
        ),
        "neighbours_by_cosine": (KNeighborsRegressor(3, metric="cosine").fit(iris, flowers * 1.5), asked),
        "network": (
            make_pipeline(
                StandardScaler(), MLPClassifier((9,), activation="tanh", max_iter=60, random_state=0)
            ).fit(wine, barrels),
            poured,
        ),
        "network_of_counts": (
            MLPRegressor(hidden_layer_sizes=(5,), loss="poisson", max_iter=60, random_state=0).fit(iris, flowers),
            asked,
        ),
        "texts": (
            make_pipeline(TfidfVectorizer(ngram_range=(1, 2), min_df=2), LogisticRegression()).fit(
                texts, labels
            ),
            unseen,
        ),
        "characters": (
            CountVectorizer(
                analyzer="char_wb", ngram_range=(2, 3), max_features=60, strip_accents="ascii"
            ).fit(texts),
            unseen,
        ),
    }
    return made


def numbers(values: Any) -> Any:
    """Lists, with null for what JSON has no number for."""
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if array.dtype.kind == "f":
        return np.where(np.isnan(array), None, array.astype(object)).tolist()
    return array.tolist()


def main() -> None:
    warnings.simplefilter("ignore")
    (HERE / "pipelines").mkdir(exist_ok=True)
    described = []
    for name, (estimator, rows) in cases().items():
        metadata = {"created_at": "2026-01-01T00:00:00Z"}
        export(estimator, HERE / "pipelines" / f"{name}.apr", sample=rows, metadata=metadata)
        head = plan(estimator)["head"]
        expected = {
            OUTPUTS[output]: numbers(getattr(estimator, output)(rows)) for output in _compare.outputs_of(head)
        }
        asked = rows if isinstance(rows, list) else numbers(rows)
        described.append({"name": name, "rows": asked, "expected": expected})
    document = {
        "about": "What scikit-learn says about rows; the files of the same names were exported from its estimators.",
        "made_with": f"scikit-learn {sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}",
        "cases": described,
    }
    (HERE / "pipelines.json").write_text(
        json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"
    )


if __name__ == "__main__":
    main()
