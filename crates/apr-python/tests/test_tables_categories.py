"""Columns of categories, of pandas, polars and pyarrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from columns import COLOURS, PACKAGES, table

import apr

ASKED = ["blue", "red", "green", "blue"]
SIZES = [1.0, 2.0, 3.0, 4.0]


def program(*args: str, cwd: Path) -> str:
    return subprocess.run([sys.executable, "-m", "apr", *args], cwd=cwd, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """`strict.apr` and `lenient.apr`: size + 10 for green and 20 for red; and what the program predicts for `asked.csv`."""
    folder = tmp_path_factory.mktemp("categories")
    amounts = {"red": 20, "green": 10, "blue": 0}
    rows = [f"{size},{colour},{size + amounts[colour]}" for colour in COLOURS for size in range(4)]
    # One more, so that it is the most frequent category.
    rows.append("9,blue,9")
    (folder / "rows.csv").write_text("\n".join(["size,colour,y", *rows]))
    (folder / "asked.csv").write_text("\n".join(["size,colour", *map("{},{}".format, SIZES, ASKED)]))
    train = ["train", "linear-regression", "--data", "rows.csv", "--target", "y", "--categorical", "colour"]
    program(*train, "-o", "strict.apr", cwd=folder)
    program(*train, "--missing", "mean", "--unknown-category", "ignore", "-o", "lenient.apr", cwd=folder)
    return folder


@pytest.fixture
def expected(folder) -> np.ndarray:
    lines = program("predict", "strict.apr", "-i", "asked.csv", cwd=folder).split()
    found = np.array([float(line) for line in lines if line[0].isdigit()])
    np.testing.assert_allclose(found, [1, 22, 13, 4], atol=1e-3)
    return found


def strict(folder: Path) -> apr.Model:
    return apr.load(folder / "strict.apr")


def lenient(folder: Path) -> apr.Model:
    return apr.load(folder / "lenient.apr")


@pytest.mark.parametrize("package", PACKAGES)
def test_categories_are_those_of_the_texts(package, folder, expected):
    for kind, column in PACKAGES[package]():
        # By name, in any order.
        asked = table(package, colour=column(ASKED), other=SIZES, size=SIZES)
        assert np.array_equal(strict(folder).predict(asked), expected), kind
        assert np.array_equal(strict(folder).scores(asked).ravel(), expected), kind
        np.testing.assert_allclose(lenient(folder).predict(asked), expected, atol=1e-6, err_msg=kind)


@pytest.mark.parametrize("package", PACKAGES)
def test_nulls_are_missing_categories(package, folder):
    for kind, column in PACKAGES[package]():
        asked = table(package, size=SIZES, colour=column(["blue", None, "red", "blue"]))
        with pytest.raises(apr.AprError, match='the cell is empty, row 1, column "colour"') as caught:
            strict(folder).predict(asked)
        assert caught.value.code == "am-feature-not-finite", kind
        # The most frequent one.
        np.testing.assert_allclose(lenient(folder).predict(asked), [1, 2, 23, 4], atol=1e-3, err_msg=kind)


@pytest.mark.parametrize("package", PACKAGES)
def test_other_categories_are_refused_or_ignored(package, folder):
    for kind, column in PACKAGES[package]():
        asked = table(package, size=SIZES, colour=column(["blue", "red", "pink", "blue"]))
        text = 'row 2, column "colour": `pink` is none of the categories of the training: blue, green, red'
        with pytest.raises(apr.AprError, match=text) as caught:
            strict(folder).predict(asked)
        assert caught.value.code == "cli-table-cell" and "--unknown-category ignore" in str(caught.value), kind
        found = lenient(folder).predict(asked)
        assert np.isfinite(found).all() and found[3] == lenient(folder).predict(asked[3:4])[0], kind


def test_every_row_of_many_has_its_own(folder):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(3)
    names, sizes = rng.choice(COLOURS, 20_000), rng.normal(size=20_000)
    # In several batches, which threads and blocks divide elsewhere.
    batches = [slice(0, 7), slice(7, 7), slice(7, 9_000), slice(9_000, None)]
    chunks = [pa.array(names[part]).dictionary_encode() for part in batches]
    asked = pa.table({"size": sizes, "colour": pa.chunked_array(chunks)})
    numbers = np.stack([sizes, np.searchsorted(sorted(COLOURS), names)], axis=1)
    assert np.array_equal(strict(folder).predict(asked), strict(folder).predict(numbers))


def test_categories_that_are_numbers(folder, tmp_path):
    """Of tables, numbers are names of categories, as in the program; a feature of numbers takes dictionaries of numbers."""
    na = pytest.importorskip("nanoarrow")
    (tmp_path / "t.csv").write_text("grade,y\n10,30\n9,20\n2,10\n10,30\n2,10\n")
    program(*"train linear-regression --data t.csv --target y --categorical grade --encoding ordinal -o m.apr".split(), cwd=tmp_path)
    model = apr.load(tmp_path / "m.apr")
    asked = na.c_array_from_buffers(na.struct({"grade": na.int32()}), 3, [None], children=[na.c_array([9, 2, 10], na.int32())])
    np.testing.assert_allclose(model.predict(asked), [20, 10, 30], atol=1e-3)
    # In arrays, they have their numbers.
    np.testing.assert_allclose(model.predict(np.array([[1], [0], [2]])), [20, 10, 30], atol=1e-3)
    if pandas := _module("pandas"):
        pytest.importorskip("pyarrow")
        numbers = pandas.DataFrame({"size": pandas.Categorical([1.0, 3.0, 1.0]), "colour": ["blue"] * 3})
        np.testing.assert_allclose(strict(folder).predict(numbers), [1, 3, 1], atol=1e-3)


def test_strings_are_categories_without_a_dictionary(folder, expected):
    na = pytest.importorskip("nanoarrow")
    parts = [na.c_array(ASKED, na.string()), na.c_array(SIZES, na.float64())]
    schema = na.struct({"colour": na.string(), "size": na.float64()})
    asked = na.c_array_from_buffers(schema, len(ASKED), [None], children=parts)
    assert np.array_equal(strict(folder).predict(asked), expected)
    with pytest.raises(TypeError, match="samples are numbers"):
        strict(folder).predict(np.array([[1.0, "blue"]], object))


def _module(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        return None
