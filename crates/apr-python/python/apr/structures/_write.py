"""Values to the nodes of a schema and the arrays beside it."""

from __future__ import annotations

import collections
import dataclasses
import enum
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ._registry import is_row
from ._types import UnsupportedTypeError, Variant
from ._walk import DATACLASS, FACTORIES, MAX_NODES, Walk


class Writer(Walk):
    """Makes nodes of values and collects their arrays; what plugins know as their serializer."""

    def __init__(self, classes: Mapping[str, type], widen_floats: bool) -> None:
        super().__init__(MAX_NODES)
        self.tensors: dict[str, np.ndarray] = {}
        self.places: dict[str, str] = {}
        """Where in the data the tensors are, by their names."""
        self.names = {cls: name for name, cls in classes.items()}
        self.widen_floats = widen_floats
        self.plugins: dict[type, tuple[str, Any]] = {}

    def serialize(self, data: Any) -> dict[str, Any]:
        self._enter()
        try:
            return self._node(data)
        finally:
            self._depth -= 1

    def _node(self, data: Any) -> dict[str, Any]:
        cls = type(data)
        if cls in self.plugins:
            return self._plugged(data)
        writer = WRITERS.get(cls)
        if writer is not None:
            return writer(self, data)
        if isinstance(data, enum.Enum):
            return _write_enum(self, data)
        if dataclasses.is_dataclass(data):
            return _write_dataclass(self, data)
        if is_row(cls):
            return _write_row(self, data)
        if isinstance(data, np.generic):
            return {"data_type": "apr:scalar", "value": self.store(np.asarray(data))}
        foreign = self.foreign(data)
        if foreign is not None:
            return {"data_type": foreign[0], "value": self.store(foreign[1])}
        message = f"values of {cls} cannot be saved: convert them, or give a plugin for their type"
        raise self.error(message, "ss-data-type", UnsupportedTypeError)

    def _plugged(self, data: Any) -> dict[str, Any]:
        name, plugin = self.plugins[type(data)]
        node = {"data_type": name, "value": plugin.serialize(data)}
        extra = plugin.serialize_extra(data) if hasattr(plugin, "serialize_extra") else {}
        if not isinstance(extra, dict) or not all(isinstance(key, str) for key in extra):
            raise TypeError(f"`serialize_extra` of {plugin!r} must return a dict with str keys")
        for key in node.keys() & extra.keys():
            raise KeyError(f"`serialize_extra` of {plugin!r} must not set {key!r}")
        return {**node, **extra}

    def foreign(self, data: Any) -> tuple[str, np.ndarray] | None:
        """The type of an array of another framework, and the array as numpy's; None of anything else."""
        return _foreign_array(data, self.widen_floats)

    def tensor_name(self) -> str:
        """The name of the next tensor."""
        return str(len(self.tensors))

    def store(self, array: np.ndarray) -> str:
        """Keeps an array as a tensor of the file and returns its name there."""
        name = self.tensor_name()
        self.tensors[name] = array
        self.places[name] = "".join(self._steps)
        return name

    def items(self, items: Iterable[Any]) -> list[Any]:
        nodes = []
        for idx, item in enumerate(items):
            with self._item(idx):
                nodes.append(self.serialize(item))
        return nodes

    def fields(self, fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        nodes = {}
        for name, value in fields:
            with self._key(name):
                nodes[name] = self.serialize(value)
        return nodes

    def entries(self, data: Mapping[Any, Any]) -> dict[str, Any]:
        labels: dict[str, Any] = {}
        for key in data:
            label = _text(self, key) if not _has_set(key) else _shown(key)
            if label in labels:
                message = f"two keys of a dict are both written {label[:256]!r}: use keys of one type"
                raise self.error(message, "ss-key-collision")
            labels[label] = key
        # All values before all keys: this is how their tensors are numbered.
        value = self.fields((label, data[key]) for label, key in labels.items())
        return {"value": value, "keys": self.fields(labels.items())}


def _text(writer: Walk, value: Any) -> str:
    try:
        return str(value)
    except ValueError as error:
        raise writer.error(f"this value has no text: {error}", "ss-number") from error


_END = (chr(sys.maxunicode),)


def _order(item: Any) -> Any:
    """What sets are sorted by: the same in every process."""
    if isinstance(item, (frozenset, tuple)):
        parts = [_order(part) for part in item]
        # The end comes after every part: of two items of which one begins with the other, the longer is the first.
        return type(item).__qualname__, "", [*(sorted(parts) if isinstance(item, frozenset) else parts), _END]
    if _has_set(item):
        return type(item).__qualname__, _shown(item), []
    return type(item).__qualname__, repr(item), []


def _has_set(value: Any) -> bool:
    """Whether the text of a value has the elements of sets, in the order of this process."""
    if isinstance(value, tuple):
        return any(map(_has_set, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_has_set(getattr(value, field.name)) for field in dataclasses.fields(value))
    return isinstance(value, frozenset)


def _shown(value: Any) -> str:
    """A text like that of `repr`, the same in every process."""
    if not _has_set(value):
        return repr(value)
    name = type(value).__qualname__
    if isinstance(value, frozenset):
        items = [_shown(item) for item in sorted(value, key=_order)]
        return f"{name}({{{', '.join(items)}}})" if items else f"{name}()"
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return f"{name}({', '.join(f'{field.name}={_shown(getattr(value, field.name))}' for field in fields)})"
    items = [_shown(item) for item in value]
    if is_row(type(value)):
        return f"{name}({', '.join(map('='.join, zip(type(value)._fields, items, strict=True)))})"
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _write_number(writer: Writer, data: Any) -> dict[str, Any]:
    return {"data_type": type(data).__name__, "value": _text(writer, data)}


def _write_literal(_: Writer, data: Any) -> dict[str, Any]:
    return {"data_type": type(data).__name__, "value": data}


def _write_list(writer: Writer, data: Any) -> dict[str, Any]:
    return {"data_type": type(data).__name__, "value": writer.items(data)}


def _write_set(writer: Writer, data: Any) -> dict[str, Any]:
    name = "set" if type(data) is set else "apr:frozenset"
    return {"data_type": name, "value": writer.items(sorted(data, key=_order))}


def _write_deque(writer: Writer, data: Any) -> dict[str, Any]:
    maxlen = None if data.maxlen is None else str(data.maxlen)
    return {"data_type": "apr:deque", "value": writer.items(data), "maxlen": maxlen}


def _write_dict(writer: Writer, data: Any) -> dict[str, Any]:
    prefix = "" if type(data) is dict else "apr:"
    return {"data_type": prefix + type(data).__name__, **writer.entries(data)}


def _write_defaultdict(writer: Writer, data: Any) -> dict[str, Any]:
    factory = data.default_factory
    name: str | None = None if factory is None else str(getattr(factory, "__name__", ""))
    if name is not None and FACTORIES.get(name) is not factory:
        message = f"a defaultdict of {factory!r} cannot be saved, one of {', '.join(FACTORIES)} can"
        raise writer.error(message, "ss-data-type", UnsupportedTypeError)
    return {"data_type": "apr:defaultdict", **writer.entries(data), "factory": name}


def _write_enum(writer: Writer, data: enum.Enum) -> dict[str, Any]:
    cls, variant = type(data), data.name
    if variant not in cls.__members__:
        raise writer.error(
            f"{data!r} has no name of its own: save its value", "ss-data-type", UnsupportedTypeError
        )
    return _variant_node(writer, writer.names.get(cls, cls.__name__), variant, None)


def _variant_node(writer: Writer, name: str, variant: str, value: Any) -> dict[str, Any]:
    with writer._key(variant):
        node = writer.serialize(value)
    return {"data_type": "apr:enum", "value": node, "name": name, "variant": variant}


def _write_variant(writer: Writer, data: Variant) -> dict[str, Any]:
    return _variant_node(writer, data.name, data.variant, data.value)


def _write_dataclass(writer: Writer, data: Any) -> dict[str, Any]:
    cls = type(data)
    if cls is type:
        raise writer.error(f"{data} is a class: save an instance of it", "ss-data-type", UnsupportedTypeError)
    names = [field.name for field in dataclasses.fields(data)]
    # Outputs of transformers are dicts with their fields as entries; anything else in a container would be lost.
    if isinstance(data, (dict, list, set)) and not (isinstance(data, dict) and data.keys() <= set(names)) and len(data):
        message = f"{cls} is a dataclass with elements beside its fields, which would be lost: convert it, or give a plugin for it"
        raise writer.error(message, "ss-data-type", UnsupportedTypeError)
    fields = ((name, getattr(data, name)) for name in names)
    node = {"data_type": DATACLASS, "value": writer.fields(fields)}
    name = writer.names.get(cls, getattr(cls, "__apr_name__", None))
    return node if name is None else {**node, "name": name}


def _write_row(writer: Writer, data: Any) -> dict[str, Any]:
    cls = type(data)
    name = writer.names.get(cls, getattr(cls, "__apr_name__", cls.__name__))
    return {
        "data_type": "apr:namedtuple",
        "value": writer.fields(zip(cls._fields, data, strict=True)),
        "name": name,
    }


def _write_bytes(writer: Writer, data: bytes) -> dict[str, Any]:
    return {"data_type": "apr:bytes", "value": writer.store(np.frombuffer(data, np.uint8))}


def _write_array(writer: Writer, data: np.ndarray) -> dict[str, Any]:
    return {"data_type": "numpy.ndarray", "value": writer.store(data)}


WRITERS: dict[type, Callable[[Writer, Any], dict[str, Any]]] = {
    type(None): _write_literal,
    bool: _write_literal,
    str: _write_literal,
    int: _write_number,
    float: _write_number,
    complex: _write_number,
    bytes: _write_bytes,
    list: _write_list,
    tuple: _write_list,
    set: _write_set,
    frozenset: _write_set,
    dict: _write_dict,
    collections.OrderedDict: _write_dict,
    collections.Counter: _write_dict,
    collections.defaultdict: _write_defaultdict,
    collections.deque: _write_deque,
    Variant: _write_variant,
    np.ndarray: _write_array,
    np.memmap: _write_array,
}


def _foreign_array(data: Any, widen: bool) -> tuple[str, np.ndarray] | None:
    """An array of another framework as numpy's. A framework that was not imported cannot have created a value."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(data, getattr(torch, "Tensor", ())):
        return "torch.Tensor", _torch_array(torch, data, widen)
    tensorflow = sys.modules.get("tensorflow")
    if (
        tensorflow is not None
        and isinstance(data, getattr(tensorflow, "Tensor", ()))
        and hasattr(data, "numpy")
    ):
        return "tensorflow.python.framework.ops.EagerTensor", _widened(data.numpy(), widen)
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(data, getattr(jax, "Array", ())):
        return "jaxlib.xla_extension.ArrayImpl", _widened(np.asarray(data), widen)
    # Of these two libraries safestructures has no types: every reader knows arrays of numpy.
    mlx = sys.modules.get("mlx.core")
    if mlx is not None and isinstance(data, getattr(mlx, "array", ())):
        from apr.safetensors import mlx as files

        return "numpy.ndarray", _widened(files._to_numpy(data), widen)
    paddle = sys.modules.get("paddle")
    if paddle is not None and isinstance(data, getattr(paddle, "Tensor", ())):
        from apr.safetensors import paddle as files

        return "numpy.ndarray", _widened(files._to_numpy(data), widen)
    return None


def _torch_array(torch: Any, data: Any, widen: bool) -> np.ndarray:
    data = data.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if widen and data.is_floating_point():
        data = data.float()
    name = str(data.dtype).removeprefix("torch.")
    if not (name == "bfloat16" or name.startswith("float8")):
        return data.numpy()
    # numpy has these types through ml_dtypes, torch does not hand them over.
    import ml_dtypes

    bits = (torch.int16, np.int16) if name == "bfloat16" else (torch.uint8, np.uint8)
    return data.view(bits[0]).numpy().astype(bits[1], copy=False).view(getattr(ml_dtypes, name))


def _widened(array: np.ndarray, widen: bool) -> np.ndarray:
    is_float = array.dtype.name.startswith(("float", "bfloat"))
    return array.astype(np.float32) if widen and is_float else array


def plain(array: np.ndarray) -> np.ndarray:
    """The array in row-major order and little-endian, itself if it is."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.asarray(array, order="C")
