"""Plugins: processors of types of the caller's own."""

from __future__ import annotations

from typing import Any

from ._read import READERS
from ._registry import type_name
from ._walk import TENSOR_TYPES
from ._write import WRITERS


def plugins_of(given: Any, context: Any) -> tuple[dict[type, tuple[str, Any]], dict[str, Any]]:
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
        name = name if isinstance(name, str) else type_name(cls)
        taken = name in READERS or name in TENSOR_TYPES or name.startswith("apr:") or cls in WRITERS
        if taken or cls in by_type or name in by_name:
            raise ValueError(f"there is a processor for {name!r} already: leave {plugin!r} out")
        by_type[cls] = (name, plugin(context) if isinstance(plugin, type) else plugin)
        by_name[name] = by_type[cls][1]
    return by_type, by_name
