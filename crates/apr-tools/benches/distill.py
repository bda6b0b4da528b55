"""Students of `apr distill` beside the same students trained on labels alone, and beside a reference in NumPy.

    python distill.py --apr PATH [--seeds 5] [--test-share 0.5] [--only TABLE] [--set forest|network|ensemble|svm]
                      [--students NAME NAME...] [--no-reference]

Needs scikit-learn 1.9 and pandas. Teacher and students learn from the same rows, and are measured on the others, drawn anew with each
seed. `forest`: a forest of 500 trees teaches a network of 32 units, directly and through one of 64, a softmax layer and a tree.
`network`: a network of 128 and 64 units teaches one of 32 and 16, its hidden layers matched first or not. `ensemble`: a forest, boosted trees
and a support vector machine teach a network of 32. `svm`: that machine alone teaches. Prints means and standard deviations.

The reference is written from the definitions and shares no code with `apr`: the teacher's probabilities and the rows are the same, the
networks begin with other random weights. Its trees are scikit-learn's.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.tree import DecisionTreeRegressor

T, ALPHA, EPOCHS, BATCH, RATE = 3.0, 0.7, 200, 32, 0.001
N_TREES = 500
METRICS = ["agreement", "kl", "accuracy", "log_loss", "calibration_error"]
MLP = ["--student", "mlp", "--hidden"]
# Options of students, and whether the same student of labels alone is shown. `None` is ten times the rows of the training, for synthetic ones.
SETS = {
    "forest": {
        "network of 32": ([*MLP, "32"], True),
        "network of 32 through 64": ([*MLP, "32", "--assistants", "1"], False),
        "softmax": (["--student", "softmax"], True),
        "tree": (["--student", "tree"], True),
        "tree, synthetic rows": (["--student", "tree", "--synthesize", None], False),
        "network of 32, synthetic rows": ([*MLP, "32", "--synthesize", None, "--epochs", "20"], False),
        "tree of depth 6": (["--student", "tree", "--max-depth", "6"], True),
    },
    "network": {
        "network of 32, 16": ([*MLP, "32,16"], True),
        "network of 32, 16, layers 0:0,1:1 first": ([*MLP, "32,16", "--layer-map", "0:0,1:1"], False),
        "network of 32, 16 through 64, 32": ([*MLP, "32,16", "--assistants", "1"], False),
    },
    "ensemble": {
        "network of 32": ([*MLP, "32"], True),
        "network of 32, mean of logits": ([*MLP, "32", "--average", "logits"], False),
    },
    "svm": {
        "network of 32": ([*MLP, "32"], True),
        "softmax": (["--student", "softmax"], True),
    },
}
# Students of the reference: hidden units (`None` is a tree), weight of the teacher, and whether votes are smoothed.
REFERENCES = {
    "network of 32, reference": (32, ALPHA, True),
    "network of 32, reference, least probability 1e-7": (32, ALPHA, False),
    "network of 32, reference, labels alone": (32, 0.0, True),
    "softmax, reference": (0, ALPHA, True),
    "softmax, reference, labels alone": (0, 0.0, True),
    "tree, reference": (None, ALPHA, True),
    "tree, reference, least probability 0": (None, ALPHA, False),
    "tree, reference, labels alone": (None, 0.0, True),
}


def tables():
    """Names, samples and classes."""
    for name, load in [
        ("digits", datasets.load_digits),
        ("wine", datasets.load_wine),
        ("breast cancer", datasets.load_breast_cancer),
    ]:
        data = load()
        yield name, data.data.astype("f4"), data.target
    x, y = datasets.make_classification(
        4000, 30, n_informative=15, n_classes=20, n_clusters_per_class=1, class_sep=1.8, random_state=1
    )
    yield "20 classes", x.astype("f4"), y


def run(apr, *args):
    done = subprocess.run([apr, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{args}: {done.stderr}{done.stdout}")
    return done.stdout


class Random:
    """xoshiro256++ seeded by SplitMix64: what `apr` draws the rows held out with."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & self.MASK
            z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.MASK
            self.state.append(z ^ (z >> 31))

    def bits(self):
        a, b, c, d = self.state
        turned = lambda x, by: ((x << by) | (x >> (64 - by))) & self.MASK
        out = (turned((a + d) & self.MASK, 23) + a) & self.MASK
        shifted = (b << 17) & self.MASK
        c, d = c ^ a, d ^ b
        self.state = [a ^ d, b ^ c, c ^ shifted, turned(d, 45)]
        return out

    def below(self, count):
        while True:
            product = self.bits() * count
            if product & self.MASK >= (-count & self.MASK) % count:
                return product >> 64


def held_out(y, share, seed):
    random, out = Random(seed), np.zeros(len(y), bool)
    for label in np.unique(y):
        rows = list(np.flatnonzero(y == label))
        for last in range(len(rows) - 1, 0, -1):
            other = random.below(last + 1)
            rows[last], rows[other] = rows[other], rows[last]
        out[rows[: min(int(len(rows) * share + 0.5), len(rows) - 1)]] = True
    return out


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def reference_network(x, y, teacher, hidden, seed, alpha):
    """The forward function of a network trained with Adam on `alpha T^2 KL + (1 - alpha) CE`."""
    random = np.random.default_rng(seed)
    k = teacher.shape[1]
    smoothed = np.maximum(teacher, 1e-7)
    soft = smoothed ** (1 / T) / (smoothed ** (1 / T)).sum(1, keepdims=True)
    hard = np.eye(k)[y]
    widths = [x.shape[1], *([hidden] if hidden else []), k]
    # He et al. before ReLU, Glorot and Bengio before the softmax.
    bounds = [np.sqrt(6 / (a + (b if b == k else 0))) for a, b in zip(widths, widths[1:])]
    parameters = [random.uniform(-s, s, (a, b)) for s, a, b in zip(bounds, widths, widths[1:])]
    parameters += [np.zeros(b) for b in widths[1:]]
    n_layers = len(widths) - 1
    first, second = [np.zeros_like(p) for p in parameters], [np.zeros_like(p) for p in parameters]

    def forward(x):
        outputs = [x]
        for layer in range(n_layers):
            z = outputs[-1] @ parameters[layer] + parameters[n_layers + layer]
            outputs.append(z if layer == n_layers - 1 else np.maximum(z, 0))
        return outputs

    step = 0
    for _ in range(EPOCHS):
        order = random.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            outputs = forward(x[rows])
            gradient = (1 - alpha) * (softmax(outputs[-1]) - hard[rows])
            gradient = (gradient + alpha * T * (softmax(outputs[-1] / T) - soft[rows])) / len(rows)
            gradients = [None] * len(parameters)
            for layer in reversed(range(n_layers)):
                gradients[layer] = outputs[layer].T @ gradient
                gradients[n_layers + layer] = gradient.sum(0)
                gradient = (gradient @ parameters[layer].T) * (outputs[layer] > 0)
            step += 1
            for p, g, m, v in zip(parameters, gradients, first, second):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= RATE / (1 - 0.9**step) * m / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return lambda x: softmax(forward(x)[-1])


def reference(x, y, teacher, seed, hidden, alpha, smooths):
    """A function from samples to probabilities."""
    k = teacher.shape[1]
    if smooths:
        teacher = (N_TREES * teacher + 1) / (N_TREES + k)
    if hidden is None:
        mixed = alpha * teacher + (1 - alpha) * np.eye(k)[y]
        return DecisionTreeRegressor(max_depth=12, min_samples_leaf=5, random_state=0).fit(x, mixed).predict
    mean, deviation = x.mean(0), x.std(0)
    deviation[deviation == 0] = 1
    scaled = lambda x: ((x - mean) / deviation).astype("f8")
    network = reference_network(scaled(x), y, teacher, hidden, seed, alpha)
    return lambda x: network(scaled(x))


def measured(said, teacher, y):
    least = np.finfo(float).eps
    right = said.argmax(1) == y
    bins = np.minimum((said.max(1) * 15).astype(int), 14)
    terms = np.where(teacher > 0, teacher * np.log(np.maximum(teacher, 1e-300) / np.maximum(said, least)), 0)
    return {
        "agreement": (said.argmax(1) == teacher.argmax(1)).mean(),
        "kl": terms.sum(1).mean(),
        "accuracy": right.mean(),
        "log_loss": -np.log(np.clip(said[np.arange(len(y)), y], least, 1 - least)).mean(),
        "calibration_error": sum(abs((right - said.max(1))[bins == b].sum()) for b in range(15)) / len(y),
    }


def shown(values):
    spread = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):.3f} ± {spread:.3f}"


def teachers(apr, folder, kind, split):
    """Trains them, and returns their files and the words for them."""

    def train(name, *options):
        run(apr, "train", *options[:1], *split, *options[1:], "-o", folder / name, "--force", "--quiet")
        return folder / name

    forest = lambda: train("forest.apr", "random-forest", "--trees", N_TREES, "--classes")
    machine = lambda: train("svm.apr", "svm", "--standardize")
    if kind == "network":
        network = train("network.apr", "mlp", "--classes", "--hidden", "128,64", "--learning-rate", RATE)
        return [network], "network of 128, 64"
    if kind == "ensemble":
        return [forest(), train("boosted.apr", "gradient-boosting", "--classes"), machine()], "ensemble"
    return ([machine()], "svm") if kind == "svm" else ([forest()], "forest")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apr", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--test-share", type=float, default=0.5)
    parser.add_argument("--only")
    parser.add_argument("--set", choices=SETS, default="forest", dest="kind")
    parser.add_argument("--students", nargs="+", help="those of the set with these names; all unless told")
    parser.add_argument("--no-reference", action="store_true")
    args = parser.parse_args()
    students = {name: of for name, of in SETS[args.kind].items() if args.students is None or name in args.students}
    apr = args.apr.resolve()
    print("| table | model | " + " | ".join(METRICS) + " |")
    print("|---|---|" + "---|" * len(METRICS))
    for name, x, y in tables():
        if args.only not in (None, name):
            continue
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            table = folder / "table.csv"
            columns = [f"f{column}" for column in range(x.shape[1])]
            pd.DataFrame(x, columns=columns).assign(target=y).to_csv(table, index=False)
            for seed in range(args.seeds):
                split = ["--data", table, "--target", "target", "--test-share", args.test_share, "--seed", seed]
                files, teacher_name = teachers(apr, folder, args.kind, split)
                add = lambda row, metrics: found.setdefault(row, []).append(metrics)
                for student, (options, has_baseline) in students.items():
                    learned = int((~held_out(y, args.test_share, seed)).sum())
                    options = [10 * learned if option is None else option for option in options]
                    out = run(apr, "distill", *files, *split, *options, "-o", folder / "s.apr", "--json", "--force", "--quiet")
                    report = json.loads(out)
                    metrics = report["metrics"]
                    if student == next(iter(students)):
                        add(teacher_name, metrics["teacher"])
                        for file, member in zip(files, report.get("members", [])):
                            add(f"{file.stem} of it", member["metrics"])
                    add(student, metrics["student"])
                    if has_baseline:
                        add(f"{student}, labels alone", metrics["labels_only"])
                if args.kind == "forest" and not args.no_reference:
                    said = run(apr, "predict", files[0], "-i", table, "--proba", "--quiet").splitlines()
                    teacher = np.array([line.split(",")[1:] for line in said[-len(y) :]], float)
                    out = held_out(y, args.test_share, seed)
                    for row, (hidden, alpha, smooths) in REFERENCES.items():
                        model = reference(x[~out], y[~out], teacher[~out], seed, hidden, alpha, smooths)
                        add(row, measured(model(x[out]), teacher[out], y[out]))
        for row, metrics in found.items():
            cells = [shown([of_seed[metric] for of_seed in metrics]) for metric in METRICS]
            print(f"| {name} | {row} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
