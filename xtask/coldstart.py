"""Starts programs around a model, and Python with scikit-learn on the same task, in turn: time from the start of the process
to its first prediction, peak memory, size.

    coldstart.py APR CHECKOUT FOLDER TARGET_DIR ROUNDS

Each program gets one row on its standard input and stays open until its answer has been read.
"""

from __future__ import annotations

import json
import os
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

TARGETS = ["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"]

PYTHON = """
import sys
import joblib
import numpy as np
model = joblib.load(sys.argv[1])
for line in sys.stdin:
    row = np.fromstring(line, sep=",", dtype=np.float32)
    print(model.predict(row[None])[0], flush=True)
"""


def safetensors(path: Path, model: str, tensors: dict[str, np.ndarray]) -> None:
    header: dict = {"__metadata__": {"apr.model": model}}
    data = b""
    for name, values in tensors.items():
        values = values.astype("<f4")
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def linear(folder: Path) -> tuple[str, Path]:
    x, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(x, y)
    joblib.dump(model, folder / "linear.joblib")
    safetensors(
        folder / "linear.safetensors",
        "LinearRegression",
        {"coefficients": model.coef_, "intercept": np.array([model.intercept_])},
    )
    return ",".join(f"{value:.9g}" for value in x[7].astype("f4")), folder / "linear.safetensors"


def forest(folder: Path) -> tuple[str, Path]:
    x, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(n_estimators=100, random_state=0).fit(x, y)
    joblib.dump(model, folder / "forest.joblib")
    tensors = {}
    for number, estimator in enumerate(model.estimators_):
        tree = estimator.tree_
        is_leaf = tree.children_left < 0
        thresholds = np.where(is_leaf, 0, tree.threshold).astype("f4")
        # The largest 32-bit number that is not above.
        above = thresholds > np.where(is_leaf, 0, tree.threshold)
        thresholds[above] = np.nextafter(thresholds[above], np.float32(-np.inf))
        parts = {
            "node_features": np.where(is_leaf, -1, tree.feature),
            "node_thresholds": thresholds,
            "node_classes": np.where(is_leaf, tree.value[:, 0].argmax(axis=1), 0),
            "node_samples": tree.n_node_samples,
            "node_left_child": tree.children_left,
            "node_right_child": tree.children_right,
            "max_depth": np.array([-1]),
            "n_features": np.array([x.shape[1]]),
        }
        tensors.update({f"tree_{number}_{name}": values for name, values in parts.items()})
    for name, value in [("n_estimators", 100), ("max_depth", -1), ("random_state", 0)]:
        tensors[name] = np.array([value])
    safetensors(folder / "forest.safetensors", "RandomForestClassifier", tensors)
    return ",".join(f"{value:.9g}" for value in x[7].astype("f4")), folder / "forest.safetensors"


def once(command: list[str], row: bytes) -> tuple[float, int, str]:
    """Seconds to the first line, peak resident KiB, and the line."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    process.stdin.write(row)
    answer = process.stdout.readline()
    seconds = time.perf_counter() - start
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0])
    process.stdin.close()
    assert process.wait() == 0
    return seconds, peak, answer.decode().strip()


def build(apr: str, checkout: str, file: Path, folder: Path, target_dir: str, opt: str) -> dict[str, Path]:
    model, project = folder / (file.stem + ".apr"), folder / f"{file.stem}-{opt}"
    subprocess.run([apr, "-q", "convert", file, model, "--force"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", project], check=True)
    name = f"{file.stem}-{opt}"
    embed = [apr, "-q", "embed", model, "-o", project, "--name", name, "--crates", checkout, "--opt", opt]
    subprocess.run(embed, check=True)
    built = {}
    for target in TARGETS:
        command = ["cargo", "build", "--release", "--quiet", "--offline", "--target", target, "--target-dir", target_dir]
        if subprocess.run(command, cwd=project, check=False).returncode == 0:
            built[target.rsplit("-", 1)[1]] = Path(target_dir) / target / "release" / name
    return built


def main() -> None:
    apr, checkout, folder, target_dir, rounds = sys.argv[1:]
    folder = Path(folder)
    print(f"Python {sys.version.split()[0]}, scikit-learn {sklearn.__version__}, {rounds} starts each, in turn\n")
    print("| model | program | size | median | p99 | peak memory |")
    print("|---|---|---|---|---|---|")
    for make in [linear, forest]:
        row, file = make(folder)
        commands, sizes = {}, {}
        for opt in ["size", "speed"]:
            for kind, path in build(apr, checkout, file, folder, target_dir, opt).items():
                label = f"{kind}, for {opt}"
                commands[label], sizes[label] = [str(path)], path.stat().st_size
        label = "Python with scikit-learn"
        commands[label] = [sys.executable, "-c", PYTHON, str(folder / f"{file.stem}.joblib")]
        results: dict[str, list[tuple[float, int, str]]] = {label: [] for label in commands}
        for _ in range(int(rounds)):
            for label, command in commands.items():
                results[label].append(once(command, row.encode() + b"\n"))
        for label, runs in results.items():
            times = sorted(seconds * 1e3 for seconds, _, _ in runs)
            size = f"{sizes[label] / 1e6:.2f} MB" if label in sizes else ""
            median, p99 = statistics.median(times), times[int(len(times) * 0.99)]
            peak = max(peak for _, peak, _ in runs) / 1024
            print(f"| {file.stem} | {label} | {size} | {median:.2f} ms | {p99:.2f} ms | {peak:.1f} MiB |")
        answers = {float(runs[0][2]) for runs in results.values()}
        spread = max(answers) - min(answers)
        assert spread <= 1e-4 * max(1.0, abs(max(answers))), answers


main()
