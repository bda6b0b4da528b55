"""Arrays of JAX, and so parameters of Flax, in safetensors files.

Element types go through numpy; bfloat16 and the 8-bit floats need the package `ml_dtypes`, which JAX brings.
JAX makes 32-bit numbers of 64-bit ones unless `jax_enable_x64` is set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from . import numpy, safe_open


def save(tensors: Mapping[str, Array], metadata: dict[str, str] | None = None) -> bytes:
    """The arrays as the bytes of a file.

    Args:
        tensors: names and arrays of any shape; the mapping is not changed. Nested parameters have to be
            flattened to one level, with one name each.
        metadata: text to keep in the header. It has no meaning for the arrays.

    Raises:
        SafetensorError: an element type that the format does not have.
    """
    return numpy.save(_jnp2np(tensors), metadata=metadata)


def save_file(
    tensors: Mapping[str, Array],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes the arrays into `filename`. A file that was there is replaced in one step.

    Args:
        tensors: as for [`save`].
        filename: where to write.
        metadata: as for [`save`].

    Raises:
        SafetensorError: as for [`save`], or the file cannot be written.
    """
    numpy.save_file(_jnp2np(tensors), filename, metadata=metadata)


def load(data: Any) -> dict[str, Array]:
    """The arrays in the bytes of a file: `bytes`, `bytearray`, `memoryview`, `mmap` or the like.

    Raises:
        SafetensorError: the bytes are not a valid file, or JAX does not have an element type.
    """
    return _np2jnp(numpy.load(data))


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, Array]:
    """The arrays of a file.

    Args:
        filename: what to read.
        backend: how: `"mmap"` maps the file, `"pread"` reads tensor by tensor.

    Raises:
        FileNotFoundError: there is no such file.
        SafetensorError: as for [`load`].
    """
    with safe_open(filename, framework="flax", backend=backend) as f:
        return f.get_tensors()


def _np2jnp(numpy_dict: Mapping[str, np.ndarray]) -> dict[str, Array]:
    return {name: jnp.array(array) for name, array in numpy_dict.items()}


def _jnp2np(jnp_dict: Mapping[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in jnp_dict.items()}
