"""Columns of texts alone, of pandas, polars and pyarrow: wherever a list of str is taken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from columns import COLOURS, PACKAGES, Column, plan_of_texts, table

import apr
from apr import gguf
from apr._native import build_pipeline
from apr.inference import _plain

WORDS = ["one one", "two", "other"]


@pytest.fixture(scope="module")
def of_texts() -> apr.Model:
    return apr.load(build_pipeline(plan_of_texts()))


def columns_of_words(package: str) -> Iterator[tuple[str, Column]]:
    """Columns whose dictionaries hold any words."""
    return ((kind, column) for kind, column in PACKAGES[package]() if kind not in ("unused", "ordered", "Enum"))


@pytest.mark.parametrize("package", PACKAGES)
def test_columns_of_strings_are_texts(package, of_texts):
    for kind, column in columns_of_words(package):
        assert of_texts.predict(column(WORDS)).tolist() == [5.0, 1.5, 1.0], kind
        assert of_texts.scores(column(WORDS)).ravel().tolist() == [5.0, 1.5, 1.0], kind
        assert of_texts.predict(table(package, text=column(WORDS))).tolist() == [5.0, 1.5, 1.0], kind
        assert of_texts.predict(column(WORDS)[:0]).tolist() == [], kind
        for nulls in (column(["one", None]), table(package, text=column(["one", None]))):
            with pytest.raises(apr.AprError, match="the cell is empty, row 1") as caught:
                of_texts.predict(nulls)
            assert caught.value.code == "am-feature-not-finite", kind


def test_what_is_no_column_of_strings_is_refused(of_texts):
    for rows in [["one", None], np.array(["one", None], object), ["one", 2], ("one", b"two")]:
        with pytest.raises(TypeError, match="texts are str, number 1 is of type"):
            of_texts.predict(rows)
    with pytest.raises(TypeError, match="this is one str"):
        of_texts.predict("one")
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(apr.AprError, match="row 0"):
        of_texts.predict(pa.array([None, None]))
    for rows in [pa.array([1, 2]), pa.array([b"one"]), pa.array([["one"]]), pa.array([1, 2]).dictionary_encode()]:
        with pytest.raises(TypeError, match="texts are str, number 0 is of type"):
            of_texts.predict(rows)


@pytest.mark.parametrize("package", PACKAGES)
def test_columns_are_rows_of_a_private_request(package):
    for kind, column in columns_of_words(package):
        assert _plain(column(WORDS)) == WORDS, kind


def test_columns_are_lists_of_metadata(tmp_path: Path):
    pa = pytest.importorskip("pyarrow")
    tokens = pa.chunked_array([["<s>"], ["</s>", "a"]])
    gguf.save(tmp_path / "m.gguf", {"w": np.ones((1, 32), np.float32)}, {"tokens": tokens, "ids": pa.array([3, 4])})
    with gguf.open(tmp_path / "m.gguf") as file:
        assert file.metadata["tokens"] == tokens.to_pylist() and file.metadata["ids"] == [3, 4]
        assert file.metadata_types == {"tokens": "array[string]", "ids": "array[i32]"}


@pytest.mark.parametrize("package", PACKAGES)
def test_columns_are_samples_of_texts(package, tmp_path: Path):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    from apr.sklearn import export

    for kind, column in columns_of_words(package):
        fitted = text.TfidfVectorizer().fit(WORDS)
        assert export(fitted, tmp_path / "m.apr", sample=column(WORDS)).rows_compared == 3, kind
        with pytest.raises(TypeError, match="at 1: a text is a str"):
            export(fitted, tmp_path / "m.apr", sample=column(["one", None]))


@pytest.mark.parametrize("package", PACKAGES)
def test_columns_are_labels(package, tmp_path: Path):
    neighbors = pytest.importorskip("sklearn.neighbors")
    from apr.sklearn import export

    rows, labels = np.arange(8.0).reshape(4, 2), ["blue", *COLOURS]
    for kind, column in PACKAGES[package]():
        fitted = neighbors.KNeighborsClassifier(1).fit(rows, column(labels))
        export(fitted, tmp_path / "m.apr", sample=rows)
        assert apr.load(tmp_path / "m.apr").predict(rows).tolist() == labels, kind
