"""Columns of texts as pandas, polars and pyarrow have them, and the plan of a model of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

COLOURS = ["red", "green", "blue"]

Column = Callable[[list[Any]], Any]


def columns_of_pandas() -> Iterator[tuple[str, Column]]:
    pandas = pytest.importorskip("pandas")
    # Its tables are arrays without it.
    pytest.importorskip("pyarrow")
    unused = ["z", *COLOURS, "pink", "a"]
    yield "object", lambda texts: pandas.Series(texts, dtype=object)
    yield "string", lambda texts: pandas.Series(texts, dtype="string")
    yield "category", lambda texts: pandas.Series(texts, dtype="category")
    yield "unused", lambda texts: pandas.Series(pandas.Categorical(texts, categories=unused))
    yield "ordered", lambda texts: pandas.Series(pandas.Categorical(texts, categories=unused, ordered=True))


def columns_of_polars() -> Iterator[tuple[str, Column]]:
    polars = pytest.importorskip("polars")
    yield "String", lambda texts: polars.Series(texts, dtype=polars.String)
    yield "Categorical", lambda texts: polars.Series(texts, dtype=polars.Categorical)
    yield "Enum", lambda texts: polars.Series(texts, dtype=polars.Enum(["z", *COLOURS, "pink", "a"]))


def columns_of_pyarrow() -> Iterator[tuple[str, Column]]:
    pa = pytest.importorskip("pyarrow")
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(kind), lambda texts, kind=kind: pa.array(texts, kind)
    for kind in (pa.string(), pa.large_string()):
        yield f"dictionary of {kind}", lambda texts, kind=kind: pa.array(texts, kind).dictionary_encode()
    values = ["z", *COLOURS, "pink", None]

    def unused(texts: list[Any]) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(list(map(values.index, texts)), pa.uint8()), pa.array(values))

    # A null is a value of the dictionary here, and a key without one elsewhere.
    yield "unused", unused
    yield "slice", lambda texts: pa.array(["other", *texts]).dictionary_encode()[1:]
    yield "chunks", lambda texts: pa.chunked_array([texts[:1], [], texts[1:]], pa.string())
    yield "chunks of dictionaries", lambda texts: pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (texts[:1], texts[1:])]
    )


PACKAGES = {"pandas": columns_of_pandas, "polars": columns_of_polars, "pyarrow": columns_of_pyarrow}


def table(package: str, **columns: Any) -> Any:
    module = __import__(package)
    return module.table(columns) if package == "pyarrow" else module.DataFrame(columns)


def plan_of_texts() -> dict[str, Any]:
    """A model: 1 + 2 for each "one" + 0.5 for each "two"."""
    terms = {"kind": "words", "class": np.array([97, 123], dtype=np.uint32), "least": 1, "edges": None}
    counted = {"terms": terms, "ngram_min": 1, "ngram_max": 1, "vocabulary": ["one", "two"]}
    plain = {"lowercase": True, "accents": None, "stop_words": [], "columns": None, "binary": False}
    return {
        "input": {"kind": "texts", **counted, **plain},
        "steps": [{"kind": "linear", "n_outputs": 1, "weights": np.array([[2.0, 0.5]]), "bias": np.array([1.0])}],
        "head": {"kind": "rows", "what": "prediction", "link": "none", "flat": True},
        "metadata": {},
    }
