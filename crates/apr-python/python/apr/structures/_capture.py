"""What goes into the layers of a network and comes out of them, kept by hooks."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import fnmatch
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._registry import is_row

if TYPE_CHECKING:
    from typing_extensions import Self


class Capture(Mapping[str, list[dict[str, Any]]]):
    """The calls of layers, by the names that the model gives them; what `capture` returns.

    ``captured["encoder.0"][2]["output"]`` is the output of the third call. A call has ``args`` (a tuple), ``kwargs`` (a dict) and
    ``output``, or those of them that were asked for. Arrays are copies as they were at the time, of torch on the CPU and without
    gradients.
    """

    def __init__(self, layers: Mapping[str, Any], inputs: bool, outputs: bool, calls: int | None) -> None:
        self._layers = layers
        self._inputs, self._outputs, self._most = inputs, outputs, calls
        self._calls: dict[str, list[dict[str, Any]]] = {name: [] for name in layers}
        self._hooks: list[Any] = []

    def __enter__(self) -> Self:
        for name, layer in self._layers.items():
            self._hook(name, layer)
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _hook(self, name: str, layer: Any) -> None:
        # A layer that calls itself has several calls open at a time. None: beyond those that are kept.
        opened: list[dict[str, Any] | None] = []

        def before(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            calls = self._calls[name]
            if self._most is not None and len(calls) >= self._most:
                opened.append(None)
                return
            # Now: layers may change in place what they are given.
            call = {"args": copied(args), "kwargs": copied(kwargs)} if self._inputs else {}
            calls.append(call)
            opened.append(call)

        def after(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            call = opened.pop()
            if call is not None and self._outputs:
                call["output"] = copied(output)

        self._hooks.append(layer.register_forward_pre_hook(before, with_kwargs=True))
        self._hooks.append(layer.register_forward_hook(after, with_kwargs=True))

    def __getitem__(self, name: str) -> list[dict[str, Any]]:
        return self._calls[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name!r}: {len(calls)}" for name, calls in list(self._calls.items())[:8])
        more = f", and {len(self._calls) - 8} more" if len(self._calls) > 8 else ""
        return f"<calls of {len(self._calls)} layers: {counts}{more}>"

    def save_file(
        self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None, plugins: Any = None
    ) -> None:
        """Writes all calls as a structures file: a dict of lists of dicts. As `apr.structures.save_file`."""
        from . import save_file

        save_file(self._calls, path, metadata, plugins)


def capture(
    model: Any,
    layers: str | Iterable[str] | None = None,
    *,
    inputs: bool = True,
    outputs: bool = True,
    calls: int | None = None,
) -> Capture:
    """Keeps what goes into layers of a model and comes out of them, inside of a ``with`` block.

    ```python
    with structures.capture(model, ["encoder.layer.*.attention", "pooler"], calls=1) as captured:
        model(batch)
    captured.save_file("activations.safetensors")
    ```

    Args:
        model: a `torch.nn.Module`, or what has its `named_modules` and hooks.
        layers: names of layers, `*` for any text and `?` for one character; None: all that have no layers inside. The model
            itself has the name "".
        inputs, outputs: what is kept.
        calls: how many calls of each layer, the first ones; None: all.

    Raises:
        ValueError: a name or pattern is that of no layer.
    """
    found = dict(model.named_modules())
    if layers is None:
        inner = {name.rpartition(".")[0] for name in found if name}
        chosen = {name: layer for name, layer in found.items() if name not in inner and (name or len(found) == 1)}
    else:
        chosen = {}
        for pattern in [layers] if isinstance(layers, str) else layers:
            # Brackets are not special here.
            names = [name for name in found if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))]
            if not names:
                close = difflib.get_close_matches(pattern, found, 1)
                hint = f"did you mean {close[0]!r}?" if close else "model.named_modules() lists them"
                raise ValueError(f"no layer is called {pattern!r}: {hint}")
            chosen |= {name: found[name] for name in names}
    return Capture(chosen, inputs, outputs, calls)


def copied(value: Any) -> Any:
    """The value with copies of its arrays; what is no container of Python stays as it is."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple) and is_row(type(value)):
        return tuple.__new__(type(value), map(copied, value))
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(map(copied, value))
    if isinstance(value, dict) and not dataclasses.is_dataclass(value):
        changed = copy.copy(value)
        # Not as a Counter, which adds.
        dict.update(changed, ((key, copied(item)) for key, item in value.items()))
        return changed
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(changed, field.name, copied(getattr(value, field.name)))
        return changed
    return value
