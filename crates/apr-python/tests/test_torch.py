"""`apr.safetensors.torch`: what tensors and modules become in a file, and back."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from apr._frameworks import converter, swapped  # noqa: E402
from apr.safetensors import SafetensorError, deserialize, safe_open  # noqa: E402
from apr.safetensors.torch import (  # noqa: E402
    _find_shared_tensors,
    _remove_duplicate_names,
    load,
    load_file,
    load_model,
    save,
    save_file,
    save_model,
)

BYTES = bytes(range(1, 65))

DTYPES = {
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


def raw(tensor: Any) -> bytes:
    """The bytes of a tensor's elements."""
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


def of_type(code: str, shape: tuple[int, ...]) -> Any:
    """A tensor of the format's type `code` that has 64 bytes, or none."""
    dtype = getattr(torch, DTYPES[code], None)
    if dtype is None:
        pytest.skip(f"this torch has no {DTYPES[code]}")
    data = bytes(place % 2 for place in range(64)) if code == "BOOL" else BYTES
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype)
    return flat.reshape(shape) if 0 not in shape else torch.empty(shape, dtype=dtype)


@pytest.mark.parametrize("code", DTYPES)
def test_every_type_survives_a_file_and_memory(code: str, tmp_path: Path) -> None:
    tensors = {"whole": of_type(code, (2, -1)), "empty": of_type(code, (3, 0))}
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    assert path.read_bytes() == save(tensors)
    for loaded in (load_file(path), load_file(path, backend="pread"), load(path.read_bytes())):
        assert loaded.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert loaded[name].dtype == tensor.dtype
            assert loaded[name].shape == tensor.shape
            assert raw(loaded[name]) == raw(tensor)


def test_pairs_of_four_bit_floats_count_as_two_elements() -> None:
    ((_, view),) = deserialize(save({"a": of_type("F4", (4, 16))}))
    assert (view["dtype"], view["shape"]) == ("F4", [4, 32])


def test_an_odd_row_of_four_bit_floats_is_refused() -> None:
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no 4-bit floats")
    with pytest.raises(SafetensorError, match=r"last dim be divisible by 2 in torch: got \[2, 3\]"):
        converter("pt")(bytearray(3), "F4", [2, 3])


def test_a_type_that_torch_lacks_is_refused_by_name() -> None:
    with pytest.raises(SafetensorError, match="Dtype not understood: F6_E2M3"):
        converter("pt")(bytearray(3), "F6_E2M3", [4])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_can_be_loaded_and_are_not_changed(kind: Any) -> None:
    data = save({"a": torch.arange(4)})
    given = kind(data)
    loaded = load(given)["a"]
    loaded += 1
    assert loaded.tolist() == [1, 2, 3, 4]
    assert bytes(given) == data


def test_a_mapping_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.arange(4)}, path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        assert load(mapping)["a"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_writing_to_a_loaded_tensor_leaves_the_file(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(4), "b": torch.ones(4)}, path)
    before = path.read_bytes()
    loaded = load_file(path, backend=backend)
    loaded["a"] += 5
    assert path.read_bytes() == before
    assert load_file(path)["a"].tolist() == [0.0] * 4
    assert loaded["b"].tolist() == [1.0] * 4


def test_tensors_outlive_the_open_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.arange(100_000)}, path)
    with safe_open(path, framework="pt") as f:
        tensor, rest = f.get_tensor("a"), f.get_slice("a")
    path.unlink()
    del f
    gc.collect()
    assert tensor[-1].item() == 99_999
    assert rest[5:10:2].tolist() == [5, 7, 9]


def test_one_tensor_can_be_had_often(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.arange(6).reshape(2, 3)}, path)
    with safe_open(path, framework="pt") as f:
        tensors = [f.get_tensor("a") for _ in range(10)]
        parts = [f.get_slice("a")[:1] for _ in range(10)]
        assert f.get_slice("a")[[]].shape == (0, 3)
    del tensors[::2], parts[1::2]
    assert all(tensor.tolist() == [[0, 1, 2], [3, 4, 5]] for tensor in tensors)
    assert all(part.tolist() == [[0, 1, 2]] for part in parts)


def test_memory_that_must_not_change_or_is_misaligned_is_copied() -> None:
    read_only = bytes(8)
    tensor = converter("pt")(read_only, "F32", [2])
    tensor += 1
    assert read_only == bytes(8)
    shifted = memoryview(bytearray(b"\xff" + BYTES))[1:]
    tensor = converter("pt")(shifted, "F64", [8])
    assert tensor.data_ptr() % 8 == 0
    assert raw(tensor) == BYTES


def test_aligned_memory_that_may_change_is_shared() -> None:
    memory = bytearray(16)
    tensor = converter("pt")(memory, "F32", [2, 2])
    memory[0:4] = b"\x00\x00\x80\x3f"
    assert tensor.tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_the_default_device_of_the_program_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    tensors = {"a": torch.ones(3), "empty": torch.ones(0)}
    save_file(tensors, path)
    with torch.device("meta"):
        loaded = {**load_file(path), **load(save(tensors))}
    assert {tensor.device.type for tensor in loaded.values()} == {"cpu"}


def test_device_of_a_tensor_is_the_one_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(3)}, path)
    with pytest.raises(SafetensorError, match="device bogus is invalid"):
        load_file(path, device="bogus")
    assert converter("pt", "meta")(bytearray(12), "F32", [3]).device.type == "meta"


def test_conjugate_and_negative_views_are_saved_by_value() -> None:
    values = torch.tensor([1 + 2j, 3 - 4j])
    loaded = load(save({"conj": values.conj(), "imag": values.conj().imag.clone()}))
    assert loaded["conj"].tolist() == [1 - 2j, 3 + 4j]
    assert loaded["imag"].tolist() == [-2.0, 4.0]
    negative = values.conj().imag
    assert negative.is_neg()
    assert load(save({"neg": torch._neg_view(torch.arange(3.0))}))["neg"].tolist() == [0.0, -1.0, -2.0]


def test_parameters_and_subclasses_are_tensors() -> None:
    parameter = torch.nn.Parameter(torch.arange(3.0))
    assert load(save({"p": parameter}))["p"].tolist() == [0.0, 1.0, 2.0]


def test_a_dictionary_is_not_changed_by_saving(tmp_path: Path) -> None:
    tensors = {"a": torch.ones(2)}
    kept = dict(tensors)
    save_file(tensors, tmp_path / "a.safetensors")
    save(tensors)
    assert all(tensors[name] is tensor for name, tensor in kept.items())


def test_equal_tensors_give_equal_bytes() -> None:
    first, second = torch.ones(2), torch.zeros(3)
    metadata = {str(number): "x" for number in range(20)}
    backward = dict(reversed(metadata.items()))
    assert save({"a": first, "b": second}, metadata) == save({"b": second, "a": first}, backward)


@pytest.mark.parametrize(
    ("tensors", "error", "text"),
    [
        ([1], ValueError, "Expected a dict of [str, torch.Tensor] but received <class 'list'>"),
        ({"a": 1}, ValueError, "Key `a` is invalid, expected torch.Tensor but received <class 'int'>"),
        ({"a": torch.zeros(2, 3).t()}, ValueError, "You are trying to save a non contiguous tensor: `a`"),
        ({"a": torch.sparse_coo_tensor(size=(2, 3))}, ValueError, "trying to save a sparse tensors: `['a']`"),
        ({"a": torch.zeros(2, device="meta")}, RuntimeError, "Cannot copy out of meta tensor"),
        ({"a": torch.zeros(2, dtype=torch.complex128)}, SafetensorError, "complex128"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(tensors: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        save(tensors)
    assert text in str(caught.value)


def test_shared_memory_is_refused_with_the_names_in_order() -> None:
    tensor = torch.zeros(4, 4)
    names = [f"n{number}" for number in range(8)]
    with pytest.raises(RuntimeError) as caught:
        save(dict.fromkeys(names, tensor))
    assert "[{" + ", ".join(repr(name) for name in names) + "}]" in str(caught.value)


def test_overlap_is_seen_for_any_strides() -> None:
    tensor = torch.zeros(4, 4)
    assert _find_shared_tensors({"a": tensor, "b": tensor.t()}) == [{"a", "b"}]
    assert _find_shared_tensors({"a": tensor[:2], "b": tensor[2:].t()}) == [{"a"}, {"b"}]


def test_short_areas_within_a_long_one_belong_to_it() -> None:
    whole = torch.zeros(100)
    tensors = {"whole": whole, "first": whole[5:10], "second": whole[20:30]}
    assert _find_shared_tensors(tensors) == [{"whole", "first", "second"}]
    assert _remove_duplicate_names(tensors) == {"whole": ["first", "second"]}


class Tied(torch.nn.Module):
    """Two layers that are one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.second = self.first


def test_tied_tensors_are_saved_once_and_tied_again(tmp_path: Path) -> None:
    path, metadata = tmp_path / "tied.safetensors", {"second.bias": "mine"}
    model, other = Tied(), Tied()
    save_model(model, path, metadata)
    assert metadata == {"second.bias": "mine"}
    with safe_open(path, framework="pt") as f:
        assert f.keys() == ["first.bias", "first.weight"]
        assert f.metadata() == {"second.bias": "mine", "second.weight": "first.weight"}
    assert load_model(other, path) == (set(), [])
    assert torch.equal(other.second.weight, model.first.weight)
    assert other.second.weight is other.first.weight


def test_names_that_do_not_match_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "linear.safetensors"
    save_model(torch.nn.Linear(3, 3, bias=False), path)
    with pytest.raises(RuntimeError) as caught:
        load_model(torch.nn.Linear(3, 3), path)
    expected = 'Error(s) in loading state_dict for Linear:\n    Missing key(s) in state_dict: "bias"'
    assert str(caught.value) == expected
    assert load_model(torch.nn.Linear(3, 3), path, strict=False) == ({"bias"}, [])


def test_order_of_bytes_is_swapped_number_by_number() -> None:
    assert swapped(b"\x01\x02\x03\x04", "I16") == b"\x02\x01\x04\x03"
    assert swapped(b"\x01\x02\x03\x04\x05\x06\x07\x08", "C64") == b"\x04\x03\x02\x01\x08\x07\x06\x05"
    assert swapped(b"\x01\x02", "F8_E4M3") == b"\x01\x02"


def test_threads_save_and_load(tmp_path: Path) -> None:
    tensors = {str(number): torch.rand(50, 50) for number in range(20)}
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for _ in range(10):
                path = tmp_path / f"{thread}.safetensors"
                save_file(tensors, path)
                loaded = load_file(path)
                assert all(torch.equal(loaded[name], tensor) for name, tensor in tensors.items())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_only_torch_is_imported() -> None:
    others = "tensorflow jax flax mlx paddle ml_dtypes"
    program = f"import sys, apr.safetensors.torch; print([n for n in {others.split()!r} if n in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
