"""What writing and reading have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._types import StructureError

DATACLASS = "SafestructuresDataclass"
MAX_DEPTH = 128
MAX_NODES = 1_000_000
TENSOR_TYPES = {
    "numpy.ndarray",
    "torch.Tensor",
    "tensorflow.python.framework.ops.EagerTensor",
    "jaxlib.xla_extension.ArrayImpl",
    "jaxlib._jax.ArrayImpl",
}
# What a defaultdict may make, by the name in the file.
FACTORIES: dict[str, type] = {
    cls.__name__: cls for cls in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
}


class Walk:
    """What writing and reading have in common: where they are, and how far they may go."""

    def __init__(self, max_nodes: int) -> None:
        self._steps: list[str] = []
        self._labels: list[str] = []
        self._depth = 0
        self._max_nodes = max_nodes
        self._nodes_left = max_nodes

    def error(
        self, message: str, code: str = "ss-custom", cls: type[StructureError] = StructureError
    ) -> StructureError:
        return cls(message, code, "".join(self._steps))

    @contextmanager
    def _at(self, step: str, label: str) -> Iterator[None]:
        self._steps.append(step)
        self._labels.append(label)
        try:
            yield
        finally:
            self._steps.pop()
            self._labels.pop()

    def _key(self, label: str) -> Any:
        shown = label[:256]
        return self._at(f".{shown}" if shown.isidentifier() else f"[{shown!r}]", label)

    def _item(self, idx: int) -> Any:
        return self._at(f"[{idx}]", str(idx))

    def _enter(self) -> None:
        if self._depth == MAX_DEPTH:
            raise self.error(f"nodes nested deeper than {MAX_DEPTH} levels", "ss-depth")
        if self._nodes_left == 0:
            raise self.error(f"more than {self._max_nodes} nodes", "ss-nodes")
        self._depth += 1
        self._nodes_left -= 1
