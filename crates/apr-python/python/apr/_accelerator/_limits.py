"""How much pinned memory and how many threads a load uses."""

from __future__ import annotations

import os
from typing import NamedTuple

BUFFER_LEN = 16 << 20
"""Length of a buffer. Its copy takes much longer than the Python code for it."""

PINNED_BYTES = 256 << 20
"""Pinned memory of a load by default."""

VARIABLE = "APR_PINNED_BYTES"
"""The environment variable that replaces this default."""

_LEAST = 8 << 10
_MOST_READERS = 16


class Limits(NamedTuple):
    """The most memory and threads of a load."""

    buffer_len: int
    n_buffers: int
    n_readers: int


def limits(pinned_bytes: int | None = None) -> Limits:
    """The limits for a number of bytes of pinned memory.

    Raises:
        ValueError: less than 8 KiB, or the environment variable is not a number.
    """
    if pinned_bytes is None:
        pinned_bytes = _of_environment()
    if pinned_bytes < _LEAST:
        raise ValueError(f"pinned_bytes is {pinned_bytes}: a load needs at least {_LEAST} bytes of pinned memory")
    # At least two buffers: one is filled while the other is copied. Torch rounds lengths of pinned memory up to a power of two.
    buffer_len = min(BUFFER_LEN, 1 << ((pinned_bytes // 2).bit_length() - 1))
    n_buffers = pinned_bytes // buffer_len
    return Limits(buffer_len, n_buffers, min(n_buffers, _processors(), _MOST_READERS))


def _of_environment() -> int:
    text = os.environ.get(VARIABLE)
    if not text:
        return PINNED_BYTES
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{VARIABLE} is {text!r}, not a number of bytes") from None


def _processors() -> int:
    """The number of processors that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
