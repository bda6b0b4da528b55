"""Models in one file of any format, or in several safetensors files with an index."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ._frameworks import loader
from ._native import ModelTensors, RangeFile, SafetensorError, device_of, format_of_file, range_file, safe_open, shards
from ._tables import table

__all__ = ["ModelFiles", "open"]


class ModelFiles(Mapping[str, Any]):
    """The tensors of a model by name, whichever of its files they are in. Files are opened when they are needed.

    A mapping and a context manager: `model["lm_head.weight"]`, `for name in model`, `model.get_slice(name)[:10]`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        framework: str = "np",
        device: Any = "cpu",
        *,
        backend: str = "mmap",
        writable: bool = False,
        check: bool = True,
        object: str = "",
        exclude: Iterable[str] = (),
        void_as_bf16: bool = False,
        fs: Any = None,
        allow_http: bool = False,
    ) -> None:
        device = device_of(framework, device)
        self._options: dict[str, Any] = {
            "framework": framework,
            "device": device,
            "backend": backend,
            "writable": writable,
        }
        self._opened: dict[Path | str, safe_open | ModelTensors] = {}
        self._closed = False
        exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        # Of a path of this machine there is none.
        self._elsewhere: RangeFile | None = range_file(path, fs, allow_http)
        self._shard_names: dict[Path | str, str] = {}
        found = format_of_file(path) if self._elsewhere is None else self._elsewhere.format
        self.format: str = found or "safetensors"
        self.path: Path | str = Path(path) if self._elsewhere is None else self._elsewhere.name
        files: Mapping[str, Path | str] | None = None
        if self.format == "safetensors":
            if object:
                raise ValueError("a safetensors file has no nested objects: leave object= out")
            if self._elsewhere is not None:
                files = self._shards_elsewhere(self._elsewhere, check)
            elif found is None:
                self.path, files = shards(path, check=check)
        else:
            self._opened[self.path] = ModelTensors(
                self._elsewhere or path, framework, device, object=object, exclude=exclude, void_as_bf16=void_as_bf16
            )
        self._files: dict[str, Path | str] = (
            dict(files) if files is not None else dict.fromkeys(self._file(self.path), self.path)
        )
        if exclude:
            left_out = re.compile("|".join(map(_pattern, exclude)), re.DOTALL).fullmatch
            self._files = {name: file for name, file in self._files.items() if not left_out(name)}

    def _shards_elsewhere(self, file: RangeFile, check: bool) -> dict[str, Path | str] | None:
        """The file of each tensor, by an index that is not on this machine."""
        shards = file.shards(check)
        folder, slash, _ = file.name.rpartition("/")
        files: dict[str, Path | str] = {tensor: f"{folder}{slash}{shard}" for tensor, shard in (shards or {}).items()}
        self._shard_names = {files[tensor]: shard for tensor, shard in (shards or {}).items()}
        return files if shards is not None else None

    def _file(self, path: Path | str) -> safe_open | ModelTensors:
        if self._closed:
            raise SafetensorError("File is closed")
        if path not in self._opened:
            self._opened[path] = safe_open(self._at(path), **self._options)
        return self._opened[path]

    def _at(self, path: Path | str) -> Path | str | RangeFile:
        """What opens the file of this path."""
        if self._elsewhere is None:
            return path
        shard = self._shard_names.get(path)
        return self._elsewhere if shard is None else self._elsewhere.beside(shard)

    def _holder(self, name: str) -> safe_open | ModelTensors:
        try:
            return self._file(self._files[name])
        except KeyError:
            raise SafetensorError(f"{self.path} and its shards do not contain tensor {name}") from None

    @property
    def shards(self) -> list[Path | str]:
        """The files, sorted by name: paths of this machine, or URLs without queries."""
        return sorted(set(self._files.values()), key=str)

    def file_of(self, name: str) -> Path | str:
        """The file that holds a tensor."""
        self._holder(name)
        return self._files[name]

    def get_tensor(self, name: str) -> Any:
        """The whole tensor. Raises SafetensorError if there is none of this name."""
        return self._holder(name).get_tensor(name)

    def get_bytes(self, name: str) -> memoryview:
        """The bytes of a tensor as the file has them."""
        return self._holder(name).get_bytes(name)

    def get_slice(self, name: str) -> Any:
        """A tensor that is read when it is indexed, and only the part that is asked for."""
        return self._holder(name).get_slice(name)

    def _groups(self) -> list[tuple[Any, list[str]]]:
        """The open files, sorted by name, each with the names of its tensors."""
        names: dict[Path | str, list[str]] = {path: [] for path in self.shards}
        for name, path in self._files.items():
            names[path].append(name)
        return [(self._file(path), found) for path, found in names.items()]

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name. Those with several names share their memory, in files of formats that say so."""
        opened = self._opened.get(self.path)
        if isinstance(opened, ModelTensors):
            return opened.get_tensors(list(self._files))
        if loader(self._options["framework"], self._options["device"]) is not None:
            from . import _accelerator

            found = dict(_accelerator.iterate(self._groups(), self._options["device"]))
            return {name: found[name] for name in self._files}
        return {name: self.get_tensor(name) for name in self._files}

    def info(self, name: str | None = None) -> dict[str, Any]:
        """What the headers say of a tensor, or of all of them by name: dtype, shape, data_offsets, nbytes. Of formats other than
        safetensors there is "alias_of" in place of "data_offsets", if a name that comes before stands for the same elements."""
        if name is not None:
            return self._holder(name).info(name)
        return {name: self._holder(name).info(name) for name in self._files}

    def metadata(self, name: str | None = None) -> dict[str, Any] | None:
        """The texts in the header of the file that holds a tensor; without a name, those of all files that do not contradict
        each other. Of formats other than safetensors, what `apr.inspect` gives."""
        if name is not None:
            return self._holder(name).metadata()
        opened = self._opened.get(self.path)
        if isinstance(opened, ModelTensors):
            return opened.metadata()
        texts = [self._file(path).metadata() or {} for path in self.shards]
        common = {key: value for text in texts for key, value in text.items()}
        kept = {key: value for key, value in common.items() if all(text.get(key, value) == value for text in texts)}
        return kept or None

    def close(self) -> None:
        """Ends the use of this object; tensors and slices that it gave stay."""
        self._closed = True
        self._opened.clear()

    def __getitem__(self, name: str) -> Any:
        path = self._files[name]  # Raises KeyError.
        opened = self._opened.get(path)
        if opened is None:
            opened = self._file(path)
        return opened.get_tensor(name)

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __enter__(self) -> ModelFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ModelFiles {os.fspath(self.path)!r}: {len(self)} tensors in {len(self.shards)} files>"

    def _repr_html_(self) -> str:
        def row(name: str) -> tuple[Any, ...]:
            info = self.info(name)
            return name, info["dtype"], tuple(info["shape"]), info["nbytes"]

        # Without its files, there are names alone.
        columns = ("name",) if self._closed else ("name", "dtype", "shape", "bytes")
        rows = ((name,) if self._closed else row(name) for name in self)
        return table(repr(self), columns, rows, len(self))


def open(
    path: str | os.PathLike[str],
    framework: str = "np",
    device: Any = "cpu",
    *,
    backend: str = "mmap",
    writable: bool = False,
    check: bool = True,
    object: str = "",
    exclude: Iterable[str] = (),
    void_as_bf16: bool = False,
    fs: Any = None,
    allow_http: bool = False,
) -> ModelFiles:
    """Opens a model by the path or URL of a file or of an index (`*.index.json`), or by the path of the folder that holds either.

    Files of PyTorch, NumPy, ONNX, HDF5, Keras, TensorFlow Lite, TensorFlow, Flax and Paddle, `.apr` and GGUF files are opened by
    their content, whatever their name, and nothing in them is run. Their tensors are read when they are asked for, into memory of
    their own: `backend` and `writable` are for safetensors.

    Of a URL, headers are read now, and a tensor when it is asked for, into memory of its own; nothing is kept on disk, unless
    APR_BLOCK_CACHE asks for it. Every byte is of the version that was opened, else there is an error. Files of hf:// that the
    hub's own programs have downloaded are read from their cache. HF_TOKEN, HF_HUB_OFFLINE, HF_HUB_CACHE, HF_ENDPOINT, SSL_CERT_FILE
    and the variables of proxies are used as by the program `apr`.

    Args:
        path: where it is. A folder has one index, or none and a `model.safetensors`. URLs are "https://HOST/PATH",
            "hf://ORG/NAME[@REVISION]/PATH" for a file of the Hugging Face hub, and "hf://ORG/NAME[@REVISION]" for the model of a
            repository.
        framework, device, backend, writable: as for `apr.safetensors.safe_open`.
        check: open every shard now and compare it with the index.
        object: the nested object to read, by its keys: "model", "state_dict.ema".
        exclude: names of tensors to leave out; `*` is any text, `?` one character.
        void_as_bf16: read two-byte elements without a type, which NumPy and MLX write for bfloat16, as such.
        fs: a file system of fsspec or a store of obstore, of which `path` is a path: the file or index is read through it.
        allow_http: read http:// URLs of other hosts than this machine.

    Raises:
        SafetensorError: a header or the index is not sound, a shard path leaves the folder, or index and shards disagree; the
            text lists every disagreement.
        AprError: a file of another format is not sound or names what no tensor needs; and when it is asked for, a tensor that
            arrays do not have, with its `name`: `get_bytes` gives the bytes of types of fewer than 8 bits and of blocks.
            For a URL also "rm-not-found", "rm-denied", "rm-changed", "rm-gave-up" and the other codes of `docs/remote.md`.
        OSError: something cannot be read.
        Exception: whatever `fs` raises.
    """
    return ModelFiles(
        path,
        framework,
        device,
        backend=backend,
        writable=writable,
        check=check,
        object=object,
        exclude=exclude,
        void_as_bf16=void_as_bf16,
        fs=fs,
        allow_http=allow_http,
    )


def _pattern(glob: str) -> str:
    """A pattern of names as a regular expression."""
    return "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in glob)
