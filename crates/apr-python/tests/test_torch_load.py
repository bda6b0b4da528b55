"""`apr.torch.load` beside `torch.load`: the same names and values, without unpickling."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import VECTORS

torch = pytest.importorskip("torch")

import apr  # noqa: E402

FOLDER = VECTORS / "import" / "torch"
REFUSED = "complex32 meta name_collision nested_tensor quant_per_channel quant_per_tensor quant_qint32 sparse_coo sparse_csr"


def raw(tensor: Any) -> bytes:
    """The bytes of a tensor's elements."""
    dense = tensor.resolve_conj().resolve_neg().contiguous()
    return bytes(dense.reshape(-1).view(torch.uint8).tolist())


def compare(path: Path, expected: dict[str, Any]) -> None:
    found = apr.torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape), name
        assert raw(found[name]) == raw(tensor), name


def test_state_dicts_have_the_names_and_values_of_torch(tmp_path):
    torch.manual_seed(1)
    base = torch.arange(24.0).reshape(4, 6)
    state = {
        "plain": base,
        "t": base.T,
        "strided": base[1:, ::2],
        "expanded": torch.ones(1, 3).expand(4, 3),
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "bf16": torch.randn(5).bfloat16(),
        "f8": torch.randn(5).to(torch.float8_e4m3fn),
        "half": torch.randn(5).half(),
        "bool": torch.tensor([True, False]),
        "u16": torch.arange(3).to(torch.uint16),
        "c64": torch.randn(3, dtype=torch.complex64).conj(),
        "c128": torch.randn(3, dtype=torch.complex128),
        "neg": torch.randn(3, dtype=torch.complex64).conj().imag,
        "with.dots and spaces": torch.zeros(1),
        "parameter": torch.nn.Parameter(torch.randn(2)),
    }
    torch.save(state, tmp_path / "new.pt")
    compare(tmp_path / "new.pt", torch.load(tmp_path / "new.pt", weights_only=True))
    torch.save(state, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    # torch itself does not read all of these back.
    compare(tmp_path / "old.pt", state)


def test_modules_load_what_is_read(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    torch.save(module.state_dict(), tmp_path / "a.pt")
    copy = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    copy.load_state_dict(apr.torch.load(tmp_path / "a.pt"))
    x = torch.randn(2, 4)
    assert torch.equal(module.eval()(x), copy.eval()(x))


def test_tied_tensors_share_their_storage(tmp_path):
    weight = torch.randn(3, 4)
    torch.save({"b": weight, "a": weight, "c": weight.clone()}, tmp_path / "a.pt")
    found = apr.torch.load(tmp_path / "a.pt")
    found["b"].fill_(7)
    assert (found["a"] == 7).all() and not (found["c"] == 7).any()


def test_nested_objects_have_joined_names(tmp_path):
    torch.save({"model": {"w": torch.ones(2)}, "step": 3, "history": [torch.zeros(1)]}, tmp_path / "a.ckpt")
    assert set(apr.torch.load(tmp_path / "a.ckpt")) == {"model.w", "history.0"}
    assert apr.inspect(tmp_path / "a.ckpt")["metadata"] == {"step": 3}


@pytest.mark.parametrize("name", REFUSED.split())
def test_what_is_no_dense_tensor_is_refused(name):
    path = FOLDER / f"{'dtype_' if name == 'complex32' else ''}{name}.pt"
    with pytest.raises(apr.AprError) as caught:
        apr.torch.load(path)
    assert caught.value.code.startswith("ft-") and caught.value.name


class Command:
    """What must not run."""

    def __reduce__(self):
        return pytest.fail, ("this was run",)


def test_nothing_in_a_file_is_run(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.ones(1), "x": Command()}, path)
    with pytest.raises(apr.AprError):
        apr.torch.load(path)
    path.write_bytes(pickle.dumps({"x": Command()}))
    with pytest.raises(apr.AprError):
        apr.torch.load(path)
