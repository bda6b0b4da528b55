"""Classes by their names in files: those registered, and those handed over for one call."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

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
        and (dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum) or is_row(cls))
    ):
        raise TypeError(f"{cls!r} is no class of dataclasses, enum members or named tuples")


def is_row(cls: type) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def known_classes(given: Mapping[str, type] | None) -> dict[str, type]:
    classes = dict(_registered)
    for name, cls in (given or {}).items():
        _check_class(cls)
        classes[name] = cls
    return classes


def type_name(cls: type) -> str:
    """The name by which files know the type of a plugin."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
