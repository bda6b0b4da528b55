"""Arrays of MLX in safetensors files.

Arrays that are saved are evaluated. Element types go through numpy, bfloat16 by way of `ml_dtypes` when it is saved.
MLX reads 64-bit floats as 32-bit ones, and has no 8-bit floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import mlx.core as mx
import numpy as np

from ._through_numpy import ThroughNumpy

__all__ = ["load", "load_file", "save", "save_file"]


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


_functions = ThroughNumpy("mlx", _mx2np, _np2mx)
save, save_file = _functions.save, _functions.save_file
load, load_file = _functions.load, _functions.load_file
