"""Dictionaries of arrays, and objects whose state is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _arrays, _states
from ._files import Part, TensorFile, flat, flat_or_structure

NAME = ""


def class_name(model: Any) -> str:
    return "" if isinstance(model, Mapping) else type(model).__name__


def pack(model: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    """Arrays by name; what else an object's state has, beside them."""
    if _states.methods_of(model) is None:
        if not isinstance(model, Mapping):
            raise TypeError(
                f"a {type(model).__name__} cannot be saved as a model: give a module, a mapping from names to arrays, or an object with "
                "`state_dict` and `load_state_dict`"
            )
        return flat(model, copy), {}
    state = _states.state_of(model)
    tensors = {name: value for name, value in state.items() if _arrays.is_array(value)}
    values = {name: value for name, value in state.items() if name not in tensors}
    return flat_or_structure(tensors, copy), {"values": values} if values else {}


def prepare(target: Any, file: TensorFile, notes: Mapping[str, Any], strict: bool) -> _states.Fill:
    return _states.prepared(target, file.copied().value() | dict(notes.get("values", {})))


def pack_optimizer(optimizer: Any, model: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    return flat_or_structure(_states.state_of(optimizer), copy), {}


def prepare_optimizer(target: Any, file: TensorFile, notes: Mapping[str, Any], model: Any) -> _states.Fill:
    return _states.prepared(target, file.copied().value())
