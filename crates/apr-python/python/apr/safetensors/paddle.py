"""Tensors of PaddlePaddle in safetensors files.

A device is given in paddle's words, `"cpu"` or `"gpu:0"`; `"cuda:0"` means the latter.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import paddle

from .._frameworks import converter, numpy_dtype, paddle_dtypes, swapped
from . import TensorSpec, deserialize, safe_open, serialize, serialize_file

_TYPES: dict[str, paddle.dtype] = paddle_dtypes()
"""The element types of the format as paddle's."""

_CODES: dict[paddle.dtype, str] = {dtype: code for code, dtype in _TYPES.items() if code != "U16"}
"""The format's names of paddle's element types."""

_SOMEWHERE = np.zeros(1, np.uint8)


def save(tensors: dict[str, paddle.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The tensors as the bytes of a file.

    Args:
        tensors: names and dense, contiguous tensors of any shape, on any device.
        metadata: text to keep in the header. It has no meaning for the tensors.

    Raises:
        ValueError: not a dictionary of tensors, or a tensor is not contiguous.
        SafetensorError: an element type that the format does not have.
    """
    keep_alive: list[Any] = []
    return bytes(serialize(_flatten(tensors, keep_alive), metadata=metadata))


def save_file(
    tensors: dict[str, paddle.Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes the tensors into `filename`. A file that was there is replaced in one step.

    Args:
        tensors: as for [`save`].
        filename: where to write.
        metadata: as for [`save`].

    Raises:
        ValueError: as for [`save`].
        SafetensorError: as for [`save`], or the file cannot be written.
    """
    keep_alive: list[Any] = []
    serialize_file(_flatten(tensors, keep_alive), filename, metadata=metadata)


def load(data: Any, device: str = "cpu") -> dict[str, paddle.Tensor]:
    """The tensors in the bytes of a file: `bytes`, `bytearray`, `memoryview`, `mmap` or the like.

    The tensors have memory of their own: writing to them does not change `data`.

    Raises:
        SafetensorError: the bytes are not a valid file, or paddle does not have an element type.
    """
    return _view2paddle(deserialize(data), device)


def load_file(
    filename: str | os.PathLike[str], device: str = "cpu", *, backend: str = "mmap"
) -> dict[str, paddle.Tensor]:
    """The tensors of a file.

    Args:
        filename: what to read.
        device: where the tensors shall be.
        backend: how: `"mmap"` maps the file, `"pread"` reads tensor by tensor.

    Raises:
        FileNotFoundError: there is no such file.
        SafetensorError: as for [`load`], or the device is not known.
    """
    # `safe_open` knows GPUs by their other name.
    known = device.replace("gpu", "cuda", 1) if device.startswith("gpu") else device
    with safe_open(filename, framework="paddle", device=known, backend=backend) as f:
        return f.get_tensors()


def _getdtype(dtype_str: str) -> paddle.dtype:
    return _TYPES[dtype_str]


def _np2paddle(numpy_dict: Mapping[str, np.ndarray], device: str = "cpu") -> dict[str, paddle.Tensor]:
    return {name: paddle.to_tensor(array, place=device) for name, array in numpy_dict.items()}


def _paddle2np(paddle_dict: Mapping[str, paddle.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in paddle_dict.items()}


def _to_numpy(tensor: paddle.Tensor) -> np.ndarray:
    """The tensor as an array whose type says what its elements are."""
    array = tensor.detach().cpu().numpy()
    kind = numpy_dtype(_CODES[tensor.dtype])
    # Types that numpy lacks come as integers of their size.
    return array if array.dtype == kind else array.view(kind)


def _view2paddle(
    safeview: Iterable[tuple[str, dict[str, Any]]], device: str = "cpu"
) -> dict[str, paddle.Tensor]:
    """The tensors of what `deserialize` returns, on the CPU in its memory."""
    convert = converter("paddle", device)
    return {name: convert(view["data"], view["dtype"], view["shape"]) for name, view in safeview}


def _flatten(tensors: dict[str, paddle.Tensor], keep_alive_buffer: list[Any]) -> dict[str, TensorSpec]:
    """Where the bytes of each tensor are; they stay there as long as `keep_alive_buffer`.

    Raises:
        ValueError: not a dictionary of contiguous tensors.
    """
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, paddle.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, paddle.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected paddle.Tensor but received {type(tensor)}")
    specs = {}
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either"
                " means you are trying to save tensors which are reference of each other in which case it's"
                " recommended to save only the full tensors, and reslice at load time, or simply call"
                " `.contiguous()` on your tensor to pack it before saving."
            )
        dense = tensor if tensor.place.is_cpu_place() else tensor.cpu()
        address, len_bytes = dense.data_ptr(), dense.size * dense.element_size()
        keep_alive_buffer.append(dense)
        if sys.byteorder == "big" and len_bytes:
            stored = np.frombuffer(
                swapped(ctypes.string_at(address, len_bytes), _CODES[tensor.dtype]), np.uint8
            )
            keep_alive_buffer.append(stored)
            address = stored.ctypes.data
        specs[name] = TensorSpec(
            dtype=str(tensor.dtype).removeprefix("paddle."),
            shape=tensor.shape,
            # No memory has no address; that of anything serves.
            data_ptr=address or _SOMEWHERE.ctypes.data,
            data_len=len_bytes,
        )
    return specs
