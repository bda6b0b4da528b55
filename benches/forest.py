"""The forest of `forest.rs` beside scikit-learn: fits one, times it, then runs the bench on the same trees and rows.

    python benches/forest.py [TREES]

needs scikit-learn. Times are the best of several calls, for a row, of one thread.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

LEAF = 0xFFFFFFFF
HERE = Path(__file__).parent


def counted(values: np.ndarray) -> bytes:
    """A list as payloads have it: its length, then its bytes."""
    return struct.pack("<Q", len(values)) + values.tobytes()


def reals(values: np.ndarray) -> bytes:
    """The same for numbers, with 32 bits if all of them fit."""
    narrow = values.astype("<f4")
    is_narrow = np.array_equal(narrow.astype("<f8"), values)
    return struct.pack("<I", is_narrow) + counted(narrow if is_narrow else values.astype("<f8"))


def payload(forest: RandomForestClassifier) -> bytes:
    """The forest as `docs/payloads.md`, section 21, has it."""
    n_classes = len(forest.classes_)
    rows: dict[bytes, int] = {}
    tree_nodes, features, thresholds, leaves = [], [], [], []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        tree_nodes.append(tree.node_count)
        ahead = [0]
        while ahead:
            node = ahead.pop()
            if tree.children_left[node] < 0:
                features.append(LEAF)
                leaves.append(rows.setdefault(tree.value[node, 0].astype("<f8").tobytes(), len(rows)))
                continue
            features.append(int(tree.feature[node]))
            # The largest 32-bit number that is not above: 32-bit values compare with it as with the threshold itself.
            threshold = np.float32(tree.threshold[node])
            if threshold > tree.threshold[node]:
                threshold = np.nextafter(threshold, np.float32(-np.inf))
            thresholds.append(threshold)
            ahead += [tree.children_right[node], tree.children_left[node]]
    parts = [
        struct.pack("<IIIQIQ", 1, 1, 0, forest.n_features_in_, 0, 1),
        struct.pack("<IIQI", 4, 0, n_classes, 0),
        reals(np.zeros(n_classes)),
        struct.pack("<d", len(tree_nodes)),
        reals(np.frombuffer(b"".join(rows), "<f8")),
        *(counted(np.array(values, "<u4")) for values in (tree_nodes, features)),
        counted(np.array(thresholds, "<f4")),
        counted(np.array(leaves, "<u4")),
        struct.pack("<II", 1, 0) + counted(np.arange(n_classes, dtype="<i8")) + struct.pack("<III", 2, 1, 0),
    ]
    return b"".join(parts)


def best(work: Callable[[], object], calls: int) -> float:
    """Seconds of the fastest of several calls."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Fits, times, and runs the bench."""
    trees = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    X, y = make_classification(12000, 20, n_informative=12, n_redundant=4, flip_y=0.1, random_state=0)
    known, rows, labels, _ = train_test_split(X, y, random_state=0)
    forest = RandomForestClassifier(trees, random_state=0, n_jobs=-1).fit(known, labels).set_params(n_jobs=None)
    one, many = (best(lambda: forest.predict_proba(rows[:1]), 20), best(lambda: forest.predict_proba(rows), 5))
    print(f"scikit-learn {sklearn.__version__}, {trees} trees: one row {one * 1e6:.0f} us, ", end="")
    print(f"a row of {len(rows)} {many / len(rows) * 1e6:.1f} us", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "payload").write_bytes(payload(forest))
        Path(folder, "rows").write_bytes(rows.astype("<f8").tobytes())
        Path(folder, "expected").write_bytes(forest.predict_proba(rows).astype("<f8").tobytes())
        command = ["cargo", "bench", "--manifest-path", str(HERE / "Cargo.toml"), "--bench", "forest"]
        subprocess.run(command, env={**os.environ, "FOREST": folder}, check=True)


main()
