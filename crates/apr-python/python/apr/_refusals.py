"""Refusals that are told in Python, as the native module tells its own."""

from __future__ import annotations

from ._native import AprError


def refused(
    code: str, text: str, *, offset: int | None = None, name: str | None = None, path: str | None = None
) -> AprError:
    """An error with the attributes that every `AprError` has."""
    error = AprError(text)
    error.code, error.offset, error.name, error.path = code, offset, name, path
    return error
