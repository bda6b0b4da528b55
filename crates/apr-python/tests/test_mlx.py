"""`apr.safetensors.mlx`: what arrays of MLX become in a file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

mx = pytest.importorskip("mlx.core")

from apr import structures  # noqa: E402
from apr._frameworks import converter  # noqa: E402
from apr.safetensors import SafetensorError, deserialize, safe_open  # noqa: E402
from apr.safetensors.mlx import load, load_file, save, save_file  # noqa: E402

DTYPES = [
    "bool_",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives_a_file_and_memory(dtype: str, tmp_path: Path) -> None:
    values = mx.arange(6).astype(getattr(mx, dtype))
    tensors = {"matrix": values.reshape(2, 3), "scalar": values[1], "empty": mx.zeros((0, 2), values.dtype)}
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    assert path.read_bytes() == save(tensors)
    for loaded in (load_file(path), load_file(path, backend="pread"), load(path.read_bytes())):
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert loaded[name].dtype == tensor.dtype
            assert loaded[name].shape == tensor.shape
            assert mx.array_equal(loaded[name], tensor)


def test_mlx_reads_what_was_written_and_the_other_way_round(tmp_path: Path) -> None:
    tensors = {"a": mx.arange(4).astype(mx.bfloat16), "b": mx.ones((2, 2))}
    ours, theirs = str(tmp_path / "ours.safetensors"), str(tmp_path / "theirs.safetensors")
    save_file(tensors, ours)
    mx.save_safetensors(theirs, tensors)
    for loaded in (mx.load(ours), load_file(theirs)):
        assert all(mx.array_equal(loaded[name], tensor) for name, tensor in tensors.items())


def test_the_callers_dictionary_is_not_changed() -> None:
    tensors = {"a": mx.ones(3)}
    save(tensors)
    assert isinstance(tensors["a"], mx.array)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_can_be_loaded(kind: Any) -> None:
    assert load(kind(save({"a": mx.arange(3)})))["a"].tolist() == [0, 1, 2]


def test_transposed_arrays_are_saved_by_value() -> None:
    for dtype in (mx.float32, mx.bfloat16):
        values = mx.arange(6).reshape(2, 3).T.astype(dtype)
        assert load(save({"a": values}))["a"].tolist() == values.tolist()


def test_brain_floats_have_their_own_type_in_the_file() -> None:
    ((_, view),) = deserialize(save({"a": mx.ones(2, mx.bfloat16)}))
    assert (view["dtype"], bytes(view["data"])) == ("BF16", b"\x80\x3f\x80\x3f")


def test_slices_and_devices(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": mx.arange(6).reshape(2, 3)}, path)
    with safe_open(path, framework="mlx") as f:
        assert f.get_slice("a")[:, 1:].tolist() == [[1, 2], [4, 5]]
    with pytest.raises(SafetensorError, match="Device cuda:0 is not supported for framework mlx"):
        safe_open(path, framework="mlx", device="cuda:0")


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E8M0", "F6_E3M2", "F4"])
def test_a_type_that_mlx_lacks_is_refused_by_name(dtype: str) -> None:
    with pytest.raises(SafetensorError, match=f"Dtype not understood: {dtype}"):
        converter("mlx")(bytearray(12), dtype, [4])


@pytest.mark.parametrize("dtype", DTYPES)
def test_structures_hold_every_type(dtype: str, tmp_path: Path) -> None:
    values = mx.arange(6).astype(getattr(mx, dtype))
    data = {"nested": [values.reshape(2, 3).T, (values[1], None)], "n": 1}
    path = tmp_path / "structure.safetensors"
    structures.save_file(data, path)
    for loaded in (structures.load_file(path, "mlx"), structures.load(path.read_bytes(), "mlx")):
        matrix, (scalar, nothing) = loaded["nested"]
        assert (matrix.dtype, matrix.shape, scalar.shape, nothing, loaded["n"]) == (values.dtype, (3, 2), (), None, 1)
        assert mx.array_equal(matrix, data["nested"][0]) and mx.array_equal(scalar, values[1])
    # For readers without MLX they are arrays of numpy.
    assert structures.load_file(path)["nested"][0].shape == (3, 2)
