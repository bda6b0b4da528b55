"""From bytes of a file to the tensor of a framework: one function for each framework, made by [`converter`].

The bytes are those of one tensor (or of a slice of one) as the format stores them: row-major, without gaps,
little-endian. A framework is imported when a converter for it is made, never before, and numpy only for the
frameworks that build their tensors from arrays of numpy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ._native import SafetensorError

Convert = Callable[[Any, str, Sequence[int]], Any]
"""Bytes (any object with the buffer protocol), the format's name of the element type, shape: to a tensor."""

_NAMES = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn_x2",
}
"""What frameworks call the format's element types. The 6-bit floats are in no framework."""

_ML_DTYPES = {"BF16", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2", "F8_E5M2FNUZ", "F8_E8M0"}
"""The element types that numpy has from the package `ml_dtypes`."""

_WIDTHS = {
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32", "C64"), 4),
    **dict.fromkeys(("I64", "U64", "F64", "C128"), 8),
}
"""Bytes of a number that has an order of bytes; a complex number is two of them."""


def converter(framework: str, device: str | int = "cpu") -> Convert:
    """The function that makes tensors of `framework` on `device`, as `safe_open` takes these two words.

    Tensors of torch and paddle on the CPU share the memory of the bytes they are made from and keep the
    object that they were given; bytes that may not be written to, or that lie at an address the element type
    cannot have, are copied. The other frameworks copy, so their tensors do not depend on the file.

    Raises:
        SafetensorError: the framework is none that makes tensors from bytes, or has no such device.
        ImportError: the framework is not installed.
    """
    if framework in ("pt", "torch", "pytorch"):
        return _to_torch(device)
    if framework == "paddle":
        return _to_paddle(device)
    full_names = {"tf": "tensorflow", "jax": "flax"}
    full_name = full_names.get(framework, framework)
    makers = {"tensorflow": _to_tensorflow, "flax": _to_jax, "mlx": _to_mlx}
    if full_name not in makers:
        raise SafetensorError(f"framework {framework} is invalid")
    if device != "cpu":
        raise SafetensorError(f"Device {device} is not supported for framework {full_name}")
    return makers[full_name]()


def loader(framework: str, device: str | int) -> Callable[..., dict[str, Any]] | None:
    """What loads the tensors of an open file, or of those with some names, into an accelerator through pinned memory; None where tensors are
    put there one by one by a [`converter`]."""
    if framework not in ("pt", "torch", "pytorch") or device == "cpu":
        return None
    from ._accelerator import loader

    return loader(device)


def in_host_order(data: Any, dtype: str) -> Any:
    """Little-endian numbers of the format in this machine's order of bytes, or the other way round.

    `data` itself where nothing has to be swapped; a `bytearray` otherwise.
    """
    return data if sys.byteorder == "little" else swapped(data, dtype)


def swapped(data: Any, dtype: str) -> Any:
    """Each number of `data` with its bytes in the other order; `data` itself if they are single bytes."""
    width = _WIDTHS.get(dtype)
    if width is None:
        return data
    source = memoryview(data).cast("B")
    result = bytearray(len(source))
    for place in range(width):
        result[place::width] = source[width - 1 - place :: width]
    return result


def is_element(dtype: str) -> bool:
    """Whether this is an element type of the format, in whatever framework."""
    return dtype in _NAMES or dtype in ("F6_E2M3", "F6_E3M2")


def is_writable(data: Any) -> bool:
    """Whether the memory of an object with the buffer protocol may be changed."""
    return not memoryview(data).readonly


def torch_dtypes() -> dict[str, Any]:
    """The element types of the format that this version of torch has."""
    import torch

    found = {name: getattr(torch, attribute, None) for name, attribute in _NAMES.items()}
    return {name: dtype for name, dtype in found.items() if dtype is not None}


def paddle_dtypes() -> dict[str, Any]:
    """The element types of the format that paddle can hold.

    16-bit unsigned integers are read as bfloat16: paddle has none, and shows its bfloat16 to numpy as such.
    """
    import paddle

    absent = {"U32", "U64", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0", "F4"}
    names = {name: attribute for name, attribute in _NAMES.items() if name not in absent}
    found = {
        name: getattr(paddle, attribute, None) for name, attribute in {**names, "U16": "bfloat16"}.items()
    }
    return {name: dtype for name, dtype in found.items() if dtype is not None}


def numpy_dtype(dtype: str) -> Any:
    """The type of numpy's elements, from `ml_dtypes` for 16-bit brain floats and 8-bit floats.

    Raises:
        SafetensorError: numpy and `ml_dtypes` do not have it.
    """
    import numpy as np

    if dtype in _ML_DTYPES:
        import ml_dtypes

        scalar = getattr(ml_dtypes, _NAMES[dtype], None)
    else:
        scalar = _NAMES.get(dtype) if dtype != "F4" else None
    if scalar is None:
        raise _unknown(dtype)
    return np.dtype(scalar)


def packed_shape(shape: Sequence[int]) -> list[int]:
    """The shape of pairs of 4-bit floats, two in a byte: the last dimension is halved.

    Raises:
        SafetensorError: the last dimension is odd, or there is none.
    """
    if not shape or shape[-1] % 2:
        raise SafetensorError(
            f"f4_x2 dtype requires that the last dim be divisible by 2 in torch: got {list(shape)}"
        )
    return [*shape[:-1], shape[-1] // 2]


def array(data: Any, dtype: str, shape: Sequence[int]) -> Any:
    """An array of numpy on the memory of `data`, which it keeps.

    Raises:
        SafetensorError: numpy does not have the element type.
    """
    import numpy as np

    kind = numpy_dtype(dtype)
    if 0 in shape:
        return np.empty(shape, kind)
    return np.frombuffer(in_host_order(data, dtype), kind).reshape(shape)


def _unknown(dtype: str) -> SafetensorError:
    return SafetensorError(f"Dtype not understood: {dtype}")


def _to_torch(device: str | int) -> Convert:
    import torch

    # The last is in files of other formats only.
    dtypes = {**torch_dtypes(), "C128": torch.complex128}

    def convert(data: Any, dtype: str, shape: Sequence[int]) -> Any:
        kind = dtypes.get(dtype)
        if kind is None:
            raise _unknown(dtype)
        if dtype == "F4":
            shape = packed_shape(shape)
        if 0 in shape:
            # torch makes nothing out of a buffer without bytes. The device is named because the program may
            # have set another one for what it makes.
            tensor = torch.empty(shape, dtype=kind, device="cpu")
        else:
            data = in_host_order(data, dtype)
            # torch has no tensors that cannot be written to: it would write to memory that must not change.
            tensor = torch.frombuffer(data if is_writable(data) else bytearray(data), dtype=kind)
            if tensor.data_ptr() % tensor.element_size():
                tensor = torch.frombuffer(data, dtype=torch.uint8).clone().view(kind)
            tensor = tensor.reshape(shape)
        return tensor if device == "cpu" else tensor.to(device)

    return convert


def _to_paddle(device: str | int) -> Convert:
    import numpy as np
    import paddle
    from paddle.utils.dlpack import from_dlpack

    dtypes = paddle_dtypes()
    place = _paddle_place(device)

    def convert(data: Any, dtype: str, shape: Sequence[int]) -> Any:
        kind = dtypes.get(dtype)
        if kind is None:
            raise _unknown(dtype)
        if 0 in shape:
            tensor = paddle.empty(shape, dtype=kind)
        else:
            data = in_host_order(data, dtype)
            # As for torch: paddle would write to memory that must not change.
            raw = np.frombuffer(data if is_writable(data) else bytearray(data), np.uint8)
            # paddle's own `frombuffer` ends the process when two of its tensors begin at one address.
            tensor = from_dlpack(raw).view(kind)
            if tensor.data_ptr() % tensor.element_size():
                tensor = from_dlpack(raw.copy()).view(kind)
            tensor = tensor.reshape(shape)
        return tensor if place == "cpu" else tensor.to(place)

    return convert


def _paddle_place(device: str | int) -> str:
    """A device in paddle's words: its GPUs are not called after the maker's library."""
    if isinstance(device, int):
        return f"gpu:{device}"
    kind, _, index = device.partition(":")
    return f"gpu:{index or 0}" if kind == "cuda" else device


def _to_tensorflow() -> Convert:
    import tensorflow

    def convert(data: Any, dtype: str, shape: Sequence[int]) -> Any:
        if dtype == "F8_E8M0":
            raise _unknown(dtype)
        return tensorflow.convert_to_tensor(array(data, dtype, shape))

    return convert


def _to_jax() -> Convert:
    import jax.numpy

    def convert(data: Any, dtype: str, shape: Sequence[int]) -> Any:
        return jax.numpy.array(array(data, dtype, shape))

    return convert


def _to_mlx() -> Convert:
    import mlx.core

    def convert(data: Any, dtype: str, shape: Sequence[int]) -> Any:
        if dtype.startswith("F8_"):
            raise _unknown(dtype)
        if dtype != "BF16":
            return mlx.core.array(array(data, dtype, shape))
        # By way of integers, so that it needs no `ml_dtypes`.
        return mlx.core.array(array(data, "U16", shape)).view(mlx.core.bfloat16)

    return convert
