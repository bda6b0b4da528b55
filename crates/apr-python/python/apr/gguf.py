"""GGUF files: tensors as views of the file or read from a URL, blocks to numbers and back, new files.

`open` gives a mapping from names to `GgufTensor`; nothing is read of a tensor until it is asked for. `save` writes version 3, from
arrays and from tensors of other files. Which types there are, and which files are refused, is said in `docs/gguf.md`.
"""

from __future__ import annotations

import functools
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ._native import (
    AprError,
    RangeFile,
    block_size,
    dequantize,
    gguf_header,
    gguf_metadata,
    gguf_save,
    quantize_rows,
    range_file,
)
from ._refusals import refused, status
from ._tables import table

__all__ = ["GgufFile", "GgufTensor", "open", "save"]

# Types whose elements numpy has, little-endian.
_PLAIN = {
    "F32": "<f4",
    "F16": "<f2",
    "F64": "<f8",
    "I8": "|i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
}
_TYPES = {np.dtype(code): name for name, code in _PLAIN.items()}
# Names of types of metadata, by numpy's scalars.
_VALUES = {np.dtype(kind + size).newbyteorder("<"): name for kind, size, name in (
    ("u", "1", "u8"), ("i", "1", "i8"), ("u", "2", "u16"), ("i", "2", "i16"), ("u", "4", "u32"), ("i", "4", "i32"),
    ("u", "8", "u64"), ("i", "8", "i64"), ("f", "4", "f32"), ("f", "8", "f64"), ("b", "1", "bool"),
)}  # fmt: skip


class GgufTensor:
    """A tensor of an open file.

    name, type: as in the file; the type is ggml's name in capitals, such as "Q4_K" or "F32".
    shape: as numpy counts, the slowest dimension first: (rows, columns). `ggml_shape` is the other way round, as in the file.
    nbytes: bytes in the file.
    """

    __slots__ = ("_big_endian", "_held", "name", "nbytes", "shape", "type")

    def __init__(
        self,
        name: str,
        type: str,
        shape: tuple[int, ...],
        bytes: np.ndarray | Callable[[], np.ndarray],
        big_endian: bool = False,
        nbytes: int | None = None,
    ) -> None:
        self.name = name
        self.type = type
        self.shape = shape
        self.nbytes = bytes.size if isinstance(bytes, np.ndarray) else nbytes
        self._held = bytes
        self._big_endian = big_endian

    @property
    def _bytes(self) -> np.ndarray:
        """The bytes, read when they are first asked for and kept."""
        if not isinstance(self._held, np.ndarray):
            self._held = self._held()
        return self._held

    @property
    def ggml_shape(self) -> tuple[int, ...]:
        """The dimensions as the file has them, the fastest first."""
        return self.shape[::-1]

    @property
    def blocks(self) -> np.ndarray:
        """The bytes as the file has them: uint8 of shape (*shape[:-1], bytes of a row), a read-only view."""
        count, size = block_size(self.type)
        row = self.shape[-1] if self.shape else 1
        return self._bytes.reshape(*self.shape[:-1], row // count * size)

    def array(self) -> np.ndarray:
        """The elements in their own type and shape, a read-only view.

        Raises:
            ValueError: the type has blocks, or numpy has no such type: `dequantize` makes float32 of all of them.
        """
        if self.type == "BF16":
            import ml_dtypes

            dtype = np.dtype(ml_dtypes.bfloat16)
        elif self.type in _PLAIN:
            dtype = np.dtype(_PLAIN[self.type])
        else:
            raise ValueError(f"tensor {self.name!r} is of type {self.type}, which has no elements: dequantize() or blocks")
        if self._big_endian and dtype.itemsize > 1:
            dtype = dtype.newbyteorder(">")
        elements: np.ndarray = self._bytes.view(dtype).reshape(self.shape)
        return elements

    def dequantize(self, out: np.ndarray | None = None) -> np.ndarray:
        """The numbers as float32 in the tensor's shape; integers and 64-bit floats become the nearest.

        out: where to, a contiguous float32 array of this shape; without it, a new one.

        Raises:
            AprError: blocks of a big-endian file.
            ValueError: `out` is none of that kind.
        """
        if out is None:
            out = np.empty(self.shape, np.float32)
        elif out.dtype != np.float32 or out.shape != self.shape or not out.flags.c_contiguous:
            raise ValueError(f"out is to be a contiguous float32 array of shape {self.shape}")
        if self._big_endian:
            if self.type not in _PLAIN:
                text = f"tensor {self.name!r}: big-endian blocks of type {self.type} are not turned round (gg-byte-order)"
                raise refused("gg-byte-order", text, name=self.name)
            out[...] = self.array()
        else:
            dequantize(self.type, self._bytes, out)
        return out

    def __repr__(self) -> str:
        return f"<GgufTensor {self.name!r}: {self.type} {self.shape}>"


class GgufFile(Mapping[str, GgufTensor]):
    """An open GGUF file: a mapping from names to tensors, in the order of the file, and a context manager.

    version, alignment: as in the file. byte_order: "little" or "big".
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        compat: bool = False,
        backend: str = "mmap",
        fs: Any = None,
        allow_http: bool = False,
    ) -> None:
        # Of a path of this machine there is none.
        elsewhere: RangeFile | None = range_file(path, fs, allow_http)
        self.path = path if elsewhere is None else elsewhere.name
        self._memory: np.ndarray | RangeFile = _memory(path, backend) if elsewhere is None else elsewhere
        self._compat = compat
        header = gguf_header(self._memory, compat, self.path)
        self.version: int = header["version"]
        self.byte_order: str = header["byte_order"]
        self.alignment: int = header["alignment"]
        self._rows: dict[str, tuple[str, tuple[int, ...], int, int]] = header["tensors"]
        self._entries: tuple[dict[str, Any], dict[str, str]] | None = None

    def _read_entries(self) -> tuple[dict[str, Any], dict[str, str]]:
        if self._entries is None:
            self._entries = gguf_metadata(self._memory, self._compat, self.path)
        return self._entries

    @property
    def metadata(self) -> dict[str, Any]:
        """The keys and their values: int, float, bool, str, or a list of them. Read when it is first asked for."""
        return self._read_entries()[0]

    @property
    def metadata_types(self) -> dict[str, str]:
        """The types of the values in the file: "u32", "f32", "string", "array[i32]" and so on."""
        return self._read_entries()[1]

    def close(self) -> None:
        """Ends the use of this object; tensors and arrays that it gave stay."""
        self._memory, self._rows, self._entries = np.empty(0, np.uint8), {}, ({}, {})

    def __getitem__(self, name: str) -> GgufTensor:
        type, shape, offset, size = self._rows[name]
        memory = self._memory
        big_endian = self.byte_order == "big"
        if isinstance(memory, RangeFile):
            return GgufTensor(name, type, shape, functools.partial(memory.read, offset, size), big_endian, size)
        return GgufTensor(name, type, shape, memory[offset : offset + size], big_endian)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<GgufFile {os.fspath(self.path)!r}: {len(self)} tensors>"

    def _repr_html_(self) -> str:
        rows = ((name, type, shape, size) for name, (type, shape, _, size) in self._rows.items())
        return table(repr(self), ("name", "type", "shape", "bytes"), rows, len(self))


def open(
    path: str | os.PathLike[str],
    *,
    compat: bool = False,
    backend: str = "mmap",
    fs: Any = None,
    allow_http: bool = False,
) -> GgufFile:
    """Opens a GGUF file.

    Args:
        path: where it is: a path or a URL, as `apr.open` takes it. Of a URL the header is read now, and a tensor when its numbers are
            asked for, into memory of its own.
        compat: read what llama.cpp refuses as well: version 1, big-endian files, gaps, arrays of arrays.
        backend: "mmap", or "read" for a file that may be truncated while in use. Without effect for URLs and `fs`.
        fs: a file system of fsspec or a store of obstore, of which `path` is a path.
        allow_http: read http:// URLs of other hosts than this machine.

    Raises:
        AprError: the file is not sound; `code` says why, `offset` where.
            For a URL also "rm-not-found", "rm-denied", "rm-changed" and the other codes of `docs/remote.md`.
        OSError: it cannot be read.
        Exception: whatever `fs` raises.
    """
    return GgufFile(path, compat=compat, backend=backend, fs=fs, allow_http=allow_http)


def save(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    *,
    types: str | Mapping[str, str] | None = None,
    metadata_types: Mapping[str, str] | None = None,
    fsync: bool = False,
) -> None:
    """Writes a GGUF file of version 3, replacing an old one in one step. Tensors are made one at a time.

    Args:
        path: where to.
        tensors: names and arrays, or tensors of an open file, which are copied as they are.
        metadata: keys and values. An int becomes the first of u32, i32, u64, i64 that holds it, a float f32, numpy's scalars and
            arrays what they are; elements of lists likewise, but i32 before u32.
        types: what arrays become, by name of the tensor or one for all: "F16", "BF16", "Q8_0", "Q4_K" and so on, in capitals or
            not. Without one, what the array is: float16, float32, float64, bfloat16, int8 to int64.
        metadata_types: types of values by key, as in `GgufFile.metadata_types`.
        fsync: wait until the medium has the file.

    Raises:
        AprError: a name, a shape, a row that is no whole number of blocks, a number that the type cannot hold.
        OSError: the file cannot be written. Whatever is raised, the old file stays.
        TypeError, ValueError: an array or value of a type that files do not have.
    """
    entries = []
    wanted = dict(metadata_types or {})
    for key, value in (metadata or {}).items():
        # Of pyarrow: arrays, and columns in several parts.
        value = value.to_pylist() if hasattr(value, "to_pylist") else value
        value_type = wanted.get(key) or _value_type(key, value)
        entries.append((key, value_type, value.tolist() if isinstance(value, np.ndarray | np.generic) else value))
    names = list(tensors)
    plans = []
    for name in names:
        tensor = tensors[name]
        kind = types if isinstance(types, str) else (types or {}).get(name)
        plans.append((name, *_planned(name, tensor, kind)))

    def bytes_of(idx: int) -> np.ndarray:
        name, kind, _ = plans[idx]
        try:
            return _encoded(tensors[name], kind)
        except AprError as error:
            raise refused(error.code, f"tensor {name!r}: {error}", name=name) from error

    gguf_save(os.fspath(path), entries, plans, bytes_of, fsync)


def _planned(name: str, tensor: Any, kind: str | None) -> tuple[str, tuple[int, ...]]:
    """Type and shape of a tensor in the new file."""
    if isinstance(tensor, GgufTensor):
        return (kind or tensor.type).upper(), tensor.shape
    array = np.asarray(tensor)
    own = "BF16" if array.dtype.name == "bfloat16" else _TYPES.get(array.dtype.newbyteorder("<"))
    wanted = kind or own
    if wanted is None:
        have = ", ".join([*(dtype.name for dtype in _TYPES), "bfloat16"])
        raise TypeError(f"tensor {name!r} is of type {array.dtype}, which GGUF files do not have: {have}, or types=")
    return wanted.upper(), array.shape


def _encoded(tensor: Any, kind: str) -> np.ndarray:
    """The bytes of a tensor in a type."""
    if isinstance(tensor, GgufTensor):
        if tensor.type == kind and not tensor._big_endian:
            return tensor._bytes
        numbers = tensor.array() if tensor.type in _PLAIN else tensor.dequantize()
    else:
        numbers = np.asarray(tensor)
    if kind in _PLAIN:
        # No number becomes another one, but for floats of fewer bits.
        casting: Any = "safe" if kind.startswith("I") else "same_kind"
        with np.errstate(over="ignore"):
            narrowed = numbers.astype(_PLAIN[kind], casting=casting, copy=False)
        if narrowed.dtype.kind == "f":
            lost = np.flatnonzero(np.isinf(narrowed) & np.isfinite(numbers))
            if lost.size:
                raise refused("q-scale-too-large", f"element {lost[0]} is too large for {kind} and would be infinite")
        numbers = narrowed
    if kind in _PLAIN or kind == "BF16" and numbers.dtype.name == "bfloat16":
        return np.ascontiguousarray(numbers).reshape(-1).view(np.uint8)
    rows = np.ascontiguousarray(numbers, np.float32)
    count, size = block_size(kind)
    out = np.empty(rows.size // count * size, np.uint8)
    quantize_rows(kind, rows, rows.shape[-1], out)
    return out


def _value_type(key: str, value: Any) -> str:
    """The type of a value of the metadata."""
    if isinstance(value, np.generic) and not isinstance(value, np.str_) or isinstance(value, np.ndarray):
        name = _VALUES.get(value.dtype.newbyteorder("<"))
        if name is None:
            raise TypeError(f"key {key!r}: no value is of type {value.dtype}")
        return name if isinstance(value, np.generic) else f"array[{name}]"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return f"array[{_element_type(key, value)}]"
    return _scalar_type(key, [value], ("u32", "i32", "u64", "i64"))


def _element_type(key: str, values: Sequence[Any]) -> str:
    if not values:
        raise ValueError(f"key {key!r}: an empty list has no type: name one in metadata_types")
    return _scalar_type(key, values, ("i32", "u32", "i64", "u64"))


def _scalar_type(key: str, values: Sequence[Any], integers: tuple[str, ...]) -> str:
    kinds = {type(value) for value in values}
    if kinds <= {str, np.str_}:
        return "string"
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        low, high = min(values), max(values)
        for name in integers:
            bits = int(name[1:]) - (name[0] == "i")
            if low >= (-1 << bits if name[0] == "i" else 0) and high < 1 << bits:
                return name
        raise ValueError(f"key {key!r}: {low if low < 0 else high} does not fit 64 bits")
    if kinds <= {int, float}:
        return "f32"
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(f"key {key!r}: no type of values is made of {names}")


def _memory(path: str | os.PathLike[str], backend: str) -> np.ndarray:
    """The bytes of a file, read-only."""
    if backend not in ("mmap", "read"):
        raise ValueError(f"backend is 'mmap' or 'read', not {backend!r}")
    # Asked before it is opened as well: opening a pipe waits for a writer.
    _regular(status(path), path)
    with io.open(path, "rb") as file:
        _regular(os.fstat(file.fileno()), path)
        if backend == "mmap" and os.fstat(file.fileno()).st_size > 0:
            return np.asarray(np.memmap(file, np.uint8, "r"))
        memory = np.fromfile(file, np.uint8)
        memory.setflags(write=False)
        return memory


def _regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"not a regular file: {os.fspath(path)}")
