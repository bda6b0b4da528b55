"""Tables of other packages, through the Arrow C data interface."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from columns import plan_of_texts

import apr
from apr._native import build_pipeline

na = pytest.importorskip("nanoarrow")
CArrayStream = pytest.importorskip("nanoarrow.c_array_stream").CArrayStream

ROWS = np.array([[1, 2], [-2, 0.5], [3, 0], [4, 1e6]])
NAMES = ["age", "size"]


def pipeline(accepts: str = "finite", names: list[str] | None = NAMES, n_features: int = 2) -> apr.Model:
    """1 + 2 age + 0.5 size, in float64."""
    weights = np.array([[2.0, 0.5] + [0.0] * (n_features - 2)])
    plan = {
        "input": {"kind": "numbers", "n_features": n_features, "accepts": accepts},
        "steps": [{"kind": "linear", "n_outputs": 1, "weights": weights, "bias": np.array([1.0])}],
        "head": {"kind": "rows", "what": "prediction", "link": "none", "flat": True},
        "metadata": {"feature_names": names},
    }
    return apr.load(build_pipeline(plan))


def expected(rows: np.ndarray = ROWS) -> np.ndarray:
    return 1 + rows @ np.array([2.0, 0.5])


def batch(columns: dict[str, Any]) -> Any:
    """A table of nanoarrow: from names to pairs of type and values."""
    contiguous = (np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for _, v in columns.values())
    arrays = [na.c_array(values, kind) for values, (kind, _) in zip(contiguous, columns.values())]
    schema = na.struct({name: kind for name, (kind, _) in columns.items()})
    return na.c_array_from_buffers(schema, len(arrays[0]), [None], children=arrays)


def doubles(**more: Any) -> Any:
    return batch({"size": (na.float64(), ROWS[:, 1]), "age": (na.float64(), ROWS[:, 0]), **more})


def test_columns_are_taken_by_the_names_of_features():
    model = pipeline()
    assert np.array_equal(model.predict(doubles()), expected())
    # Another column is not read, whatever its type.
    dates = (na.date32(), [1, 2, 3, 4])
    assert np.array_equal(model.predict(doubles(when=dates)), expected())
    # Of a model without names, and a table that has none of them, in their order.
    for model, names in [(pipeline(names=None), ["size", "age"]), (pipeline(), ["0", "1"])]:
        table = batch({name: (na.float64(), ROWS[:, idx]) for idx, name in enumerate(names)})
        assert np.array_equal(model.predict(table), expected())


def test_streams_have_batches():
    stream = CArrayStream.from_c_arrays([doubles()] * 3, doubles().schema)
    assert np.array_equal(pipeline().predict(stream), np.tile(expected(), 3))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_are_numbers(kind: str):
    numbers = (getattr(na, kind)(), [1, 2, 100])
    model = pipeline()
    assert model.predict(batch({"age": numbers, "size": numbers})).tolist() == [3.5, 6.0, 251.0]


def test_booleans_and_narrow_floats_are_numbers():
    table = batch({"age": (na.bool_(), [True, False]), "size": (na.float32(), [0.5, 1.5])})
    assert pipeline().predict(table).tolist() == [3.25, 1.75]


def test_nulls_are_missing_values():
    table = batch({"age": (na.int32(), [1, None]), "size": (na.float64(), [2.0, 3.0])})
    with pytest.raises(apr.AprError, match='the cell is empty, row 1, column "age"') as refused:
        pipeline().predict(table)
    assert refused.value.code == "am-feature-not-finite"
    found = pipeline("missing").predict(table)
    assert found[0] == 4.0 and np.isnan(found[1])


def test_other_tables_are_refused():
    model = pipeline()
    numbers = (na.float64(), [1.0])
    for columns, code, text in [
        ({"age": numbers}, "am-feature-count", 'no column "size"'),
        ({"x": numbers}, "am-feature-count", ""),
        ({"age": (na.string(), ["one"]), "size": numbers}, "tb-type", "`one` is not a number, row 0"),
        ({"age": (na.date32(), [1]), "size": numbers}, "tb-type", "age"),
        ({"age": (na.float64(), [float("inf")]), "size": numbers}, "am-feature-not-finite", "row 0"),
    ]:
        with pytest.raises(apr.AprError) as refused:
            model.predict(batch(columns))
        assert refused.value.code == code and text in str(refused.value), refused.value
    with pytest.raises((TypeError, ValueError)):
        model.predict(na.c_array([1.0, 2.0], na.float64()))

    class Wrong:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return doubles().__arrow_c_array__()[1]

    class Failing:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise RuntimeError("not now")

    with pytest.raises(ValueError):
        model.predict(Wrong())
    with pytest.raises(RuntimeError, match="not now"):
        model.predict(Failing())


def test_rows_that_are_null_are_refused():
    rows = doubles()
    valid = na.c_buffer([True, False, True, True], na.bool_())
    nulls = na.c_array_from_buffers(rows.schema, 4, [valid], children=list(rows.children))
    for table in [nulls, CArrayStream.from_c_arrays([nulls], rows.schema)]:
        with pytest.raises((apr.AprError, ValueError), match="row 1 of a batch is null"):
            pipeline().predict(table)


def test_capsules_are_used_once():
    stream, array = CArrayStream.from_c_arrays([doubles()], doubles().schema).__arrow_c_stream__(), doubles()
    capsules = array.__arrow_c_array__()

    class Same:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return capsules

    class SameStream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return stream

    for table in [Same(), SameStream()]:
        assert np.array_equal(pipeline().predict(table), expected())
        with pytest.raises(ValueError, match="the table cannot be read"):
            pipeline().predict(table)


class Texts(list):
    """A column of texts that can also be had as Arrow, as a pandas.Series is."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        column = na.c_array(list(self), na.string())
        return CArrayStream.from_c_arrays([column], column.schema).__arrow_c_stream__()


def test_columns_and_tables_of_texts_are_texts():
    plan = plan_of_texts()
    model = apr.load(build_pipeline(plan))
    words = ["one one", "two", "other"]
    named = batch({"text": (na.string(), words)})
    for texts in [words, Texts(words), named]:
        assert model.predict(texts).tolist() == [5.0, 1.5, 1.0]
        assert model.scores(texts).ravel().tolist() == [5.0, 1.5, 1.0]
    with pytest.raises(apr.AprError) as refused:
        model.predict(doubles())
    assert refused.value.code == "am-feature-count"

    plan["steps"], plan["head"] = [], {"kind": "rows", "what": "transform", "link": "none", "flat": False}
    model = apr.load(build_pipeline(plan))
    for texts in [words, Texts(words), named]:
        assert [part.tolist() for part in model.terms(texts)] == [[2.0, 1.0], [0, 1], [0, 1, 2, 2]]


def test_models_of_32_bits_take_tables():
    model = apr.load(Path(__file__).parents[2] / "conformance/vectors/apr/a0100_gmm_zstd-default_plain.apr")
    rows = np.random.default_rng(1).normal(size=(20_000, model.n_features)).astype(np.float32)
    table = batch({f"c{idx}": (na.float32(), rows[:, idx].copy()) for idx in range(model.n_features)})
    assert np.array_equal(model.predict(table), model.predict(rows))


def test_pandas_polars_and_pyarrow_have_the_same_rows():
    columns = {"size": ROWS[:, 1], "age": ROWS[:, 0]}
    tables = []
    pa, pandas, polars = (sys.modules.get(name) or _module(name) for name in ["pyarrow", "pandas", "polars"])
    if pa:
        table = pa.table(columns)
        kinds = {"size": pa.array(ROWS[:, 1]).dictionary_encode(), "age": pa.array([1, -2, 3, 4], pa.int8())}
        tables += [table, table.to_batches()[0], pa.table(kinds), table.to_reader()]
    if pandas:
        tables += [pandas.DataFrame({"age": ROWS[:, 0], "size": ROWS[:, 1]})]
        if pa:
            tables += [pandas.DataFrame(columns, index=list("abcd"))]
            nullable = pandas.DataFrame(columns).convert_dtypes()
            tables += [nullable, nullable.convert_dtypes(dtype_backend="pyarrow")]
    if polars:
        tables += [polars.DataFrame(columns), polars.DataFrame(columns).head(4)]
    if not tables:
        pytest.skip("none of them is here")
    for table in tables:
        assert np.array_equal(pipeline().predict(table), expected()), type(table)


def _module(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        return None


PEAK = """
import resource, sys
import numpy as np, nanoarrow as na
sys.path.insert(0, {folder!r})
from test_tables import pipeline
n_rows, width = 500_000, 20
model = pipeline(names=None, n_features=width)
arrays = [na.c_array(np.full(n_rows, float(idx)), na.float64()) for idx in range(width)]
schema = na.struct({{f"c{{idx}}": na.float64() for idx in range(width)}})
table = na.c_array_from_buffers(schema, n_rows, [None], children=arrays)
model.predict(na.c_array_from_buffers(schema, 1, [None], children=[na.c_array([0.0], na.float64())] * width))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(model.predict(table)) == n_rows
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts other things elsewhere")
def test_a_table_is_not_copied():
    program = PEAK.format(folder=str(Path(__file__).parent))
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)
    # 80 MB of table, 4 MB of predictions twice, and a batch of rows for each thread.
    assert grown < 30_000_000, grown
