"""Tensor files of a checkpoint: what is written into one, and what is read from one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from apr._frameworks import converter
from apr._native import array_in
from apr.safetensors import SafetensorError
from apr.structures._read import Reader
from apr.structures._registry import known_classes
from apr.structures._schema import SCHEMA_KEY, VERSION, VERSION_KEY, schema_of
from apr.structures._walk import MAX_NODES
from apr.structures._write import Writer

from . import _arrays

# A name that no tensor of a file can have.
_RESERVED = "__metadata__"

# Metadata of names and tensors that were torch's, where nothing else says so.
_OF_TORCH = {"format": "pt"}

# Keys of metadata that say what a file is, and so cannot be further names of tensors.
MARKS = ("format", SCHEMA_KEY, VERSION_KEY)

# Types of nodes, with the module of their library and its name as a framework.
_LIBRARIES = {
    "torch.Tensor": ("torch", "pt"),
    "jaxlib.xla_extension.ArrayImpl": ("jax", "flax"),
    "jaxlib._jax.ArrayImpl": ("jax", "flax"),
}


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with `~2`, `~3` and so on appended if it is taken."""
    found, count = name, 1
    while found in taken or found == _RESERVED:
        count += 1
        found = f"{name}~{count}"
    return found


@dataclass
class Part:
    """What a tensor file is to hold: arrays or `TensorSpec`s, and texts."""

    tensors: Mapping[str, Any]
    metadata: dict[str, str] | None = None
    keep: list[Any] = field(default_factory=list)
    """Where the bytes of specs are."""

    def given(self) -> tuple[Mapping[str, Any], dict[str, str] | None]:
        return self.tensors, self.metadata


def flat(tensors: Mapping[str, Any], copy: bool, metadata: Mapping[str, str] | None = None) -> Part:
    """Tensors of any framework by name; the metadata may have further names of some. With `copy`, nothing of the caller's is kept."""
    part = Part({}, dict(metadata) if metadata else None)
    part.tensors = {name: _arrays.stored(name, tensor, copy, part.keep) for name, tensor in tensors.items()}
    return part


def structure(value: Any, copy: bool) -> Part:
    """Nested data: a structure whose tensors are named by their places."""
    writer = _PartWriter(copy)
    try:
        schema = json.dumps(writer.serialize(value), allow_nan=False)
    except RecursionError as error:
        raise writer.error("the data are nested more deeply than Python can follow", "ss-depth") from error
    tensors = writer.tensors or {"null": np.zeros(1, np.int64)}
    return Part(tensors, {SCHEMA_KEY: schema, VERSION_KEY: VERSION}, writer.keep)


def flat_or_structure(value: Any, copy: bool) -> Part:
    """Names and arrays if it is nothing else, a structure otherwise, also of arrays of which only some are torch's."""
    if not are_arrays(value):
        return structure(value, copy)
    are_of_torch = {_arrays.is_torch(array) for array in value.values()}
    if len(are_of_torch) == 2:
        return structure(dict(value), copy)
    return flat(value, copy, _OF_TORCH if are_of_torch == {True} else None)


class _PartWriter(Writer):
    def __init__(self, copy: bool) -> None:
        super().__init__(known_classes(None), False)
        self.copy = copy
        self.keep: list[Any] = []

    def foreign(self, data: Any) -> tuple[str, Any] | None:
        # By address: arrays of numpy would need `ml_dtypes` for 16-bit floats.
        return ("torch.Tensor", data) if _arrays.is_torch(data) else super().foreign(data)

    def tensor_name(self) -> str:
        return free_name(".".join(self._labels) or "value", self.tensors)

    def store(self, array: Any) -> str:
        name = self.tensor_name()
        self.tensors[name] = _arrays.stored(name, array, self.copy, self.keep)
        return name


Convert = Callable[["TensorFile", str], Any]
"""A tensor of a file, by its name, as what the caller wants."""


def as_numpy(file: TensorFile, name: str) -> Any:
    """The tensor as an array of numpy, on the memory of the file."""
    return array_in(*file.place(name))


def as_framework(framework: str, device: Any, or_numpy: bool = False) -> Convert:
    """Tensors of a framework on a device, in the words of `apr.safetensors.safe_open`; on the CPU torch's are on the memory of the file.

    JAX makes 32 bits of 64 unless its `jax_enable_x64` is set. Such tensors are refused, or with `or_numpy` they are arrays of numpy.
    """
    if framework in ("np", "numpy"):
        if device not in (None, "cpu"):
            raise SafetensorError(f"Device {device} is not supported for framework numpy")
        return as_numpy
    convert = converter(framework, "cpu" if device is None else device)

    def tensor(file: TensorFile, name: str) -> Any:
        data, dtype, shape, start, end = file.place(name)
        if framework in _JAX and dtype in _WIDE and not _jax_is_wide():
            if or_numpy:
                return as_numpy(file, name)
            raise SafetensorError(
                f"`{name}` is of type {dtype}, of which JAX would lose digits: set jax_enable_x64, or load with framework='np'"
            )
        return convert(memoryview(data)[start:end], dtype, shape)

    return tensor


_JAX = ("jax", "flax")
_WIDE = ("I64", "U64", "F64", "C128")


def _jax_is_wide() -> bool:
    import jax

    return jax.dtypes.canonicalize_dtype(np.int64) == np.int64


def _as_saved(data_type: str) -> Convert:
    """Tensors of the library that a type of a node names; numpy's if this process has not imported it."""
    module, framework = _LIBRARIES.get(data_type, ("", ""))
    return as_framework(framework if module in sys.modules else "np", None, or_numpy=True)


class TensorFile:
    """A tensor file of a checkpoint, in memory and verified. With `copies`, no tensor shares its memory."""

    def __init__(
        self,
        metadata: dict[str, str] | None,
        data: bytearray,
        table: dict[str, tuple[str, list[int], int, int]],
        copies: bool = False,
    ) -> None:
        self.metadata = metadata or {}
        self.data = data
        self.table = table
        self.copies = copies

    @classmethod
    def of_bytes(cls, data: bytearray) -> TensorFile:
        """A file that this program has written."""
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        metadata = header.pop(_RESERVED, None)
        table = {name: (info["dtype"], info["shape"], *(start + offset for offset in info["data_offsets"])) for name, info in header.items()}
        return cls(metadata, data, table)

    def copied(self) -> TensorFile:
        """The file for objects that keep and change what they are given."""
        return TensorFile(self.metadata, self.data, self.table, copies=True)

    def place(self, name: str) -> tuple[bytearray, str, list[int], int, int]:
        """Memory with a tensor, its element type and shape, and where in the memory it starts and ends."""
        dtype, shape, start, end = self.table[name]
        if self.copies:
            return self.data[start:end], dtype, shape, 0, end - start
        return self.data, dtype, shape, start, end

    @property
    def is_structure(self) -> bool:
        return SCHEMA_KEY in self.metadata

    @property
    def is_of_torch(self) -> bool:
        return self.metadata == _OF_TORCH

    def aliases(self) -> dict[str, str]:
        """Further names of tensors, with the names that these have in the file."""
        known, further = self.table, {} if self.is_of_torch else self.metadata
        return {name: kept for name, kept in further.items() if kept in known and name not in known}

    def tensors(self, convert: Convert) -> dict[str, Any]:
        """All tensors; one with several names is one object."""
        found = {name: convert(self, name) for name in self.table}
        return found | {name: found[kept] for name, kept in self.aliases().items()}

    def value(self, convert: Convert | None = None) -> Any:
        """The nested data of a structure, or else the tensors by name.

        Without `convert` each is of the library that it was saved of, if that was imported. Arrays of numpy in a structure always are.
        """
        if not self.is_structure:
            return self.tensors(convert or _as_saved("torch.Tensor" if self.is_of_torch else "numpy.ndarray"))
        return _PartReader(self, convert).deserialize(schema_of(self.metadata, MAX_NODES))

    def entry(self, name: str, convert: Convert | None) -> Any:
        """One entry of a structure that is a dictionary, without the others; None if there is none."""
        node = schema_of(self.metadata, MAX_NODES)["value"].get(name)
        return None if node is None else _PartReader(self, convert).deserialize(node)


class _Lazily(Mapping[str, Any]):
    def __init__(self, file: TensorFile, convert: Convert) -> None:
        self.file, self.convert = file, convert

    def __getitem__(self, name: str) -> Any:
        return self.convert(self.file, name)

    def __contains__(self, name: object) -> bool:
        return name in self.file.table

    def __iter__(self) -> Iterator[str]:
        return iter(self.file.table)

    def __len__(self) -> int:
        return len(self.file.table)


class _PartReader(Reader):
    def __init__(self, file: TensorFile, convert: Convert | None) -> None:
        arrays = _Lazily(file, as_numpy)
        super().__init__(arrays if convert is None else _Lazily(file, convert), arrays, known_classes(None), MAX_NODES)
        self.file, self.convert = file, convert

    def tensors_of(self, data_type: str) -> Mapping[str, Any]:
        if data_type == "numpy.ndarray":
            return self.arrays
        return _Lazily(self.file, _as_saved(data_type)) if self.convert is None else self.tensors


def are_arrays(value: Any) -> bool:
    """Whether a value is a mapping from names to arrays and nothing else."""
    return isinstance(value, Mapping) and all(isinstance(name, str) and _arrays.is_array(item) for name, item in value.items())


def listed(names: Iterable[str]) -> str:
    """Some names, for an error."""
    names = sorted(names)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
