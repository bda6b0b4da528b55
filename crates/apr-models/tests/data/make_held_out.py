"""Writes `held_out.json`: how well trees, forests and boosting of scikit-learn predict rows that they were not trained on.

    python make_held_out.py

Row `i` of a table is in fold `i % 5`; each fold is predicted by a model trained on the others. `score` is the accuracy over all rows,
or R2 of values; the mean over `seeds` values of `random_state`. Tables are those of `tables.json`, and breast cancer, which is added here.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import roc_auc_score  # noqa: E402
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: E402

HERE = Path(__file__).parent
FOLDS = 5


def numbers(values: np.ndarray) -> list[float]:
    """The shortest decimals of float32 values."""
    return [int(v) if v == int(v) else float(str(v)) for v in values.astype(np.float32).ravel()]


def predicted(make: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty_like(y)
    fold = np.arange(len(y)) % FOLDS
    for k in range(FOLDS):
        out[fold == k] = make().fit(x[fold != k], y[fold != k]).predict(x[fold == k])
    return out


def score(kind: str, y: np.ndarray, found: np.ndarray) -> float:
    if kind == "class":
        return float((y == found).mean())
    return float(1 - ((y - found) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def novelty(make: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Trained on rows of the most frequent class outside of fold 0: how well the scores rank those of fold 0 above other classes."""
    normal = y == np.bincount(y).argmax()
    held = np.arange(len(y)) % FOLDS == 0
    model = make().fit(x[normal & ~held])
    asked = held | ~normal
    return float(roc_auc_score(normal[asked], model.score_samples(x[asked])))


def main() -> None:
    tables = json.loads((HERE / "tables.json").read_text())["tables"]
    x, y = load_breast_cancer(return_X_y=True)
    cancer = {"rows": x.shape[0], "cols": x.shape[1], "data": numbers(x)}
    added = {"breast_cancer": {"x": cancer, "targets": {"class": [int(v) for v in y]}}}
    cases = []
    for name, target in [
        ("iris", "class"), ("wine", "class"), ("digits", "class"), ("breast_cancer", "class"), ("diabetes", "progression"),
    ]:
        table = {**tables, **added}[name]
        x = np.array(table["x"]["data"], dtype=np.float32).reshape(table["x"]["rows"], table["x"]["cols"])
        y = np.array(table["targets"][target])
        classes = target == "class"
        models = [
            ("decision_tree", DecisionTreeClassifier if classes else DecisionTreeRegressor, {} if classes else {"min_samples_leaf": 10}, 10),
            ("random_forest", RandomForestClassifier if classes else RandomForestRegressor, {}, 5),
            ("gradient_boosting", GradientBoostingClassifier if classes else GradientBoostingRegressor, {}, 3),
        ]
        for model, kind, params, seeds in models:
            scores = [score(target, y, predicted(lambda s=s: kind(random_state=s, **params), x, y)) for s in range(seeds)]
            cases.append({"table": name, "target": target, "model": model, "params": params, "seeds": seeds, "score": float(np.mean(scores)),
                          "least": min(scores), "greatest": max(scores)})
        if classes:
            scores = [novelty(lambda s=s: IsolationForest(random_state=s), x, y) for s in range(5)]
            cases.append({"table": name, "target": target, "model": "isolation_forest", "params": {}, "seeds": 5, "score": float(np.mean(scores)),
                          "least": min(scores), "greatest": max(scores)})
    made_with = {"python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    text = json.dumps({"about": __doc__.strip().splitlines()[0], "made_with": made_with, "tables": added, "cases": cases})
    (HERE / "held_out.json").write_text(text + "\n")
    for case in cases:
        print(*case.values())


if __name__ == "__main__":
    main()
