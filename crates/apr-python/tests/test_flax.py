"""`apr.safetensors.flax`: what arrays of JAX become in a file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from apr._frameworks import converter  # noqa: E402
from apr.safetensors import SafetensorError, safe_open  # noqa: E402
from apr.safetensors.flax import load, load_file, save, save_file  # noqa: E402


def test_the_module_has_the_name_of_its_arrays_too():
    from apr.safetensors import flax
    from apr.safetensors import jax as of_arrays

    assert (of_arrays.load_file, of_arrays.save_file) == (flax.load_file, flax.save_file)


DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
]


def arrays(dtype: str) -> dict[str, Any]:
    """An array of each kind of shape."""
    values = jnp.arange(6).astype(dtype)
    return {"matrix": values.reshape(2, 3), "scalar": values[1], "empty": values[:0].reshape(0, 2)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives_a_file_and_memory(dtype: str, tmp_path: Path) -> None:
    tensors = arrays(dtype)
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    assert path.read_bytes() == save(tensors)
    for loaded in (load_file(path), load_file(path, backend="pread"), load(path.read_bytes())):
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert isinstance(loaded[name], jax.Array)
            assert loaded[name].dtype == tensor.dtype
            assert loaded[name].shape == tensor.shape
            assert np.asarray(loaded[name]).tobytes() == np.asarray(tensor).tobytes()


def test_the_callers_dictionary_is_not_changed(tmp_path: Path) -> None:
    tensors = {"a": jnp.ones(3)}
    save(tensors)
    save_file(tensors, tmp_path / "a.safetensors")
    assert isinstance(tensors["a"], jax.Array)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_can_be_loaded(kind: Any) -> None:
    assert load(kind(save({"a": jnp.arange(3)})))["a"].tolist() == [0, 1, 2]


def test_transposed_arrays_are_saved_by_value() -> None:
    values = jnp.arange(6).reshape(2, 3).T
    assert load(save({"a": values}))["a"].tolist() == values.tolist()


def test_arrays_do_not_depend_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": jnp.arange(1000)}, path)
    loaded = load_file(path)["a"]
    path.write_bytes(b"")
    assert loaded[999] == 999


def test_slices_and_words_for_the_framework(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": jnp.arange(6).reshape(2, 3)}, path)
    for framework in ("jax", "flax"):
        with safe_open(path, framework=framework) as f:
            assert f.get_slice("a")[:, 1:].tolist() == [[1, 2], [4, 5]]
        with pytest.raises(SafetensorError, match="Device cuda:0 is not supported for framework flax"):
            safe_open(path, framework=framework, device="cuda:0")


def test_a_type_that_jax_lacks_is_refused_by_name() -> None:
    with pytest.raises(SafetensorError, match="Dtype not understood: F6_E2M3"):
        converter("flax")(bytearray(3), "F6_E2M3", [4])
