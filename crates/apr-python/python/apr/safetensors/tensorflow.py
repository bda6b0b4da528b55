"""Tensors of TensorFlow in safetensors files.

Element types go through numpy; bfloat16 and the 8-bit floats need the package `ml_dtypes`, which TensorFlow
brings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from . import numpy, safe_open


def save(tensors: Mapping[str, tf.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The tensors as the bytes of a file.

    Args:
        tensors: names and dense tensors or variables of any shape; the mapping is not changed.
        metadata: text to keep in the header. It has no meaning for the tensors.

    Raises:
        SafetensorError: an element type that the format does not have.
    """
    return numpy.save(_tf2np(tensors), metadata=metadata)


def save_file(
    tensors: Mapping[str, tf.Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes the tensors into `filename`. A file that was there is replaced in one step.

    Args:
        tensors: as for [`save`].
        filename: where to write.
        metadata: as for [`save`].

    Raises:
        SafetensorError: as for [`save`], or the file cannot be written.
    """
    numpy.save_file(_tf2np(tensors), filename, metadata=metadata)


def load(data: Any) -> dict[str, tf.Tensor]:
    """The tensors in the bytes of a file: `bytes`, `bytearray`, `memoryview`, `mmap` or the like.

    Raises:
        SafetensorError: the bytes are not a valid file, or TensorFlow does not have an element type.
    """
    return _np2tf(numpy.load(data))


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, tf.Tensor]:
    """The tensors of a file.

    Args:
        filename: what to read.
        backend: how: `"mmap"` maps the file, `"pread"` reads tensor by tensor.

    Raises:
        FileNotFoundError: there is no such file.
        SafetensorError: as for [`load`].
    """
    with safe_open(filename, framework="tf", backend=backend) as f:
        return f.get_tensors()


def _np2tf(numpy_dict: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.convert_to_tensor(array) for name, array in numpy_dict.items()}


def _tf2np(tf_dict: Mapping[str, tf.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tf_dict.items()}
