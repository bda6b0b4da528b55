"""The devices of torch."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._frameworks import is_element, packed_shape, swapped, torch_dtypes
from .._native import SafetensorError
from ._plan import Piece, Place
from ._ring import Buffer, Device, Event

if TYPE_CHECKING:
    import torch


class Host:
    """Main memory, and the methods that all devices of torch share."""

    name: Any = "cpu"

    def __init__(self) -> None:
        self._dtypes = torch_dtypes()

    def check(self, place: Place) -> None:
        # Tensors of types that no framework has, such as blocks of GGUF in sealed files, become their bytes.
        if place.dtype not in self._dtypes and is_element(place.dtype):
            raise SafetensorError(f"Dtype not understood: {place.dtype}")
        self._layout(place)

    def tensor(self, place: Place) -> torch.Tensor:
        import torch

        dtype, shape = self._layout(place)
        return torch.empty(shape, dtype=dtype, device=self.name)

    def read(self, place: Place, read_at: Callable[[int, memoryview], None]) -> torch.Tensor:
        """A tensor in main memory, filled by `read_at`."""
        tensor = self.tensor(place)
        memory = _memory(tensor)
        if memory:
            read_at(place.begin, memory)
        if sys.byteorder == "big" and tensor.dtype == self._dtypes.get(place.dtype):
            memory[:] = swapped(memory, place.dtype)
        return tensor

    def _layout(self, place: Place) -> tuple[torch.dtype, list[int]]:
        """Element type and shape for torch: those of the bytes if torch does not have the type."""
        import torch

        dtype, shape, length = self._dtypes.get(place.dtype), place.shape, place.end - place.begin
        if dtype is not None and place.dtype == "F4":
            shape = packed_shape(shape)
        if dtype is None or math.prod(shape) * dtype.itemsize != length:
            return torch.uint8, [length]
        return dtype, list(shape)


class Cuda(Host):
    """A GPU of CUDA or ROCm. Copies are made on a separate stream."""

    def __init__(self, device: torch.device) -> None:
        import torch

        super().__init__()
        # Raises torch's own error if there is no GPU.
        torch.cuda.init()
        self.name = device
        self._side = torch.cuda.Stream(self.name)
        self._has_new = False

    def buffer(self, length: int) -> Buffer:
        import torch

        # Torch has a current device for each thread, and pinning memory initializes it.
        with torch.cuda.device(self.name):
            return Pinned(torch.empty(length, dtype=torch.uint8, device="cpu", pin_memory=True))

    def tensor(self, place: Place) -> torch.Tensor:
        self._has_new = True
        return super().tensor(place)

    def copy(self, buffer: Any, copies: Sequence[tuple[torch.Tensor, Piece]]) -> Event:
        import torch

        if self._has_new:
            # The allocator may reuse memory that work of the current stream still uses.
            self._side.wait_stream(torch.cuda.current_stream(self.name))
            self._has_new = False
        with torch.cuda.stream(self._side):
            for tensor, piece in copies:
                copy_piece(tensor, buffer, piece)
            return self._side.record_event()

    def drain(self) -> None:
        self._side.synchronize()


class Pinned:
    """A buffer of pinned memory, allocated by torch."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor: torch.Tensor | None = tensor
        self.memory = _memory(tensor)

    def release(self) -> None:
        self.memory.release()
        self.tensor = None


def copy_piece(tensor: torch.Tensor, buffer: Pinned, piece: Piece) -> None:
    """Begins to copy a piece of a buffer into a tensor, on the current stream."""
    import torch

    assert buffer.tensor is not None
    target = tensor.reshape(-1).view(torch.uint8)[piece.offset : piece.offset + piece.length]
    target.copy_(buffer.tensor[piece.start : piece.start + piece.length], non_blocking=True)


PIPELINED: dict[str, Callable[[Any], Device]] = {"cuda": Cuda}
"""The types of devices that tensors are copied to from pinned memory."""


def is_pipelined(device: str | int) -> bool:
    """Whether tensors are copied to a device of torch from pinned memory."""
    import torch

    # This torch may not know the name of a device; it raises an error when a tensor is copied there. A number is a device of the default type.
    kind = device.partition(":")[0] if isinstance(device, str) else torch.device(device).type
    # The bytes of a file are copied without a change.
    return kind in PIPELINED and sys.byteorder == "little"


def opened(device: str | int) -> Device:
    """A device for which [`is_pipelined`] is true. Raises torch's error if there is no such device."""
    import torch

    found = torch.device(device)
    return PIPELINED[found.type](found)


def _memory(tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor in main memory. They keep the tensor, so its memory is not freed while a read writes to it."""
    length = tensor.nelement() * tensor.element_size()
    if not length:
        return memoryview(bytearray())
    array: Any = (ctypes.c_ubyte * length).from_address(tensor.data_ptr())
    array.tensor = tensor
    return memoryview(array).cast("B")
