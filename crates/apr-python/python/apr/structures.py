"""Nested data in safetensors files: lists, dicts, dataclasses, enums and numbers around arrays.

The layout is that of the package safestructures 1.0.0, whose files are read and written. The project's page
``docs/structures.md`` specifies it and our additions. Nothing is ever imported by a name that stands in a
file: classes are found among those that the reading program hands over.

>>> import numpy as np, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
>>> save_file({"lr": 1e-3, "shape": (2, 3), 7: [np.ones(2, np.float32), None]}, path)
>>> load_file(path)
{'lr': 0.001, 'shape': (2, 3), 7: [array([1., 1.], dtype=float32), None]}
"""

from __future__ import annotations

import collections
import dataclasses as _dataclasses
import enum
import json
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from apr.safetensors import numpy as _numpy_files
from apr.safetensors import safe_open

__all__ = [
    "DataProcessor",
    "StructureError",
    "TensorProcessor",
    "UnsupportedTypeError",
    "Variant",
    "load",
    "load_file",
    "register",
    "save",
    "save_file",
]

_SCHEMA_KEY = "_safestructures_schema_"
_VERSION_KEY = "_safestructures_schema_version_"
_VERSION = "1.0.0"
_DATACLASS = "SafestructuresDataclass"
_MAX_DEPTH = 128
_MAX_NODES = 1_000_000
# Making a class runs the compiler: a file may ask for so many.
_MAX_CLASSES = 1_000

_TENSOR_TYPES = {
    "numpy.ndarray",
    "torch.Tensor",
    "tensorflow.python.framework.ops.EagerTensor",
    "jaxlib.xla_extension.ArrayImpl",
    "jaxlib._jax.ArrayImpl",
}
_LISTS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "apr:frozenset": frozenset}
_DICTS: dict[str, type] = {
    "dict": dict,
    "apr:OrderedDict": collections.OrderedDict,
    "apr:Counter": collections.Counter,
}
_FACTORIES: dict[str, type] = {
    cls.__name__: cls for cls in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
}
# The adapter of `apr.safetensors` for each name that a caller may give a framework.
_ADAPTERS = {
    "np": "numpy",
    "numpy": "numpy",
    "pt": "torch",
    "torch": "torch",
    "pytorch": "torch",
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
    "jax": "flax",
    "flax": "flax",
    "mlx": "mlx",
    "paddle": "paddle",
}
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FLOAT = re.compile(r"[+-]?(?:nan|inf|infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE)


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
    """A value, or a node of a file, is of a type that nobody here knows."""


def _error_again(cls: type[StructureError], text: str, code: str, path: str) -> StructureError:
    error = cls(text, code)
    error.path = path
    return error


@_dataclasses.dataclass
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


_registered: dict[str, type] = {}


def register(cls: type | None = None, *, name: str | None = None) -> Any:
    """Lets files name a dataclass, an enum or a named tuple; a decorator, with or without arguments.

    Args:
        cls: the class.
        name: what files call it; its ``__name__`` if not given.

    Raises:
        TypeError: for other kinds of classes.
        ValueError: if another class has the name.
    """
    if cls is None:
        return lambda cls: register(cls, name=name)
    _check_class(cls)
    name = cls.__name__ if name is None else name
    if _registered.setdefault(name, cls) is not cls:
        raise ValueError(f"{name!r} is registered for {_registered[name]}: choose another name for {cls}")
    return cls


def _check_class(cls: Any) -> None:
    if not (
        isinstance(cls, type)
        and (_dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum) or _is_row(cls))
    ):
        raise TypeError(f"{cls!r} is no class of dataclasses, enum members or named tuples")


def _is_row(cls: type) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _classes(given: Mapping[str, type] | None) -> dict[str, type]:
    classes = dict(_registered)
    for name, cls in (given or {}).items():
        _check_class(cls)
        classes[name] = cls
    return classes


def _type_name(cls: type) -> str:
    """The name by which files know the type of a plugin."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _plugins(given: Any, context: Any) -> tuple[dict[type, tuple[str, Any]], dict[str, Any]]:
    """Plugins by the type of the data and by the name of the type."""
    if given is None:
        given = []
    elif not isinstance(given, (list, tuple)):
        given = [given]
    by_type: dict[type, tuple[str, Any]] = {}
    by_name: dict[str, Any] = {}
    for plugin in given:
        wanted = ("serialize", "deserialize")
        if not all(callable(getattr(plugin, method, None)) for method in wanted) or not isinstance(
            getattr(plugin, "data_type", None), type
        ):
            raise TypeError(f"{plugin!r} is no plugin: it needs `data_type`, `serialize` and `deserialize`")
        cls = plugin.data_type
        # The base class of safestructures makes a property of it.
        name = getattr(plugin, "schema_type", None)
        name = name if isinstance(name, str) else _type_name(cls)
        taken = name in _READERS or name in _TENSOR_TYPES or name.startswith("apr:") or cls in _WRITERS
        if taken or cls in by_type or name in by_name:
            raise ValueError(f"there is a processor for {name!r} already: leave {plugin!r} out")
        by_type[cls] = (name, plugin(context) if isinstance(plugin, type) else plugin)
        by_name[name] = by_type[cls][1]
    return by_type, by_name


class _Walk:
    """What writing and reading have in common: where they are, and how far they may go."""

    def __init__(self, max_nodes: int) -> None:
        self._steps: list[str] = []
        self._depth = 0
        self._max_nodes = max_nodes
        self._nodes_left = max_nodes

    def error(
        self, message: str, code: str = "ss-custom", cls: type[StructureError] = StructureError
    ) -> StructureError:
        return cls(message, code, "".join(self._steps))

    @contextmanager
    def _at(self, step: str) -> Iterator[None]:
        self._steps.append(step)
        try:
            yield
        finally:
            self._steps.pop()

    def _key(self, label: str) -> Any:
        shown = label[:256]
        return self._at(f".{shown}" if shown.isidentifier() else f"[{shown!r}]")

    def _enter(self) -> None:
        if self._depth == _MAX_DEPTH:
            raise self.error(f"nodes nested deeper than {_MAX_DEPTH} levels", "ss-depth")
        if self._nodes_left == 0:
            raise self.error(f"more than {self._max_nodes} nodes", "ss-nodes")
        self._depth += 1
        self._nodes_left -= 1


class _Writer(_Walk):
    """Makes nodes of values and collects their arrays; what plugins know as their serializer."""

    def __init__(self, plugins: Any, classes: Mapping[str, type], widen_floats: bool) -> None:
        super().__init__(_MAX_NODES)
        self.tensors: dict[str, np.ndarray] = {}
        self.names = {cls: name for name, cls in classes.items()}
        self.widen_floats = widen_floats
        self._by_type, _ = _plugins(plugins, self)

    def serialize(self, data: Any) -> dict[str, Any]:
        self._enter()
        try:
            return self._node(data)
        finally:
            self._depth -= 1

    def _node(self, data: Any) -> dict[str, Any]:
        cls = type(data)
        if cls in self._by_type:
            return self._plugged(data)
        writer = _WRITERS.get(cls)
        if writer is not None:
            return writer(self, data)
        if isinstance(data, enum.Enum):
            return _write_enum(self, data)
        if _dataclasses.is_dataclass(data):
            return _write_dataclass(self, data)
        if _is_row(cls):
            return _write_row(self, data)
        if isinstance(data, np.generic):
            return {"data_type": "apr:scalar", "value": self.store(np.asarray(data))}
        foreign = _foreign_array(data, self.widen_floats)
        if foreign is not None:
            return {"data_type": foreign[0], "value": self.store(foreign[1])}
        message = f"values of {cls} cannot be saved: convert them, or give a plugin for their type"
        raise self.error(message, "ss-data-type", UnsupportedTypeError)

    def _plugged(self, data: Any) -> dict[str, Any]:
        name, plugin = self._by_type[type(data)]
        node = {"data_type": name, "value": plugin.serialize(data)}
        extra = plugin.serialize_extra(data) if hasattr(plugin, "serialize_extra") else {}
        if not isinstance(extra, dict) or not all(isinstance(key, str) for key in extra):
            raise TypeError(f"`serialize_extra` of {plugin!r} must return a dict with str keys")
        for key in node.keys() & extra.keys():
            raise KeyError(f"`serialize_extra` of {plugin!r} must not set {key!r}")
        return {**node, **extra}

    def store(self, array: np.ndarray) -> str:
        """Keeps an array as a tensor of the file and returns its name there."""
        number = str(len(self.tensors))
        self.tensors[number] = array
        return number

    def items(self, items: Iterable[Any]) -> list[Any]:
        nodes = []
        for idx, item in enumerate(items):
            with self._at(f"[{idx}]"):
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
            label = _text(self, key)
            if label in labels:
                message = f"two keys of a dict are both written {label[:256]!r}: use keys of one type"
                raise self.error(message, "ss-key-collision")
            labels[label] = key
        # All values before all keys: this is how their tensors are numbered.
        value = self.fields((label, data[key]) for label, key in labels.items())
        return {"value": value, "keys": self.fields(labels.items())}


def _text(writer: _Walk, value: Any) -> str:
    try:
        return str(value)
    except ValueError as error:
        raise writer.error(f"this value has no text: {error}", "ss-number") from error


def _order(item: Any) -> Any:
    """What sets are sorted by: the same in every process."""
    if isinstance(item, (frozenset, tuple)):
        parts = [_order(part) for part in item]
        return type(item).__qualname__, repr(sorted(parts) if isinstance(item, frozenset) else parts)
    return type(item).__qualname__, repr(item)


def _write_number(writer: _Writer, data: Any) -> dict[str, Any]:
    return {"data_type": type(data).__name__, "value": _text(writer, data)}


def _write_literal(_: _Writer, data: Any) -> dict[str, Any]:
    return {"data_type": type(data).__name__, "value": data}


def _write_list(writer: _Writer, data: Any) -> dict[str, Any]:
    return {"data_type": type(data).__name__, "value": writer.items(data)}


def _write_set(writer: _Writer, data: Any) -> dict[str, Any]:
    name = "set" if type(data) is set else "apr:frozenset"
    return {"data_type": name, "value": writer.items(sorted(data, key=_order))}


def _write_deque(writer: _Writer, data: Any) -> dict[str, Any]:
    maxlen = None if data.maxlen is None else str(data.maxlen)
    return {"data_type": "apr:deque", "value": writer.items(data), "maxlen": maxlen}


def _write_dict(writer: _Writer, data: Any) -> dict[str, Any]:
    prefix = "" if type(data) is dict else "apr:"
    return {"data_type": prefix + type(data).__name__, **writer.entries(data)}


def _write_defaultdict(writer: _Writer, data: Any) -> dict[str, Any]:
    factory = data.default_factory
    name: str | None = None if factory is None else str(getattr(factory, "__name__", ""))
    if name is not None and _FACTORIES.get(name) is not factory:
        message = f"a defaultdict of {factory!r} cannot be saved, one of {', '.join(_FACTORIES)} can"
        raise writer.error(message, "ss-data-type", UnsupportedTypeError)
    return {"data_type": "apr:defaultdict", **writer.entries(data), "factory": name}


def _write_enum(writer: _Writer, data: enum.Enum) -> dict[str, Any]:
    cls, variant = type(data), data.name
    if variant not in cls.__members__:
        raise writer.error(
            f"{data!r} has no name of its own: save its value", "ss-data-type", UnsupportedTypeError
        )
    return _variant_node(writer, writer.names.get(cls, cls.__name__), variant, None)


def _variant_node(writer: _Writer, name: str, variant: str, value: Any) -> dict[str, Any]:
    with writer._key(variant):
        node = writer.serialize(value)
    return {"data_type": "apr:enum", "value": node, "name": name, "variant": variant}


def _write_variant(writer: _Writer, data: Variant) -> dict[str, Any]:
    return _variant_node(writer, data.name, data.variant, data.value)


def _write_dataclass(writer: _Writer, data: Any) -> dict[str, Any]:
    cls = type(data)
    if cls is type:
        raise writer.error(f"{data} is a class: save an instance of it", "ss-data-type", UnsupportedTypeError)
    fields = ((field.name, getattr(data, field.name)) for field in _dataclasses.fields(data))
    node = {"data_type": _DATACLASS, "value": writer.fields(fields)}
    name = writer.names.get(cls, getattr(cls, "__apr_name__", None))
    return node if name is None else {**node, "name": name}


def _write_row(writer: _Writer, data: Any) -> dict[str, Any]:
    cls = type(data)
    name = writer.names.get(cls, getattr(cls, "__apr_name__", cls.__name__))
    return {
        "data_type": "apr:namedtuple",
        "value": writer.fields(zip(cls._fields, data, strict=True)),
        "name": name,
    }


def _write_bytes(writer: _Writer, data: bytes) -> dict[str, Any]:
    return {"data_type": "apr:bytes", "value": writer.store(np.frombuffer(data, np.uint8))}


def _write_array(writer: _Writer, data: np.ndarray) -> dict[str, Any]:
    return {"data_type": "numpy.ndarray", "value": writer.store(data)}


_WRITERS: dict[type, Callable[[_Writer, Any], dict[str, Any]]] = {
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
    """An array of another framework as numpy's. A framework that nobody imported has made no value."""
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


def _plain(array: np.ndarray) -> np.ndarray:
    """The array in row-major order and little-endian, itself if it is."""
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.asarray(array, order="C")


def _prepare(
    data: Any,
    metadata: Mapping[str, str] | None,
    plugins: Any,
    classes: Mapping[str, type] | None,
    widen: bool,
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    own = dict(metadata or {})
    for key in (_SCHEMA_KEY, _VERSION_KEY):
        if key in own:
            raise StructureError(f"`{key}` cannot be a key of the metadata: rename it", "ss-reserved-key")
    writer = _Writer(plugins, _classes(classes), widen)
    try:
        schema = json.dumps(writer.serialize(data), allow_nan=False)
    except RecursionError as error:
        raise StructureError("the data are nested more deeply than Python can follow", "ss-depth") from error
    own |= {_SCHEMA_KEY: schema, _VERSION_KEY: _VERSION}
    tensors = {name: _plain(array) for name, array in writer.tensors.items()}
    # The format's own readers want at least one.
    tensors = tensors or {"null": np.zeros(1, np.int64)}
    return tensors, {key: own[key] for key in sorted(own)}


def save_file(
    data: Any,
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    widen_floats: bool = False,
) -> None:
    """Writes nested data as a file.

    Arrays keep their dtype and shape. Each is stored where it is met, one that is met twice is stored twice.
    Sets are sorted: equal data give equal bytes.

    Args:
        data: numbers, texts, bytes, ``None``, lists, tuples, sets, dicts, the classes of `collections`,
            dataclasses, named tuples, enums, numpy scalars, arrays of numpy, torch, TensorFlow and JAX, up to
            128 levels within each other.
        path: where to; the folder has to exist.
        metadata: texts to store beside the data.
        plugins: a `DataProcessor` class, or a list of them, for types of one's own.
        dataclasses: names of classes in the file, beside those of `register`.
        widen_floats: store floats of torch, TensorFlow and JAX as F32, as safestructures does.

    Raises:
        UnsupportedTypeError: for a value of a type that cannot be saved.
        StructureError: for dict keys with one text, data nested too deeply, reserved keys of metadata.
    """
    tensors, own = _prepare(data, metadata, plugins, dataclasses, widen_floats)
    _numpy_files.save_file(tensors, os.fspath(Path(path).expanduser()), metadata=own)


def save(
    data: Any,
    metadata: Mapping[str, str] | None = None,
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    widen_floats: bool = False,
) -> bytes:
    """The bytes that `save_file` would write. Arguments and errors are the same."""
    tensors, own = _prepare(data, metadata, plugins, dataclasses, widen_floats)
    return _numpy_files.save(tensors, metadata=own)


class _Tensors(Mapping[str, Any]):
    """The tensors of a file, each read when it is first asked for."""

    def __init__(self, names: Iterable[str], read: Callable[[str], Any]) -> None:
        self._names = frozenset(names)
        self._read = read
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Reader(_Walk):
    """Makes values of nodes; what plugins know as their serializer."""

    def __init__(
        self,
        tensors: Mapping[str, Any],
        arrays: Mapping[str, Any],
        plugins: Any,
        classes: Mapping[str, type],
        max_nodes: int,
    ) -> None:
        super().__init__(max_nodes)
        self.tensors = tensors
        self.arrays = arrays
        self.classes = classes
        self._made: dict[tuple[Any, ...], type] = {}
        _, self._by_name = _plugins(plugins, self)

    def deserialize(self, schema: Any) -> Any:
        self._enter()
        try:
            return self._value(schema)
        finally:
            self._depth -= 1

    def _value(self, node: Any) -> Any:
        fields = dict(self.typed(node, dict, "an object with `data_type` and `value`"))
        name = self.typed(self.take(fields, "data_type"), str, "a string")
        value = self.take(fields, "value")
        plugin = self._by_name.get(name)
        if plugin is not None:
            return plugin.deserialize(value, **fields)
        if name in _TENSOR_TYPES:
            result = self.tensor(self.tensors, value)
        elif name in _READERS:
            result = _READERS[name](self, value, fields)
        else:
            message = (
                f"unknown data type {name[:256]!r}: nothing is imported by it; give the plugin that wrote it"
            )
            raise self.error(message, "ss-data-type", UnsupportedTypeError)
        for field in fields:
            raise self.error(f"node with an unknown field {field[:256]!r}", "ss-field-unknown")
        return result

    def take(self, fields: dict[str, Any], field: str) -> Any:
        if field not in fields:
            raise self.error(f"node without `{field}`", "ss-field-missing")
        return fields.pop(field)

    def typed(self, value: Any, cls: type, expected: str) -> Any:
        if type(value) is not cls:
            raise self.error(f"wrong kind of value in the schema: {expected} expected", "ss-type")
        return value

    def tensor(self, tensors: Mapping[str, Any], value: Any) -> Any:
        name = self.typed(value, str, "a string")
        if name not in tensors:
            raise self.error(f"no tensor {name[:256]!r} in the file", "ss-tensor")
        return tensors[name]

    def items(self, value: Any) -> list[Any]:
        values = []
        for idx, node in enumerate(self.typed(value, list, "an array of nodes")):
            with self._at(f"[{idx}]"):
                values.append(self.deserialize(node))
        return values

    def fields(self, value: Any) -> dict[str, Any]:
        values = {}
        for name, node in self.typed(value, dict, "an object").items():
            with self._key(name):
                values[name] = self.deserialize(node)
        return values

    def entries(self, value: Any, fields: dict[str, Any]) -> dict[Any, Any]:
        keys = self.typed(self.take(fields, "keys"), dict, "an object")
        value = self.typed(value, dict, "an object")
        for label in value.keys() ^ keys.keys():
            raise self.error(
                f"`value` and `keys` of a dict differ: {label[:256]!r} is in one of them", "ss-keys"
            )
        entries: dict[Any, Any] = {}
        for label, node in value.items():
            with self._key(label):
                item = self.deserialize(node)
                key = self.deserialize(keys[label])
                try:
                    known = key in entries
                except TypeError as error:
                    raise self.error(f"{type(key)} cannot be a key of a dict", "ss-type") from error
                if known:
                    raise self.error("two equal keys in a dict", "ss-key-collision")
                entries[key] = item
        return entries

    def made(self, kind: str, name: str, fields: Mapping[str, Any], make: Callable[[], type]) -> type:
        """A class for fields that no registered class has."""
        key = (kind, name, *fields)
        if key not in self._made:
            if len(self._made) == _MAX_CLASSES:
                raise self.error(f"more than {_MAX_CLASSES} classes that were not registered", "ss-nodes")
            # The class of an object is not for a file to change.
            bad = next(
                (field for field in fields if field.startswith("__") or not field.isidentifier()), None
            )
            if bad is not None:
                raise self.error(f"{bad[:256]!r} cannot be a field of a {kind}", "ss-type")
            try:
                self._made[key] = make()
            except (TypeError, ValueError) as error:
                raise self.error(f"no {kind} can be made of these fields: {error}", "ss-type") from error
            self._made[key].__apr_name__ = name or None  # type: ignore[attr-defined]
        return self._made[key]

    def registered(self, name: str, is_it: Callable[[type], bool], kind: str) -> type | None:
        cls = self.classes.get(name)
        if cls is not None and not is_it(cls):
            raise self.error(f"{name[:256]!r} is a {kind} in the file, registered is {cls}", "ss-type")
        return cls


def _read_none(reader: _Reader, value: Any, _: dict[str, Any]) -> None:
    if value is not None:
        raise reader.error("wrong kind of value in the schema: null expected", "ss-type")


def _read_bool(reader: _Reader, value: Any, _: dict[str, Any]) -> bool:
    return reader.typed(value, bool, "true or false")


def _read_str(reader: _Reader, value: Any, _: dict[str, Any]) -> str:
    return reader.typed(value, str, "a string")


def _number(reader: _Reader, value: Any, cls: type, sound: bool, expected: str) -> Any:
    try:
        if sound:
            return cls(value)
    except ValueError:
        pass
    raise reader.error(f"{expected} expected", "ss-number")


def _read_int(reader: _Reader, value: Any, _: dict[str, Any]) -> int:
    sound = _INTEGER.fullmatch(_read_str(reader, value, _)) is not None
    return _number(reader, value, int, sound, "the text of an integer that Python can read")


def _read_float(reader: _Reader, value: Any, _: dict[str, Any]) -> float:
    sound = _FLOAT.fullmatch(_read_str(reader, value, _)) is not None
    return _number(reader, value, float, sound, "the text of a float")


def _read_complex(reader: _Reader, value: Any, _: dict[str, Any]) -> complex:
    # `complex` knows spellings beyond those of `str`: white space, underscores, a lone j.
    sound = re.fullmatch(r"[0-9a-z.()+-]+", _read_str(reader, value, _), re.IGNORECASE | re.ASCII) is not None
    sound = sound and re.search(r"(?:^|[(+-])j", value) is None
    return _number(reader, value, complex, sound, "the text of a complex number")


def _read_list(cls: type) -> Callable[[_Reader, Any, dict[str, Any]], Any]:
    def read(reader: _Reader, value: Any, _: dict[str, Any]) -> Any:
        items = reader.items(value)
        try:
            result = cls(items)
        except TypeError as error:
            raise reader.error(f"an element that no {cls.__name__} can hold: {error}", "ss-type") from error
        if len(result) != len(items):
            raise reader.error(f"two equal elements in a {cls.__name__}", "ss-duplicate")
        return result

    return read


def _read_dict(cls: type) -> Callable[[_Reader, Any, dict[str, Any]], Any]:
    return lambda reader, value, fields: cls(reader.entries(value, fields))


def _read_defaultdict(reader: _Reader, value: Any, fields: dict[str, Any]) -> Any:
    name = reader.take(fields, "factory")
    if name is not None and reader.typed(name, str, "a string or null") not in _FACTORIES:
        raise reader.error(
            f"unknown factory {name[:256]!r} of a defaultdict", "ss-data-type", UnsupportedTypeError
        )
    return collections.defaultdict(_FACTORIES[name] if name else None, reader.entries(value, fields))


def _read_deque(reader: _Reader, value: Any, fields: dict[str, Any]) -> Any:
    maxlen = reader.take(fields, "maxlen")
    if maxlen is not None:
        maxlen = _read_int(reader, maxlen, fields)
        if not 0 <= maxlen <= sys.maxsize:
            raise reader.error("the text of a length expected", "ss-number")
    items = reader.items(value)
    if maxlen is not None and len(items) > maxlen:
        raise reader.error(f"a deque of {len(items)} elements, at most {maxlen} allowed", "ss-type")
    return collections.deque(items, maxlen)


def _read_dataclass(reader: _Reader, value: Any, fields: dict[str, Any]) -> Any:
    name = reader.typed(fields.pop("name"), str, "a string") if "name" in fields else ""
    values = reader.fields(value)
    cls = reader.registered(name, _dataclasses.is_dataclass, "dataclass") if name else None
    if cls is None:
        shown = name if name.isidentifier() else _DATACLASS
        make = lambda: _dataclasses.make_dataclass(shown, list(values))  # noqa: E731
        return reader.made("dataclass", name, values, make)(**values)
    known = {field.name: field for field in _dataclasses.fields(cls)}
    for field in values.keys() - known.keys():
        raise reader.error(f"{cls} has no field {field[:256]!r}", "ss-field-unknown")
    try:
        result = cls(**{field: value for field, value in values.items() if known[field].init})
    except (TypeError, ValueError) as error:
        raise reader.error(f"{cls} refuses its fields: {error}", "ss-custom") from error
    for field, value in values.items():
        if not known[field].init:
            object.__setattr__(result, field, value)
    return result


def _read_row(reader: _Reader, value: Any, fields: dict[str, Any]) -> Any:
    name = reader.typed(reader.take(fields, "name"), str, "a string")
    values = reader.fields(value)
    cls = reader.registered(name, _is_row, "named tuple")
    if cls is None:
        shown = name if name.isidentifier() else "Row"
        cls = reader.made("named tuple", name, values, lambda: collections.namedtuple(shown, list(values)))
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise reader.error(f"{cls} refuses its fields: {error}", "ss-custom") from error


def _read_enum(reader: _Reader, value: Any, fields: dict[str, Any]) -> Any:
    name = reader.typed(reader.take(fields, "name"), str, "a string")
    variant = reader.typed(reader.take(fields, "variant"), str, "a string")
    with reader._key(variant):
        held = reader.deserialize(value)
    cls: Any = reader.registered(name, lambda cls: issubclass(cls, enum.Enum), "enum")
    if cls is None:
        return Variant(name, variant, held)
    if held is not None or variant not in cls.__members__:
        raise reader.error(f"{cls} has no such member: {variant[:256]!r}", "ss-type")
    return cls.__members__[variant]


def _read_bytes(reader: _Reader, value: Any, _: dict[str, Any]) -> bytes:
    array = reader.tensor(reader.arrays, value)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise reader.error(
            "tensor of another type or shape: `U8` of one dimension expected", "ss-tensor-shape"
        )
    return array.tobytes()


def _read_scalar(reader: _Reader, value: Any, _: dict[str, Any]) -> np.generic:
    array = reader.tensor(reader.arrays, value)
    if array.ndim != 0:
        raise reader.error("tensor of another type or shape: no dimensions expected", "ss-tensor-shape")
    return array[()]


_READERS: dict[str, Callable[[_Reader, Any, dict[str, Any]], Any]] = {
    "NoneType": _read_none,
    "None": _read_none,
    "bool": _read_bool,
    "str": _read_str,
    "int": _read_int,
    "float": _read_float,
    "complex": _read_complex,
    **{name: _read_list(cls) for name, cls in _LISTS.items()},
    **{name: _read_dict(cls) for name, cls in _DICTS.items()},
    "apr:defaultdict": _read_defaultdict,
    "apr:deque": _read_deque,
    _DATACLASS: _read_dataclass,
    "apr:namedtuple": _read_row,
    "apr:enum": _read_enum,
    "apr:bytes": _read_bytes,
    "apr:scalar": _read_scalar,
}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise StructureError(f"two fields {twice[:256]!r} in one object of the schema", "ss-duplicate")
    return fields


def _no_constant(name: str) -> Any:
    raise StructureError(f"the schema is not valid JSON: it holds {name}", "ss-json")


def _schema(metadata: Mapping[str, str] | None, max_nodes: int) -> Any:
    """The schema in the metadata of a file, as JSON values."""
    if not metadata or _SCHEMA_KEY not in metadata:
        message = (
            "no schema in the metadata: a safetensors file, not a structure; read it with apr.safetensors"
        )
        raise StructureError(message, "ss-no-schema")
    if _VERSION_KEY not in metadata:
        raise StructureError("no version of the schema in the metadata", "ss-no-version")
    version = metadata[_VERSION_KEY]
    if version != _VERSION:
        message = f"schema of version {version[:256]!r}, {_VERSION} is known: look for a newer release"
        raise StructureError(message, "ss-version")
    text = metadata[_SCHEMA_KEY]
    # Every node has this field: too many are refused before anything is made of them.
    if text.count('"data_type"') > max_nodes:
        raise StructureError(f"more than {max_nodes} nodes", "ss-nodes")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise StructureError(f"the schema is not valid JSON: {error}", "ss-json") from error
    except RecursionError as error:
        raise StructureError(f"nodes nested deeper than {_MAX_DEPTH} levels", "ss-depth") from error


def _read(reader: _Reader, schema: Any) -> Any:
    try:
        return reader.deserialize(schema)
    except RecursionError as error:
        raise StructureError("the data are nested more deeply than Python can follow", "ss-depth") from error


def _know_small_floats() -> None:
    """numpy has bfloat16 and 8-bit floats only once ml_dtypes was imported."""
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        pass


def load_file(
    path: str | os.PathLike[str],
    framework: str = "np",
    device: str | int = "cpu",
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    max_nodes: int = _MAX_NODES,
) -> Any:
    """Reads the data of a file. Nothing is imported by a name in it.

    Args:
        path: the file.
        framework: what arrays become: ``np``, ``pt``, ``tf``, ``jax``; those of `apr.safetensors.safe_open`.
        device: where they are put.
        plugins: a `DataProcessor` class, or a list of them, for types of one's own.
        dataclasses: dataclasses, enums and named tuples by their names in the file, beside those of
            `register`; others become ad-hoc dataclasses, named tuples and `Variant`.
        max_nodes: how many nodes the file may have.

    Raises:
        StructureError: if the file holds no schema, one of an unknown version, or one that is damaged.
        UnsupportedTypeError: if it holds a type that is neither known nor a plugin's.
        SafetensorError: if it is no sound safetensors file.
    """
    _know_small_floats()
    file = os.fspath(Path(path).expanduser())
    with safe_open(file, framework=framework, device=device) as opened:
        schema = _schema(opened.metadata(), max_nodes)
        names = opened.keys()
        tensors = _Tensors(names, opened.get_tensor)
        if _ADAPTERS.get(framework) == "numpy":
            return _read(_Reader(tensors, tensors, plugins, _classes(dataclasses), max_nodes), schema)
        # Bytes and numpy scalars are numpy's whatever the arrays are.
        with safe_open(file, framework="np") as arrays:
            reader = _Reader(
                tensors, _Tensors(names, arrays.get_tensor), plugins, _classes(dataclasses), max_nodes
            )
            return _read(reader, schema)


def load(
    data: bytes,
    framework: str = "np",
    device: str | int = "cpu",
    plugins: Any = None,
    *,
    dataclasses: Mapping[str, type] | None = None,
    max_nodes: int = _MAX_NODES,
) -> Any:
    """Reads the data of a file in memory; arguments and errors are those of `load_file`.

    ``device`` other than ``cpu`` is for torch alone.
    """
    if framework not in _ADAPTERS:
        raise ValueError(f"unknown framework {framework!r}: one of {', '.join(_ADAPTERS)}")
    _know_small_floats()
    # Sound or refused, before anything else is made of it.
    arrays = _numpy_files.load(data)
    header_len = int.from_bytes(data[:8], "little")
    schema = _schema(json.loads(data[8 : 8 + header_len]).get("__metadata__"), max_nodes)
    adapter = _ADAPTERS[framework]
    if adapter == "numpy":
        tensors = arrays
    else:
        tensors = import_module(f"apr.safetensors.{adapter}").load(data)
        if adapter == "torch" and device != "cpu":
            tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    return _read(_Reader(tensors, arrays, plugins, _classes(dataclasses), max_nodes), schema)
