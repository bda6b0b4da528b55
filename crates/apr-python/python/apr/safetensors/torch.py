"""Tensors and modules of PyTorch in safetensors files.

A file holds each tensor once and by value, so tensors that share memory are refused by [`save`] and
[`save_file`]; [`save_model`] and [`load_model`] store one of each group and tie the others to it again.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch

from .. import files
from .._frameworks import converter, swapped, torch_dtypes
from .._native import SealedFile, device_of
from . import TensorSpec, deserialize, safe_open, serialize, serialize_file

_TYPES: dict[str, torch.dtype] = torch_dtypes()
"""The element types of the format as torch's, as far as this version of torch has them."""

_SIZE: dict[torch.dtype, int] = {dtype: dtype.itemsize for dtype in _TYPES.values()}
"""Bytes of an element. One of the 4-bit floats is a pair of them."""

_CODES: dict[torch.dtype, str] = {dtype: code for code, dtype in _TYPES.items()}
"""The format's names of torch's element types."""

_SOMEWHERE = torch.empty(1, dtype=torch.uint8, device="cpu")


def save(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The tensors as the bytes of a file.

    Args:
        tensors: names and dense, contiguous tensors of any shape, on any device, no two of which share
            memory.
        metadata: text to keep in the header. It has no meaning for the tensors.

    Raises:
        ValueError: not a dictionary of tensors, or a tensor is sparse or not contiguous.
        RuntimeError: tensors share memory, or one has no data (device `meta`).
        SafetensorError: an element type that the format does not have.
    """
    keep_alive: list[Any] = []
    return bytes(serialize(_flatten_as_ptr(tensors, keep_alive), metadata=metadata))


def save_file(
    tensors: dict[str, torch.Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes the tensors into `filename`. A file that was there is replaced in one step.

    Other threads must not change the tensors meanwhile: the file would hold some of the changes.

    Args:
        tensors: as for [`save`].
        filename: where to write.
        metadata: as for [`save`].

    Raises:
        ValueError, RuntimeError: as for [`save`].
        SafetensorError: as for [`save`], or the file cannot be written.
    """
    keep_alive: list[Any] = []
    serialize_file(_flatten_as_ptr(tensors, keep_alive), filename, metadata=metadata)


def load(data: Any) -> dict[str, torch.Tensor]:
    """The tensors in the bytes of a file, on the CPU: `bytes`, `bytearray`, `memoryview`, `mmap` or the like.

    The tensors have memory of their own: writing to them does not change `data`.

    Raises:
        SafetensorError: the bytes are not a valid file, or torch does not have an element type.
    """
    return _view2torch(deserialize(data))


def load_file(
    filename: str | os.PathLike[str] | SealedFile,
    device: str | int | torch.device = "cpu",
    *,
    backend: str = "mmap",
    pinned_bytes: int | None = None,
) -> dict[str, torch.Tensor]:
    """The tensors of a file, of a set of shards, or of a sealed file, in file order; shards in the order of their names.

    Into the memory of a GPU (`"cuda"`), they are copied from pinned memory while threads read further ones. See `docs/accelerator.md`.

    Args:
        filename: what to read: the path or URL of a file or of an index (`*.index.json`), a folder with an index, or what `apr.open_sealed` returned.
        device: where the tensors shall be, in torch's words.
        backend: how, on the CPU: `"mmap"` maps the file, `"pread"` reads tensor by tensor.
        pinned_bytes: the most pinned memory to use; without it, what the variable `APR_PINNED_BYTES` says, or 256 MiB.

    Raises:
        FileNotFoundError: there is no such file.
        SafetensorError: as for [`load`], or the device is not known.
        AprError: a URL cannot be read, or a sealed file was modified.
        ValueError: less than 8 KiB of pinned memory.
    """
    if not _is_set(filename) and not isinstance(filename, SealedFile) and pinned_bytes is None:
        with safe_open(filename, framework="pt", device=device, backend=backend) as f:
            return f.get_tensors()
    return dict(iter_file(filename, device, backend=backend, pinned_bytes=pinned_bytes))


def iter_file(
    filename: str | os.PathLike[str] | SealedFile,
    device: str | int | torch.device = "cpu",
    *,
    backend: str = "mmap",
    pinned_bytes: int | None = None,
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the names and tensors of [`load_file`], each as soon as it is complete, in the same order.

    The iterator keeps no tensor that it has yielded, except those of files of other formats than safetensors, which may share memory.

    Args:
        filename, device, backend, pinned_bytes: as for [`load_file`].

    Raises:
        Exception: as for [`load_file`], after the tensors before the error.
    """
    from .. import _accelerator

    device = device_of("pt", device)
    is_pipelined = _accelerator.loader(device) is not None
    if isinstance(filename, SealedFile):
        if is_pipelined:
            yield from _accelerator.iterate([(filename, None)], device, pinned_bytes)
        else:
            yield from _accelerator.in_memory(filename, device)
        return
    opened = files.open if _is_set(filename) else safe_open
    with opened(filename, "pt", device, backend=backend) as file:
        is_other = isinstance(file, files.ModelFiles) and file.format != "safetensors"
        if is_other:
            yield from file.get_tensors().items()
            return
        groups = file._groups() if isinstance(file, files.ModelFiles) else [(file, None)]
        if is_pipelined:
            yield from _accelerator.iterate(groups, device, pinned_bytes)
        else:
            found = [(source, place.name) for source, names in groups for place in _accelerator.chosen(source, names)]
            for source, name in found:
                yield name, source.get_tensor(name)


def _is_set(filename: Any) -> bool:
    """Whether this is the path or URL of an index, or a folder."""
    if isinstance(filename, SealedFile):
        return False
    text = os.fspath(filename)
    if isinstance(text, str) and "://" in text:
        text = text.partition("?")[0]
    return str(text).endswith(".index.json") or os.path.isdir(text)


def save_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Writes the parameters and buffers of a module.

    Of tensors that share memory, the file holds one: the first by name of those that cover all of the
    memory. Each name left out becomes an entry of the metadata with the name kept as its value, unless
    `metadata` has such an entry.

    Args:
        model: what to save.
        filename: where to write.
        metadata: text to keep in the header; the dictionary is not changed.
        force_contiguous: whether tensors that are not contiguous are copied into order; they are refused
            otherwise.

    Raises:
        RuntimeError: tensors share memory and none of them covers all of it.
        ValueError, SafetensorError: as for [`save_file`].
    """
    state_dict = dict(model.state_dict())
    notes = None if metadata is None else dict(metadata)
    for kept, dropped in _remove_duplicate_names(state_dict).items():
        for name in dropped:
            notes = {} if notes is None else notes
            notes.setdefault(name, kept)
            del state_dict[name]
    if force_contiguous:
        for name, value in state_dict.items():
            state_dict[name] = value.contiguous() if isinstance(value, torch.Tensor) else value
    try:
        save_file(state_dict, filename, metadata=notes)
    except ValueError as error:
        hint = " Or use save_model(..., force_contiguous=True), read the docs for potential caveats."
        raise ValueError(f"{error}{hint}") from error


def load_model(
    model: torch.nn.Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int | torch.device = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[Collection[str], Collection[str]]:
    """Reads a file into a module, whose tensors that share memory may be in the file under any of their
    names.

    Args:
        model: what to fill.
        filename: what to read.
        strict: whether names that are only in the module, or only in the file, are an error.
        device: where the tensors are read to before they are copied into the module.
        backend: as for [`load_file`].

    Returns:
        The names of the module that the file did not fill, and the names of the file that the module does
        not have.

    Raises:
        RuntimeError: names do not match and `strict` is set, or a shape differs.
        FileNotFoundError, SafetensorError: as for [`load_file`].
    """
    state_dict = load_file(filename, device=device, backend=backend)
    groups = _remove_duplicate_names(model.state_dict(), preferred_names=list(state_dict))
    result = model.load_state_dict(state_dict, strict=False)
    missing, unexpected = set(result.missing_keys), list(result.unexpected_keys)
    for name in (name for dropped in groups.values() for name in dropped):
        # A tied name is filled through the name that was kept; were it in the file too, the two would
        # compete.
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        text = f"Error(s) in loading state_dict for {model.__class__.__name__}:"
        for label, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                listed = ", ".join(f'"{name}"' for name in sorted(names))
                text += f"\n    {label} key(s) in state_dict: {listed}"
        raise RuntimeError(text)
    return missing, unexpected


def storage_ptr(tensor: torch.Tensor) -> int:
    """Address of the memory that a tensor is part of; 0 if there is none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def storage_size(tensor: torch.Tensor) -> int:
    """Length in bytes of the memory that a tensor is part of."""
    try:
        return tensor.untyped_storage().nbytes()
    except NotImplementedError:
        return tensor.nelement() * tensor.element_size()


def _end_ptr(tensor: torch.Tensor) -> int:
    """Address after the last byte of any element, for any strides; those of torch are never negative."""
    if not tensor.nelement():
        return tensor.data_ptr()
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((dim - 1) * stride for dim, stride in steps)
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _is_complete(tensor: torch.Tensor) -> bool:
    """Whether a tensor is all of the memory that it is part of."""
    starts = tensor.data_ptr() == storage_ptr(tensor)
    return starts and tensor.nelement() * tensor.element_size() == storage_size(tensor)


def _filter_shared_not_shared(
    tensors: Iterable[set[str]], state_dict: dict[str, torch.Tensor]
) -> list[set[str]]:
    """Splits groups that share a storage into groups whose bytes overlap."""
    groups: list[set[str]] = []
    for shared in tensors:
        if len(shared) < 2:
            groups.append(shared)
            continue
        areas = sorted((state_dict[name].data_ptr(), _end_ptr(state_dict[name]), name) for name in shared)
        # The furthest end so far, not that of the neighbour: a long area may span several short ones.
        furthest = None
        for start, stop, name in areas:
            if furthest is None or start >= furthest:
                groups.append({name})
                furthest = stop
            else:
                groups[-1].add(name)
                furthest = max(furthest, stop)
    return groups


def _find_shared_tensors(state_dict: dict[str, torch.Tensor]) -> list[set[str]]:
    """The names, in groups whose tensors overlap in memory; a tensor for itself is a group of one.

    Tensors without memory are in no group.
    """
    storages: dict[tuple[torch.device, int, int], set[str]] = defaultdict(set)
    meta = torch.device("meta")
    for name, tensor in state_dict.items():
        if tensor.device == meta:
            continue
        address, size = storage_ptr(tensor), storage_size(tensor)
        if address and size:
            # Two devices may use the same address.
            storages[tensor.device, address, size].add(name)
    return _filter_shared_not_shared(storages.values(), state_dict)


def _remove_duplicate_names(
    state_dict: dict[str, torch.Tensor],
    *,
    preferred_names: list[str] | None = None,
    discard_names: list[str] | None = None,
) -> dict[str, list[str]]:
    """For each group of overlapping tensors the name to keep, with the names to leave out.

    Kept is the first in the alphabet of the names that cover all of the memory: of those in
    `preferred_names` if any are, or else of those not in `discard_names` if any are.

    Raises:
        RuntimeError: no tensor of a group covers all of the memory.
    """
    to_remove: dict[str, list[str]] = defaultdict(list)
    for shared in _find_shared_tensors(state_dict):
        complete = {name for name in shared if _is_complete(state_dict[name])}
        if not complete:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name"
                f" to keep for saving amongst: {_names(shared)}. None is covering the entire storage."
                "Refusing to save/load the model since you could be storing much more memory than needed."
                " Please refer to https://huggingface.co/docs/safetensors/torch_shared_tensors for more"
                " information. Or open an issue."
            )
        candidates = (
            complete.intersection(preferred_names or ()),
            complete.difference(discard_names or ()),
            complete,
        )
        keep = min(next(names for names in candidates if names))
        rest = sorted(shared - {keep})
        if rest:
            to_remove[keep] = rest
    return to_remove


def _names(names: set[str]) -> str:
    """A set as Python prints it, but always in the same order."""
    return "{" + ", ".join(repr(name) for name in sorted(names)) + "}"


def _getdtype(dtype_str: str) -> torch.dtype:
    return _TYPES[dtype_str]


def _view2torch(safeview: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, torch.Tensor]:
    """The tensors of what `deserialize` returns, in its memory."""
    convert = converter("pt")
    return {name: convert(view["data"], view["dtype"], view["shape"]) for name, view in safeview}


def _evaluate_tensors_for_save(tensors: dict[str, torch.Tensor]) -> None:
    """Refuses what a file cannot hold.

    Raises:
        ValueError: not a dictionary of dense tensors.
        RuntimeError: tensors share memory.
    """
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    sparse = [name for name, tensor in tensors.items() if tensor.layout != torch.strided]
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not support."
            " You can make it a dense tensor before saving with `.to_dense()` but be aware this might"
            " make a much larger file than needed."
        )
    shared = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        listed = ", ".join(_names(names) for names in shared)
        raise RuntimeError(
            "\n            Some tensors share memory, this will lead to duplicate memory on disk and"
            f" potential differences when loading them again: [{listed}]."
            "\n            A potential way to correctly save your model is to use `save_model`."
            "\n            More information at"
            " https://huggingface.co/docs/safetensors/torch_shared_tensors\n            "
        )


def _flatten_as_ptr(tensors: dict[str, torch.Tensor], keep_alive_buffer: list[Any]) -> dict[str, TensorSpec]:
    """Where the bytes of each tensor are; they stay there as long as `keep_alive_buffer`.

    Raises:
        ValueError, RuntimeError: as [`_evaluate_tensors_for_save`], or a tensor is not contiguous.
    """
    _evaluate_tensors_for_save(tensors)
    specs = {}
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either"
                " means you are trying to save tensors which are reference of each other in which case it's"
                " recommended to save only the full tensors, and reslice at load time, or simply call"
                " `.contiguous()` on your tensor to pack it before saving."
            )
        dense = _on_cpu(tensor)
        keep_alive_buffer.append(dense)
        specs[name] = TensorSpec(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tensor.shape,
            # No memory has no address; that of anything serves.
            data_ptr=dense.data_ptr() or _SOMEWHERE.data_ptr(),
            data_len=dense.nelement() * dense.element_size(),
        )
    return specs


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose bytes in this process are those of the file."""
    # A conjugate or negative view has the memory of the original, with a note that the values differ.
    dense = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if sys.byteorder == "little" or not dense.nelement():
        return dense
    stored = ctypes.string_at(dense.data_ptr(), dense.nelement() * dense.element_size())
    return torch.frombuffer(bytearray(swapped(stored, _CODES[tensor.dtype])), dtype=torch.uint8)
