"""Students of `apr distill` beside the same students trained on labels alone.

    python distill.py --apr PATH [--seeds 5]

Needs scikit-learn and pandas, for the tables. A forest of 500 trees teaches a softmax layer and a network of 32 units. Forest and students
learn from four fifths of the rows, and are measured on the others, drawn anew with each seed. Prints means and standard deviations.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import pandas as pd
from sklearn import datasets

STUDENTS = {"softmax": ["--student", "softmax"], "network of 32": ["--student", "mlp", "--hidden", "32"]}
METRICS = ["agreement", "kl", "accuracy", "log_loss", "calibration_error"]


def tables(folder):
    """Writes the tables, and gives their names and paths."""
    frames = {
        "digits": datasets.load_digits(as_frame=True).frame,
        "wine": datasets.load_wine(as_frame=True).frame,
        "breast cancer": datasets.load_breast_cancer(as_frame=True).frame,
    }
    x, y = datasets.make_classification(
        4000, 30, n_informative=15, n_classes=20, n_clusters_per_class=1, random_state=1
    )
    frames["20 classes"] = pd.DataFrame(x.astype("f4"), columns=[f"f{i}" for i in range(30)]).assign(target=y)
    for name, frame in frames.items():
        path = folder / f"{name}.csv"
        frame.to_csv(path, index=False)
        yield name, path


def run(apr, *args):
    """The JSON object that a command prints."""
    done = subprocess.run([apr, *map(str, args), "--json", "--force"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{args}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def shown(values):
    spread = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):.3f} ± {spread:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apr", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    apr = args.apr.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print("| table | student | " + " | ".join(METRICS) + " |")
        print("|---|---|" + "---|" * len(METRICS))
        for name, table in tables(folder):
            found = {}
            for seed in range(args.seeds):
                split = ["--data", table, "--target", "target", "--test-share", "0.2", "--seed", seed]
                forest = ["--trees", "500", "--classes", "-o", folder / "forest.apr"]
                run(apr, "train", "random-forest", *split, *forest)
                for student, options in STUDENTS.items():
                    report = run(apr, "distill", folder / "forest.apr", *split, *options, "-o", folder / "student.apr")
                    for of, metrics in report["metrics"].items():
                        row = {"teacher": "forest", "student": student, "labels_only": f"{student}, labels alone"}[of]
                        for metric in METRICS:
                            found.setdefault(row, {}).setdefault(metric, {})[seed] = metrics[metric]
            for row, metrics in found.items():
                cells = [shown(list(metrics[metric].values())) for metric in METRICS]
                print(f"| {name} | {row} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
