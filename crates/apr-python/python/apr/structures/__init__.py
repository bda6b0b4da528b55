"""Nested data in safetensors files: lists, dicts, dataclasses, enums and numbers around arrays.

The layout is that of the package safestructures 1.0.0, whose files are read and written. The project's page
``docs/structures.md`` specifies it and our additions. Nothing is ever imported by a name that stands in a
file: classes are found among those that the reading program hands over.

>>> import numpy as np, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
>>> save_file({"lr": 1e-3, "shape": (2, 3), 7: [np.ones(2, np.float32), None]}, path)
>>> load_file(path)
{'lr': 0.001, 'shape': (2, 3), 7: [array([1., 1.], dtype=float32), None]}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from apr.safetensors import SafetensorError, safe_open
from apr.safetensors import numpy as _numpy_files

from ._capture import Capture, capture
from ._plugins import plugins_of
from ._read import Reader, Tensors
from ._registry import known_classes, register
from ._schema import SCHEMA_KEY, VERSION, VERSION_KEY, schema_of
from ._types import DataProcessor, StructureError, TensorProcessor, UnsupportedTypeError, Variant
from ._walk import MAX_NODES
from ._write import Writer, plain

__all__ = [
    "Capture",
    "DataProcessor",
    "StructureError",
    "TensorProcessor",
    "UnsupportedTypeError",
    "Variant",
    "capture",
    "load",
    "load_file",
    "register",
    "save",
    "save_file",
]

# However they are spread over files, this is where they are known from.
for _public in (Capture, DataProcessor, StructureError, TensorProcessor, UnsupportedTypeError, Variant, capture, register):
    _public.__module__ = __name__
del _public

# The adapter of `apr.safetensors` for each name that a caller may give a framework.
_ADAPTERS = {
    "np": "numpy",
    "numpy": "numpy",
    "pt": "torch",
    "torch": "torch",
    "pytorch": "torch",
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
    "jax": "flax",
    "flax": "flax",
    "mlx": "mlx",
    "paddle": "paddle",
}


def _prepared(
    data: Any,
    metadata: Mapping[str, str] | None,
    plugins: Any,
    classes: Mapping[str, type] | None,
    widen: bool,
) -> tuple[dict[str, np.ndarray], dict[str, str], dict[str, str]]:
    """The tensors of a file and its metadata, and where in the data each tensor is."""
    own = dict(metadata or {})
    for key in (SCHEMA_KEY, VERSION_KEY):
        if key in own:
            raise StructureError(f"`{key}` cannot be a key of the metadata: rename it", "ss-reserved-key")
    writer = Writer(known_classes(classes), widen)
    writer.plugins, _ = plugins_of(plugins, writer)
    try:
        schema = json.dumps(writer.serialize(data), allow_nan=False)
    except RecursionError as error:
        raise StructureError("the data are nested more deeply than Python can follow", "ss-depth") from error
    own |= {SCHEMA_KEY: schema, VERSION_KEY: VERSION}
    tensors = {name: plain(array) for name, array in writer.tensors.items()}
    # The format's own readers want at least one.
    tensors = tensors or {"null": np.zeros(1, np.int64)}
    return tensors, {key: own[key] for key in sorted(own)}, writer.places


@contextmanager
def _placed(places: Mapping[str, str]) -> Iterator[None]:
    """Element types that no file has are refused like any other type: with the place in the data, which no caller gave a number."""
    try:
        yield
    except SafetensorError as error:
        place = places.get(error.tensor or "")
        if error.code != "st-dtype" or place is None:
            raise
        text = str(error).removesuffix(f" (tensor `{error.tensor}`)")
        raise UnsupportedTypeError(text, "ss-data-type", place) from error


def save_file(
    data: Any,
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    widen_floats: bool = False,
) -> None:
    """Writes nested data as a file.

    Arrays keep their dtype and shape. Each is stored where it is met, one that is met twice is stored twice.
    Sets are sorted: equal data give equal bytes.

    Args:
        data: numbers, texts, bytes, ``None``, lists, tuples, sets, dicts, the classes of `collections`,
            dataclasses, named tuples, enums, numpy scalars, arrays of numpy, torch, TensorFlow, JAX, MLX and
            PaddlePaddle, up to 128 levels within each other.
        path: where to; the folder has to exist.
        metadata: texts to store beside the data.
        plugins: a `DataProcessor` class, or a list of them, for types of one's own.
        dataclasses: names of classes in the file, beside those of `register`.
        widen_floats: store floats of other libraries than numpy as F32, as safestructures does.

    Raises:
        UnsupportedTypeError: for a value of a type that cannot be saved.
        StructureError: for dict keys with one text, data nested too deeply, reserved keys of metadata.
    """
    tensors, own, places = _prepared(data, metadata, plugins, dataclasses, widen_floats)
    with _placed(places):
        _numpy_files.save_file(tensors, os.fspath(Path(path).expanduser()), metadata=own)


def save(
    data: Any,
    metadata: Mapping[str, str] | None = None,
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    widen_floats: bool = False,
) -> bytes:
    """The bytes that `save_file` would write. Arguments and errors are the same."""
    tensors, own, places = _prepared(data, metadata, plugins, dataclasses, widen_floats)
    with _placed(places):
        return _numpy_files.save(tensors, metadata=own)


def _value(schema: Any, reader: Reader, plugins: Any) -> Any:
    _, reader.plugins = plugins_of(plugins, reader)
    try:
        return reader.deserialize(schema)
    except RecursionError as error:
        raise StructureError("the data are nested more deeply than Python can follow", "ss-depth") from error


def _know_small_floats() -> None:
    """numpy has bfloat16 and 8-bit floats only once ml_dtypes was imported."""
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        pass


def load_file(
    path: str | os.PathLike[str],
    framework: str = "np",
    device: str | int = "cpu",
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    max_nodes: int = MAX_NODES,
) -> Any:
    """Reads the data of a file. Nothing is imported by a name in it.

    Args:
        path: the file.
        framework: what arrays become: ``np``, ``pt``, ``tf``, ``jax``, ``mlx``, ``paddle``; those of `apr.safetensors.safe_open`.
        device: where they are put.
        plugins: a `DataProcessor` class, or a list of them, for types of one's own.
        dataclasses: dataclasses, enums and named tuples by their names in the file, beside those of
            `register`; others become ad-hoc dataclasses, named tuples and `Variant`.
        max_nodes: how many nodes the file may have.

    Raises:
        StructureError: if the file holds no schema, one of an unknown version, or one that is damaged.
        UnsupportedTypeError: if it holds a type that is neither known nor a plugin's.
        SafetensorError: if it is no sound safetensors file.
    """
    _know_small_floats()
    file = os.fspath(Path(path).expanduser())
    with safe_open(file, framework=framework, device=device) as opened:
        schema = schema_of(opened.metadata(), max_nodes)
        names = opened.keys()
        tensors = Tensors(names, opened.get_tensor)
        if _ADAPTERS.get(framework) == "numpy":
            return _value(schema, Reader(tensors, tensors, known_classes(dataclasses), max_nodes), plugins)
        # Bytes and numpy scalars are numpy's whatever the arrays are.
        with safe_open(file, framework="np") as opened_again:
            arrays = Tensors(names, opened_again.get_tensor)
            return _value(schema, Reader(tensors, arrays, known_classes(dataclasses), max_nodes), plugins)


def load(
    data: bytes,
    framework: str = "np",
    device: str | int = "cpu",
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    max_nodes: int = MAX_NODES,
) -> Any:
    """Reads the data of a file in memory; arguments and errors are those of `load_file`.

    ``device`` other than ``cpu`` is for torch alone.
    """
    if framework not in _ADAPTERS:
        raise ValueError(f"unknown framework {framework!r}: one of {', '.join(_ADAPTERS)}")
    _know_small_floats()
    # Sound or refused, before anything else is made of it.
    arrays = _numpy_files.load(data)
    header_len = int.from_bytes(data[:8], "little")
    schema = schema_of(json.loads(bytes(data[8 : 8 + header_len])).get("__metadata__"), max_nodes)
    adapter = _ADAPTERS[framework]
    if adapter == "numpy":
        tensors = arrays
    else:
        tensors = import_module(f"apr.safetensors.{adapter}").load(data)
        if adapter == "torch" and device != "cpu":
            tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    return _value(schema, Reader(tensors, arrays, known_classes(dataclasses), max_nodes), plugins)
