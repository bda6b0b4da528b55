"""Refusals that are told in Python, as the native module tells its own."""

from __future__ import annotations

import os

from ._native import AprError


class MissingFile(FileNotFoundError):
    """A FileNotFoundError with errno, strerror and filename, and with the text of the official package."""

    def __str__(self) -> str:
        return f"{self.strerror}: {self.filename}"


def status(path: str | os.PathLike[str]) -> os.stat_result:
    """What the system knows of a file; one that does not exist is refused as everywhere."""
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        raise MissingFile(error.errno, error.strerror, os.fspath(path)) from None


def refused(
    code: str, text: str, *, offset: int | None = None, name: str | None = None, path: str | None = None
) -> AprError:
    """An error with the attributes that every `AprError` has."""
    error = AprError(text)
    error.code, error.offset, error.name, error.path = code, offset, name, path
    return error
