"""Lets gguf-py read files that `write_samples` wrote, and compares with what stands beside each.

usage: judge_gguf.py FOLDER

Prints one line for each file and fails at the first that is read as something else.
"""

import json
import pathlib
import struct
import sys

from gguf import GGUFReader, GGUFValueType

FLOATS = {GGUFValueType.FLOAT32: ("<f", "<I"), GGUFValueType.FLOAT64: ("<d", "<Q")}


def comparable(value, kind):
    """Integers and texts as they are, floats as their bits."""
    if isinstance(value, list):
        return [comparable(element, kind) for element in value]
    if kind in FLOATS:
        write, read = FLOATS[kind]
        return struct.unpack(read, struct.pack(write, value))[0]
    return value


def same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r}, not {expected!r}")


def judge(path):
    expected = json.loads(path.with_suffix(".json").read_text("utf-8"))
    raw = path.read_bytes()
    reader = GGUFReader(path)
    fields = [field for name, field in reader.fields.items() if not name.startswith("GGUF.")]
    same(f"{path.name}: alignment", reader.alignment, expected["alignment"])
    same(f"{path.name}: keys", [field.name for field in fields], [key for key, *_ in expected["keys"]])
    for field, (key, kind, is_array, value) in zip(fields, expected["keys"]):
        what = f"{path.name}: {key}"
        same(what, field.types[0] == GGUFValueType.ARRAY, is_array)
        same(what, int(field.types[-1]), kind)
        contents = field.contents()
        contents = contents.tolist() if hasattr(contents, "tolist") else contents
        same(what, comparable(contents, field.types[-1]), value)
    same(f"{path.name}: tensors", len(reader.tensors), len(expected["tensors"]))
    for tensor, (name, number, dims, begin, end) in zip(reader.tensors, expected["tensors"]):
        what = f"{path.name}: {name}"
        same(what, tensor.name, name)
        same(what, int(tensor.tensor_type), number)
        same(what, [int(dim) for dim in tensor.shape], dims)
        same(what, (int(tensor.data_offset), int(tensor.n_bytes)), (begin, end - begin))
        same(what, tensor.data.tobytes(), raw[begin:end])
    print(f"gguf-py: {path.name}: {len(fields)} keys, {len(reader.tensors)} tensors, as written")


paths = sorted(pathlib.Path(sys.argv[1]).glob("*.gguf"))
if not paths:
    sys.exit("no files to judge")
for path in paths:
    judge(path)
