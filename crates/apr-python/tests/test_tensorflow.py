"""`apr.safetensors.tensorflow`: what tensors of TensorFlow become in a file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from apr._frameworks import converter  # noqa: E402
from apr.safetensors import SafetensorError, safe_open  # noqa: E402
from apr.safetensors.tensorflow import load, load_file, save, save_file  # noqa: E402

DTYPES = [
    "bool",
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
    "float64",
    "complex64",
    "float8_e4m3fn",
    "float8_e5m2",
]


def tensors_of(dtype: str) -> dict[str, Any]:
    """A tensor of each kind of shape."""
    values = np.arange(6).astype(tf.as_dtype(dtype).as_numpy_dtype)
    arrays = {"matrix": values.reshape(2, 3), "scalar": values[1], "empty": values[:0].reshape(0, 2)}
    return {name: tf.convert_to_tensor(array) for name, array in arrays.items()}


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives_a_file_and_memory(dtype: str, tmp_path: Path) -> None:
    tensors = tensors_of(dtype)
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    assert path.read_bytes() == save(tensors)
    for loaded in (load_file(path), load_file(path, backend="pread"), load(path.read_bytes())):
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert loaded[name].dtype == tensor.dtype
            assert loaded[name].shape == tensor.shape
            assert loaded[name].numpy().tobytes() == tensor.numpy().tobytes()


def test_the_callers_dictionary_is_not_changed(tmp_path: Path) -> None:
    tensors = {"a": tf.ones(3)}
    save(tensors)
    save_file(tensors, tmp_path / "a.safetensors")
    assert isinstance(tensors["a"], tf.Tensor)


def test_variables_are_tensors() -> None:
    assert load(save({"a": tf.Variable([1.0, 2.0])}))["a"].numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_can_be_loaded(kind: Any) -> None:
    assert load(kind(save({"a": tf.range(3)})))["a"].numpy().tolist() == [0, 1, 2]


def test_tensors_do_not_depend_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": tf.range(1000)}, path)
    loaded = load_file(path)["a"]
    path.write_bytes(b"")
    assert loaded[999].numpy() == 999


def test_slices_and_words_for_the_framework(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": tf.reshape(tf.range(6), (2, 3))}, path)
    for framework in ("tf", "tensorflow"):
        with safe_open(path, framework=framework) as f:
            assert f.get_slice("a")[:, 1:].numpy().tolist() == [[1, 2], [4, 5]]
        with pytest.raises(SafetensorError, match="Device cuda:0 is not supported for framework tensorflow"):
            safe_open(path, framework=framework, device="cuda:0")


@pytest.mark.parametrize("dtype", ["F8_E8M0", "F6_E3M2", "F4"])
def test_a_type_that_tensorflow_lacks_is_refused_by_name(dtype: str) -> None:
    with pytest.raises(SafetensorError, match=f"Dtype not understood: {dtype}"):
        converter("tensorflow")(bytearray(12), dtype, [4])
