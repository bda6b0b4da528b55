"""safetensors files: a drop-in for the package of that name, stricter with what it writes.

Frameworks have modules of their own: `apr.safetensors.numpy`, `.torch`, `.tensorflow`, `.flax` (also `.jax`), `.mlx`, `.paddle`,
each with `save`, `save_file`, `load` and `load_file`.
"""

from __future__ import annotations

from .._native import (
    SafetensorError,
    TensorSpec,
    Writer,
    __version__,
    _safe_open_handle as _safe_open_handle,
    deserialize,
    safe_open,
    serialize,
    serialize_file,
    set_metadata,
)
from ._digests import digests, verify

__all__ = [
    "SafetensorError",
    "TensorSpec",
    "Writer",
    "__version__",
    "deserialize",
    "digests",
    "safe_open",
    "serialize",
    "serialize_file",
    "set_metadata",
    "verify",
]
