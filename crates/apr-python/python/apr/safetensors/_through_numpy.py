"""The functions of a framework whose tensors go through arrays of numpy."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import numpy, safe_open

if TYPE_CHECKING:
    import numpy as np

Tensor = TypeVar("Tensor")


class ThroughNumpy(Generic[Tensor]):
    """What the module of such a framework is made of.

    Args:
        framework: its name, as `safe_open` takes it.
        to_numpy: arrays of numpy with the same names.
        from_numpy: the way back.
    """

    def __init__(
        self,
        framework: str,
        to_numpy: Callable[[Mapping[str, Tensor]], dict[str, np.ndarray]],
        from_numpy: Callable[[Mapping[str, np.ndarray]], dict[str, Tensor]],
    ) -> None:
        self._framework = framework
        self._to_numpy = to_numpy
        self._from_numpy = from_numpy

    def save(self, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
        """The tensors as the bytes of a file.

        Args:
            tensors: names and dense tensors of any shape; the mapping is not changed. Nested parameters have to
                be flattened to one level, with one name each.
            metadata: text to keep in the header. It has no meaning for the tensors.

        Raises:
            SafetensorError: an element type that the format does not have.
        """
        return numpy.save(self._to_numpy(tensors), metadata=metadata)

    def save_file(
        self,
        tensors: Mapping[str, Tensor],
        filename: str | os.PathLike[str],
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Writes the tensors into `filename`. A file that was there is replaced in one step.

        Args:
            tensors: as for [`save`].
            filename: where to write.
            metadata: as for [`save`].

        Raises:
            SafetensorError: as for [`save`], or the file cannot be written.
        """
        numpy.save_file(self._to_numpy(tensors), filename, metadata=metadata)

    def load(self, data: Any) -> dict[str, Tensor]:
        """The tensors in the bytes of a file: `bytes`, `bytearray`, `memoryview`, `mmap` or the like.

        Raises:
            SafetensorError: the bytes are not a valid file, or the framework does not have an element type.
        """
        return self._from_numpy(numpy.load(data))

    def load_file(self, filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, Tensor]:
        """The tensors of a file.

        Args:
            filename: what to read.
            backend: how: `"mmap"` maps the file, `"pread"` reads tensor by tensor.

        Raises:
            FileNotFoundError: there is no such file.
            SafetensorError: as for [`load`].
        """
        with safe_open(filename, framework=self._framework, backend=backend) as f:
            return f.get_tensors()
