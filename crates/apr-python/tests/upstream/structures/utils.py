"""What safestructures' tests import as `utils`, which is not in its source distribution: comparisons of our own.

Stricter than they have to be: numbers equal bit for bit, nothing left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from safestructures.constants import TYPE_FIELD, VALUE_FIELD


def compare_values(expected: Any, found: Any) -> bool:
    """Whether two structures are the same, but for the framework of their tensors; asserts it, since some tests do not."""
    assert _same(expected, found), f"{found!r} instead of {expected!r}"
    return True


def compare_nested_schemas(expected: Any, found: Any) -> bool:
    """Whether two schemas are the same; sets have no order."""
    if isinstance(expected, dict):
        if not isinstance(found, dict) or set(expected) != set(found):
            return False
        rest = set(expected)
        if expected.get(TYPE_FIELD) == "set":
            rest.discard(VALUE_FIELD)
            if sorted(map(repr, expected[VALUE_FIELD])) != sorted(map(repr, found[VALUE_FIELD])):
                return False
        return all(compare_nested_schemas(expected[key], found[key]) for key in rest)
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(expected) == len(found)
            and all(map(compare_nested_schemas, expected, found))
        )
    return bool(expected == found)


def _same(expected: Any, found: Any) -> bool:
    if _is_tensor(expected):
        left, right = _array(expected), _array(found)
        if type(found).__module__.startswith("jax"):
            # As it is set up, jax has no 64-bit floats.
            left = left.astype(right.dtype)
        return left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())
    if is_dataclass(expected):
        names = [field.name for field in fields(expected)]
        return is_dataclass(found) and all(_same(getattr(expected, n), getattr(found, n)) for n in names)
    if isinstance(expected, Mapping):
        return list(expected) == list(found) and all(_same(expected[key], found[key]) for key in expected)
    if isinstance(expected, list | tuple):
        same_kind = type(expected) is type(found) and len(expected) == len(found)
        return same_kind and all(map(_same, expected, found))
    return type(expected) is type(found) and bool(expected == found)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach() if hasattr(tensor, "detach") else tensor)
