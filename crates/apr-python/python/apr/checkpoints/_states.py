"""State of objects: by the methods that optimizers, schedulers, scalers and loaders of many libraries have in common."""

from __future__ import annotations

import collections
import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from apr.structures._walk import MAX_DEPTH

from . import _plain

# Dictionaries that structures keep as what they are.
_DICTS = (dict, collections.OrderedDict, collections.Counter, collections.defaultdict)

Fill = Callable[[], Any]
"""Fills something that was checked, and returns it or what takes its place."""

_PROTOCOLS = (("state_dict", "load_state_dict"), ("get_state", "set_state"))


def methods_of(value: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]] | None:
    """The methods that return and take an object's state, if it has them."""
    for pair in _PROTOCOLS:
        get, put = (getattr(value, name, None) for name in pair)
        if callable(get) and callable(put) and not isinstance(value, type):
            return get, put
    return None


def _strategies(value: Any) -> dict[str, Any]:
    """The functions that a scheduler of torch may keep in its state, by the names of strategies that `SWALR` gives them."""
    torch = sys.modules.get("torch")
    schedulers = getattr(getattr(torch, "optim", None), "lr_scheduler", None)
    if schedulers is None or not isinstance(value, schedulers.LRScheduler):
        return {}
    cls = getattr(sys.modules.get("torch.optim.swa_utils"), "SWALR", None)
    found = {name: getattr(cls, f"_{name}_anneal", None) for name in ("cosine", "linear")}
    return {name: function for name, function in found.items() if function is not None}


def _without_functions(state: Any, names: Mapping[Any, str]) -> Any:
    """The state of a scheduler with names in place of the functions that `SWALR` anneals by, also in the states of schedulers that it chains."""
    if type(state) is list:
        return [_without_functions(item, names) for item in state]
    if type(state) is not dict:
        return state
    return {
        key: names.get(item, item) if key == "anneal_func" and callable(item) else _without_functions(item, names)
        for key, item in state.items()
    }


def _with_functions(state: Any, own: Any, functions: Mapping[str, Any]) -> Any:
    """The reverse, where the scheduler that is filled has a function."""
    if type(state) is list and type(own) is list and len(state) == len(own):
        return [_with_functions(*pair, functions) for pair in zip(state, own, strict=True)]
    if type(state) is not dict or type(own) is not dict:
        return state
    return {
        key: functions.get(item, item)
        if key == "anneal_func" and isinstance(item, str) and callable(own.get(key))
        else _with_functions(item, own.get(key), functions)
        for key, item in state.items()
    }


def state_of(value: Any, special: Callable[[Any], Any] = lambda _: None, depth: int = 0) -> Any:
    """The state of an object, or of each object in mappings, lists and tuples; plain data is its own."""
    found = special(value)
    if found is not None:
        return found
    methods = methods_of(value)
    if methods is not None:
        names = {function: name for name, function in _strategies(value).items()}
        return _without_functions(methods[0](), names) if names else methods[0]()
    if depth > MAX_DEPTH:
        # What is nested so deeply, or within itself, cannot be saved: the writer refuses it and says where it is.
        return value
    if isinstance(value, Mapping):
        items = {key: state_of(item, special, depth + 1) for key, item in value.items()}
        if type(value) not in _DICTS:
            return items
        if all(item is value[key] for key, item in items.items()):
            return value
        # The kind of dictionary, its order and what makes its missing values stay.
        changed = copy.copy(value)
        # Not as a Counter, which adds.
        dict.update(changed, items)  # type: ignore[arg-type]
        return changed
    if type(value) in (list, tuple):
        return type(value)(state_of(item, special, depth + 1) for item in value)
    return value


def prepared(target: Any, state: Any, special: Callable[[Any, Any], Fill | None] = lambda *_: None) -> Fill:
    """A function that gives objects their state again and returns them; where there is no object, it returns the state. Until it is called
    nothing has changed.

    Raises:
        ValueError: mappings or lists do not have the entries that were saved.
    """
    found = special(target, state)
    if found is not None:
        return found
    methods = methods_of(target)
    if methods is not None:

        def fill() -> Any:
            strategies = _strategies(target)
            methods[1](_with_functions(state, methods[0](), strategies) if strategies else state)
            return target

        return fill
    if not any(methods_of(item) is not None for item in leaves(target)):
        return lambda: state
    if isinstance(target, Mapping) and isinstance(state, Mapping) and target.keys() == state.keys():
        entries = {key: prepared(item, state[key], special) for key, item in target.items()}
        return lambda: {key: fill() for key, fill in entries.items()}
    if type(target) in (list, tuple) and type(state) in (list, tuple) and len(target) == len(state):
        items = [prepared(*pair, special) for pair in zip(target, state, strict=True)]
        return lambda: type(target)(fill() for fill in items)
    raise ValueError(f"{type(target).__name__} does not have the entries that were saved")


def leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    """The objects in mappings, lists and tuples."""
    if depth > MAX_DEPTH:
        return
    if methods_of(value) is None and isinstance(value, Mapping):
        value = tuple(value.values())
    if type(value) in (list, tuple):
        for item in value:
            yield from leaves(item, depth + 1)
    else:
        yield value


def adapter_of(model: Any) -> ModuleType:
    """The module for models of this kind: `NAME`, `pack`, `prepare`, `pack_optimizer`, `prepare_optimizer`, `class_name`."""
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(model, getattr(keras, "Model", ())):
        from . import _keras

        return _keras
    if "torch" in sys.modules:
        from . import _torch

        if _torch.is_model(model):
            return _torch
    if "jax" in sys.modules:
        from . import _jax

        if _jax.is_module(model) or methods_of(model) is None and _jax.is_tree(model):
            return _jax
    return _plain


def framework_of(adapter: ModuleType, *states: Any) -> str:
    """What a checkpoint says that it is of: nothing of trees whose arrays are numpy's, though JAX takes them apart."""
    if adapter.NAME == "jax" and not any(map(adapter.has_arrays, states)):
        return ""
    return adapter.NAME


def copies(ema: Any) -> dict[str, Any]:
    """Averaged weights by name: one copy under the empty name, or several objects under theirs."""
    if ema is None:
        return {}
    is_object = lambda value: methods_of(value) is not None or adapter_of(value).NAME == "keras"  # noqa: E731
    if isinstance(ema, Mapping) and ema and all(map(is_object, ema.values())):
        return dict(ema)
    return {"": ema}


def class_name(optimizer: Any) -> str:
    """The name of an optimizer's class, for people."""
    is_data = optimizer is None or isinstance(optimizer, (Mapping, list, tuple))
    return "" if is_data else type(optimizer).__name__
