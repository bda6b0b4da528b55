"""What a program that saves and loads structures names: errors, variants, processors of types of its own."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class StructureError(ValueError):
    """A file or a value was refused.

    Attributes:
        code: stable identifier such as ``ss-data-type``; ``apr explain CODE`` says more.
        path: where in the data, such as ``.layers[3]``; empty for the outermost value.
    """

    def __init__(self, message: str, code: str = "ss-custom", path: str = "") -> None:
        super().__init__(f"{message}, in `{path}`" if path else message)
        self.code = code
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return _error_again, (type(self), str(self), self.code, self.path)


class UnsupportedTypeError(StructureError, TypeError):
    """A value, or a node of a file, has an unknown type."""


def _error_again(cls: type[StructureError], text: str, code: str, path: str) -> StructureError:
    error = cls(text, code)
    error.path = path
    return error


@dataclasses.dataclass
class Variant:
    """A member of an enum whose class was not registered, for example of a Rust enum.

    ``value`` is what the variant holds: ``None``, one value, a tuple, or a dict of its named fields.
    """

    name: str
    variant: str
    value: Any = None


class DataProcessor(ABC):
    """How values of a type of one's own are written and read.

    A subclass has ``data_type``, the class it is for. The file names it by module and qualified name, or by
    ``schema_type`` if the subclass sets that; the name is compared, never imported.
    """

    data_type: type = object

    def __init__(self, serializer: Any) -> None:
        """Keeps the serializer, whose ``serialize`` and ``deserialize`` take care of inner values."""
        self.serializer = serializer

    @abstractmethod
    def serialize(self, data: Any) -> Any:
        """What stands for the value: text, ``None``, bools, lists, dicts, nodes of inner values."""

    def serialize_extra(self, data: Any) -> dict[str, Any]:
        """Further fields of the node; `deserialize` gets them as keyword arguments."""
        return {}

    @abstractmethod
    def deserialize(self, serialized: Any, **kwargs: Any) -> Any:
        """The value again."""


class TensorProcessor(DataProcessor):
    """How arrays of a library of one's own are written and read, by their ``data_type`` and `to_numpy`."""

    @abstractmethod
    def to_numpy(self, tensor: Any) -> np.ndarray:
        """The array as numpy's, any shape."""

    def process_tensor(self, tensor: np.ndarray) -> str:
        """Stores an array and returns the name under which the schema knows it."""
        number = str(len(self.serializer.tensors))
        self.serializer.tensors[number] = tensor
        return number

    def serialize(self, data: Any) -> str:
        """Stores the array."""
        return self.process_tensor(self.to_numpy(data))

    def deserialize(self, serialized: str, **kwargs: Any) -> Any:
        """The array, in the framework that the reader asked for."""
        return self.serializer.tensors[serialized]
