"""`apr.safetensors.paddle`: what tensors of PaddlePaddle become in a file, and back."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

paddle = pytest.importorskip("paddle")

from apr import structures  # noqa: E402
from apr._frameworks import converter  # noqa: E402
from apr.safetensors import SafetensorError, safe_open  # noqa: E402
from apr.safetensors.numpy import save as save_numpy  # noqa: E402
from apr.safetensors.paddle import load, load_file, save, save_file  # noqa: E402

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "float8_e4m3fn",
    "float8_e5m2",
]


def raw(tensor: Any) -> bytes:
    """The bytes of a tensor's elements."""
    return tensor.contiguous().reshape([-1]).view(paddle.uint8).numpy().tobytes() if tensor.size else b""


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives_a_file_and_memory(dtype: str, tmp_path: Path) -> None:
    values = paddle.arange(6).astype("float32").astype(dtype)
    tensors = {
        "matrix": values.reshape([2, 3]),
        "scalar": paddle.ones([], "float32").astype(dtype),
        "empty": paddle.empty([0, 2], dtype=dtype),
    }
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    assert path.read_bytes() == save(tensors)
    for loaded in (load_file(path), load_file(path, backend="pread"), load(path.read_bytes())):
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert loaded[name].dtype == tensor.dtype
            assert list(loaded[name].shape) == list(tensor.shape)
            assert raw(loaded[name]) == raw(tensor)


def test_one_tensor_can_be_had_often(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": paddle.arange(6).reshape([2, 3])}, path)
    with safe_open(path, framework="paddle") as f:
        tensors = [f.get_tensor("a") for _ in range(10)]
        parts = [f.get_slice("a")[:1] for _ in range(10)]
        assert list(f.get_slice("a")[[]].shape) == [0, 3]
    del tensors[::2], parts[1::2], f
    gc.collect()
    assert all(tensor.tolist() == [[0, 1, 2], [3, 4, 5]] for tensor in tensors)
    assert all(part.tolist() == [[0, 1, 2]] for part in parts)


def test_writing_to_a_loaded_tensor_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": paddle.zeros([4])}, path)
    before = path.read_bytes()
    loaded = load_file(path)["a"]
    loaded[0] = 5.0
    assert loaded.tolist() == [5.0, 0.0, 0.0, 0.0]
    assert path.read_bytes() == before


def test_memory_that_must_not_change_or_is_misaligned_is_copied() -> None:
    read_only = bytes(8)
    tensor = converter("paddle")(read_only, "F32", [2])
    tensor[0] = 1.0
    assert read_only == bytes(8)
    shifted = memoryview(bytearray(range(9)))[1:]
    tensor = converter("paddle")(shifted, "I64", [1])
    assert tensor.data_ptr() % 8 == 0
    assert raw(tensor) == bytes(range(1, 9))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_can_be_loaded(kind: Any) -> None:
    assert load(kind(save({"a": paddle.arange(3)})))["a"].tolist() == [0, 1, 2]


def test_sixteen_bit_integers_are_brain_floats() -> None:
    data = save_numpy({"a": np.array([0x3F80, 0x4000], np.uint16)})
    loaded = load(data)["a"]
    assert loaded.dtype == paddle.bfloat16
    assert loaded.astype("float32").tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        ([1], "Expected a dict of [str, paddle.Tensor] but received <class 'list'>"),
        ({"a": 1}, "Key `a` is invalid, expected paddle.Tensor but received <class 'int'>"),
        ({"a": paddle.zeros([2, 3]).t()}, "You are trying to save a non contiguous tensor: `a`"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(tensors: Any, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        save(tensors)
    assert text in str(caught.value)


@pytest.mark.parametrize("dtype", ["U32", "F8_E8M0", "F6_E3M2", "F4"])
def test_a_type_that_paddle_lacks_is_refused_by_name(dtype: str) -> None:
    with pytest.raises(SafetensorError, match=f"Dtype not understood: {dtype}"):
        converter("paddle")(bytearray(16), dtype, [4])


def test_devices_have_names_of_paddle_and_of_others(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": paddle.ones([2])}, path)
    if paddle.is_compiled_with_cuda():
        pytest.skip("paddle would look for a GPU")
    for device in ("gpu:0", "cuda:0", "gpu"):
        with pytest.raises(ValueError, match="not compiled with CUDA"):
            load_file(path, device=device)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn"])
def test_structures_hold_every_type(dtype: str, tmp_path: Path) -> None:
    values = paddle.arange(6).astype("float32").astype(dtype)
    data = {"nested": [values.reshape([2, 3]), (values[1], None)], "n": 1}
    path = tmp_path / "structure.safetensors"
    structures.save_file(data, path)
    for loaded in (structures.load_file(path, "paddle"), structures.load(path.read_bytes(), "paddle")):
        matrix, (scalar, nothing) = loaded["nested"]
        assert (matrix.dtype, matrix.shape, scalar.shape, nothing, loaded["n"]) == (values.dtype, [2, 3], [], None, 1)
        assert matrix.astype("complex64" if dtype == "complex64" else "float32").tolist() == values.reshape([2, 3]).astype(
            "complex64" if dtype == "complex64" else "float32"
        ).tolist()
    # For readers without paddle they are arrays of numpy.
    assert structures.load_file(path)["nested"][0].shape == (2, 3)


def test_transposed_tensors_are_saved_by_value_in_structures() -> None:
    data = structures.save(paddle.arange(6).reshape([2, 3]).t())
    assert structures.load(data).tolist() == [[0, 3], [1, 4], [2, 5]]
