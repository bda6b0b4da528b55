"""Models of apr.sklearn beside the estimators they were made of, in one process and in turn: medians and ratios.

usage: beside_sklearn.py [--trees N] [ROW...]

Needs scikit-learn beside the package. Both sides have as many threads as they take by themselves: forests of scikit-learn one
without n_jobs, apr one for each processor from 2,048 rows on. Prints rows for docs/performance.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import apr
import apr.sklearn


def in_turn(calls: list[Callable[[], Any]], budget: float = 3.0) -> list[float]:
    """Median seconds of each call; the calls take turns, each first as often as the others."""
    seconds: list[list[float]] = [[] for _ in calls]
    begun = time.perf_counter()
    turn = 0
    while turn < 5 or (turn < 301 and time.perf_counter() - begun < budget):
        order = range(len(calls))
        gc.collect(0)
        for place in order if turn % 2 else reversed(order):
            start = time.perf_counter()
            calls[place]()
            seconds[place].append(time.perf_counter() - start)
        turn += 1
    return [statistics.median(times) for times in seconds]


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def model_of(estimator: Any, rows: Any) -> tuple[apr.Model, int]:
    """The model as a file has it, whose predictions are compared before anything is timed; and the size of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.apr")
        apr.sklearn.export(estimator, path, sample=rows[:300])
        size = os.path.getsize(path)
        return apr.load(path), size


def row(what: str, estimator: Any, rows: Any, *, methods: tuple[str, ...] = ("predict",)) -> None:
    model, size = model_of(estimator, rows)
    for method in methods:
        cells = [f"{what}, `{method}`", f"{size / 1e6:.3g} MB"]
        theirs, ours = getattr(estimator, method), getattr(model, method)
        single = rows[:1]
        for asked in (single, rows):
            mine, reference = in_turn([lambda: ours(asked), lambda: theirs(asked)])
            cells += [shown(mine), shown(reference), f"{reference / mine:.3g}x"]
        print(f"| {' | '.join(cells)} |", flush=True)


def many(rows: np.ndarray, count: int) -> np.ndarray:
    """So many rows: those that there are, again and again, a little changed."""
    noise = np.random.default_rng(0).normal(0.0, 0.01, (count, rows.shape[1]))
    return np.ascontiguousarray(rows[np.arange(count) % len(rows)] + noise * rows.std(0))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trees", type=int, default=2000)
    parser.add_argument("rows", nargs="*", help="words that the rows have")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    digits, classes = load_digits(return_X_y=True)
    cells, tumours = load_breast_cancer(return_X_y=True)
    patients, progress = load_diabetes(return_X_y=True)
    trees = options.trees
    words = np.array([f"word{idx}" for idx in range(3000)])
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 80)) for _ in range(2000)]
    topics = rng.integers(0, 4, len(texts))

    def fitted(estimator: Any, x: Any, y: Any) -> Callable[[], Any]:
        return lambda: estimator.fit(x, y)

    table: list[tuple[str, Callable[[], Any], Any, tuple[str, ...]]] = [
        (
            f"{trees:,} trees, digits",
            fitted(RandomForestClassifier(trees, random_state=0), digits, classes),
            many(digits, 5000),
            ("predict", "predict_proba"),
        ),
        (
            f"{trees:,} trees, breast_cancer",
            fitted(RandomForestClassifier(trees, random_state=0), cells, tumours),
            many(cells, 5000),
            ("predict",),
        ),
        (
            f"{trees:,} trees of a regression, diabetes",
            fitted(RandomForestRegressor(trees, random_state=0), patients, progress),
            many(patients, 5000),
            ("predict",),
        ),
        (
            "GradientBoostingClassifier, digits",
            fitted(GradientBoostingClassifier(random_state=0), digits, classes),
            many(digits, 5000),
            ("predict",),
        ),
        (
            "HistGradientBoostingClassifier, digits",
            fitted(HistGradientBoostingClassifier(random_state=0), digits, classes),
            many(digits, 5000),
            ("predict",),
        ),
        (
            "StandardScaler, LogisticRegression, digits",
            fitted(make_pipeline(StandardScaler(), LogisticRegression()), digits, classes),
            many(digits, 5000),
            ("predict",),
        ),
        (
            "SVC, digits",
            fitted(SVC(), digits, classes),
            many(digits, 1000),
            ("predict",),
        ),
        (
            "KNeighborsClassifier by kd-tree, breast_cancer",
            fitted(KNeighborsClassifier(algorithm="kd_tree"), cells, tumours),
            many(cells, 2000),
            ("predict",),
        ),
        (
            "MLPClassifier of 100, digits",
            fitted(MLPClassifier(max_iter=30, random_state=0), digits, classes),
            many(digits, 5000),
            ("predict",),
        ),
        (
            "TfidfVectorizer, LogisticRegression, texts of 80 words",
            fitted(make_pipeline(TfidfVectorizer(), LogisticRegression()), texts, topics),
            texts,
            ("predict",),
        ),
    ]
    print(f"scikit-learn {sklearn.__version__}, {os.cpu_count()} processors")
    print(
        "| model | file | a row: apr | scikit-learn | ratio | all rows: apr | scikit-learn | ratio |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    for what, make, rows, methods in table:
        if not options.rows or any(word in what for word in options.rows):
            estimator = make()
            row(f"{what}, {len(rows):,} rows", estimator, rows, methods=methods)
            if hasattr(estimator, "n_jobs") and hasattr(estimator, "estimators_"):
                row(f"the same, `n_jobs={os.cpu_count()}`", estimator.set_params(n_jobs=-1), rows)


if __name__ == "__main__":
    main()
