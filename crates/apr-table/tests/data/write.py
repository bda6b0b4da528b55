"""Writes the tables of this folder with pyarrow, and what they hold: see README.md."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

N = 25
ROWS = range(N)


def column(kind, value):
    return pa.array([value(row) for row in ROWS], type=kind)


def some(value):
    """Nulls in every fifth row."""
    return lambda row: None if row % 5 == 3 else value(row)


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
NATURALS = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
COLUMNS = {str(kind): column(kind, lambda row, bits=kind.bit_width: (-1) ** row * (2 ** (bits - 1) - 1 - row)) for kind in INTEGERS}
COLUMNS |= {str(kind): column(kind, lambda row, bits=kind.bit_width: 2**bits - 1 - row) for kind in NATURALS}
COLUMNS |= {
    "half": column(pa.float16(), lambda row: np.float16(row / 8)),
    "float": column(pa.float32(), lambda row: np.float32(row * 0.1)),
    "double": column(pa.float64(), lambda row: row * 0.1),
    "bool": column(pa.bool_(), lambda row: row % 3 == 0),
    "string": column(pa.string(), lambda row: f"é{row}"),
    "large_string": column(pa.large_string(), lambda row: "x" * row),
    "dictionary": column(pa.string(), lambda row: ["red", "green", "blue"][row % 3]).dictionary_encode(),
    "number_dictionary": column(pa.float64(), lambda row: [0.5, 1.5][row % 2]).dictionary_encode(),
    "null": pa.nulls(N),
    "some_int": column(pa.int32(), some(lambda row: row)),
    "some_double": column(pa.float64(), some(lambda row: row / 4)),
    "some_bool": column(pa.bool_(), some(lambda row: row % 2 == 0)),
    "some_string": column(pa.string(), some(lambda row: str(row))),
    "some_dictionary": column(pa.string(), some(lambda row: "ab"[row % 2])).dictionary_encode(),
    "not_finite": column(pa.float64(), lambda row: [math.nan, math.inf, -math.inf, 1.0][row % 4]),
}
TABLE = pa.table(COLUMNS)
# Types of Arrow that Parquet does not have.
VIEW = TABLE.append_column("string_view", column(pa.string_view(), some(lambda row: "a view of a text " * (row % 3))))


def stream(name, table, batch=10, **options):
    with pa.ipc.new_stream(name, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch)


def text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(float(value)) if isinstance(value, float) else str(value)


def main():
    for codec in ["none", "snappy", "gzip", "zstd", "lz4"]:
        pq.write_table(TABLE, f"{codec}.parquet", compression=codec, row_group_size=10, data_page_size=64)
    pq.write_table(TABLE, "version2.parquet", data_page_version="2.0", compression="zstd", use_dictionary=False)
    pq.write_table(TABLE.select(["int8"]), "brotli.parquet", compression="brotli")
    pq.write_table(TABLE, "gzip2.parquet", compression="gzip", data_page_version="2.0", use_dictionary=False)
    for codec in ["uncompressed", "lz4", "zstd"]:
        feather.write_feather(VIEW, f"{codec}.arrow", compression=codec, chunksize=10)
    stream("stream.arrows", VIEW)
    stream("compressed.arrows", VIEW, compression="zstd")
    stream("deltas.arrows", deltas(), batch=2, emit_dictionary_deltas=True)
    stream("nulls.arrows", TABLE.select(["null"]))
    stream("empty.arrows", TABLE.slice(0, 0))
    pq.write_table(TABLE.slice(0, 0), "empty.parquet")
    other = pa.table({
        "x": column(pa.int32(), lambda row: row),
        "date": column(pa.date32(), lambda row: row),
        "time": column(pa.timestamp("us"), lambda row: row),
        "decimal": column(pa.decimal128(9, 2), lambda row: row),
        "list": column(pa.list_(pa.int32()), lambda row: [row]),
        "binary": column(pa.binary(), lambda row: b"x"),
        "struct": column(pa.struct([("a", pa.int32())]), lambda row: {"a": row}),
    })
    pq.write_table(other, "other_types.parquet")
    stream("other_types.arrows", other)
    samples = pa.table({
        "note": ["first", "second", None, "last"],
        "b": pa.array([2, 4, 100, 0], type=pa.int16()),
        "a": pa.array([1.0, 3.0, -0.5, 2.5], type=pa.float64()),
        "day": pa.array([1, 2, 3, 4], type=pa.date32()),
    })
    pq.write_table(samples, "samples.parquet")
    stream("samples.arrows", samples)
    numbers()
    rows = {name: [text(cell) for cell in VIEW[name].to_pylist()] for name in VIEW.column_names}
    rows["deltas"] = deltas()["deltas"].to_pylist()
    with open("expected.json", "w", encoding="utf-8") as file:
        json.dump({"pyarrow": pa.__version__, "columns": rows}, file, ensure_ascii=False, indent=0)
        file.write("\n")


def numbers():
    """Arrays of NumPy with the columns of numbers."""
    rows = np.array([[1, 2], [3, 4], [-0.5, 100], [2.5, 0]])
    np.save("samples.npy", rows)
    np.save("fortran.npy", np.asfortranarray(rows.astype(">f4")))
    others = {"y": np.array([0, 1, 1, 0]), "words": np.array(["a", "b", "c", "d"]), "mean": np.zeros(2)}
    np.savez_compressed("samples.npz", X=rows.astype("f2"), **others)


def deltas():
    """A dictionary that grows from batch to batch."""
    batches = []
    words = []
    for word in ["one", "two", "three"]:
        words.append(word)
        keys = pa.array([len(words) - 1, 0], type=pa.int8())
        batches.append(pa.DictionaryArray.from_arrays(keys, pa.array(words)))
    return pa.table({"deltas": pa.chunked_array(batches)})


if __name__ == "__main__":
    main()
