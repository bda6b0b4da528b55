"""Arrays of MLX in safetensors files.

Element types go through numpy, bfloat16 by way of `ml_dtypes` when it is saved. MLX reads 64-bit floats as
32-bit ones, and has no 8-bit floats.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import numpy as np

from . import numpy, safe_open


def save(tensors: Mapping[str, mx.array], metadata: dict[str, str] | None = None) -> bytes:
    """The arrays as the bytes of a file.

    Args:
        tensors: names and arrays of any shape, which are evaluated; the mapping is not changed.
        metadata: text to keep in the header. It has no meaning for the arrays.
    """
    return numpy.save(_mx2np(tensors), metadata=metadata)


def save_file(
    tensors: Mapping[str, mx.array],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes the arrays into `filename`. A file that was there is replaced in one step.

    Args:
        tensors: as for [`save`].
        filename: where to write.
        metadata: as for [`save`].

    Raises:
        SafetensorError: the file cannot be written.
    """
    numpy.save_file(_mx2np(tensors), filename, metadata=metadata)


def load(data: Any) -> dict[str, mx.array]:
    """The arrays in the bytes of a file: `bytes`, `bytearray`, `memoryview`, `mmap` or the like.

    Raises:
        SafetensorError: the bytes are not a valid file, or MLX does not have an element type.
    """
    return _np2mx(numpy.load(data))


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, mx.array]:
    """The arrays of a file.

    Args:
        filename: what to read.
        backend: how: `"mmap"` maps the file, `"pread"` reads tensor by tensor.

    Raises:
        FileNotFoundError: there is no such file.
        SafetensorError: as for [`load`].
    """
    with safe_open(filename, framework="mlx", backend=backend) as f:
        return f.get_tensors()


def _np2mx(numpy_dict: Mapping[str, np.ndarray]) -> dict[str, mx.array]:
    return {name: mx.array(array) for name, array in numpy_dict.items()}


def _mx2np(mx_dict: Mapping[str, mx.array]) -> dict[str, np.ndarray]:
    return {name: _to_numpy(array) for name, array in mx_dict.items()}


def _to_numpy(array: mx.array) -> np.ndarray:
    if array.dtype != mx.bfloat16:
        return np.asarray(array)
    import ml_dtypes

    # Buffers have no letter for bfloat16, so that numpy is shown integers.
    return np.asarray(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
