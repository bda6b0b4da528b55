"""What a file answers to rows of every kind, and plans that are no models: refused with the place of what is wrong."""

from __future__ import annotations

import copy
import os
import threading

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn_tables import Native, fitted, split

import apr
from apr import _native
from apr.sklearn import export, plan

TEXTS = ["one two three", "two three four", "three four five", "five six"] * 5
LARGE = [
    LinearRegression(),
    make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
    RandomForestClassifier(20, random_state=0),
    GradientBoostingClassifier(n_estimators=5, random_state=0),
    KMeans(3, random_state=0, n_init=1),
    IsolationForest(n_estimators=10, random_state=0),
    KNeighborsClassifier(3),
    make_pipeline(MinMaxScaler(), SVC()),
]


def model_of(estimator):
    return Native(plan(estimator)).model


@pytest.mark.parametrize("estimator", LARGE, ids=str)
@pytest.mark.parametrize("count", [1023, 2048, 4097, 9001])
def test_rows_in_any_number_answer_as_they_do_alone(estimator, count):
    model = model_of(fitted(estimator, "wine"))
    held = split("wine")[1]
    rows = np.tile(held, (count // len(held) + 1, 1))[:count]
    alone = model.predict(held)
    answers = model.predict(rows)
    assert len(answers) == count
    for start in range(0, count, len(held)):
        part = answers[start : start + len(held)]
        np.testing.assert_array_equal(part, alone[: len(part)])


def test_value_that_is_refused_is_named_by_its_row():
    model = model_of(fitted(LinearRegression(), "diabetes"))
    rows = np.zeros((9000, 10))
    rows[8765, 3] = np.nan
    with pytest.raises(apr.AprError, match="8765") as caught:
        model.predict(rows)
    assert caught.value.code == "am-feature-not-finite"
    model = model_of(fitted(RandomForestClassifier(3, random_state=0), "wine"))
    rows = np.zeros((9000, 13))
    rows[8888, 5] = 1e300
    with pytest.raises(apr.AprError, match="8888") as caught:
        model.predict(rows)
    assert caught.value.code == "am-beyond-single"


def test_rows_of_every_kind():
    estimator = fitted(make_pipeline(StandardScaler(), LogisticRegression()), "iris")
    held = np.round(split("iris")[1], 1)
    model = model_of(estimator)
    single = held.astype(np.float32)
    expected, narrow = model.decision_function(held), model.decision_function(single.astype(np.float64))
    # Rows of float32 count as the float64 that they are.
    assert not (expected == narrow).all()
    for rows, wanted in (
        (held, expected),
        (np.asfortranarray(held), expected),
        (np.repeat(held, 2, axis=0)[::2], expected),
        (held[:, ::-1][:, ::-1], expected),
        (held.astype(">f8"), expected),
        (held.tolist(), expected),
        (memoryview(np.ascontiguousarray(held)), expected),
        (single, narrow),
        (np.asfortranarray(single), narrow),
        (single.astype(">f4"), narrow),
    ):
        answers = model.decision_function(rows)
        assert answers.dtype == np.float64 and answers.flags.writeable
        np.testing.assert_array_equal(answers, wanted)
    whole = np.arange(8).reshape(2, 4)
    for dtype in (np.int8, np.uint16, np.int64, np.float16):
        np.testing.assert_array_equal(model.predict(whole.astype(dtype)), model.predict(whole.astype(float)))
    for rows in ([["a"] * 4], held.astype(complex), TEXTS):
        with pytest.raises(TypeError, match="samples are numbers"):
            model.predict(rows)
    with pytest.raises(ValueError, match="a table with a row for each"):
        model.predict(held[0])
    for rows, code in ((held[:, :3], "am-feature-count"), (held[:0], "am-empty-matrix")):
        with pytest.raises(apr.AprError) as caught:
            model.predict(rows)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("estimator", "silent"),
    [
        (LinearRegression(), {"predict_proba", "decision_function", "score_samples", "transform"}),
        (LogisticRegression(max_iter=500), {"score_samples", "transform"}),
        (SVC(), {"predict_proba", "score_samples", "transform"}),
        (KMeans(2, random_state=0, n_init=1), {"predict_proba", "decision_function", "score_samples"}),
        (GaussianMixture(2, random_state=0), {"decision_function", "transform"}),
        (IsolationForest(n_estimators=5, random_state=0), {"predict_proba", "transform"}),
    ],
    ids=str,
)
def test_answers_that_a_model_does_not_have(estimator, silent):
    held = split("iris")[1]
    model = model_of(fitted(estimator, "iris"))
    for name in ("predict_proba", "decision_function", "score_samples", "transform"):
        if name in silent:
            with pytest.raises(apr.AprError) as caught:
                getattr(model, name)(held)
            assert caught.value.code == "am-no-predictions"
        else:
            assert len(getattr(model, name)(held)) == len(held)


def test_what_a_model_says_of_itself():
    model = model_of(fitted(SVC(), "wine"))
    assert (model.model_type, model.n_features) == ("Pipeline", 13)
    assert model.classes == ["a barbera", "barolo", "grignolino"] and model.vocabulary is None
    assert model.metadata["custom"]["apr.sklearn"]["estimator"] == "SVC"
    assert model.scores(split("wine")[1]).shape == (54, 3)
    for labels, classes in (([3, -1], [-1, 3]), ([True, False], [False, True]), ([2.0, -1.0], [-1.0, 2.0])):
        estimator = LogisticRegression().fit([[0.0], [1.0]], labels)
        assert model_of(estimator).classes == classes
    assert model_of(fitted(LinearRegression(), "diabetes")).classes is None


def test_labels_that_end_with_zeros():
    estimator = LogisticRegression().fit([[0.0], [1.0]], np.array(["a\0", "b"], dtype=object))
    assert model_of(estimator).predict([[0.0], [1.0]]).tolist() == ["a\0", "b"]


def test_terms_of_texts():
    vectorizer = TfidfVectorizer(vocabulary=["two", "six", "one"]).fit(TEXTS)
    model = model_of(vectorizer)
    assert model.n_features is None and model.vocabulary == ["two", "six", "one"]
    data, indices, indptr = model.terms(TEXTS)
    assert (data.dtype, indices.dtype, indptr.dtype) == (np.float64, np.int64, np.int64)
    rows = sparse.csr_array((data, indices, indptr), shape=(len(TEXTS), 3))
    np.testing.assert_allclose(rows.toarray(), vectorizer.transform(TEXTS).toarray())
    np.testing.assert_array_equal(rows.toarray(), model.transform(TEXTS))
    assert model.transform([]).shape == (0, 3)
    with pytest.raises(TypeError, match="one str"):
        model.transform("two")
    with pytest.raises(apr.AprError, match="terms|sparse"):
        model_of(fitted(LinearRegression(), "diabetes")).terms(TEXTS)


def test_many_texts_by_several_threads():
    estimator = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, [0, 1, 1, 0] * 5)
    texts = [f"{text} {idx}" for idx, text in enumerate(TEXTS * 300)]
    np.testing.assert_array_equal(model_of(estimator).predict(texts), estimator.predict(texts))


def test_threads_ask_one_model():
    model = model_of(fitted(RandomForestClassifier(20, random_state=0), "digits"))
    rows = np.tile(split("digits")[1], (5, 1))
    expected = model.predict_proba(rows)
    wrong = []

    def ask():
        if not (model.predict_proba(rows) == expected).all():
            wrong.append(True)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "options", [{}, {"compression": "zstd"}, {"password": "secret"}], ids=["plain", "zstd", "password"]
)
def test_files(options, tmp_path):
    estimator = fitted(make_pipeline(StandardScaler(), RandomForestClassifier(9, random_state=0)), "wine")
    held, path = split("wine")[1], tmp_path / "wine.apr"
    report = export(estimator, path, sample=held, **options)
    keys = {name: value for name, value in options.items() if name == "password"}
    model = apr.load(path, **keys)
    np.testing.assert_array_equal(model.predict(held), estimator.predict(held))
    np.testing.assert_allclose(model.predict_proba(held), estimator.predict_proba(held), rtol=1e-5)
    assert model.metadata["custom"]["apr.sklearn"]["rows_compared"] == report.rows_compared == len(held)
    assert report.bytes == os.path.getsize(path)
    assert apr.inspect(path)["model_type"] in ("Pipeline", "Custom")
    model.save(tmp_path / "again.apr")
    np.testing.assert_array_equal(apr.load(tmp_path / "again.apr").predict(held), model.predict(held))


def test_changed_files_are_refused(tmp_path):
    estimator = fitted(make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)), "iris")
    path = tmp_path / "iris.apr"
    export(estimator, path, sample=split("iris")[1])
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 300, replace=False):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        with pytest.raises((apr.AprError, OSError)):
            apr.load(bytes(changed))
    for length in rng.choice(len(whole), 100, replace=False):
        with pytest.raises((apr.AprError, OSError)):
            apr.load(whole[:length])


def made(*steps, **changed):
    """A plan of two features, with values of another kind where they are given."""
    return {
        "input": {"kind": "numbers", "n_features": 2, "accepts": "finite"},
        "steps": list(steps) or [linear()],
        "head": {"kind": "rows", "what": "prediction", "link": "none", "flat": True},
        "metadata": {},
        **changed,
    }


def linear(**changed):
    return {"kind": "linear", "n_outputs": 1, "weights": np.ones((1, 2)), "bias": np.zeros(1), **changed}


def trees(**changed):
    return {
        "kind": "trees",
        "precision": "single",
        "n_outputs": 1,
        "turn": "whole",
        "start": np.zeros(1),
        "divisor": 1.0,
        "leaf_rows": np.array([[1.0], [2.0]]),
        "tree_nodes": np.array([3], dtype=np.uint32),
        "features": np.array([1, 2**32 - 1, 2**32 - 1], dtype=np.uint32),
        "thresholds": np.array([0.5], dtype=np.float32),
        "leaves": np.array([0, 1], dtype=np.uint32),
        **changed,
    }


def near(**changed):
    return {
        "kind": "neighbours",
        "k": 1,
        "metric": {"kind": "euclidean"},
        "weights": "uniform",
        "samples": {"kind": "dense", "values": np.eye(2)},
        "search": {"kind": "in_order"},
        "answer": {"kind": "values", "n_outputs": 1, "targets": np.ones((2, 1))},
        **changed,
    }


def texts(**changed):
    return {
        "kind": "texts",
        "lowercase": True,
        "accents": None,
        "terms": {"kind": "words", "class": np.array([97, 123], dtype=np.uint32), "least": 1, "edges": None},
        "ngram_min": 1,
        "ngram_max": 1,
        "stop_words": [],
        "vocabulary": ["a", "b"],
        "columns": None,
        "binary": False,
        **changed,
    }


def labels(kind, values, **changed):
    return {
        "kind": "classes",
        "labels": {"kind": kind, "values": values},
        "decide": "above_zero",
        "share": {"kind": "logistic", "factor": 1.0},
        "decision": "scores",
        **changed,
    }


def u32(*values):
    return np.array(values, dtype=np.uint32)


def fold(**changed):
    return {"from": u32(0xE9), "to": ["e"], "hangul": False, "others": "stay", **changed}


KINDS = [
    (None, TypeError, "the plan is NoneType: a dict is needed"),
    ({}, ValueError, "the plan has no input"),
    (made(input=3), TypeError, "input is int: a dict is needed"),
    (made(input={"kind": "numbers", "accepts": "finite"}), ValueError, "no input.n_features"),
    (made(input={"kind": "rows"}), ValueError, "input.kind of the plan is not known"),
    (made(input={"kind": 1}), TypeError, "input.kind is int: a str is needed"),
    (made(input={"kind": "numbers", "n_features": -1, "accepts": "finite"}), ValueError, "input.n_features"),
    (made(input={"kind": "numbers", "n_features": 2.5, "accepts": "finite"}), TypeError, "input.n_features"),
    (made(input={"kind": "numbers", "n_features": 2, "accepts": "all"}), ValueError, '"finite" or "missing"'),
    (made(steps=linear()), TypeError, "steps is dict: a list is needed"),
    (made(linear(), {"kind": "cubic"}), ValueError, r"steps\[1\].kind of the plan is not known"),
    (made(linear(), 7), TypeError, r"steps\[1\] is int: a dict is needed"),
    (made(linear(weights=[[1.0, 1.0]])), TypeError, r"steps\[0\].weights is list: an array of float64"),
    (made(linear(weights=np.ones((1, 2), np.float32))), TypeError, r"steps\[0\].weights holds float32"),
    (made(linear(weights=np.ones(2))), ValueError, r"steps\[0\].weights of the plan has 1 dimensions"),
    (made(linear(weights=np.ones((2, 2)))), ValueError, "has 2 rows: the plan says 1"),
    (made(linear(weights=np.ones((1, 2), dtype=object))), TypeError, "an array of float64 is needed"),
    (made(linear(bias=None)), TypeError, r"steps\[0\].bias is NoneType"),
    (made(trees(leaves=np.zeros(2, dtype=np.int64))), TypeError, r"steps\[0\].leaves holds int64"),
    (made(trees(thresholds=np.zeros(1))), TypeError, "thresholds holds float64: the plan needs float32"),
    (made(trees(turn="both")), ValueError, r"steps\[0\].turn"),
    (made(trees(divisor="1")), TypeError, r"steps\[0\].divisor is str: a number"),
    (made(near(samples={"kind": "odd"})), ValueError, r"steps\[0\].samples.kind"),
    (
        made(near(answer={"kind": "values", "n_outputs": 2, "targets": np.ones((2, 1))})),
        ValueError,
        "2 columns",
    ),
    (made(near(search={"kind": "kd_tree", "leaf_size": 1, "order": [0, 1]})), TypeError, r"search.order"),
    (
        made({"kind": "scale_add", "scale": np.ones(2), "add": np.ones(2), "clip": (1.0,)}),
        ValueError,
        "two numbers",
    ),
    (made(input=texts(vocabulary=["a", 1])), TypeError, r"input.vocabulary\[1\] is int"),
    (made(input=texts(vocabulary="ab")), TypeError, "input.vocabulary is str"),
    (made(input=texts(vocabulary=["a", "\ud800"])), ValueError, "half a surrogate pair in text 1"),
    (made(input=texts(lowercase=1.5)), TypeError, "input.lowercase is float: True or False"),
    (made(input=texts(accents=fold(**{"from": u32(0xD800)}))), ValueError, "no character"),
    (made(input=texts(accents=fold(to=[]))), ValueError, "has 1 rows: the plan says 0"),
    (made(head={"kind": "crown"}), ValueError, "head.kind"),
    (made(head=labels("booleans", np.array([0, 2], dtype=np.uint8))), ValueError, "head.labels.values"),
    (made(head=labels("texts", ["a", None])), TypeError, r"head.labels.values\[1\]"),
    (made(head=labels("dates", [])), ValueError, "head.labels.kind"),
    (made(metadata=None), TypeError, "metadata is NoneType"),
    (made(metadata={"sklearn": {1: 2}}), TypeError, "keys of metadata"),
    (made(metadata={"feature_names": ["a", 1]}), TypeError, r"metadata.feature_names\[1\] is int"),
]


@pytest.mark.parametrize(("plan", "error", "text"), KINDS, ids=[case[2] for case in KINDS])
def test_values_of_the_wrong_kind(plan, error, text):
    with pytest.raises(error, match=text):
        _native.build_pipeline(plan)


UNSOUND = [
    (made(linear(weights=np.full((1, 2), np.nan))), "am-part-not-finite", "steps[0]"),
    (made(linear(bias=np.zeros(2))), "am-part-length", "steps[0]"),
    (made(linear(), linear()), "am-part-length", "the plan"),
    (made(linear(n_outputs=0, weights=np.ones((0, 2)), bias=np.zeros(0))), None, "steps[0]"),
    (made(linear(), trees()), "am-part", "the plan"),
    (made(trees(features=u32(5, 2**32 - 1, 2**32 - 1))), "am-part", "the plan"),
    (made(trees(tree_nodes=u32(2))), None, "steps[0]"),
    (made(trees(tree_nodes=u32(2**32 - 1, 2**32 - 1))), None, "steps[0]"),
    (made(trees(leaves=u32(0, 2))), None, "steps[0]"),
    (made(trees(thresholds=np.array([np.nan], dtype=np.float32))), None, "steps[0]"),
    (made(trees(divisor=0.0)), "am-part", "steps[0]"),
    (made(near(k=3)), "am-part", "steps[0]"),
    (made(near(k=2**63)), "am-part", "steps[0]"),
    (made(near(search={"kind": "kd_tree", "leaf_size": 0, "order": u32(0, 1)})), None, "steps[0]"),
    (made(near(search={"kind": "kd_tree", "leaf_size": 1, "order": u32(0, 0)})), None, "steps[0]"),
    (made(near(metric={"kind": "minkowski", "p": 0.5})), "am-part", "steps[0]"),
    (made(input=texts(vocabulary=["b", "a"])), None, "input.vocabulary"),
    (made(input=texts(ngram_max=65)), "am-part", "input"),
    (made(input=texts(columns=u32(0, 0))), "am-part", "input"),
    (made(input=texts(accents=fold(**{"from": u32(0x41)}))), "am-part", "input.accents"),
    (made(input=texts(terms={**texts()["terms"], "class": u32(5)})), None, "input.terms.class"),
    (made(input={"kind": "numbers", "n_features": 2**40, "accepts": "finite"}), "am-part", "the plan"),
    (made(head=labels("texts", ["b", "a"])), "am-part", "the plan"),
    (made(head=labels("integers", np.array([1, 2, 3]))), "am-part-length", "the plan"),
    (made(head=labels("integers", np.array([1, 2]), decide="largest")), None, "the plan"),
    (made(steps=[]), "am-part", "the plan"),
]


@pytest.mark.parametrize(("plan", "code", "place"), UNSOUND, ids=str)
def test_parts_that_do_not_fit(plan, code, place):
    with pytest.raises(apr.AprError) as caught:
        _native.build_pipeline(plan)
    assert caught.value.name == place and f"{place}: " in str(caught.value)
    assert code is None or caught.value.code == code


def test_arrays_are_taken_in_any_order_of_bytes_and_strides():
    weights = np.arange(6.0).reshape(2, 3)
    head = {"kind": "rows", "what": "prediction", "link": "none", "flat": False}
    source = {"kind": "numbers", "n_features": 3, "accepts": "finite"}
    step = {"kind": "linear", "n_outputs": 2, "bias": np.zeros(2)}
    expected = _native.load(
        _native.build_pipeline(made({**step, "weights": weights}, input=source, head=head))
    )
    rows = np.eye(3)
    for same in (np.asfortranarray(weights), weights.astype(">f8"), np.repeat(weights, 2, axis=1)[:, ::2]):
        model = _native.load(_native.build_pipeline(made({**step, "weights": same}, input=source, head=head)))
        np.testing.assert_array_equal(model.predict(rows), expected.predict(rows))
    np.testing.assert_array_equal(expected.predict(rows), weights.T)


def test_a_plan_is_not_changed_and_its_bytes_do_not_change():
    estimator = fitted(make_pipeline(StandardScaler(), SVC()), "iris")
    plan_of = plan(estimator)
    kept = copy.deepcopy(plan_of)
    files = [_native.build_pipeline(plan_of) for _ in range(2)]
    assert repr(plan_of) == repr(kept)
    models = [_native.load(file) for file in files]
    assert models[0].to_bytes(metadata={"created_at": "x"}) == models[1].to_bytes(
        metadata={"created_at": "x"}
    )
