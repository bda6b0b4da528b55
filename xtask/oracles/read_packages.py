"""What the libraries read from model files of public packages, and from the test data of their own packages.

    read_packages.py FOLDER 0 0 torch|arrays MODELS

Nothing of a pickle is run but constructors of arrays: `torch.load(weights_only=True)`, and unpicklers that know no other name.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
from joblib.numpy_pickle import NumpyUnpickler
from writing import NAMES, Writing, datasets, row_of

writing = Writing()
models = Path(sys.argv[5]).resolve()

ARRAYS = {(f"numpy{core}.multiarray", name) for core in (".core", "._core") for name in ("_reconstruct", "scalar")}
ARRAYS |= {("numpy", "ndarray"), ("numpy", "dtype"), ("numpy.matrixlib.defmatrix", "matrix")}
ARRAYS |= {("_codecs", "encode"), ("collections", "OrderedDict")}


WRAPPERS = {("joblib.numpy_pickle", "NumpyArrayWrapper")}


def refuse(*_, **__):
    raise pickle.UnpicklingError("an array of objects")


# joblib reads arrays of objects with it.
pickle.load = refuse


class Unpickler(NumpyUnpickler):
    """joblib's, which reads any pickle."""

    def find_class(self, module: str, name: str):
        if (module, name) not in ARRAYS | WRAPPERS:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def flat(value: object, row, kind: type, prefix: str = "") -> dict[str, list]:
    """The arrays among dicts, lists and tuples, by their path."""
    if isinstance(value, kind):
        # What has no elements of numbers is refused by its name.
        return {} if isinstance(value, np.ndarray) and value.dtype.name not in NAMES else {prefix: row(value)}
    items: list = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    rows: dict = {}
    for key, item in items:
        rows |= flat(item, row, kind, f"{prefix}.{key}" if prefix else str(key))
    return rows


def onnx_rows(path: Path) -> dict[str, list] | None:
    import onnx
    from onnx import numpy_helper

    found: list = []

    def graph(of) -> None:
        found.extend((tensor.name, tensor) for tensor in of.initializer)
        for node in of.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    found.append((node.output[0], attribute.t))
                for inner in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                    graph(inner)

    graph(onnx.load(path).graph)
    names = [name for name, _ in found]
    arrays = {name: numpy_helper.to_array(tensor) for name, tensor in found if names.count(name) == 1}
    return {name: row_of(array) for name, array in arrays.items() if array.dtype.name in NAMES}


def opened(path: Path) -> io.BytesIO:
    """The content of a file, decompressed."""
    data = path.read_bytes()
    for start, decompress in [
        (b"\x1f\x8b", gzip.decompress),
        (b"BZh", bz2.decompress),
        (b"\xfd7zXZ", lzma.decompress),
        (b"\x5d\0", lzma.decompress),
        (b"\x78", zlib.decompress),
    ]:
        if data.startswith(start):
            return io.BytesIO(decompress(data))
    return io.BytesIO(data)


def pickle_rows(path: Path) -> dict[str, list] | None:
    try:
        unpickler = Unpickler("", opened(path), ensure_native_byte_order=False)
        unpickler.encoding = "latin1"  # Python 2
        return flat(unpickler.load(), row_of, np.ndarray)
    except Exception as why:
        print(f"{path.name} cannot be read here: {why!r}"[:200])
        return None


def numpy_rows(path: Path) -> dict[str, list] | None:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
        return {name: row_of(array) for name, array in arrays.items() if array.dtype.name in NAMES}
    except ValueError:
        return None


def arrays() -> None:
    import h5py
    import joblib
    import onnx

    files = [path for path in sorted(models.rglob("*")) if path.is_file()]
    for package, part in [(onnx, "backend/test/data"), (np, "lib/tests/data"), (h5py, "tests/data_files")]:
        files += [path for path in sorted((Path(package.__file__).parent / part).rglob("*")) if path.is_file()]
    # Every second file of joblib's.
    files += sorted((Path(joblib.__file__).parent / "test/data").glob("*.pkl*"))[::2]
    for path in files:
        suffix = path.suffix
        if suffix == ".onnx":
            writing.expect(str(path), onnx_rows(path), partial=True)
        elif suffix in (".h5", ".hdf5"):
            writing.expect(str(path), datasets(path), partial=True, refused=not datasets(path))
        elif suffix in (".npy", ".npz"):
            rows = numpy_rows(path)
            writing.expect(str(path), rows, refused=not rows)
        elif ".pkl" in path.name or suffix in (".dict", ".hp", ".joblib"):
            rows = pickle_rows(path)
            writing.expect(str(path), rows, refused=not rows)
        elif suffix == ".tflite":
            writing.expect(str(path), None)


def torch_files() -> None:
    import hashlib

    import torch

    def row(tensor) -> list:
        values = tensor.detach().reshape(-1).clone(memory_format=torch.contiguous_format)
        data = values.view(torch.uint8).numpy().tobytes() if values.numel() else b""
        return [NAMES[str(tensor.dtype).removeprefix("torch.")], list(tensor.shape), hashlib.sha256(data).hexdigest()]

    for path in sorted(models.rglob("*")):
        if not path.name.endswith((".pt", ".pth", ".pth.tar", ".ckpt", ".bin", ".jit")):
            continue
        if zipfile.is_zipfile(path) and any("constants.pkl" in name for name in zipfile.ZipFile(path).namelist()):
            writing.expect(str(path), None)  # a program
            continue
        try:
            rows = flat(torch.load(path, map_location="cpu", weights_only=True), row, torch.Tensor)
        except (pickle.UnpicklingError, RuntimeError):
            rows = None
        writing.expect(str(path), rows, refused=rows is None)


{"torch": torch_files, "arrays": arrays}[sys.argv[4]]()
