"""Arrays of any framework as what the native module writes. A framework that was not imported cannot have created a value."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from apr._native import SafetensorError


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def is_jax(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, getattr(jax, "Array", ()))


def is_array(value: Any) -> bool:
    """Whether it is an array of a framework that checkpoints know."""
    return isinstance(value, (np.ndarray, np.generic)) or is_torch(value) or is_jax(value)


def stored(name: str, value: Any, copy: bool, keep: list[Any]) -> Any:
    """What is written of an array: itself, an array of numpy, or a `TensorSpec` of memory that `keep` then holds."""
    if is_torch(value):
        from . import _torch

        return _torch.stored(name, value, copy, keep)
    if is_jax(value):
        value = whole(name, value)
    if isinstance(value, np.ma.MaskedArray):
        # A copy of it would have no mask that the native module could refuse.
        raise SafetensorError(
            f"`{name}` is a masked array, whose mask no file can hold: save array.filled(), or array.data and array.mask"
        )
    if isinstance(value, Mapping):
        raise TypeError(f"`{name}` is a {type(value).__name__}, not an array: give names and arrays of one level, such as {name}.weight")
    if isinstance(value, (list, tuple)):
        raise TypeError(f"`{name}` is a {type(value).__name__}, not an array: convert it with numpy.asarray")
    # Objects that are no arrays of numpy are for the native module to judge, by their buffers.
    return np.array(value, order="C") if copy or isinstance(value, np.generic) else value


def whole(name: str, value: Any) -> np.ndarray:
    """An array of JAX as numpy's."""
    if not value.is_fully_addressable:
        raise ValueError(
            f"`{name}` is spread over several processes: gather it with jax.experimental.multihost_utils.process_allgather "
            "and save on one process"
        )
    return np.asarray(value)
