"""The schema as text: the metadata of a file."""

from __future__ import annotations

import collections
import json
from collections.abc import Mapping
from typing import Any

from ._types import StructureError
from ._walk import MAX_DEPTH

SCHEMA_KEY = "_safestructures_schema_"
VERSION_KEY = "_safestructures_schema_version_"
VERSION = "1.0.0"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        counts = collections.Counter(name for name, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise StructureError(f"two fields {twice[:256]!r} in one object of the schema", "ss-duplicate")
    return fields


def _no_constant(name: str) -> Any:
    raise StructureError(f"the schema is not valid JSON: it holds {name}", "ss-json")


def schema_of(metadata: Mapping[str, str] | None, max_nodes: int) -> Any:
    """The schema in the metadata of a file, as JSON values."""
    if not metadata or SCHEMA_KEY not in metadata:
        message = (
            "no schema in the metadata: a safetensors file, not a structure; read it with apr.safetensors"
        )
        raise StructureError(message, "ss-no-schema")
    if VERSION_KEY not in metadata:
        raise StructureError("no version of the schema in the metadata", "ss-no-version")
    version = metadata[VERSION_KEY]
    if version != VERSION:
        message = f"schema of version {version[:256]!r}, {VERSION} is known: look for a newer release"
        raise StructureError(message, "ss-version")
    text = metadata[SCHEMA_KEY]
    # Every node has this field: too many are refused before anything is made of them.
    if text.count('"data_type"') > max_nodes:
        raise StructureError(f"more than {max_nodes} nodes", "ss-nodes")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except StructureError:
        raise
    except ValueError as error:
        raise StructureError(f"the schema is not valid JSON: {error}", "ss-json") from error
    except RecursionError as error:
        raise StructureError(f"nodes nested deeper than {MAX_DEPTH} levels", "ss-depth") from error
