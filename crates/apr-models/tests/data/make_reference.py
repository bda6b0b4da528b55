"""Writes the reference data in this folder: small tables, models fitted by scikit-learn, and what those models say.

    python make_reference.py [FOLDER]      (default: the folder of this file)

Needs numpy and scikit-learn, nothing else; reads only the tables scikit-learn brings along and the sentences below.
`README.md` beside this file states the schema; `check_reference.py` proves that the files alone are enough.

How the numbers come about:

* Every table is rounded to float32 first, so that all sides see equal input. Models are fitted on those values widened to
  float64, because scikit-learn would otherwise do some of its arithmetic in float32 and be the less exact side.
* Fitted parts are rounded to float32 and, where the estimator allows it, put back before anything is predicted. What remains
  between the expected values and a float32 implementation is arithmetic, not rounding of the parameters.
* Trees compare float32 features with float64 thresholds. For float32 x, `x <= t` equals `x <= floor32(t)` where floor32 is the
  largest float32 not above t, so `threshold` holds that value and every decision is equal bit for bit.
* A row whose label hangs on the last bits (ties) would test luck: cases state the rows they cover, and the margins are asserted.
"""

import json
import os
import platform
import sys
import warnings

# More threads would add in another order and change last bits from machine to machine.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import scipy
import sklearn
from sklearn import datasets
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error, pairwise_distances, r2_score
from sklearn.mixture import GaussianMixture
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))

MADE_WITH = {
    "python": platform.python_version(),
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "scikit-learn": sklearn.__version__,
}

DOCUMENTS = [
    "The cat sat on the mat, and the dog sat on the cat.",
    "A quick brown fox jumps over the lazy dog near the river bank.",
    "River water runs down from the hill to the sea.",
    "The bank raised its interest rate by 25 points in March.",
    "Interest in the old bank building rose when the river fell.",
    "Dogs bark; cats purr; foxes do neither in my garden.",
    "My garden has a cat-flap, a fox-hole and a well-kept lawn.",
    "Le café près de la rivière sert un thé très chaud.",
    "Ein Fuchs läuft über die Straße zum Café am Ufer.",
    "ΑΘΗΝΑ is written Αθήνα when nobody shouts.",
    "snake_case names and CamelCase names are both names.",
    "It's the dog's bone, isn't it? I'd say it is.",
    "Version 2.0 of file_7 has 3 errors and 12 warnings.",
    "errors errors errors: the file is full of errors!",
    "I a b c",
    "The quick brown fox is quick; the lazy dog is lazy.",
    "Rates, points, and the price of water: March was dry.",
    "A dry hill, a dry river, a dry sea of sand.",
    "Names of hills are older than names of towns.",
    "The sea takes the sand and the sand takes the sea.",
]

# Words never seen, no words at all, nothing at all.
UNSEEN = [
    "The dog and the fox sat by the river, the RIVER and the sea.",
    "Entirely novel vocabulary everywhere.",
    "",
    "?! ... a I",
    "CAFÉ café Café, names in file_7, 25 errors",
]


# ---------------------------------------------------------------------------------------------------------------- writing


def shortest(value):
    """The shortest decimal that is this float32, also when a reader goes through float64."""
    value = np.float32(value)
    assert np.isfinite(value), value
    text = str(value)
    text = text[:-2] if text.endswith(".0") else text
    assert np.float32(float(text)) == value
    return text


def text_of(value, depth=0):
    """Compact JSON; one line for each member of the outer levels so that differences can be read."""
    if isinstance(value, dict):
        if depth >= 4 or not value:
            return "{" + ",".join(f"{text_of(k)}:{text_of(v, depth + 1)}" for k, v in value.items()) + "}"
        pad = " " * (depth + 1)
        inner = ",\n".join(f"{pad}{text_of(k)}: {text_of(v, depth + 1)}" for k, v in value.items())
        return "{\n" + inner + "\n" + " " * depth + "}"
    if isinstance(value, (list, tuple)):
        if depth <= 1 and value and isinstance(value[0], dict):
            pad = " " * (depth + 1)
            return "[\n" + ",\n".join(pad + text_of(v, depth + 1) for v in value) + "\n" + " " * depth + "]"
        return "[" + ",".join(text_of(v, 9) for v in value) + "]"
    if isinstance(value, np.ndarray):
        assert value.ndim == 1, value.shape
        return "[" + ",".join(text_of(v) for v in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "null"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, np.float32):
        return shortest(value)
    if isinstance(value, (float, np.float64)):
        assert np.isfinite(value), value
        return repr(float(value))
    raise TypeError(type(value))


def write(name, content):
    with open(os.path.join(FOLDER, name + ".json"), "w", encoding="utf-8", newline="\n") as file:
        file.write(text_of(content) + "\n")


def write_model(name, about, cases):
    write(name, {"model": name, "about": about, "made_with": MADE_WITH, "cases": cases})


def vec(values):
    """A vector of float32."""
    return np.asarray(values, dtype=np.float64).astype(np.float32).ravel()


def mat(values):
    """A matrix of float32, row by row."""
    values = np.atleast_2d(np.asarray(values, dtype=np.float64))
    return {"rows": values.shape[0], "cols": values.shape[1], "data": vec(values)}


def ints(values):
    return np.asarray(values).astype(np.int64).ravel()


def tol(absolute, relative=0.0):
    """|got - want| <= abs + rel * |want|."""
    return {"abs": absolute, "rel": relative}


def rounded(values):
    """Values a float32 can hold, in float64."""
    return np.asarray(values, dtype=np.float64).astype(np.float32).astype(np.float64)


def put_back(model, *names):
    """Rounds fitted parts to float32 in place, so that predictions are those of the parts we write."""
    for name in names:
        part = getattr(model, name)
        setattr(model, name, [rounded(p) for p in part] if isinstance(part, list) else rounded(part))
    return model


def floor32(values):
    """The largest float32 not above each value."""
    values = np.asarray(values, dtype=np.float64)
    near = values.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > values, below, near).astype(np.float32)


# ----------------------------------------------------------------------------------------------------------------- tables


class Table:
    def __init__(self, x, names, about, **targets):
        self.x = rounded(x)
        self.names = list(names)
        self.about = about
        self.targets = targets


def standardised(table, about):
    return Table(StandardScaler().fit_transform(table.x), table.names, about, **table.targets)


def tables():
    iris, wine, diabetes, digits = (
        datasets.load_iris(),
        datasets.load_wine(),
        datasets.load_diabetes(),
        datasets.load_digits(),
    )
    made = {
        "iris": Table(
            iris.data,
            iris.feature_names,
            "iris: 150 flowers, 4 lengths in cm; class 0 setosa, 1 versicolor, 2 virginica",
            **{"class": iris.target, "is_virginica": (iris.target == 2).astype(int)},
        ),
        "wine": Table(
            wine.data,
            wine.feature_names,
            "wine: 178 wines, 13 measurements; class: 3 growers",
            **{"class": wine.target, "is_class_0": (wine.target == 0).astype(int)},
        ),
        "diabetes": Table(
            diabetes.data,
            diabetes.feature_names,
            "diabetes: 442 patients, 10 columns as scikit-learn scales them; progression: the measure a year later; progression_std: to mean 0 and deviation 1",
            progression=rounded(diabetes.target),
            progression_std=rounded((diabetes.target - diabetes.target.mean()) / diabetes.target.std()),
        ),
        "digits": Table(
            digits.data[:200],
            [f"pixel_{i}" for i in range(64)],
            "digits: the first 200 images, 8 x 8 pixels of 0..16; class: the digit. Some columns are constant",
            **{"class": digits.target[:200]},
        ),
    }
    made["iris_std"] = standardised(
        made["iris"], "iris, each column to mean 0 and population deviation 1, then float32"
    )
    made["wine_std"] = standardised(
        made["wine"], "wine, each column to mean 0 and population deviation 1, then float32"
    )
    return made


T = tables()


def write_tables():
    content = {}
    for name, t in T.items():
        targets = {k: ints(v) if v.dtype.kind == "i" else vec(v) for k, v in t.targets.items()}
        content[name] = {"about": t.about, "columns": t.names, "x": mat(t.x), "targets": targets}
    write(
        "tables",
        {
            "about": "x and targets as every model file refers to them by name",
            "made_with": MADE_WITH,
            "tables": content,
        },
    )
    write("corpus", {"about": "sentences for the vectorizers", "documents": DOCUMENTS, "unseen": UNSEEN})


def case(
    name,
    table,
    target=None,
    params=None,
    parts=None,
    expected=None,
    tolerance=None,
    train_rows=None,
    rows=None,
    **more,
):
    """One fitted model. `rows` are those that `expected` covers; null means all of the table, in order."""
    return {
        "name": name,
        "table": table,
        "target": target,
        "train_rows": None if train_rows is None else ints(train_rows),
        "rows": None if rows is None else ints(rows),
        "params": params or {},
        "parts": parts,
        "expected": expected,
        "tolerance": tolerance or {},
        **more,
    }


# ---------------------------------------------------------------------------------------------------------- linear models


def linear():
    x, y = T["diabetes"].x, T["diabetes"].targets["progression"]
    columns = [2, 3, 8]

    def one(name, model, params, tolerance, x=x, columns=None):
        model.fit(x, y)
        fitted = model.predict(x)
        quality = {"mse": mean_squared_error(y, fitted), "r2": r2_score(y, fitted)}
        put_back(model, "coef_", "intercept_")
        return case(
            name,
            "diabetes",
            "progression",
            params,
            {"coef": vec(model.coef_), "intercept": np.float32(model.intercept_)},
            {"predict": vec(model.predict(x)), **quality},
            {"predict": tol(1e-4, 2e-6), **tolerance},
            columns=columns,
        )

    trained = {
        "predict_trained": tol(1e-2, 1e-4),
        "coef": tol(0.05, 1e-3),
        "intercept": tol(1e-2, 1e-4),
        "mse": tol(0.0, 1e-5),
        "r2": tol(1e-5),
    }
    write_model(
        "linear_regression",
        "Ordinary least squares: minimises sum (y - x.coef - intercept)^2. mse = mean squared residual on the training rows.",
        [
            one("diabetes", LinearRegression(), {"fit_intercept": True}, trained),
            one(
                "diabetes_no_intercept",
                LinearRegression(fit_intercept=False),
                {"fit_intercept": False},
                trained,
            ),
            one(
                "diabetes_3_columns",
                LinearRegression(),
                {"fit_intercept": True},
                trained,
                x[:, columns],
                columns,
            ),
        ],
    )
    write_model(
        "ridge",
        "Minimises sum (y - x.coef - intercept)^2 + alpha * |coef|^2; the intercept is not penalised, the sum is not divided by n.",
        [
            one(
                f"diabetes_alpha_{a:g}",
                Ridge(alpha=a, solver="cholesky"),
                {"alpha": a, "fit_intercept": True},
                trained,
            )
            for a in (0.01, 0.1, 1.0, 10.0)
        ],
    )
    tight = {"tol": 1e-10, "max_iter": 100000}
    write_model(
        "lasso",
        "Minimises sum (y - x.coef - intercept)^2 / (2 n) + alpha * |coef|_1; the intercept is not penalised.",
        [one(f"diabetes_alpha_{a:g}", Lasso(alpha=a, **tight), {"alpha": a}, trained) for a in (0.1, 1.0)],
    )
    write_model(
        "elastic_net",
        "Minimises sum (y - x.coef - intercept)^2 / (2 n) + alpha * l1_ratio * |coef|_1 + alpha * (1 - l1_ratio) / 2 * |coef|^2; "
        "the intercept is not penalised.",
        [
            one(
                f"diabetes_alpha_{a:g}_l1_{r:g}",
                ElasticNet(alpha=a, l1_ratio=r, **tight),
                {"alpha": a, "l1_ratio": r},
                trained,
            )
            for a, r in ((0.001, 0.5), (0.01, 0.9))
        ],
    )


def logistic_objective(model, x, y, c):
    """Mean negative log likelihood plus |coef|^2 / (2 C n), in float64 and without the clipping of `log_loss`."""
    z = x @ model.coef_.T + model.intercept_
    if z.shape[1] == 1:
        nll = np.logaddexp(0.0, np.where(y == 1, -z[:, 0], z[:, 0]))
    else:
        nll = np.logaddexp.reduce(z, axis=1) - z[np.arange(len(y)), y]
    penalty = 0.0 if np.isinf(c) else (model.coef_**2).sum() / (2 * c * len(y))
    return float(nll.mean() + penalty), float(nll.mean())


def logistic():
    def one(name, table, target, c, rows=None):
        chosen = slice(None) if rows is None else rows
        x, y = T[table].x[chosen], T[table].targets[target][chosen]
        usual = LogisticRegression(C=c, max_iter=10000).fit(x, y)
        model = LogisticRegression(C=c, max_iter=100000, tol=1e-12).fit(x, y)
        objective, mean_log_loss = logistic_objective(model, x, y, c)
        usual_objective, usual_mean_log_loss = logistic_objective(usual, x, y, c)
        put_back(model, "coef_", "intercept_")
        decision = model.decision_function(x)
        assert (
            np.abs(decision) if decision.ndim == 1 else np.ptp(np.sort(decision)[:, -2:], axis=1)
        ).min() > 1e-3
        free = not np.isfinite(c)
        return case(
            name,
            table,
            target,
            {"C": None if free else c, "l2": 0.0 if free else 1.0 / (c * len(y)), "fit_intercept": True},
            {"coef": mat(model.coef_), "intercept": vec(model.intercept_), "classes": ints(model.classes_)},
            {
                "predict": ints(model.predict(x)),
                "predict_proba": mat(model.predict_proba(x)),
                "decision_function": mat(decision.reshape(len(y), -1)),
                "objective": objective,
                "mean_log_loss": mean_log_loss,
                "objective_default_tol": usual_objective,
                "mean_log_loss_default_tol": usual_mean_log_loss,
            },
            {
                "predict_proba": tol(1e-5),
                "decision_function": tol(2e-5, 1e-5),
                "objective": tol(0.0, 1e-4),
                "coef": tol(0.1, 0.05) if free else tol(5e-3, 5e-3),
            },
            rows,
            rows,
        )

    write_model(
        "logistic_regression",
        "Minimises objective = mean_i nll_i + l2/2 * |coef|^2 with l2 = 1/(C n) and the intercept not penalised (scikit-learn's "
        "C * sum nll + |coef|^2/2, divided by C n). Two classes: coef is 1 x features, z = x.coef + intercept, P(1) = 1/(1+exp(-z)), "
        "nll = ln(1+exp(-z)) for y=1 and ln(1+exp(z)) for y=0. More: one row of coef for each class, softmax, nll = -ln P(y). "
        "objective is that of a fit to tol 1e-12 in float64 (the minimum), objective_default_tol that of scikit-learn's default tol 1e-4: "
        "a trainer is good when its objective, computed in float64, is at most objective * (1 + rel). C null: no penalty.",
        [
            one("wine_std_is_class_0", "wine_std", "is_class_0", 1.0),
            one("iris_std_setosa_versicolor", "iris_std", "class", 1.0, np.arange(100)),
            one("iris_std_versicolor_virginica", "iris_std", "is_virginica", 1.0, np.arange(50, 150)),
            one("iris_std_versicolor_virginica_c_100", "iris_std", "is_virginica", 100.0, np.arange(50, 150)),
            one("iris_versicolor_virginica_no_penalty", "iris", "is_virginica", np.inf, np.arange(50, 150)),
            one("iris_std_softmax", "iris_std", "class", 1.0),
            one("wine_std_softmax", "wine_std", "class", 1.0),
        ],
    )


# ------------------------------------------------------------------------------------------------------------------ trees

TREE = (
    "A tree is parallel arrays, node 0 the root: at an inner node go to left when x[feature] <= threshold, else to right; a leaf has "
    "left = right = -1, feature = -2, threshold = -2. threshold is the largest float32 not above threshold_f64. value has n_values "
    "numbers for each node, node by node."
)


def tree_parts(tree, n_values):
    return {
        "n_nodes": tree.node_count,
        "n_values": n_values,
        "feature": ints(tree.feature),
        "threshold": floor32(tree.threshold),
        "threshold_f64": [float(t) for t in tree.threshold],
        "left": ints(tree.children_left),
        "right": ints(tree.children_right),
        "value": vec(tree.value),
        "n_node_samples": ints(tree.n_node_samples),
        "impurity": vec(tree.impurity),
    }


def probe(x, trees, seed, n=48):
    """Rows that sit on thresholds, one bit beside them, and anywhere in and around the range of the table."""
    rng = np.random.default_rng(seed)
    x = x.astype(np.float32)
    low, high = x.min(axis=0), x.max(axis=0)
    rows = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (n, x.shape[1])).astype(
        np.float32
    )
    for column in range(x.shape[1]):
        cuts = np.concatenate([floor32(t.threshold[t.feature == column]) for t in trees])
        if len(cuts):
            cut = rng.choice(cuts, n)
            kind = rng.integers(0, 4, n)
            rows[:, column] = np.where(kind == 0, cut, rows[:, column])
            rows[:, column] = np.where(kind == 1, np.nextafter(cut, np.float32(np.inf)), rows[:, column])
            rows[:, column] = np.where(kind == 2, x[rng.integers(0, len(x), n), column], rows[:, column])
    return rows.astype(np.float64)


def tree_case(name, table, target, params, parts, say, tolerance, trees, seed):
    x = T[table].x
    extra = probe(x, trees, seed)
    return case(
        name,
        table,
        target,
        params,
        parts,
        say(x),
        tolerance,
        probe={"x": mat(extra), "expected": say(extra)},
    )


def decision_trees():
    def classifier(name, table, seed, **params):
        x, y = T[table].x, T[table].targets["class"]
        model = DecisionTreeClassifier(random_state=seed, **params).fit(x, y)
        say = lambda rows: {
            "predict": ints(model.predict(rows)),
            "predict_proba": mat(model.predict_proba(rows)),
        }
        parts = {"classes": ints(model.classes_), "tree": tree_parts(model.tree_, len(model.classes_))}
        return tree_case(
            name, table, "class", params, parts, say, {"predict_proba": tol(1e-6)}, [model.tree_], seed
        )

    def regressor(name, seed, **params):
        x, y = T["diabetes"].x, T["diabetes"].targets["progression"]
        model = DecisionTreeRegressor(random_state=seed, **params).fit(x, y)
        say = lambda rows: {"predict": vec(model.predict(rows))}
        parts = {"tree": tree_parts(model.tree_, 1)}
        return tree_case(
            name,
            "diabetes",
            "progression",
            params,
            parts,
            say,
            {"predict": tol(0.0, 1e-6)},
            [model.tree_],
            seed,
        )

    write_model(
        "decision_tree_classifier",
        TREE
        + " Here value is the share of each class; predict_proba is the leaf's value, predict its first maximum. impurity is Gini.",
        [
            classifier("iris", "iris", 0),
            classifier("iris_depth_2", "iris", 0, max_depth=2),
            classifier("wine", "wine", 0, min_samples_leaf=3),
            classifier("digits", "digits", 0, max_depth=6),
        ],
    )
    write_model(
        "decision_tree_regressor",
        TREE + " Here value is the mean target; predict is the leaf's value. impurity is the variance.",
        [regressor("diabetes_depth_4", 0, max_depth=4), regressor("diabetes_leaf_5", 0, min_samples_leaf=5)],
    )


def forests():
    def classifier(name, table, seed, **params):
        x, y = T[table].x, T[table].targets["class"]
        model = RandomForestClassifier(random_state=seed, **params).fit(x, y)
        n = len(model.classes_)

        def say(rows):
            each = np.stack([t.predict_proba(rows) for t in model.estimators_])
            votes = np.stack([(each.argmax(axis=2) == k).sum(axis=0) for k in range(n)], axis=1)
            proba = model.predict_proba(rows)
            ordered = np.sort(proba, axis=1)
            sure = ordered[:, -1] - ordered[:, -2] > 1e-5
            return {
                "soft_predict": ints(model.predict(rows)),
                "soft_predict_proba": mat(proba),
                "soft_sure": [bool(s) for s in sure],
                "hard_predict": ints(model.classes_[votes.argmax(axis=1)]),
                "hard_votes": {"rows": votes.shape[0], "cols": n, "data": ints(votes)},
            }

        trees = [t.tree_ for t in model.estimators_]
        parts = {"classes": ints(model.classes_), "trees": [tree_parts(t, n) for t in trees]}
        return tree_case(
            name, table, "class", params, parts, say, {"soft_predict_proba": tol(1e-6)}, trees, seed
        )

    def regressor(name, seed, **params):
        x, y = T["diabetes"].x, T["diabetes"].targets["progression"]
        model = RandomForestRegressor(random_state=seed, **params).fit(x, y)
        say = lambda rows: {"predict": vec(model.predict(rows))}
        trees = [t.tree_ for t in model.estimators_]
        parts = {"trees": [tree_parts(t, 1) for t in trees]}
        return tree_case(
            name, "diabetes", "progression", params, parts, say, {"predict": tol(0.0, 1e-5)}, trees, seed
        )

    write_model(
        "random_forest_classifier",
        TREE
        + " soft_predict_proba is the mean of the leaves' values over the trees and soft_predict its first maximum: what scikit-learn "
        "does. soft_sure is false where the two best shares are within 1e-5, a tie that the order of additions may decide. hard_votes counts, "
        "for each class, the trees whose leaf has its first maximum there, and hard_predict is the first maximum of the counts (a majority "
        "vote; computed here, scikit-learn has none).",
        [
            classifier("iris", "iris", 0, n_estimators=10),
            classifier("wine", "wine", 1, n_estimators=12, max_depth=4),
            classifier("digits", "digits", 2, n_estimators=8, max_depth=5),
        ],
    )
    write_model(
        "random_forest_regressor",
        TREE + " predict is the mean of the leaves' values over the trees.",
        [regressor("diabetes", 0, n_estimators=10, max_depth=5)],
    )


def boosting():
    def classifier(name, table, target, seed, **params):
        x, y = T[table].x, T[table].targets[target]
        model = GradientBoostingClassifier(random_state=seed, **params).fit(x, y)
        trees = [[t.tree_ for t in stage] for stage in model.estimators_]
        init = model._raw_predict_init(x[:1].astype(np.float32)).ravel()

        def say(rows):
            raw = model.decision_function(rows).reshape(len(rows), -1)
            ordered = np.sort(np.c_[raw, np.zeros(len(raw))] if raw.shape[1] == 1 else raw, axis=1)
            assert (ordered[:, -1] - ordered[:, -2]).min() > 1e-4, name
            return {
                "predict": ints(model.predict(rows)),
                "predict_proba": mat(model.predict_proba(rows)),
                "decision_function": mat(raw),
            }

        parts = {
            "classes": ints(model.classes_),
            "init": vec(init),
            "learning_rate": np.float32(model.learning_rate),
            "stages": [[tree_parts(t, 1) for t in stage] for stage in trees],
        }
        tolerance = {"predict_proba": tol(1e-5), "decision_function": tol(1e-5, 1e-5)}
        return tree_case(
            name, table, target, params, parts, say, tolerance, [t for s in trees for t in s], seed
        )

    def regressor(name, seed, **params):
        x, y = T["diabetes"].x, T["diabetes"].targets["progression"]
        model = GradientBoostingRegressor(random_state=seed, **params).fit(x, y)
        trees = [s[0].tree_ for s in model.estimators_]
        init = model._raw_predict_init(x[:1].astype(np.float32)).ravel()
        say = lambda rows: {"predict": vec(model.predict(rows))}
        parts = {
            "init": np.float32(init[0]),
            "learning_rate": np.float32(model.learning_rate),
            "trees": [tree_parts(t, 1) for t in trees],
        }
        return tree_case(
            name, "diabetes", "progression", params, parts, say, {"predict": tol(0.0, 1e-5)}, trees, seed
        )

    write_model(
        "gradient_boosting_classifier",
        TREE
        + " Raw score k = init[k] + learning_rate * sum over stages of stages[stage][k]'s leaf value. Two classes: one tree a stage, "
        "P(1) = 1/(1+exp(-raw)), predict is 1 when raw > 0. More: one tree for each class, softmax, predict is the first maximum.",
        [
            classifier(
                "wine_is_class_0", "wine", "is_class_0", 0, n_estimators=12, max_depth=2, learning_rate=0.2
            ),
            classifier("iris_is_virginica", "iris", "is_virginica", 1, n_estimators=15, max_depth=3),
            classifier("iris", "iris", "class", 2, n_estimators=10, max_depth=2, learning_rate=0.3),
        ],
    )
    write_model(
        "gradient_boosting_regressor",
        TREE + " predict = init + learning_rate * sum of the trees' leaf values; init is the mean target.",
        [
            regressor("diabetes", 0, n_estimators=25, max_depth=3, learning_rate=0.1),
            regressor(
                "diabetes_half_sample", 1, n_estimators=20, max_depth=2, learning_rate=0.25, subsample=0.5
            ),
        ],
    )


def average_path_length(n):
    """Mean depth of an unsuccessful search among n; 0.5772... is Euler's constant."""
    return (
        0.0 if n <= 1 else 1.0 if n == 2 else 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    )


def isolation():
    def one(name, table, seed, **params):
        x = T[table].x
        model = IsolationForest(random_state=seed, **params).fit(x.astype(np.float32))
        assert all(list(f) == list(range(x.shape[1])) for f in model.estimators_features_)

        def say(rows):
            score = model.score_samples(rows.astype(np.float32))
            sure = np.abs(score - model.offset_) > 1e-5
            return {
                "score_samples": vec(score),
                "decision_function": vec(score - model.offset_),
                "predict": ints(model.predict(rows.astype(np.float32))),
                "sure": [bool(s) for s in sure],
            }

        trees = [t.tree_ for t in model.estimators_]
        dropped = ("value", "impurity", "n_values")
        parts = {
            "offset": np.float32(model.offset_),
            "max_samples": int(model.max_samples_),
            "average_path_length_of_max_samples": np.float32(average_path_length(model.max_samples_)),
            "trees": [{k: v for k, v in tree_parts(t, 1).items() if k not in dropped} for t in trees],
        }
        tolerance = {"score_samples": tol(5e-6), "decision_function": tol(5e-6)}
        return tree_case(name, table, None, params, parts, say, tolerance, trees, seed)

    write_model(
        "isolation_forest",
        TREE
        + " (No value here.) Path length in a tree = edges from the root to the leaf + c(n_node_samples of the leaf), with c(n) = 0 for "
        "n <= 1, 1 for 2, else 2 (ln(n-1) + 0.5772156649015329) - 2 (n-1)/n. score_samples = -2^(-mean path length / c(max_samples)); "
        "decision_function = score_samples - offset; predict = -1 (outlier) when decision_function < 0, else 1; sure is false where that hangs "
        "on less than 1e-5.",
        [
            one("iris", "iris", 0, n_estimators=12, max_samples=48),
            one("wine_contamination", "wine", 1, n_estimators=10, max_samples=32, contamination=0.1),
        ],
    )


# --------------------------------------------------------------------------------------------- clusters, mixtures, density


def kmeans():
    def one(name, table, k, **params):
        x = T[table].x
        model = KMeans(k, n_init=10, random_state=0, **params).fit(x)
        many = KMeans(k, n_init=200, random_state=1, tol=0.0, max_iter=1000).fit(x)
        inertia = float(model.inertia_)
        put_back(model, "cluster_centers_")
        distances = pairwise_distances(x, model.cluster_centers_, metric="sqeuclidean")
        ordered = np.sort(distances, axis=1)
        rows = np.flatnonzero(ordered[:, 1] - ordered[:, 0] > 1e-4 * ordered[:, 1])
        assert len(rows) > len(x) - 4, name
        return case(
            name,
            table,
            None,
            {"n_clusters": k, "init": "k-means++", "n_init": 10, "max_iter": 300, "tol": 1e-4},
            {"centers": mat(model.cluster_centers_)},
            {
                "predict": ints(distances.argmin(axis=1)[rows]),
                "squared_distance": vec(ordered[rows, 0]),
                "inertia": inertia,
                "inertia_best_known": min(inertia, float(many.inertia_)),
                "n_iter": int(model.n_iter_),
            },
            {"squared_distance": tol(1e-4, 1e-4), "inertia": tol(0.0, 1e-4)},
            None,
            None if len(rows) == len(x) else rows,
        )

    write_model(
        "kmeans",
        "inertia = sum over all rows of the squared distance to the nearest center, in float64: the best of 10 starts of k-means++ and Lloyd, what a "
        "trainer must reach within rel. inertia_best_known is the best of 200 starts run to the end. predict is the nearest center.",
        [
            one("iris_k_3", "iris", 3),
            one("iris_k_2", "iris", 2),
            one("wine_std_k_3", "wine_std", 3),
            one("digits_k_10", "digits", 10),
        ],
    )


def pca():
    def one(name, table, n, rows=None):
        x = T[table].x
        model = PCA(n, svd_solver="full").fit(x)
        put_back(model, "mean_", "components_")
        chosen = x if rows is None else x[rows]
        z = model.transform(chosen)
        scale = float(np.abs(z).max())
        return case(
            name,
            table,
            None,
            {"n_components": n},
            {"mean": vec(model.mean_), "components": mat(model.components_)},
            {
                "transform": mat(z),
                "inverse_transform": mat(model.inverse_transform(z)[:8]),
                "explained_variance": vec(model.explained_variance_),
                "explained_variance_ratio": vec(model.explained_variance_ratio_),
                "singular_values": vec(model.singular_values_),
                "noise_variance": float(model.noise_variance_),
            },
            {
                "transform": tol(round(scale * 2e-6, 8), 1e-5),
                "transform_trained": tol(round(scale * 2e-4, 6), 1e-4),
                "inverse_transform": tol(round(scale * 2e-6, 8), 1e-5),
                "components": tol(1e-3),
                "explained_variance": tol(0.0, 1e-4),
                "explained_variance_ratio": tol(1e-5, 1e-4),
            },
            None,
            rows,
        )

    write_model(
        "pca",
        "transform = (x - mean) . components^T; components are unit rows, by falling explained_variance (divided by n - 1). From parts the "
        "values are equal; a trainer may flip the sign of a component and, with it, that column of transform. inverse_transform holds the first 8 rows "
        "of transform taken back. transform_trained is the tolerance for a trainer's transform.",
        [
            one("iris_4", "iris", 4),
            one("iris_2", "iris", 2),
            one("wine_std_5", "wine_std", 5),
            one("wine_3", "wine", 3),
            one("digits_10", "digits", 10, np.arange(0, 200, 4)),
        ],
    )


def mixture():
    def one(kind, table, k):
        x = T[table].x
        model = GaussianMixture(k, covariance_type=kind, random_state=0, n_init=3).fit(x)
        put_back(model, "weights_", "means_", "covariances_")
        model.precisions_cholesky_ = _compute_precision_cholesky(model.covariances_, kind)
        proba = model.predict_proba(x)
        ordered = np.sort(proba, axis=1)
        assert (ordered[:, -1] - ordered[:, -2]).min() > 1e-3
        d = x.shape[1]
        shape = {"spherical": [k], "diag": [k, d], "tied": [d, d], "full": [k, d, d]}[kind]
        assert list(np.shape(model.covariances_)) == shape
        return case(
            f"{table}_{kind}",
            table,
            None,
            {"n_components": k, "covariance_type": kind, "reg_covar": 1e-6, "n_init": 3},
            {
                "weights": vec(model.weights_),
                "means": mat(model.means_),
                "covariances": {"shape": shape, "data": vec(model.covariances_)},
            },
            {
                "predict": ints(model.predict(x)),
                "predict_proba": mat(proba),
                "score_samples": vec(model.score_samples(x)),
                "mean_score": float(model.score(x)),
            },
            {"predict_proba": tol(1e-5), "score_samples": tol(1e-4, 1e-5)},
        )

    write_model(
        "gaussian_mixture",
        "score_samples = ln sum_k weights[k] N(x | means[k], covariance k); predict_proba are the responsibilities, predict their maximum. "
        "covariances: spherical one variance for each component, diag one row of variances for each, tied one matrix for all, full one matrix each; data is "
        "row by row.",
        [one(kind, "iris", 3) for kind in ("spherical", "diag", "tied", "full")]
        + [one("diag", "wine_std", 3)],
    )


def dbscan():
    def one(name, table, eps, min_samples):
        x = T[table].x
        distances = pairwise_distances(x)
        # The widest gap between neighbouring distances near eps: no pair may hang on the last bit.
        near = np.sort(np.unique(distances[np.triu_indices(len(x), 1)]))
        near = near[(near > eps * 0.98) & (near < eps * 1.02)]
        widest = np.diff(near).argmax()
        eps = float(np.float32((near[widest] + near[widest + 1]) / 2))
        assert np.abs(distances - eps).min() > 1e-4
        model = DBSCAN(eps=eps, min_samples=min_samples).fit(x)
        core = model.core_sample_indices_
        touching = [
            set(model.labels_[core][distances[i][core] <= eps]) for i in range(len(x)) if i not in set(core)
        ]
        return case(
            name,
            table,
            None,
            {"eps": np.float32(eps), "min_samples": min_samples, "metric": "euclidean"},
            {"labels": ints(model.labels_), "core_sample_indices": ints(core), "components": mat(x[core])},
            {
                "labels": ints(model.labels_),
                "n_clusters": int(model.labels_.max() + 1),
                "n_noise": int((model.labels_ == -1).sum()),
                "n_contested": sum(len(t) > 1 for t in touching),
            },
        )

    write_model(
        "dbscan",
        "A row is core when at least min_samples rows, itself included, lie within eps (<=). labels: clusters by the order of their first core row, "
        "-1 for noise. A border row goes to the first cluster that reaches it; n_contested counts border rows within eps of core rows of several. "
        "No pair of rows is within 1e-4 of eps. components are the core rows.",
        [
            one("iris_std", "iris_std", 0.5, 5),
            one("iris", "iris", 0.44, 5),
            one("wine_std", "wine_std", 2.25, 6),
        ],
    )


# ------------------------------------------------------------------------------------------ bayes, neighbours, vector machines


def bayes():
    def one(name, table, smoothing):
        x, y = T[table].x, T[table].targets["class"]
        model = GaussianNB(var_smoothing=smoothing).fit(x, y)
        epsilon = float(model.epsilon_)
        put_back(model, "theta_", "var_", "class_prior_")
        joint = model.predict_joint_log_proba(x)
        ordered = np.sort(joint, axis=1)
        assert (ordered[:, -1] - ordered[:, -2]).min() > 1e-3
        said = {"predict_proba": tol(2e-5), "joint_log_likelihood": tol(1e-4, 1e-5)}
        return case(
            name,
            table,
            "class",
            {"var_smoothing": smoothing},
            {
                "classes": ints(model.classes_),
                "theta": mat(model.theta_),
                "var": mat(model.var_),
                "class_prior": vec(model.class_prior_),
                "epsilon": epsilon,
            },
            {
                "predict": ints(model.predict(x)),
                "predict_proba": mat(model.predict_proba(x)),
                "joint_log_likelihood": mat(joint),
            },
            {**said, "theta": tol(1e-5, 1e-5), "var": tol(1e-6, 1e-4), "class_prior": tol(1e-6)},
        )

    write_model(
        "gaussian_nb",
        "var is the population variance of the class plus epsilon = var_smoothing * the largest variance of a column over all rows (population). "
        "joint_log_likelihood k = ln class_prior[k] - 1/2 sum (ln(2 pi var) + (x - theta)^2 / var); predict_proba is its softmax. "
        "The digits have columns that are constant in a class: with the usual smoothing their terms reach 1e8, so the last case smooths more.",
        [one("iris", "iris", 1e-9), one("wine", "wine", 1e-9), one("digits_smoothed", "digits", 1e-2)],
    )


def neighbours():
    def split(table, target, k):
        """Even rows teach, odd rows ask; a question where the k-th and the next distance are a near tie is left out."""
        x, y = T[table].x, T[table].targets[target]
        train = np.arange(0, len(x), 2)
        ask = np.arange(1, len(x), 2)
        ordered = np.sort(pairwise_distances(x[ask], x[train]), axis=1)
        ask = ask[ordered[:, k] - ordered[:, k - 1] > 1e-4 * ordered[:, k]]
        return x[train], y[train], x[ask], train, ask

    def one(kind, table, target, k):
        x, y, asked, train, ask = split(table, target, k)
        model = kind(n_neighbors=k, weights="uniform", metric="euclidean", algorithm="brute").fit(x, y)
        distances, neighbours = model.kneighbors(asked)
        if kind is KNeighborsClassifier:
            expected = {
                "predict": ints(model.predict(asked)),
                "predict_proba": mat(model.predict_proba(asked)),
            }
            tolerance = {"predict_proba": tol(1e-6), "kth_distance": tol(1e-6, 1e-5)}
        else:
            expected = {"predict": vec(model.predict(asked))}
            tolerance = {"predict": tol(0.0, 1e-6), "kth_distance": tol(1e-6, 1e-5)}
        expected["neighbors"] = {
            "rows": len(ask),
            "cols": k,
            "data": ints(np.sort(train[neighbours], axis=1)),
        }
        expected["kth_distance"] = vec(distances[:, -1])
        return case(
            f"{table}_k_{k}",
            table,
            target,
            {"n_neighbors": k, "weights": "uniform", "metric": "euclidean"},
            {"classes": ints(np.unique(y))} if kind is KNeighborsClassifier else {},
            expected,
            tolerance,
            train,
            ask,
        )

    shared = (
        "The model holds train_rows of the table; the questions are `rows`, none of which has a tie between the k-th and the next distance. neighbors are "
        "row numbers of the table, ascending; kth_distance is the largest of their distances."
    )
    write_model(
        "k_neighbors_classifier",
        shared + " predict_proba is the share of each class among the k; predict its first maximum.",
        [
            one(KNeighborsClassifier, "iris", "class", 5),
            one(KNeighborsClassifier, "wine_std", "class", 5),
            one(KNeighborsClassifier, "digits", "class", 3),
        ],
    )
    write_model(
        "k_neighbors_regressor",
        shared + " predict is the mean target of the k.",
        [
            one(KNeighborsRegressor, "diabetes", "progression", 5),
            one(KNeighborsRegressor, "diabetes", "progression", 1),
        ],
    )


def vector_machines():
    def linear_one(name, table, target, rows=None, c=1.0):
        chosen = slice(None) if rows is None else rows
        x, y = T[table].x[chosen], T[table].targets[target][chosen]
        model = LinearSVC(C=c, dual=False, tol=1e-8, max_iter=100000, random_state=0).fit(x, y)
        put_back(model, "coef_", "intercept_")
        decision = model.decision_function(x).reshape(len(x), -1)
        best = np.sort(np.c_[decision, -decision] if decision.shape[1] == 1 else decision, axis=1)
        assert (best[:, -1] - best[:, -2]).min() > 1e-3
        return case(
            name,
            table,
            target,
            {"C": c, "loss": "squared_hinge", "penalty": "l2"},
            {"coef": mat(model.coef_), "intercept": vec(model.intercept_), "classes": ints(model.classes_)},
            {"predict": ints(model.predict(x)), "decision_function": mat(decision)},
            {"decision_function": tol(5e-6, 5e-6)},
            rows,
            rows,
        )

    write_model(
        "linear_svc",
        "decision_function = x . coef^T + intercept. Two classes: one row of coef, predict is classes[1] when it is > 0. More: one row for each class "
        "against the rest, predict is the first maximum.",
        [
            linear_one("wine_std_is_class_0", "wine_std", "is_class_0"),
            linear_one("iris_std_versicolor_virginica", "iris_std", "is_virginica", np.arange(50, 150)),
            linear_one("iris_std", "iris_std", "class"),
        ],
    )

    def kernel_one(name, table, target, kernel, rows=None, c=1.0):
        chosen = slice(None) if rows is None else rows
        x, y = T[table].x[chosen], T[table].targets[target][chosen]
        gamma = float(np.float32(1.0 / (x.shape[1] * x.var())))
        model = SVC(C=c, kernel=kernel, gamma=gamma, decision_function_shape="ovo", tol=1e-6).fit(x, y)
        decision = model.decision_function(x).reshape(len(x), -1)
        # Support vectors lie on the margin, so a pairwise value is near +-1 or beyond; near 0 a label would be luck.
        assert np.abs(decision).min() > 1e-3, np.abs(decision).min()
        return case(
            name,
            table,
            target,
            {"C": c, "kernel": kernel, "gamma": np.float32(gamma) if kernel == "rbf" else None},
            {
                "classes": ints(model.classes_),
                "n_support": ints(model.n_support_),
                "support": ints(model.support_),
                "support_vectors": mat(model.support_vectors_),
                "dual_coef": mat(model.dual_coef_),
                "intercept": vec(model.intercept_),
                "gamma": np.float32(gamma) if kernel == "rbf" else None,
                "kernel": kernel,
            },
            {"predict": ints(model.predict(x)), "decision_function": mat(decision)},
            {"decision_function": tol(2e-5, 1e-5)},
            rows,
            rows,
        )

    write_model(
        "svc",
        "K(a, b) = exp(-gamma |a - b|^2) for rbf, a . b for linear. Two classes: decision_function = sum_s dual_coef[0][s] K(sv_s, x) + intercept[0]; "
        "predict is classes[1] when it is > 0. More: support vectors stand class by class (n_support of each); column p of decision_function is the p-th pair "
        "(i, j), i < j, in the order (0,1), (0,2), ..., (1,2), ...: sum over class i's vectors of dual_coef[j-1][s] K + sum over class j's vectors of "
        "dual_coef[i][s] K + intercept[p]; > 0 is a vote for i, else for j; predict has most votes, the lower class at a tie. support are "
        "positions among the training rows.",
        [
            kernel_one("wine_std_is_class_0_rbf", "wine_std", "is_class_0", "rbf"),
            kernel_one(
                "iris_std_versicolor_virginica_rbf", "iris_std", "is_virginica", "rbf", np.arange(50, 150)
            ),
            kernel_one(
                "iris_std_versicolor_virginica_linear",
                "iris_std",
                "is_virginica",
                "linear",
                np.arange(50, 150),
            ),
            kernel_one("iris_std_rbf", "iris_std", "class", "rbf"),
            kernel_one("wine_std_linear", "wine_std", "class", "linear"),
        ],
    )


# ------------------------------------------------------------------------------------------------------------------ networks


def networks():
    def layers(model):
        sizes = [w.shape for w in model.coefs_]
        inner = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "identity"}[
            model.activation
        ]
        last = {"logistic": "sigmoid", "softmax": "softmax", "identity": "identity"}[model.out_activation_]
        return [
            {
                "inputs": sizes[i][0],
                "outputs": sizes[i][1],
                "activation": last if i + 1 == len(sizes) else inner,
                "weights": mat(model.coefs_[i]),
                "bias": vec(model.intercepts_[i]),
            }
            for i in range(len(sizes))
        ]

    def one(name, kind, table, target, hidden, activation, alpha, tolerance):
        x, y = T[table].x, T[table].targets[target]
        model = kind(
            hidden_layer_sizes=hidden,
            activation=activation,
            solver="lbfgs",
            alpha=alpha,
            max_iter=50000,
            max_fun=200000,
            random_state=0,
        ).fit(x, y)
        put_back(model, "coefs_", "intercepts_")
        params = {"hidden": list(hidden), "activation": activation, "alpha": alpha}
        if kind is MLPRegressor:
            said = model.predict(x)
            expected = {"predict": vec(said), "mse": mean_squared_error(y, said), "r2": r2_score(y, said)}
            return case(
                name, table, target, params, {"layers": layers(model)}, expected, {"predict": tolerance}
            )
        proba = model.predict_proba(x)
        ordered = np.sort(proba, axis=1)
        assert (ordered[:, -1] - ordered[:, -2]).min() > 1e-3
        output = proba[:, 1:] if proba.shape[1] == 2 else proba
        expected = {
            "predict": ints(model.predict(x)),
            "predict_proba": mat(proba),
            "output": mat(output),
            "accuracy": float(model.score(x, y)),
            "mean_log_loss": float(log_loss(y, proba)),
        }
        parts = {"classes": ints(model.classes_), "layers": layers(model)}
        return case(
            name, table, target, params, parts, expected, {"predict_proba": tolerance, "output": tolerance}
        )

    shared = "A layer is activation(x . weights + bias); weights has one row for each input. "
    write_model(
        "mlp_classifier",
        shared
        + "output is the last layer's: with two classes one sigmoid (P(1), predict is 1 when > 0.5), else softmax (predict is the first maximum).",
        [
            one("iris_std_relu", MLPClassifier, "iris_std", "class", (8,), "relu", 0.1, tol(1e-5)),
            one("wine_std_tanh", MLPClassifier, "wine_std", "class", (6, 5), "tanh", 1.0, tol(1e-5)),
            one(
                "wine_std_sigmoid", MLPClassifier, "wine_std", "is_class_0", (4,), "logistic", 0.5, tol(1e-5)
            ),
            one("digits_relu", MLPClassifier, "digits", "class", (16,), "relu", 10.0, tol(1e-5)),
        ],
    )
    write_model(
        "mlp_regressor",
        shared + "The last activation is identity and predict is its one output.",
        [
            one(
                "diabetes_relu", MLPRegressor, "diabetes", "progression", (10,), "relu", 0.1, tol(1e-3, 2e-6)
            ),
            one(
                "diabetes_tanh",
                MLPRegressor,
                "diabetes",
                "progression_std",
                (4,),
                "tanh",
                0.1,
                tol(1e-5, 1e-5),
            ),
        ],
    )


# ---------------------------------------------------------------------------------------------------------- text and scaling


def vectorizers():
    def terms(model):
        return sorted(model.vocabulary_, key=model.vocabulary_.get)

    def sparse(matrix):
        matrix = matrix.tocsr()
        matrix.sort_indices()
        matrix = matrix.tocoo()
        return {
            "rows": matrix.shape[0],
            "cols": matrix.shape[1],
            "row": ints(matrix.row),
            "col": ints(matrix.col),
            "value": vec(matrix.data),
        }

    def one(kind, name, **options):
        model = kind(**options).fit(DOCUMENTS)
        full = {
            "lowercase": True,
            "ngram_range": [1, 1],
            "min_df": 1,
            "max_df": 1.0,
            "max_features": None,
            "binary": False,
            "stop_words": None,
            "token_pattern": r"(?u)\b\w\w+\b",
        }
        if kind is TfidfVectorizer:
            full |= {"norm": "l2", "use_idf": True, "smooth_idf": True, "sublinear_tf": False}
        assert set(options) <= set(full), options
        full |= {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
        parts = {"vocabulary": terms(model)}
        tolerance = {}
        if kind is TfidfVectorizer:
            parts["idf"] = vec(model.idf_) if full["use_idf"] else None
            tolerance = {"idf": tol(0.0, 1e-6), "transform": tol(1e-6, 1e-5)}
        expected = {
            "documents": sparse(model.transform(DOCUMENTS)),
            "unseen": sparse(model.transform(UNSEEN)),
        }
        return {"name": name, "params": full, "parts": parts, "expected": expected, "tolerance": tolerance}

    counted = (
        "Fitted on documents of corpus.json. A token is two or more word characters (letters and numbers of any script, and _) between "
        "word boundaries; lowercase is Unicode's, applied first; an n-gram is its tokens joined by one space, counted after stop words went. min_df is a number of "
        "documents; max_df a share of the documents when it is a float and a number when an integer, a term in more documents than that is dropped. max_features keeps "
        "the terms with the largest counts over all documents, no case has a tie there. vocabulary is sorted by code point and the position is the column. "
        "expected: the rows of both lists as triples, by row, then column. "
    )
    write_model(
        "count_vectorizer",
        counted + "value is the count, or 1 when binary.",
        [
            one(CountVectorizer, "default"),
            one(CountVectorizer, "bigrams", ngram_range=(1, 2)),
            one(CountVectorizer, "only_bigrams", ngram_range=(2, 2), min_df=2),
            one(CountVectorizer, "binary", binary=True),
            one(CountVectorizer, "keep_case", lowercase=False),
            one(CountVectorizer, "document_frequency", min_df=2, max_df=0.5),
            one(CountVectorizer, "max_features", max_features=10),
            one(
                CountVectorizer,
                "stop_words",
                stop_words=["the", "is", "of", "and", "in"],
                ngram_range=(1, 2),
                min_df=2,
            ),
            one(CountVectorizer, "single_letters", token_pattern=r"(?u)\b\w+\b"),
        ],
    )
    write_model(
        "tfidf_vectorizer",
        counted
        + "idf = ln((1 + n) / (1 + df)) + 1 when smooth_idf, else ln(n / df) + 1, n documents, df of them with the term; value is count (1 + ln count when "
        "sublinear_tf) times idf (when use_idf), the row then divided by its norm (l2, l1 or none); an empty row stays empty.",
        [
            one(TfidfVectorizer, "default"),
            one(TfidfVectorizer, "bigrams", ngram_range=(1, 2)),
            one(TfidfVectorizer, "not_smooth", smooth_idf=False),
            one(TfidfVectorizer, "sublinear", sublinear_tf=True),
            one(
                TfidfVectorizer,
                "sublinear_bigrams_not_smooth",
                sublinear_tf=True,
                smooth_idf=False,
                ngram_range=(1, 2),
                min_df=2,
            ),
            one(TfidfVectorizer, "no_norm", norm=None),
            one(TfidfVectorizer, "l1", norm="l1"),
            one(TfidfVectorizer, "no_idf", use_idf=False),
            one(TfidfVectorizer, "keep_case", lowercase=False),
            one(TfidfVectorizer, "document_frequency", min_df=2, max_df=0.5),
        ],
    )


def scalers():
    def standard(name, table, rows, **params):
        model = StandardScaler(**params).fit(T[table].x)
        x = T[table].x[rows]
        both = {"with_mean": True, "with_std": True} | params
        parts = {
            "mean": vec(model.mean_) if model.mean_ is not None else None,
            "scale": vec(model.scale_) if both["with_std"] else None,
            "var": vec(model.var_) if both["with_std"] else None,
        }
        put_back(model, *[n for n in ("mean_", "scale_") if getattr(model, n) is not None])
        z = rounded(model.transform(x))
        expected = {"transform": mat(z), "inverse_transform": mat(model.inverse_transform(z))}
        tolerance = {
            "transform": tol(2e-6, 2e-6),
            "inverse_transform": tol(1e-5, 2e-6),
            "mean": tol(1e-6, 1e-5),
            "scale": tol(1e-6, 1e-5),
        }
        return case(name, table, None, both, parts, expected, tolerance, None, rows)

    def min_max(name, table, rows, low=0.0, high=1.0):
        model = MinMaxScaler((low, high)).fit(T[table].x)
        x = T[table].x[rows]
        parts = {
            "data_min": vec(model.data_min_),
            "data_max": vec(model.data_max_),
            "scale": vec(model.scale_),
            "min": vec(model.min_),
        }
        z = rounded(model.transform(x))
        expected = {"transform": mat(z), "inverse_transform": mat(model.inverse_transform(z))}
        tolerance = {
            "transform": tol(2e-6, 2e-6),
            "inverse_transform": tol(1e-5, 2e-6),
            "data_min": tol(0.0),
            "data_max": tol(0.0),
        }
        return case(name, table, None, {"feature_range": [low, high]}, parts, expected, tolerance, None, rows)

    some, few = np.arange(0, 178, 6), np.arange(0, 200, 20)
    write_model(
        "standard_scaler",
        "transform = (x - mean) / scale; scale is the population deviation, 1 for a constant column; var the population variance. Fitted on the whole table, "
        "expected for `rows`. inverse_transform is that of the float32 values of transform.",
        [
            standard("wine", "wine", some),
            standard("wine_no_mean", "wine", some, with_mean=False),
            standard("wine_no_std", "wine", some, with_std=False),
            standard("digits_constant_columns", "digits", few),
        ],
    )
    write_model(
        "min_max_scaler",
        "transform = x * scale + min with scale = (high - low) / (data_max - data_min), the divisor 1 for a constant column, and min = low - data_min * scale. "
        "Fitted on the whole table, expected for `rows`. inverse_transform is that of the float32 values of transform.",
        [
            min_max("wine", "wine", some),
            min_max("wine_minus_one_to_one", "wine", some, -1.0, 1.0),
            min_max("digits_constant_columns", "digits", few),
        ],
    )


def main():
    # A fit that did not converge is not a reference.
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)
    os.makedirs(FOLDER, exist_ok=True)
    for part in (
        write_tables,
        linear,
        logistic,
        decision_trees,
        forests,
        boosting,
        isolation,
        kmeans,
        pca,
        mixture,
        dbscan,
        bayes,
        neighbours,
        vector_machines,
        networks,
        vectorizers,
        scalers,
    ):
        try:
            part()
        except Exception:
            print(f"in {part.__name__}", file=sys.stderr)
            raise
    sizes = sorted(
        (os.path.getsize(os.path.join(FOLDER, f)), f) for f in os.listdir(FOLDER) if f.endswith(".json")
    )
    for size, name in sizes:
        print(f"{size:>8} {name}")
    print(f"{sum(s for s, _ in sizes):>8} in all")


if __name__ == "__main__":
    main()
