"""Generators of random numbers."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

# GPUs, as torch calls the modules for them.
_GPUS = ("cuda", "xpu", "mps")


def _of_python(state: tuple[int, tuple[int, ...], float | None]) -> dict[str, Any]:
    version, numbers, gauss = state
    return {"version": version, "state": np.array(numbers, np.uint32), "gauss": gauss}


def _to_python(state: Mapping[str, Any]) -> tuple[int, tuple[int, ...], float | None]:
    return state["version"], tuple(np.asarray(state["state"]).tolist()), state["gauss"]


def _gpus(torch: Any) -> dict[str, Any]:
    """The modules of torch for the kinds of GPUs that are here."""
    modules = {name: getattr(torch, name) for name in _GPUS if hasattr(torch, name)}
    return {name: module for name, module in modules.items() if hasattr(module, "device_count") and module.device_count()}


def global_states() -> dict[str, Any]:
    """The generators that modules share: Python's, numpy's, torch's and those of its GPUs."""
    states: dict[str, Any] = {"python": _of_python(random.getstate()), "numpy": np.random.get_state(legacy=False)}
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy()
        for name, module in _gpus(torch).items():
            # Devices that were not used have no state yet; asking would start them.
            if not hasattr(module, "is_initialized") or module.is_initialized():
                # Of `mps` there is one.
                found = module.get_rng_state_all() if hasattr(module, "get_rng_state_all") else [module.get_rng_state()]
                states[name] = [state.numpy() for state in found]
    return states


def _saved_gpus(states: Mapping[str, Any], gpus: Mapping[str, Any]) -> set[str]:
    """The kinds of GPUs whose generators are restored. That of `mps` is saved on every Mac, used or not: elsewhere it is left out."""
    return {name for name in states.keys() & set(_GPUS) if name != "mps" or name in gpus}


def check_global_states(states: Mapping[str, Any]) -> None:
    """Whether the generators that were saved are here.

    Raises:
        ValueError: some are not, or there are others.
    """
    here, there = np.random.get_state(legacy=False)["bit_generator"], states["numpy"]["bit_generator"]
    if here != there:
        raise ValueError(
            f"the global generator of numpy is one of {here}, the checkpoint has the state of one of {there}: "
            "call numpy.random.set_bit_generator first, or leave them out with rng=False"
        )
    torch = sys.modules.get("torch")
    if torch is None and "torch" in states:
        raise ValueError("the checkpoint has the generator of torch, which this process has not imported: leave it out with rng=False")
    gpus = {} if torch is None else _gpus(torch)
    for name in _saved_gpus(states, gpus):
        count = gpus[name].device_count() if name in gpus else 0
        if len(states[name]) != count:
            raise ValueError(
                f"the checkpoint has generators of {len(states[name])} `{name}` devices, and this process has {count}: leave them out with rng=False"
            )


def set_global_states(states: Mapping[str, Any]) -> None:
    """Sets the generators that were saved, which `check_global_states` has found."""
    torch = sys.modules.get("torch")
    random.setstate(_to_python(states["python"]))
    np.random.set_state(states["numpy"])
    if torch is not None and "torch" in states:
        torch.set_rng_state(torch.from_numpy(np.array(states["torch"])))
        for name in _saved_gpus(states, _gpus(torch)):
            module, found = getattr(torch, name), [torch.from_numpy(np.array(state)) for state in states[name]]
            if hasattr(module, "set_rng_state_all"):
                module.set_rng_state_all(found)
            else:
                module.set_rng_state(*found)


def state_of(name: str, generator: Any) -> dict[str, Any]:
    """The state of a generator of the program's own.

    Raises:
        TypeError: it is of no library that is known.
    """
    if isinstance(generator, random.Random):
        return {"random": _of_python(generator.getstate())}
    if isinstance(generator, np.random.Generator):
        return {"numpy": generator.bit_generator.state}
    if isinstance(generator, np.random.RandomState):
        return {"numpy": generator.get_state(legacy=False)}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(generator, torch.Generator):
        return {"torch": generator.get_state().numpy()}
    raise TypeError(f"generator {name!r} is a {type(generator).__name__}: give one of random, numpy.random or torch")


def check_state(name: str, generator: Any, state: Mapping[str, Any]) -> None:
    """Whether the state is that of a generator of this kind.

    Raises:
        ValueError: it is that of another kind.
    """
    ((here, own),) = state_of(name, generator).items()
    ((there, saved),) = state.items()
    if here == there == "numpy":
        # A `RandomState` also keeps a number for its next one of the normal distribution.
        here, there = (value["bit_generator"] + " in a RandomState" * ("has_gauss" in value) for value in (own, saved))
    if here != there:
        raise ValueError(f"generator {name!r} is one of {here}, the checkpoint has the state of one of {there}")


def set_state(generator: Any, state: Mapping[str, Any]) -> None:
    """Gives a generator its state again, which `check_state` has found to be of its kind."""
    ((kind, value),) = state.items()
    if kind == "random":
        generator.setstate(_to_python(value))
    elif kind == "torch":
        generator.set_state(sys.modules["torch"].from_numpy(np.array(value)))
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(value)
    else:
        generator.bit_generator.state = value
