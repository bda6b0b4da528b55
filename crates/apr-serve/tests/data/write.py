"""Writes the bodies in this folder with pyarrow and msgpack: `python write.py`, in this folder."""

from datetime import date
from pathlib import Path

import msgpack
import numpy as np
import pyarrow as pa


def stream(name, columns, batches=1, **options):
    table = pa.table(columns)
    with pa.ipc.new_stream(name, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=-(-max(1, len(table)) // batches))


AGES, SIZES = [1, -2, 3, 4], [2.0, 0.5, 0.0, 1e6]
stream("rows.arrows", {"size": SIZES, "age": pa.array(AGES, pa.int16())}, batches=2)
stream("zstd.arrows", {"size": SIZES, "age": AGES}, compression="zstd")
stream("lz4.arrows", {"size": pa.array(SIZES, pa.float32()), "age": AGES}, compression="lz4")
stream("dictionary.arrows", {"size": pa.array(SIZES).dictionary_encode(), "age": [True, False, True, True]})
stream("nulls.arrows", {"age": [1, None], "size": [0.5, float("nan")]})
stream("all_nulls.arrows", {"age": pa.nulls(5000), "size": pa.nulls(5000)})
stream("texts.arrows", {"text": ["alpha beta", "", "é"]})
stream("dictionary_of_texts.arrows", {"text": pa.array(["alpha beta"] * 3 + ["beta"]).dictionary_encode()})
stream("long_texts.arrows", {"text": pa.array(["a" * 1000] * 300).dictionary_encode()})
stream("null_text.arrows", {"text": ["a", None]})
stream("dates.arrows", {"age": [date(2020, 1, 1)], "size": [1.0]})
stream("words.arrows", {"age": ["1"], "size": [1.0]})
stream("other_names.arrows", {"age": [1], "sizes": [1.0]})
stream("empty.arrows", {"age": pa.array([], pa.int8()), "size": pa.array([], pa.float64())})
stream("zeros.arrows", {"age": np.zeros(100_000), "size": np.zeros(100_000)}, compression="zstd")
with pa.ipc.new_file("file.arrow", pa.schema([("age", pa.int8()), ("size", pa.int8())])) as writer:
    writer.write_table(pa.table({"age": pa.array([1], pa.int8()), "size": pa.array([2], pa.int8())}))

PACKED = {
    "rows": {"rows": [[age, size] for age, size in zip(AGES, SIZES)]},
    "list": [[age, size] for age, size in zip(AGES, SIZES)],
    "named": {"rows": [{"size": size, "age": age} for age, size in zip(AGES, SIZES)]},
    "one": [1, 2.0],
    "many": [[i % 100, i / 7] for i in range(300)],
    "nulls": [[1, 0.5], [None, float("nan")]],
    "booleans": [[True, 1]],
    "words": [["1", 1]],
    "bytes": [[b"1", 1]],
    "texts": ["alpha beta", "", "é"],
}
for name, value in PACKED.items():
    Path(f"{name}.msgpack").write_bytes(msgpack.packb(value))
Path("narrow.msgpack").write_bytes(msgpack.packb(PACKED["list"], use_single_float=True))
Path("time.msgpack").write_bytes(msgpack.packb([[msgpack.Timestamp(1), 1]]))
