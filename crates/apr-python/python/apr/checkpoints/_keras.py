"""Models and optimizers of Keras 3, on any of its backends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from ._files import Part, TensorFile, as_numpy, flat, free_name
from ._states import Fill

NAME = "keras"

# What Keras appends to the name of a layer if there was one of that name before.
_NUMBER = re.compile(r"_[0-9]+(?=[_/]|$)")


def class_name(model: Any) -> str:
    return type(model).__name__


def _pack(variables: Sequence[Any], copy: bool) -> tuple[Part, dict[str, Any]]:
    tensors: dict[str, Any] = {}
    for variable in variables:
        tensors[free_name(variable.path, tensors)] = keras.ops.convert_to_numpy(variable.value)
    return flat(tensors, copy), {"order": list(tensors)}


def _prepared(what: str, target: Any, variables: Sequence[Any], file: TensorFile, notes: Mapping[str, Any]) -> Fill:
    order = notes.get("order", [])
    if len(order) != len(variables):
        raise ValueError(f"the checkpoint has {len(order)} variables of the {what}, the {what} {len(variables)}: build it first")
    file, pairs = file.copied(), []
    for name, variable in zip(order, variables, strict=True):
        array = as_numpy(file, name)
        # Numbers of layers depend on what the process has made before.
        here, there = _NUMBER.sub("", variable.path), _NUMBER.sub("", name.split("~")[0])
        if here != there or tuple(variable.shape) != array.shape or keras.backend.standardize_dtype(variable.dtype) != array.dtype.name:
            raise ValueError(
                f"`{name}` {array.dtype}{list(array.shape)} of the checkpoint is not "
                f"`{variable.path}` {variable.dtype}{list(variable.shape)} of the {what}"
            )
        pairs.append((variable, array))

    def fill() -> Any:
        for variable, array in pairs:
            variable.assign(array)
        return target

    return fill


def pack(model: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    """Variables of a model, those of random generators among them."""
    return _pack(model.variables, copy)


def prepare(target: Any, file: TensorFile, notes: Mapping[str, Any], strict: bool) -> Fill:
    return _prepared("model", target, target.variables, file, notes)


def pack_optimizer(optimizer: Any, model: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    return _pack(optimizer.variables, copy)


def prepare_optimizer(target: Any, file: TensorFile, notes: Mapping[str, Any], model: Any) -> Fill:
    if not target.built:
        target.build(model.trainable_variables)
    return _prepared("optimizer", target, target.variables, file, notes)
