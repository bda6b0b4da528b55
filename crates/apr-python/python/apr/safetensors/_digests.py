"""Digests of tensors: the format has no checksum of its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from .._native import SafetensorError
from ..files import open as open_files

__all__ = ["digests", "verify"]


def digests(path: str | os.PathLike[str], algorithm: str = "sha256", *, backend: str = "mmap") -> dict[str, str]:
    """The digest of each tensor's bytes, in hexadecimal, by name.

    They depend on the tensors alone: a file that was written again in another order, or split into shards, has the same. Types
    and shapes are not part of them.

    Args:
        path: a safetensors file, an index or a folder, or the URL of one of the first two, as for `apr.open`.
        algorithm: a name that `hashlib.new` knows.
        backend: as for `apr.safetensors.safe_open`.
    """
    found = {}
    with open_files(path, backend=backend) as model:
        for name in model:
            digest = hashlib.new(algorithm)
            digest.update(model.get_bytes(name))
            found[name] = digest.hexdigest()
    return found


def verify(
    path: str | os.PathLike[str], expected: Mapping[str, str], algorithm: str = "sha256", *, backend: str = "mmap"
) -> None:
    """Compares the digests of all tensors with those that `digests` gave earlier.

    Raises:
        SafetensorError: names every tensor that is missing, unexpected or different.
    """
    found = digests(path, algorithm, backend=backend)
    problems = [f"tensor {name} is missing" for name in expected if name not in found]
    problems += [f"tensor {name} was not expected" for name in found if name not in expected]
    problems += [
        f"tensor {name} has digest {found[name]}, expected {digest}"
        for name, digest in expected.items()
        if name in found and found[name] != digest.lower()
    ]
    if problems:
        raise SafetensorError(f"{os.fspath(path)} is not what was expected: {'; '.join(problems)}")
