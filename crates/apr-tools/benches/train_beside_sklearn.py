"""Trains with `apr train` and with scikit-learn on the same rows, and prints held-out scores and times of fitting side by side.

    python train_beside_sklearn.py --apr PATH [--only NAME] [--big]

Five tables of scikit-learn, values rounded to float32, three tenths of the rows held out (of classes the same share of each). Scores are accuracy or
R2 on those rows, the mean over seeds; isolation forests learn the most frequent class alone, and their score is the mean of the shares of its held-out
rows that are inliers and of other rows that are outliers. scikit-learn computes on one thread, as `apr` does; each time is the least over the seeds. The
time of `apr` is that of its report: fitting, and measuring the model on the training rows. `--big` takes 100,000 x 50 values instead, also with LightGBM
and scikit-learn's histogram boosting, and prints the peak of memory of each process, which for `apr` includes reading the CSV file.

To add an algorithm, add a line to `ALGORITHMS`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from sklearn import datasets  # noqa: E402
from sklearn import ensemble, tree  # noqa: E402
from sklearn.metrics import accuracy_score, r2_score  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

SEEDS = 5


@dataclass
class Algorithm:
    """A row of the result for each table that it can learn."""

    name: str
    args: list[str]
    """Of `apr train`; `--seed` is added where `seeded`."""
    classifier: Callable[..., Any] | None
    """Makes scikit-learn's estimator for classes, of `random_state` where `seeded`."""
    regressor: Callable[..., Any] | None
    seeded: bool = True
    params: dict[str, Any] = field(default_factory=dict)


ALGORITHMS = [
    Algorithm("decision-tree", [], tree.DecisionTreeClassifier, tree.DecisionTreeRegressor),
    Algorithm("random-forest", [], ensemble.RandomForestClassifier, ensemble.RandomForestRegressor),
    Algorithm("gradient-boosting", [], ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor),
    Algorithm("isolation-forest", [], ensemble.IsolationForest, None),
]


@dataclass
class Table:
    name: str
    classes: bool
    x: np.ndarray
    x_held: np.ndarray
    y: np.ndarray
    y_held: np.ndarray


def tables() -> list[Table]:
    loaders = [
        ("iris", datasets.load_iris), ("wine", datasets.load_wine), ("digits", datasets.load_digits),
        ("breast cancer", datasets.load_breast_cancer), ("diabetes", datasets.load_diabetes),
    ]
    return [split(name, *load(return_X_y=True), classes=name != "diabetes", held=0.3) for name, load in loaders]


def split(name: str, x: np.ndarray, y: np.ndarray, *, classes: bool, held: float) -> Table:
    y = y if classes else y.astype(np.float32)
    x, x_held, y, y_held = train_test_split(
        x.astype(np.float32), y, test_size=held, random_state=0, stratify=y if classes else None
    )
    return Table(name, classes, x, x_held, y, y_held)


def write(path: Path, x: np.ndarray, y: np.ndarray | None) -> None:
    names = [f"f{col}" for col in range(x.shape[1])]
    with path.open("w") as out:
        print(*names, *(["y"] if y is not None else []), sep=",", file=out)
        for row, values in enumerate(x):
            cells = [str(value) for value in values]
            print(*cells, *([str(y[row])] if y is not None else []), sep=",", file=out)


def peak_memory(pid_usage: Any) -> float:
    """MiB of a child that ended."""
    return pid_usage.ru_maxrss / 1024


def apr(program: str, args: list[str]) -> tuple[dict[str, Any], float]:
    """What the program reports, and its peak of memory in MiB."""
    child = subprocess.Popen([program, *args, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = child.stdout.read()
    problem = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{args}: {problem.decode()}{out.decode()}")
    return json.loads(out), peak_memory(usage)


def predictions(program: str, model: Path, rows: Path, classes: bool) -> np.ndarray:
    out = subprocess.run([program, "predict", str(model), "--input", str(rows)], check=True, capture_output=True, text=True).stdout
    return np.array(out.split(), dtype=np.int64 if classes else np.float64)


def score(table: Table, found: np.ndarray) -> float:
    return float(accuracy_score(table.y_held, found) if table.classes else r2_score(table.y_held, found))


def normal(table: Table) -> int:
    return int(np.bincount(table.y).argmax())


def inlier_score(table: Table, found: np.ndarray) -> float:
    inliers = table.y_held == normal(table)
    return float(((found[inliers] == 1).mean() + (found[~inliers] == -1).mean()) / 2)


def ours(program: str, folder: Path, algorithm: Algorithm, table: Table, seed: int) -> tuple[float, float, float]:
    """Score, seconds, MiB."""
    model, held = folder / "model.apr", folder / "held.csv"
    args = ["train", algorithm.name, *algorithm.args, "-o", str(model), "--force"]
    args += ["--seed", str(seed)] if algorithm.seeded else []
    if algorithm.name == "isolation-forest":
        report, memory = apr(program, [*args, "--data", str(folder / "normal.csv")])
        return inlier_score(table, predictions(program, model, held, True)), report["seconds"], memory
    args += ["--data", str(folder / "rows.csv"), "--target", "y"]
    # Class numbers would be numbers to those that learn either.
    args += ["--classes"] if table.classes and algorithm.regressor else []
    report, memory = apr(program, args)
    return score(table, predictions(program, model, held, table.classes)), report["seconds"], memory


def theirs(algorithm: Algorithm, table: Table, seed: int) -> tuple[float, float]:
    make = algorithm.classifier if table.classes else algorithm.regressor
    estimator = make(**algorithm.params, **({"random_state": seed} if algorithm.seeded else {}))
    if algorithm.name == "isolation-forest":
        rows = table.x[table.y == normal(table)]
        begun = time.perf_counter()
        estimator.fit(rows)
        seconds = time.perf_counter() - begun
        return inlier_score(table, estimator.predict(table.x_held)), seconds
    begun = time.perf_counter()
    estimator.fit(table.x, table.y)
    seconds = time.perf_counter() - begun
    return score(table, estimator.predict(table.x_held)), seconds


def write_all(folder: Path, table: Table) -> None:
    write(folder / "rows.csv", table.x, table.y)
    write(folder / "held.csv", table.x_held, None)
    if table.classes:
        write(folder / "normal.csv", table.x[table.y == normal(table)], None)


def small(program: str, only: str | None) -> None:
    print("| table | algorithm | apr | scikit-learn | apr, ms | scikit-learn, ms |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table in tables():
            write_all(folder, table)
            for algorithm in ALGORITHMS:
                make = algorithm.classifier if table.classes else algorithm.regressor
                if make is None or only not in (None, algorithm.name):
                    continue
                seeds = range(SEEDS)
                our = [ours(program, folder, algorithm, table, seed) for seed in seeds]
                their = [theirs(algorithm, table, seed) for seed in seeds]
                print(
                    f"| {table.name} | {algorithm.name} | {np.mean([r[0] for r in our]):.3f} | {np.mean([r[0] for r in their]):.3f} "
                    f"| {1e3 * min(r[1] for r in our):.1f} | {1e3 * min(r[1] for r in their):.1f} |",
                    flush=True,
                )


def big_table() -> Table:
    x, y = datasets.make_classification(
        120_000, 50, n_informative=20, n_redundant=10, class_sep=0.7, flip_y=0.05, random_state=1
    )
    return split("big", x, y, classes=True, held=1 / 6)


LEAVES = ["--max-leaves", "31", "--min-samples-leaf", "20"]
BIG = [
    ("random forest", "random-forest", []),
    ("boosting, depth 3", "gradient-boosting", []),
    ("boosting, 31 leaves", "gradient-boosting", LEAVES),
]
PEERS = {
    "sklearn RandomForestClassifier": lambda: ensemble.RandomForestClassifier(random_state=0),
    "sklearn GradientBoostingClassifier": lambda: ensemble.GradientBoostingClassifier(random_state=0),
    "sklearn HistGradientBoostingClassifier": lambda: ensemble.HistGradientBoostingClassifier(early_stopping=False),
    "lightgbm.LGBMClassifier": lambda: lightgbm(),
}


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1)


def peer(name: str, folder: Path) -> None:
    """Runs in a process of its own, for its memory."""
    x, y, x_held, y_held = (np.load(folder / f"{part}.npy") for part in ("x", "y", "x_held", "y_held"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begun = time.perf_counter()
    estimator = PEERS[name]().fit(x, y)
    seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {accuracy_score(y_held, estimator.predict(x_held)):.4f} | {seconds:.1f} | {memory:.0f}, before fitting {before:.0f} |")


def big(program: str) -> None:
    print("| trainer, 100 trees on 100,000 x 50 | accuracy | seconds | peak MiB |")
    print("|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, table = Path(name), big_table()
        write_all(folder, table)
        for part in ("x", "y", "x_held", "y_held"):
            np.save(folder / f"{part}.npy", getattr(table, part))
        for label, algorithm, args in BIG:
            trainer = Algorithm(algorithm, args, ensemble.RandomForestClassifier, ensemble.RandomForestRegressor)
            accuracy, seconds, memory = ours(program, folder, trainer, table, 0)
            print(f"| apr, {label} | {accuracy:.4f} | {seconds:.1f} | {memory:.0f} |", flush=True)
        for label in PEERS:
            subprocess.run([sys.executable, __file__, "--apr", program, "--peer", label, str(folder)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--apr", required=True, help="the program, a release build")
    parser.add_argument("--only", help="one algorithm")
    parser.add_argument("--big", action="store_true", help="100,000 x 50 values instead, with LightGBM")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        peer(args.peer[0], Path(args.peer[1]))
    elif args.big:
        big(args.apr)
    else:
        small(args.apr, args.only)


if __name__ == "__main__":
    main()
