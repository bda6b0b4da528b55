"""The nodes of a schema, and the arrays beside it, to values."""

from __future__ import annotations

import collections
import dataclasses
import enum
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ._registry import is_row
from ._types import UnsupportedTypeError, Variant
from ._walk import DATACLASS, FACTORIES, TENSOR_TYPES, Walk

# Making a class runs the compiler: a file may ask for so many.
_MAX_CLASSES = 1_000
_LISTS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "apr:frozenset": frozenset}
_DICTS: dict[str, type] = {
    "dict": dict,
    "apr:OrderedDict": collections.OrderedDict,
    "apr:Counter": collections.Counter,
}
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FLOAT = re.compile(r"[+-]?(?:nan|inf|infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE)


class Tensors(Mapping[str, Any]):
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


class Reader(Walk):
    """Makes values of nodes; what plugins know as their serializer."""

    def __init__(
        self,
        tensors: Mapping[str, Any],
        arrays: Mapping[str, Any],
        classes: Mapping[str, type],
        max_nodes: int,
    ) -> None:
        super().__init__(max_nodes)
        self.tensors = tensors
        self.arrays = arrays
        self.classes = classes
        self._made: dict[tuple[Any, ...], type] = {}
        self.plugins: dict[str, Any] = {}

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
        plugin = self.plugins.get(name)
        if plugin is not None:
            return plugin.deserialize(value, **fields)
        if name in TENSOR_TYPES:
            result = self.tensor(self.tensors_of(name), value)
        elif name in READERS:
            result = READERS[name](self, value, fields)
        else:
            message = (
                f"unknown data type {name[:256]!r}: nothing is imported by it; give the plugin that wrote it"
            )
            raise self.error(message, "ss-data-type", UnsupportedTypeError)
        for field in fields:
            raise self.error(f"node with an unknown field {field[:256]!r}", "ss-field-unknown")
        return result

    def tensors_of(self, data_type: str) -> Mapping[str, Any]:
        """The tensors of the file, as what a node of this type becomes."""
        return self.tensors

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
            with self._item(idx):
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
            # The class of an object is not for a file to change. Python takes names that normalize to the same for one.
            bad = next(
                (
                    field
                    for field in fields
                    if field.startswith("__") or not field.isidentifier() or unicodedata.normalize("NFKC", field) != field
                ),
                None,
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


def _read_none(reader: Reader, value: Any, _: dict[str, Any]) -> None:
    if value is not None:
        raise reader.error("wrong kind of value in the schema: null expected", "ss-type")


def _read_bool(reader: Reader, value: Any, _: dict[str, Any]) -> bool:
    return reader.typed(value, bool, "true or false")


def _read_str(reader: Reader, value: Any, _: dict[str, Any]) -> str:
    return reader.typed(value, str, "a string")


def _number(reader: Reader, value: Any, cls: type, sound: bool, expected: str) -> Any:
    try:
        if sound:
            return cls(value)
    except ValueError:
        pass
    raise reader.error(f"{expected} expected", "ss-number")


def _read_int(reader: Reader, value: Any, _: dict[str, Any]) -> int:
    sound = _INTEGER.fullmatch(_read_str(reader, value, _)) is not None
    return _number(reader, value, int, sound, "the text of an integer that Python can read")


def _read_float(reader: Reader, value: Any, _: dict[str, Any]) -> float:
    sound = _FLOAT.fullmatch(_read_str(reader, value, _)) is not None
    return _number(reader, value, float, sound, "the text of a float")


def _read_complex(reader: Reader, value: Any, _: dict[str, Any]) -> complex:
    # `complex` knows spellings beyond those of `str`: white space, underscores, a lone j.
    sound = re.fullmatch(r"[0-9a-z.()+-]+", _read_str(reader, value, _), re.IGNORECASE | re.ASCII) is not None
    sound = sound and re.search(r"(?:^|[(+-])j", value) is None
    return _number(reader, value, complex, sound, "the text of a complex number")


def _read_list(cls: type) -> Callable[[Reader, Any, dict[str, Any]], Any]:
    def read(reader: Reader, value: Any, _: dict[str, Any]) -> Any:
        items = reader.items(value)
        try:
            result = cls(items)
        except TypeError as error:
            raise reader.error(f"an element that no {cls.__name__} can hold: {error}", "ss-type") from error
        if len(result) != len(items):
            raise reader.error(f"two equal elements in a {cls.__name__}", "ss-duplicate")
        return result

    return read


def _read_dict(cls: type) -> Callable[[Reader, Any, dict[str, Any]], Any]:
    return lambda reader, value, fields: cls(reader.entries(value, fields))


def _read_defaultdict(reader: Reader, value: Any, fields: dict[str, Any]) -> Any:
    name = reader.take(fields, "factory")
    if name is not None and reader.typed(name, str, "a string or null") not in FACTORIES:
        raise reader.error(
            f"unknown factory {name[:256]!r} of a defaultdict", "ss-data-type", UnsupportedTypeError
        )
    return collections.defaultdict(FACTORIES[name] if name else None, reader.entries(value, fields))


def _read_deque(reader: Reader, value: Any, fields: dict[str, Any]) -> Any:
    maxlen = reader.take(fields, "maxlen")
    if maxlen is not None:
        maxlen = _read_int(reader, maxlen, fields)
        if not 0 <= maxlen <= sys.maxsize:
            raise reader.error("the text of a length expected", "ss-number")
    items = reader.items(value)
    if maxlen is not None and len(items) > maxlen:
        raise reader.error(f"a deque of {len(items)} elements, at most {maxlen} allowed", "ss-type")
    return collections.deque(items, maxlen)


_ABSENT = object()


def _needs_more(cls: Any) -> bool:
    """Whether objects of a dataclass are made of more than fields: of an `InitVar` without a default."""
    fields = {field.name for field in dataclasses.fields(cls)}
    others = (field for name, field in cls.__dataclass_fields__.items() if name not in fields)
    return any(field._field_type is dataclasses._FIELD_INITVAR and field.default is dataclasses.MISSING for field in others)  # type: ignore[attr-defined]


def _read_dataclass(reader: Reader, value: Any, fields: dict[str, Any]) -> Any:
    name = reader.typed(fields.pop("name"), str, "a string") if "name" in fields else ""
    values = reader.fields(value)
    cls = reader.registered(name, dataclasses.is_dataclass, "dataclass") if name else None
    if cls is None:
        shown = name if name.isidentifier() else DATACLASS
        make = lambda: dataclasses.make_dataclass(shown, list(values))  # noqa: E731
        return reader.made("dataclass", name, values, make)(**values)
    known = {field.name: field for field in dataclasses.fields(cls)}
    for field in values.keys() - known.keys():
        raise reader.error(f"{cls} has no field {field[:256]!r}", "ss-field-unknown")
    try:
        if _needs_more(cls) and values.keys() == known.keys():
            # What it was made of is no field, and not known.
            result = cls.__new__(cls)
        else:
            result = cls(**{field: value for field, value in values.items() if known[field].init})
    except (TypeError, ValueError) as error:
        raise reader.error(f"{cls} refuses its fields: {error}", "ss-custom") from error
    # What `__post_init__` has changed when the object was made is not to be changed again.
    for field, value in values.items():
        if getattr(result, field, _ABSENT) is not value:
            object.__setattr__(result, field, value)
    return result


def _read_row(reader: Reader, value: Any, fields: dict[str, Any]) -> Any:
    name = reader.typed(reader.take(fields, "name"), str, "a string")
    values = reader.fields(value)
    cls = reader.registered(name, is_row, "named tuple")
    if cls is None:
        shown = name if name.isidentifier() else "Row"
        cls = reader.made("named tuple", name, values, lambda: collections.namedtuple(shown, list(values)))
    fields_known = cls._fields
    values = {**{name: value for name, value in getattr(cls, "_field_defaults", {}).items() if name not in values}, **values}
    if values.keys() != set(fields_known):
        differ = ", ".join(map(repr, sorted(values.keys() ^ set(fields_known))))
        raise reader.error(f"{cls} refuses its fields: {differ[:256]} in one of file and class", "ss-custom")
    # Without its `__new__`, which may change what it is given.
    return tuple.__new__(cls, [values[name] for name in fields_known])


def _read_enum(reader: Reader, value: Any, fields: dict[str, Any]) -> Any:
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


def _read_bytes(reader: Reader, value: Any, _: dict[str, Any]) -> bytes:
    array = reader.tensor(reader.arrays, value)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise reader.error(
            "tensor of another type or shape: `U8` of one dimension expected", "ss-tensor-shape"
        )
    return array.tobytes()


def _read_scalar(reader: Reader, value: Any, _: dict[str, Any]) -> np.generic:
    array = reader.tensor(reader.arrays, value)
    if array.ndim != 0:
        raise reader.error("tensor of another type or shape: no dimensions expected", "ss-tensor-shape")
    return array[()]


READERS: dict[str, Callable[[Reader, Any, dict[str, Any]], Any]] = {
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
    DATACLASS: _read_dataclass,
    "apr:namedtuple": _read_row,
    "apr:enum": _read_enum,
    "apr:bytes": _read_bytes,
    "apr:scalar": _read_scalar,
}
