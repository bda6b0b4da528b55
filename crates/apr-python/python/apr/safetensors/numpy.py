"""safetensors files as numpy arrays.

Any array can be saved, whatever its strides and byte order: its values count. Types that numpy lacks (bfloat16 and the floats of
8, 6 and 4 bits) come from the package `ml_dtypes`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._native import load_arrays, safe_open, save_arrays, save_arrays_file

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer

__all__ = ["load", "load_file", "save", "save_file"]


def save(tensor_dict: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these arrays.

    Args:
        tensor_dict: names and arrays of any shape, strides and byte order; other objects with the buffer protocol count as
            arrays.
        metadata: names and texts for the header.

    Returns:
        Equal input gives equal bytes, in whatever order it is given.

    Raises:
        SafetensorError: the format has no such element type, or no reader would accept the header.
        TypeError: a name or text is not a str.
    """
    return save_arrays(tensor_dict, metadata)


def save_file(
    tensor_dict: Mapping[str, np.ndarray],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    *,
    fsync: bool = False,
) -> None:
    """Saves arrays as a safetensors file, replacing an old one in one step.

    Whatever happens meanwhile, the name leads to the old file or to the new one, complete; arrays that are views of the old
    file stay as they are. Symbolic links are followed. A new file gets the rights that the umask leaves, an old one keeps its
    own.

    Args:
        tensor_dict: names and arrays, as for `save`. One array at a time is copied, and only if its elements are not in
            the order of files.
        filename: where to.
        metadata: names and texts for the header.
        fsync: wait until the medium has the file, so that it survives a power cut.

    Raises:
        SafetensorError: as `save`.
        OSError: the file cannot be written. The old one is untouched.
    """
    save_arrays_file(tensor_dict, filename, metadata, fsync=fsync)


def load(data: Buffer, *, writable: bool = False) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file in memory, in file order.

    Args:
        data: anything with contiguous bytes: bytes, bytearray, memoryview, mmap. The arrays are read-only views of it. While there
            are some, it can be neither resized nor closed (`BufferError`).
        writable: the arrays can be written to: they are views of one copy of all of `data`.

    Raises:
        SafetensorError: the bytes are not a safetensors file, or its element types need `ml_dtypes`.
    """
    return load_arrays(data, writable=writable)


def load_file(
    filename: str | os.PathLike[str], *, backend: str = "mmap", writable: bool = False
) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, in file order.

    Args:
        filename: where from.
        backend: "mmap" gives views of the file's own pages, which are read when they are touched; if another program
            shortens the file, touching what was lost ends the process. "pread" and "read" read all bytes now.
        writable: the arrays can be written to, and the file never changes. With "mmap" the system copies each page of the
            file, usually 4 KiB, when it is first written to; the others cost what reading costs.

    Raises:
        SafetensorError: this is not a safetensors file, or its element types need `ml_dtypes`.
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
    """
    with safe_open(filename, framework="np", backend=backend, writable=writable) as file:
        return file.get_tensors()
