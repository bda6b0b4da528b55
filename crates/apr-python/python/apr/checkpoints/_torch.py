"""Modules and optimizers of PyTorch."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from copy import copy as shallow, deepcopy
from typing import Any

import torch
from apr.safetensors import TensorSpec
from apr.safetensors.torch import _SOMEWHERE, _on_cpu
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from . import _states
from ._files import MARKS, Part, TensorFile, as_framework, flat, free_name, listed, structure

NAME = "torch"

_FULL = (
    "gather it on every rank with torch.distributed.checkpoint.state_dict (get_model_state_dict, get_optimizer_state_dict, "
    "StateDictOptions(full_state_dict=True, cpu_offload=True)) and save the two dictionaries on rank 0"
)

# Classes whose objects hold a part of the state on each rank, and what to do.
_SHARDED = {
    "FullyShardedDataParallel": _FULL,
    "FSDPModule": _FULL,
    "DTensor": _FULL,
    "ZeroRedundancyOptimizer": "call its consolidate_state_dict(to=0) on every rank and save optimizer.state_dict() on rank 0",
    "DeepSpeedEngine": "save engine.module of a run without ZeRO, or use the engine's own save_checkpoint",
}

# Wrappers around a module, and the attribute that has it.
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}

# How names of what `get_extra_state` of a module returns end.
_EXTRA_STATE = "_extra_state"


def _names(value: Any) -> Iterable[str]:
    return (cls.__name__ for cls in type(value).__mro__)


def _refuse_sharded(what: str, value: Any) -> None:
    for name in _names(value):
        if name in _SHARDED:
            raise ValueError(f"{what} is a {name}, of which each rank has a part: {_SHARDED[name]}")


def refuse_sharded(model: Any, optimizer: Any) -> None:
    """Refuses what no single rank can save.

    Raises:
        ValueError: names the class, and says what to do.
    """
    for prefix, module in _modules(model).items():
        _refuse_sharded("the model", module)
        for name, inner in unwrapped(module).named_modules():
            _refuse_sharded(f"module `{prefix}{name}`", inner)
        for name, param in module.named_parameters():
            _refuse_sharded(f"parameter `{prefix}{name}`", param)
    for part in _states.leaves(optimizer):
        _refuse_sharded("the optimizer", part)


def unwrapped(module: Any) -> Any:
    """The module inside of wrappers for parallel training and compilation, whose names are the model's own."""
    while attribute := next((_WRAPPERS[name] for name in _names(module) if name in _WRAPPERS), None):
        module = getattr(module, attribute)
    return module


def is_module(value: Any) -> bool:
    return isinstance(value, torch.nn.Module)


def _modules(model: Any) -> dict[str, Any]:
    """The modules of a model with the prefixes of their names; none of a dictionary of tensors."""
    if is_module(model):
        return {"": model}
    if isinstance(model, Mapping) and model and all(map(is_module, model.values())):
        return {f"{name}.": module for name, module in model.items()}
    return {}


def _prefix_of(name: str, prefixes: Iterable[str]) -> str | None:
    """The prefix of the module that a tensor is of: the longest, for a name of one may begin with that of another."""
    return max((prefix for prefix in prefixes if name.startswith(prefix)), key=len, default=None)


def class_name(model: Any) -> str:
    return type(unwrapped(model)).__name__ if is_module(model) else ""


def is_model(value: Any) -> bool:
    return bool(_modules(value)) or isinstance(value, Mapping) and any(isinstance(item, torch.Tensor) for item in value.values())


def stored(name: str, tensor: Any, copy: bool, keep: list[Any]) -> TensorSpec:
    """Where the bytes of a tensor are; `keep` holds them."""
    if is_traceable_wrapper_subclass(tensor):
        _refuse_sharded(f"`{name}`", tensor)
        raise ValueError(f"`{name}` is a {type(tensor).__name__}, whose parts no file can hold: save a plain tensor of its values")
    if tensor.layout != torch.strided:
        raise ValueError(f"`{name}` is sparse, which no file can hold: save it with .to_dense()")
    if tensor.device.type == "meta":
        raise ValueError(f"`{name}` has no values (device meta): load or initialize it before it is saved")
    dense = _on_cpu(tensor.detach().contiguous())
    if copy and dense.data_ptr() == tensor.data_ptr():
        dense = dense.clone()
    keep.append(dense)
    return TensorSpec(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tensor.shape,
        # No memory has no address; that of anything serves.
        data_ptr=dense.data_ptr() or _SOMEWHERE.data_ptr(),
        data_len=dense.nelement() * dense.element_size(),
    )


def pack(model: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    """Parameters and buffers of a model, tied ones once."""
    modules = {prefix: unwrapped(module).state_dict() for prefix, module in _modules(model).items()}
    for prefix, own in modules.items():
        for name in own:
            other = _prefix_of(prefix + name, modules)
            if other != prefix:
                raise ValueError(
                    f"model {prefix[:-1]!r} has `{name}`, whose name is that of a tensor of model {str(other)[:-1]!r}: give the models other names"
                )
    state = {prefix + name: value for prefix, own in modules.items() for name, value in own.items()} or model
    tensors: dict[str, Any] = {}
    values: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    seen: dict[tuple[Any, ...], str] = {}
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            values[name] = value
        elif not is_traceable_wrapper_subclass(value) and value.layout == torch.strided and value.nelement() and value.data_ptr():
            # A conjugate or negative view has the memory of other values.
            place = (value.device, value.data_ptr(), value.dtype, value.shape, value.stride(), value.is_conj(), value.is_neg())
            kept = seen.setdefault(place, name)
            if kept is name or name in MARKS:
                tensors[name] = value
            else:
                aliases[name] = kept
        else:
            tensors[name] = value
    return flat(tensors, copy, aliases), {"values": values} if values else {}


def prepare(target: Any, file: TensorFile, notes: Mapping[str, Any], strict: bool) -> _states.Fill:
    """Fills a model. Of a dictionary of tensors, a new one is returned."""
    modules = _modules(target)
    state = (file if modules else file.copied()).tensors(as_framework("pt", "cpu")) | dict(notes.get("values", {}))
    if not modules:
        return lambda: state
    # Modules copy into their parameters and buffers, and may keep what else they are given.
    state |= {name: value.clone() for name, value in state.items() if name.endswith(_EXTRA_STATE) and isinstance(value, torch.Tensor)}
    prefixes = {name: _prefix_of(name, modules) for name in state}
    others = [name for name, prefix in prefixes.items() if prefix is None]
    if strict and others:
        raise ValueError(f"the checkpoint has tensors of no model that was given: {listed(others)}")
    states = {
        prefix: {name.removeprefix(prefix): value for name, value in state.items() if prefixes[name] == prefix} for prefix in modules
    }
    for prefix, module in modules.items():
        own = unwrapped(module).state_dict()
        _check_types(prefix, own, states[prefix])
        _check_names(unwrapped(module), own, states[prefix], strict)

    def fill() -> Any:
        for prefix, module in modules.items():
            unwrapped(module).load_state_dict(states[prefix], strict=strict)
        return target

    return fill


def _shape(value: Any) -> Any:
    # What a lazy module has not made yet has none.
    return tuple(value.shape) if isinstance(value, torch.Tensor) and not isinstance(value, UninitializedTensorMixin) else None


def _check_names(module: Any, own: Mapping[str, Any], saved: Mapping[str, Any], strict: bool) -> None:
    """Refuses, as torch does but before it fills what fits, names and shapes that differ. Hooks of modules may accept them."""
    are_names_equal = not strict or own.keys() == saved.keys()
    if are_names_equal and all(_shape(own[name]) == _shape(saved[name]) for name in own.keys() & saved.keys()):
        return
    memory = (tensor for tensor in (*module.parameters(), *module.buffers()) if not isinstance(tensor, UninitializedTensorMixin))
    try:
        # A module with the same classes and hooks, and without memory.
        empty = {id(tensor): _without_memory(tensor) for tensor in memory}
        trial = deepcopy(module, empty)
    except Exception:  # noqa: BLE001
        # What cannot be copied can only be asked when it is filled.
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trial.load_state_dict(saved, strict=strict)
        except Exception as error:
            # Hooks may need values, which the trial does not have: they run when the module is filled.
            if isinstance(error, RuntimeError) and str(error).startswith("Error(s) in loading state_dict"):
                raise


def _without_memory(tensor: Any) -> Any:
    empty = tensor.detach().to("meta")
    return nn.Parameter(empty, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty


def _check_types(prefix: str, own: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Refuses other element types, to which torch would round."""
    for name, here in own.items():
        there = saved.get(name)
        are_tensors = isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)
        if are_tensors and here.dtype != there.dtype and not name.endswith(_EXTRA_STATE):
            raise ValueError(f"`{prefix}{name}` is {there.dtype} in the checkpoint, {here.dtype} in the model")


def _names_of(model: Any) -> dict[int, str]:
    """Names of parameters by identity; of tied ones the first."""
    names: dict[int, str] = {}
    for prefix, module in _modules(model).items():
        for name, param in unwrapped(module).named_parameters(remove_duplicate=False):
            names.setdefault(id(param), prefix + name)
    return names


def _named(optimizer: Any, packed: Mapping[str, Any], names: Mapping[int, str]) -> dict[int, Any]:
    """What a checkpoint calls each parameter of an optimizer, by its index in the optimizer's state."""
    groups = zip(optimizer.param_groups, packed["param_groups"], strict=True)
    pairs = [pair for group, numbers in groups for pair in zip(group["params"], numbers["params"], strict=True)]
    calls = {number: names[id(param)] for param, number in pairs if id(param) in names}
    taken = dict.fromkeys(calls.values())
    # Of parameters of the model itself: those of a list are called 0, 1 and so on.
    free = {number: number if str(number) not in taken else free_name(str(number), taken) for _, number in pairs}
    return {number: calls.get(number, free[number]) for _, number in pairs}


def pack_optimizer(optimizer: Any, model: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    """The state of optimizers under the names of parameters."""
    names = _names_of(model)

    def named(value: Any) -> Any:
        if not isinstance(value, torch.optim.Optimizer):
            return None
        packed = value.state_dict()
        calls = _named(value, packed, names)
        groups = [{**group, "params": [calls[number] for number in group["params"]]} for group in packed["param_groups"]]
        state = {calls.get(key, key): item for key, item in packed["state"].items()}
        return {**packed, "state": state, "param_groups": groups}

    return structure(_states.state_of(optimizer, named), copy), {}


def prepare_optimizer(target: Any, file: TensorFile, notes: Mapping[str, Any], model: Any) -> _states.Fill:
    """Fills optimizers."""
    names = _names_of(model)

    def of_optimizer(optimizer: Any, state: Any) -> _states.Fill | None:
        return _prepared(optimizer, state, names) if isinstance(optimizer, torch.optim.Optimizer) else None

    return _states.prepared(target, file.copied().value(as_framework("pt", "cpu")), of_optimizer)


def _prepared(optimizer: Any, state: Any, names: Mapping[int, str]) -> _states.Fill:
    if not isinstance(state, Mapping) or not {"state", "param_groups"} <= state.keys():
        raise ValueError(f"what the checkpoint has is no state of the optimizer {type(optimizer).__name__}")
    own = optimizer.state_dict()
    numbers = {called: number for number, called in _named(optimizer, own, names).items()}
    groups, saved = own["param_groups"], state["param_groups"]
    if len(groups) != len(saved):
        raise ValueError(f"the checkpoint has {len(saved)} groups of parameters, the optimizer {len(groups)}")
    calls = {number: called for called, number in numbers.items()}
    for group, other in zip(groups, saved, strict=True):
        here = {calls[number] for number in group["params"]}
        # Written before parameters of lists were told apart from others: by the number alone.
        apart = {int(called.split("~")[0]): called for called in here if isinstance(called, str) and called.partition("~")[0].isdigit()}
        there = {param if param in here else apart.get(param, param) for param in other["params"]}
        if here != there:
            raise ValueError(
                "a group of parameters differs: "
                f"only in the checkpoint {listed(map(str, there - here)) or 'none'}, only in the optimizer {listed(map(str, here - there)) or 'none'}"
            )
    # By position torch would give the state of one parameter to another where their order has changed.
    filled = {
        **state,
        "state": {numbers.get(key, key): item for key, item in state["state"].items()},
        "param_groups": [_beside(other, group) | {"params": group["params"]} for group, other in zip(groups, saved, strict=True)],
    }

    def fill() -> Any:
        optimizer.load_state_dict(filled)
        # torch brings state to the type of its parameter, which may have fewer digits.
        params = [param for group in optimizer.param_groups for param in group["params"]]
        order = [number for group in groups for number in group["params"]]
        for param, number in zip(params, order, strict=True):
            own_state = optimizer.state.get(param, {})
            for key, value in filled["state"].get(number, {}).items():
                if key in own_state:
                    own_state[key] = _with_digits(own_state[key], value)
        return optimizer

    return fill


def _with_digits(now: Any, saved: Any) -> Any:
    """What torch has made of the state of a parameter, with the element types that were saved and the containers that it takes apart."""
    if isinstance(saved, torch.Tensor) and isinstance(now, torch.Tensor):
        return saved.to(now.device) if now.dtype != saved.dtype else now
    if isinstance(saved, dict) and isinstance(now, dict) and saved.keys() == now.keys():
        changed = shallow(saved)
        # Not as a Counter, which adds.
        dict.update(changed, ((key, _with_digits(now[key], item)) for key, item in saved.items()))
        return changed
    if isinstance(saved, (list, tuple, deque)) and type(now) is type(saved) and len(now) == len(saved):
        items = map(_with_digits, now, saved)
        if isinstance(saved, deque):
            return deque(items, saved.maxlen)
        return list(items) if isinstance(saved, list) else tuple.__new__(type(saved), items)
    # Of a text torch keeps the description of an iterator.
    return saved if isinstance(saved, str) else now


def _beside(saved: Any, own: Any) -> Any:
    """What was saved of a group, with tensors such as learning rates on the devices where the optimizer has them."""
    if isinstance(saved, torch.Tensor) and isinstance(own, torch.Tensor):
        return saved.to(own.device)
    if isinstance(saved, dict) and isinstance(own, dict):
        return {key: _beside(value, own.get(key)) for key, value in saved.items()}
    if type(saved) is type(own) is tuple and len(saved) == len(own):
        return tuple(map(_beside, saved, own))
    return saved
