"""Loads tensors of files into the memory of an accelerator: threads read into buffers of pinned memory, which are copied on a separate stream.

`docs/accelerator.md` specifies it. `_plan` divides files into ranges of a buffer's length, `_limits` says how many buffers and threads there
are, `_ring` reads and copies, `_devices` has the devices of torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _devices
from ._limits import limits
from ._plan import Group, chosen, extent, plan
from ._ring import stream

__all__ = ["Group", "chosen", "in_memory", "iterate", "loader"]


def loader(device: str | int) -> Callable[..., dict[str, Any]] | None:
    """A function that loads the tensors of an open file into a device, all or those whose names are its second argument. None if tensors are
    copied to the device one by one, or are on the CPU.

    Args:
        device: what `device_of` has returned, as everywhere here.
    """
    if not _devices.is_pipelined(device):
        return None
    return lambda file, names=None: dict(iterate([(file, names)], device))


def iterate(groups: Sequence[Group], device: str | int, pinned_bytes: int | None = None) -> Iterator[tuple[str, Any]]:
    """Names and tensors of open files, each as soon as it is complete, in the order of the files and in file order.

    Args:
        groups: open safetensors or sealed files, each with the names of the tensors to load, or None for all.
        device: for which [`loader`] is not None.
        pinned_bytes: the most pinned memory.

    Raises:
        ValueError: too little pinned memory.
        SafetensorError: a file has no tensor of a name, or torch does not have an element type.
        SafetensorError, AprError, OSError: what reading the files raises.
        RuntimeError: what torch raises.
    """
    bounds = limits(pinned_bytes)
    target = _devices.opened(device)
    places, batches = plan(groups, bounds.buffer_len)
    for place in places:
        target.check(place)
    with contextlib.closing(stream(target, places, batches, bounds)) as tensors:
        yield from tensors


def in_memory(file: Any, device: str | int) -> Iterator[tuple[str, Any]]:
    """Names and tensors of an open file, each read into memory of its own and then copied to the device, in file order."""
    host = _devices.Host()
    places = chosen(file, None)
    for place in places:
        host.check(place)
    if places and not file._is_local:
        file._will_read(*extent(places))
    for place in places:
        yield place.name, host.read(place, file._read_at).to(device)
