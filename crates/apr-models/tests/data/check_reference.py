"""Rebuilds every model of this folder from its JSON parts alone, in float32, and holds the results against `expected`.

    python check_reference.py [FOLDER]

Needs numpy only. Prints, for each output, the largest error as a share of its tolerance: 1 or more fails. It shows that the parts
are enough, that the formulas in each file's `about` are right, and that float32 arithmetic stays inside the tolerances.
"""

import json
import math
import os
import re
import sys
from collections import Counter

import numpy as np

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
F = np.float32
WORST = {}


def load(name):
    with open(os.path.join(FOLDER, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


TABLES = load("tables")["tables"]


def mat(value):
    return np.array(value["data"], dtype=F).reshape(value["rows"], value["cols"])


def vec(value):
    return np.array(value, dtype=F)


def within(model, case, output, got, want, tolerance):
    got, want = np.asarray(got, dtype=np.float64).ravel(), np.asarray(want, dtype=np.float64).ravel()
    assert got.shape == want.shape, (model, case, output, got.shape, want.shape)
    assert np.isfinite(got).all()
    allowed = tolerance["abs"] + tolerance["rel"] * np.abs(want)
    share = np.max(np.abs(got - want) / np.maximum(allowed, 1e-300), initial=0.0)
    WORST[model, case, output] = share
    return share


def equal(model, case, output, got, want):
    assert list(map(int, np.ravel(got))) == list(map(int, want)), (model, case, output)
    WORST[model, case, output] = 0.0


def flat(value):
    return value["data"] if isinstance(value, dict) else value


def compare(model, case, got, expected, exact=()):
    for output, value in got.items():
        want = flat(expected[output])
        if output in exact:
            equal(model, case["name"], output, value, want)
        else:
            within(model, case["name"], output, value, want, case["tolerance"][output])


def asked(case):
    x = mat(TABLES[case["table"]]["x"])
    return x if case["rows"] is None else x[case["rows"]]


def sigmoid(z):
    return (F(1) / (F(1) + np.exp(-z))).astype(F)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def both(p):
    return np.column_stack([F(1) - p, p])


# ------------------------------------------------------------------------------------------------------------------ models


def linear(parts, case, x):
    x = x if case["columns"] is None else x[:, case["columns"]]
    return {"predict": x @ vec(parts["coef"]) + F(parts["intercept"])}, ()


def logistic(parts, case, x):
    z = x @ mat(parts["coef"]).T + vec(parts["intercept"])
    p = both(sigmoid(z[:, 0])) if z.shape[1] == 1 else softmax(z)
    return {"predict": p.argmax(axis=1), "predict_proba": p, "decision_function": z}, ("predict",)


def leaf(tree, row):
    node, depth = 0, 0
    while tree["left"][node] >= 0:
        node = tree["left" if row[tree["feature"][node]] <= F(tree["threshold"][node]) else "right"][node]
        depth += 1
    return node, depth


def values(tree, x):
    value = vec(tree["value"]).reshape(tree["n_nodes"], tree["n_values"])
    return np.stack([value[leaf(tree, row)[0]] for row in x])


def tree_classifier(parts, case, x):
    p = values(parts["tree"], x)
    return {"predict": p.argmax(axis=1), "predict_proba": p}, ("predict",)


def tree_regressor(parts, case, x):
    return {"predict": values(parts["tree"], x)}, ()


def forest_classifier(parts, case, x, expected):
    each = np.stack([values(t, x) for t in parts["trees"]])
    mean = each.mean(axis=0, dtype=F)
    votes = np.stack([(each.argmax(axis=2) == k).sum(axis=0) for k in range(each.shape[2])], axis=1)
    soft = np.where(expected["soft_sure"], mean.argmax(axis=1), expected["soft_predict"])
    got = {
        "soft_predict": soft,
        "soft_predict_proba": mean,
        "hard_votes": votes,
        "hard_predict": votes.argmax(axis=1),
    }
    return got, ("soft_predict", "hard_votes", "hard_predict")


def forest_regressor(parts, case, x):
    return {"predict": np.stack([values(t, x) for t in parts["trees"]]).mean(axis=0, dtype=F)}, ()


def boosting_classifier(parts, case, x):
    raw = np.tile(vec(parts["init"]), (len(x), 1))
    for stage in parts["stages"]:
        raw += F(parts["learning_rate"]) * np.column_stack([values(t, x) for t in stage])
    p = both(sigmoid(raw[:, 0])) if raw.shape[1] == 1 else softmax(raw)
    return {"predict": p.argmax(axis=1), "predict_proba": p, "decision_function": raw}, ("predict",)


def boosting_regressor(parts, case, x):
    total = np.full((len(x), 1), F(parts["init"]))
    for tree in parts["trees"]:
        total += F(parts["learning_rate"]) * values(tree, x)
    return {"predict": total}, ()


def path_length(n):
    return 0.0 if n <= 1 else 1.0 if n == 2 else 2 * (math.log(n - 1) + 0.5772156649015329) - 2 * (n - 1) / n


def isolation(parts, case, x, expected):
    total = np.zeros(len(x), dtype=F)
    for tree in parts["trees"]:
        for i, row in enumerate(x):
            node, depth = leaf(tree, row)
            total[i] += F(depth + path_length(tree["n_node_samples"][node]))
    score = -np.exp2(-total / F(len(parts["trees"]) * path_length(parts["max_samples"]))).astype(F)
    decision = score - F(parts["offset"])
    label = np.where(expected["sure"], np.where(decision < 0, -1, 1), expected["predict"])
    return {"score_samples": score, "decision_function": decision, "predict": label}, ("predict",)


def distances(x, y):
    return np.stack([((row - y) ** 2).sum(axis=1, dtype=F) for row in x])


def kmeans(parts, case, x):
    centers = mat(parts["centers"])
    d = distances(x, centers)
    everything = distances(mat(TABLES[case["table"]]["x"]), centers).min(axis=1)
    return {
        "predict": d.argmin(axis=1),
        "squared_distance": d.min(axis=1),
        "inertia": everything.astype(np.float64).sum(),
    }, ("predict",)


def pca(parts, case, x):
    z = (x - vec(parts["mean"])) @ mat(parts["components"]).T
    return {"transform": z, "inverse_transform": z[:8] @ mat(parts["components"]) + vec(parts["mean"])}, ()


def mixture(parts, case, x):
    means, shape = mat(parts["means"]), parts["covariances"]["shape"]
    covariances = vec(parts["covariances"]["data"]).reshape(shape)
    kind, d = case["params"]["covariance_type"], x.shape[1]
    log = np.empty((len(x), len(means)), dtype=F)
    for k, mean in enumerate(means):
        if kind in ("spherical", "diag"):
            variance = np.broadcast_to(covariances[k], d).astype(F)
            log[:, k] = ((x - mean) ** 2 / variance).sum(axis=1) + np.log(variance).sum()
        else:
            lower = np.linalg.cholesky(covariances if kind == "tied" else covariances[k])
            z = np.linalg.solve(lower, (x - mean).T)
            log[:, k] = (z**2).sum(axis=0) + 2 * np.log(np.diag(lower)).sum()
    log = F(-0.5) * (log + F(d * math.log(2 * math.pi))) + np.log(vec(parts["weights"]))
    top = log.max(axis=1)
    score = top + np.log(np.exp(log - top[:, None]).sum(axis=1))
    return {"predict": log.argmax(axis=1), "predict_proba": softmax(log), "score_samples": score}, (
        "predict",
    )


def bayes(parts, case, x):
    joint = np.empty((len(x), len(parts["classes"])), dtype=F)
    for k, (theta, var, prior) in enumerate(
        zip(mat(parts["theta"]), mat(parts["var"]), vec(parts["class_prior"]))
    ):
        terms = np.log(F(2 * math.pi) * var) + (x - theta) ** 2 / var
        joint[:, k] = np.log(prior) - F(0.5) * terms.sum(axis=1)
    return {
        "predict": joint.argmax(axis=1),
        "predict_proba": softmax(joint),
        "joint_log_likelihood": joint,
    }, ("predict",)


def nearest(case, x):
    train = np.array(case["train_rows"])
    d = distances(x, mat(TABLES[case["table"]]["x"])[train])
    order = np.argsort(d, axis=1, kind="stable")[:, : case["params"]["n_neighbors"]]
    y = np.array(TABLES[case["table"]]["targets"][case["target"]])[train]
    farthest = np.sqrt(np.take_along_axis(d, order[:, -1:], axis=1))
    return {"neighbors": np.sort(train[order], axis=1), "kth_distance": farthest}, y[order]


def neighbours_classifier(parts, case, x):
    got, y = nearest(case, x)
    p = np.stack([(y == c).mean(axis=1) for c in parts["classes"]], axis=1)
    return got | {"predict": p.argmax(axis=1), "predict_proba": p}, ("neighbors", "predict")


def neighbours_regressor(parts, case, x):
    got, y = nearest(case, x)
    return got | {"predict": y.astype(F).mean(axis=1, dtype=F)}, ("neighbors",)


def linear_svc(parts, case, x):
    z = x @ mat(parts["coef"]).T + vec(parts["intercept"])
    label = (z[:, 0] > 0) if z.shape[1] == 1 else z.argmax(axis=1)
    return {"predict": label, "decision_function": z}, ("predict",)


def svc(parts, case, x):
    vectors, dual, intercept = mat(parts["support_vectors"]), mat(parts["dual_coef"]), vec(parts["intercept"])
    kernel = np.exp(-F(parts["gamma"]) * distances(x, vectors)) if parts["kernel"] == "rbf" else x @ vectors.T
    n = len(parts["classes"])
    if n == 2:
        z = kernel @ dual.T + intercept
        return {"predict": z[:, 0] > 0, "decision_function": z}, ("predict",)
    start = np.concatenate([[0], np.cumsum(parts["n_support"])])
    own = [slice(start[i], start[i + 1]) for i in range(n)]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    z = np.column_stack(
        [
            kernel[:, own[i]] @ dual[j - 1, own[i]] + kernel[:, own[j]] @ dual[i, own[j]] + intercept[p]
            for p, (i, j) in enumerate(pairs)
        ]
    )
    votes = np.zeros((len(x), n), dtype=int)
    for p, (i, j) in enumerate(pairs):
        votes[np.arange(len(x)), np.where(z[:, p] > 0, i, j)] += 1
    return {"predict": votes.argmax(axis=1), "decision_function": z}, ("predict",)


ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, F(0)),
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "softmax": softmax,
    "identity": lambda z: z,
}


def network(parts, x):
    for layer in parts["layers"]:
        x = ACTIVATIONS[layer["activation"]](x @ mat(layer["weights"]) + vec(layer["bias"]))
    return x


def mlp_classifier(parts, case, x):
    output = network(parts, x)
    p = both(output[:, 0]) if output.shape[1] == 1 else output
    return {"predict": p.argmax(axis=1), "predict_proba": p, "output": output}, ("predict",)


def mlp_regressor(parts, case, x):
    return {"predict": network(parts, x)}, ()


def standard(parts, case, x):
    scale = F(1) if parts["scale"] is None else vec(parts["scale"])
    mean = vec(parts["mean"]) if case["params"]["with_mean"] else F(0)
    z = (x - mean) / scale
    return {"transform": z, "inverse_transform": z * scale + mean}, ()


def min_max(parts, case, x):
    z = x * vec(parts["scale"]) + vec(parts["min"])
    return {"transform": z, "inverse_transform": (z - vec(parts["min"])) / vec(parts["scale"])}, ()


MODELS = {
    "linear_regression": linear,
    "ridge": linear,
    "lasso": linear,
    "elastic_net": linear,
    "logistic_regression": logistic,
    "decision_tree_classifier": tree_classifier,
    "decision_tree_regressor": tree_regressor,
    "random_forest_classifier": forest_classifier,
    "random_forest_regressor": forest_regressor,
    "gradient_boosting_classifier": boosting_classifier,
    "gradient_boosting_regressor": boosting_regressor,
    "isolation_forest": isolation,
    "kmeans": kmeans,
    "pca": pca,
    "gaussian_mixture": mixture,
    "gaussian_nb": bayes,
    "k_neighbors_classifier": neighbours_classifier,
    "k_neighbors_regressor": neighbours_regressor,
    "linear_svc": linear_svc,
    "svc": svc,
    "mlp_classifier": mlp_classifier,
    "mlp_regressor": mlp_regressor,
    "standard_scaler": standard,
    "min_max_scaler": min_max,
}
# These also need to know which rows are ties.
KNOWING = (forest_classifier, isolation)


def check_models():
    for model, build in MODELS.items():
        for case in load(model)["cases"]:

            def say(x, expected):
                return (
                    build(case["parts"], case, x, expected)
                    if build in KNOWING
                    else build(case["parts"], case, x)
                )

            got, exact = say(asked(case), case["expected"])
            compare(model, case, got, case["expected"], exact)
            if "probe" in case:
                got, exact = say(mat(case["probe"]["x"]), case["probe"]["expected"])
                compare(
                    model, {**case, "name": case["name"] + " probe"}, got, case["probe"]["expected"], exact
                )


def check_objectives():
    """The objective of the parts, in float64, is the stated minimum."""
    for case in load("logistic_regression")["cases"]:
        x = asked(case).astype(np.float64)
        y = np.array(TABLES[case["table"]]["targets"][case["target"]])
        y = y if case["rows"] is None else y[case["rows"]]
        coef, intercept = mat(case["parts"]["coef"]).astype(np.float64), vec(
            case["parts"]["intercept"]
        ).astype(np.float64)
        z = x @ coef.T + intercept
        z = np.column_stack([np.zeros(len(z)), z]) if z.shape[1] == 1 else z
        nll = np.logaddexp.reduce(z, axis=1) - z[np.arange(len(y)), y]
        objective = nll.mean() + case["params"]["l2"] / 2 * (coef**2).sum()
        expected = case["expected"]
        within(
            "logistic_regression",
            case["name"],
            "objective",
            objective,
            expected["objective"],
            {"abs": 0, "rel": 1e-8},
        )
        default = expected["objective_default_tol"] / expected["objective"] - 1
        assert -1e-9 < default < 1e-3, default


def check_dbscan():
    for case in load("dbscan")["cases"]:
        x, core = asked(case), set(case["parts"]["core_sample_indices"])
        close = np.sqrt(distances(x, x)) <= F(case["params"]["eps"])
        assert set(np.flatnonzero(close.sum(axis=1) >= case["params"]["min_samples"])) == core
        labels, found = [-1] * len(x), 0
        for seed in sorted(core):
            if labels[seed] != -1:
                continue
            queue = [seed]
            while queue:
                row = queue.pop()
                if labels[row] == -1:
                    labels[row] = found
                    queue += list(np.flatnonzero(close[row])) if row in core else []
            found += 1
        equal("dbscan", case["name"], "labels", labels, case["expected"]["labels"])
        assert found == case["expected"]["n_clusters"] and labels.count(-1) == case["expected"]["n_noise"]


def check_text():
    corpus = load("corpus")

    def grams(document, params):
        document = document.lower() if params["lowercase"] else document
        words = [
            w for w in re.findall(params["token_pattern"], document) if w not in (params["stop_words"] or [])
        ]
        low, high = params["ngram_range"]
        return Counter(
            " ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)
        )

    for model in ("count_vectorizer", "tfidf_vectorizer"):
        for case in load(model)["cases"]:
            params, parts = case["params"], case["parts"]
            fitted = [grams(d, params) for d in corpus["documents"]]
            n = len(fitted)
            frequency = Counter(t for g in fitted for t in g)
            top = params["max_df"] * n if isinstance(params["max_df"], float) else params["max_df"]
            kept = sorted(t for t, df in frequency.items() if params["min_df"] <= df <= top)
            if params["max_features"]:
                total = sum(fitted, Counter())
                kept = sorted(sorted(kept, key=lambda t: -total[t])[: params["max_features"]])
            assert kept == parts["vocabulary"], (case["name"], kept)
            if parts.get("idf"):
                one = int(params["smooth_idf"])
                idf = [math.log((n + one) / (frequency[t] + one)) + 1 for t in kept]
                within(model, case["name"], "idf", idf, parts["idf"], case["tolerance"]["idf"])
            for part in ("documents", "unseen"):
                row, col, value = [], [], []
                for i, document in enumerate(corpus[part]):
                    counts = grams(document, params)
                    here = [(j, counts[t]) for j, t in enumerate(kept) if t in counts]
                    weights = [F(1 if params["binary"] else c) for _, c in here]
                    if model == "tfidf_vectorizer":
                        weights = [F(1) + np.log(w) for w in weights] if params["sublinear_tf"] else weights
                        weights = (
                            [w * F(parts["idf"][j]) for w, (j, _) in zip(weights, here)]
                            if params["use_idf"]
                            else weights
                        )
                        norm = {"l2": math.sqrt(sum(w * w for w in weights)), "l1": sum(weights), None: 1}[
                            params["norm"]
                        ]
                        weights = [w / F(norm) for w in weights]
                    row += [i] * len(here)
                    col += [j for j, _ in here]
                    value += weights
                want = case["expected"][part]
                equal(model, case["name"], part + " row", row, want["row"])
                equal(model, case["name"], part + " col", col, want["col"])
                allowed = case["tolerance"].get("transform", {"abs": 0, "rel": 0})
                within(model, case["name"], part, value, want["value"], allowed)


def main():
    check_models()
    check_objectives()
    check_dbscan()
    check_text()
    for (model, case, output), share in WORST.items():
        if share > 0:
            print(f"{share:10.4f} {model} {case}: {output}")
    failed = [key for key, share in WORST.items() if share >= 1]
    print(f"{len(WORST)} outputs, {len(failed)} out of tolerance")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
