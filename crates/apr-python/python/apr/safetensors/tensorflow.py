"""Tensors of TensorFlow, and variables, in safetensors files.

Element types go through numpy; bfloat16 and the 8-bit floats need the package `ml_dtypes`, which TensorFlow
brings.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from ._through_numpy import ThroughNumpy

__all__ = ["load", "load_file", "save", "save_file"]


def _np2tf(numpy_dict: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.convert_to_tensor(array) for name, array in numpy_dict.items()}


def _tf2np(tf_dict: Mapping[str, tf.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tf_dict.items()}


_functions = ThroughNumpy("tf", _tf2np, _np2tf)
save, save_file = _functions.save, _functions.save_file
load, load_file = _functions.load, _functions.load_file
