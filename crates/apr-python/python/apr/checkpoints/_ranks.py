"""Processes of a distributed training of PyTorch: one of them writes."""

from __future__ import annotations

import sys
from typing import Any

from apr import structures

from ._files import TensorFile


def to_bytes(value: Any) -> bytearray:
    """Nested data as what is sent to other processes."""
    return bytearray(structures.save(value))


def from_bytes(data: bytearray) -> Any:
    """The nested data again, each array of the library that it was of."""
    return TensorFile.of_bytes(data).value()


class Ranks:
    """The processes of `torch.distributed`."""

    def __init__(self, distributed: Any) -> None:
        self._distributed = distributed
        self.rank: int = distributed.get_rank()
        self.count: int = distributed.get_world_size()

    def _device(self) -> str:
        torch = sys.modules["torch"]
        on_gpu = self._distributed.get_backend() == "nccl"
        return f"cuda:{torch.cuda.current_device()}" if on_gpu else "cpu"

    def gather(self, value: Any) -> list[Any]:
        """The nested data of every process, on every process. Every one has to call it."""
        torch, device = sys.modules["torch"], self._device()
        data = torch.frombuffer(to_bytes(value), dtype=torch.uint8).to(device)
        lengths = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(self.count)]
        self._distributed.all_gather(lengths, torch.tensor([data.numel()], dtype=torch.int64, device=device))
        counts = [int(length) for length in lengths]
        padded = torch.zeros(max(counts), dtype=torch.uint8, device=device)
        padded[: data.numel()] = data
        found = [torch.empty_like(padded) for _ in range(self.count)]
        self._distributed.all_gather(found, padded)
        texts = (tensor[:count].cpu().numpy().tobytes() for tensor, count in zip(found, counts, strict=True))
        return [from_bytes(bytearray(text)) for text in texts]

    def agree(self, failed: bool) -> bool:
        """Whether a process has failed, on every process. Every one has to call it."""
        torch = sys.modules["torch"]
        outcome = torch.tensor([int(failed)], dtype=torch.int64, device=self._device())
        self._distributed.all_reduce(outcome, op=self._distributed.ReduceOp.MAX)
        return bool(outcome.item())


def ranks() -> Ranks | None:
    """The processes that train together, if there are several."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    found = Ranks(distributed)
    return found if found.count > 1 else None
