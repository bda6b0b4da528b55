"""Arrays of JAX, and so parameters of Flax, in safetensors files.

Element types go through numpy; bfloat16 and the 8-bit floats need the package `ml_dtypes`, which JAX brings.
JAX makes 32-bit numbers of 64-bit ones unless `jax_enable_x64` is set.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jax import Array

from ._through_numpy import ThroughNumpy

__all__ = ["load", "load_file", "save", "save_file"]


def _np2jnp(numpy_dict: Mapping[str, np.ndarray]) -> dict[str, Array]:
    return {name: jnp.array(array) for name, array in numpy_dict.items()}


def _jnp2np(jnp_dict: Mapping[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in jnp_dict.items()}


_functions = ThroughNumpy("flax", _jnp2np, _np2jnp)
save, save_file = _functions.save, _functions.save_file
load, load_file = _functions.load, _functions.load_file
