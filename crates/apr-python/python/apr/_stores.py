"""Files of objects that read ranges: file systems of fsspec, stores of obstore.

The native module calls `read` for a range and then `is_same`, which is false if the file was replaced since it was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ._refusals import refused

# What file systems say about the version of a file, whatever they call it.
_VERSION = ("ETag", "etag", "e_tag", "mtime", "LastModified", "last_modified", "modified", "created", "generation", "VersionId", "version_id")


class RangeReader(Protocol):
    """What the native module uses."""

    path: str
    size: int

    def read(self, start: int, end: int) -> Any:
        """The bytes from `start` to `end`, as an object with the buffer protocol."""

    def is_same(self) -> bool:
        """Whether what was read is of the version that was opened."""

    def beside(self, name: str) -> RangeReader:
        """Another file in the folder of this one."""


class _Fsspec:
    """A file of a file system of fsspec, which promises nothing about its version: `info` is compared after each read."""

    def __init__(self, fs: Any, path: str) -> None:
        self.fs, self.path = fs, path
        info = self._info()
        if info.get("type") == "directory":
            raise IsADirectoryError(f"not a file: {path}")
        size = info.get("size")
        if size is None:
            raise refused("rm-no-ranges", f"{path}: the file system does not know the length of the file (rm-no-ranges)", path=path)
        self.size = int(size)
        self._version = self._version_in(info)

    def _info(self) -> Mapping[str, Any]:
        info: Mapping[str, Any] = self.fs.info(self.path)
        return info

    @staticmethod
    def _version_in(info: Mapping[str, Any]) -> tuple[Any, ...]:
        return (info.get("size"), *(info.get(key) for key in _VERSION))

    def read(self, start: int, end: int) -> Any:
        return self.fs.cat_file(self.path, start=start, end=end)

    def is_same(self) -> bool:
        return self._version_in(self._info()) == self._version

    def beside(self, name: str) -> _Fsspec:
        return _Fsspec(self.fs, _beside(self.path, name))


class _Obstore:
    """A file of a store of obstore. With an ETag, requests are for that version alone; else `head` is compared after each read."""

    def __init__(self, store: Any, path: str) -> None:
        self.store, self.path = store, path
        meta = self._head()
        self.size = int(meta["size"])
        self._version = self._version_in(meta)
        tag = meta.get("e_tag")
        self._tag = tag if tag and not tag.startswith("W/") and hasattr(store, "get") else None

    def _head(self) -> Mapping[str, Any]:
        if hasattr(self.store, "head"):
            found: Mapping[str, Any] = self.store.head(self.path)
            return found
        import obstore

        return obstore.head(self.store, self.path)

    @staticmethod
    def _version_in(meta: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(meta.get(key) for key in ("size", "e_tag", "version", "last_modified"))

    def read(self, start: int, end: int) -> Any:
        if self._tag is not None:
            try:
                return self.store.get(self.path, options={"range": (start, end), "if_match": self._tag}).bytes()
            except Exception as error:
                if type(error).__name__ != "PreconditionError":
                    raise
                text = f"{self.path}: the file changed while it was read (rm-changed)"
                raise refused("rm-changed", text, path=self.path) from error
        if hasattr(self.store, "get_range"):
            return self.store.get_range(self.path, start=start, end=end)
        import obstore

        return obstore.get_range(self.store, self.path, start=start, end=end)

    def is_same(self) -> bool:
        return self._tag is not None or self._version_in(self._head()) == self._version

    def beside(self, name: str) -> _Obstore:
        return _Obstore(self.store, _beside(self.path, name))


def _beside(path: str, name: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}{name}"


def opened(fs: Any, path: str) -> RangeReader:
    """A file of `fs`.

    Raises:
        TypeError: `fs` is of no kind that is known.
        Exception: whatever `fs` raises, for example FileNotFoundError.
    """
    if hasattr(fs, "cat_file") and hasattr(fs, "info"):
        return _Fsspec(fs, path)
    is_store = type(fs).__module__.partition(".")[0] == "obstore"
    if is_store or hasattr(fs, "get_range") and hasattr(fs, "head"):
        return _Obstore(fs, path)
    raise TypeError(f"fs is a file system of fsspec or a store of obstore, not {type(fs).__name__}")
