"""Several files, files in pieces, digests, checkpoints."""

from __future__ import annotations

import json
import os

import ml_dtypes
import numpy as np
import pytest
from conftest import VECTORS, manifest

import apr
from apr import SafetensorError
from apr.safetensors import Writer, digests, safe_open, verify
from apr.safetensors.numpy import load_file, save, save_file

SHARDED = manifest()["sharded"]


@pytest.mark.parametrize("entry", [e for e in SHARDED if "rule" not in e], ids=lambda e: e["file"])
def test_a_set_of_files_is_one_mapping(entry):
    folder = VECTORS / "safetensors" / entry["file"]
    with apr.open(folder) as model:
        assert set(model) == set(entry["tensors"])
        assert len(model.shards) == len(entry["filename_to_tensors"])
        for name, tensor in entry["tensors"].items():
            assert list(model[name].shape) == tensor["shape"] == model.info(name)["shape"]
            assert model[name].dtype.name == tensor["dtype"]
            assert model.file_of(name).name in entry["filename_to_tensors"]
        first = next(iter(model))
        assert (model.get_slice(first)[...] == model[first]).all()
        assert "no such tensor" not in model
        with pytest.raises(KeyError):
            model["no such tensor"]
        with pytest.raises(SafetensorError, match="do not contain tensor x"):
            model.get_tensor("x")
    with pytest.raises(SafetensorError, match="File is closed"):
        model[first]


# Tensors are where the index says: only its sum is wrong.
WRONG_SUM = "sharded/b_wrong_total_size"


def test_a_wrong_sum_in_an_index_does_not_keep_tensors_from_their_reader():
    with apr.open(VECTORS / "safetensors" / WRONG_SUM) as model:
        assert len(model) > 1 and all(model[name].nbytes for name in model)


@pytest.mark.parametrize("entry", [e for e in SHARDED if "rule" in e and e["file"] != WRONG_SUM], ids=lambda e: e["file"])
def test_a_set_that_does_not_fit_its_index_is_refused(entry):
    with pytest.raises((SafetensorError, OSError)) as caught:
        apr.open(VECTORS / "safetensors" / entry["file"])
    assert str(caught.value)


def test_one_file_is_a_set_of_one(tmp_path):
    save_file({"a": np.arange(3.0)}, tmp_path / "model.safetensors", {"k": "v"})
    for path in (tmp_path, tmp_path / "model.safetensors"):
        with apr.open(path) as model:
            assert dict(model)["a"].tolist() == [0, 1, 2]
            assert model.metadata() == {"k": "v"}
    with pytest.raises((SafetensorError, OSError)):
        apr.open(tmp_path / "nothing")


def test_a_file_can_be_written_in_pieces_and_any_order(tmp_path):
    path = tmp_path / "a"
    arrays = {
        "big": np.arange(60, dtype="f4").reshape(10, 6),
        "half": np.arange(4).astype(ml_dtypes.bfloat16),
        "scalar": np.array(7, dtype=">i8"),
        "empty": np.zeros((0, 3)),
    }
    spec = {
        "big": ("float32", (10, 6)),
        "half": ("BF16", [4]),
        "scalar": (np.int64, ()),
        "empty": arrays["empty"],
    }
    with Writer(path, spec, {"k": "v"}, fsync=True) as writer:
        writer.write("scalar", arrays["scalar"])
        writer.write("big", arrays["big"][:4])
        writer.write("half", arrays["half"])
        writer.write("big", arrays["big"][4:, ::-1][:, ::-1])
        assert not path.exists()
    assert path.read_bytes() == save(arrays, {"k": "v"})


def test_a_file_that_is_not_complete_is_dropped(tmp_path):
    path = tmp_path / "a"
    save_file({"old": np.zeros(1)}, path)
    before = path.read_bytes()
    spec = {"a": ("float32", (4, 2)), "b": ("uint8", (1,))}
    with pytest.raises(SafetensorError, match="tensor `a` is not complete: 16 of 32 bytes"):
        with Writer(path, spec) as writer:
            writer.write("b", np.zeros(1, "u1"))
            writer.write("a", np.zeros((2, 2), "f4"))
    with pytest.raises(RuntimeError, match="mine"):
        with Writer(path, spec) as writer:
            raise RuntimeError("mine")
    with pytest.raises(SafetensorError, match="closed"):
        writer.write("b", np.zeros(1, "u1"))
    with Writer(path, spec) as writer:
        for name, array, text in (
            ("c", np.zeros(1, "u1"), "not declared"),
            ("b", np.zeros(1, "i1"), "declared as U8, this is I8"),
            ("b", np.zeros(2, "u1"), "too many"),
            ("b", np.zeros((), "u1"), "declared with shape"),
            ("a", np.zeros((2, 3), "f4"), "declared with shape"),
            ("a", np.zeros((5, 2), "f4"), "too many"),
        ):
            with pytest.raises(SafetensorError, match=text):
                writer.write(name, array)
        writer.abort()
    with pytest.raises(SafetensorError, match='Unknown dtype "float7"'):
        Writer(path, {"a": ("float7", (1,))})
    with pytest.raises(FileNotFoundError):
        Writer(tmp_path / "no" / "a", spec)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


def test_parts_are_whole_bytes(tmp_path):
    path, values = tmp_path / "a", np.arange(4).astype(ml_dtypes.float4_e2m1fn)
    with Writer(path, {"a": ("F4", [4])}) as writer:
        for count in (1, 3):
            with pytest.raises(SafetensorError, match="no whole bytes"):
                writer.write("a", values[:count])
        writer.write("a", values[:2])
        writer.write("a", values[2:])
    assert path.read_bytes() == save({"a": values})


def test_digests_follow_the_values(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(4).astype(ml_dtypes.bfloat16), "c": np.zeros((0, 2))}
    one, other = tmp_path / "one", tmp_path / "other"
    save_file(arrays, one)
    save_file({name: array.T.copy().T for name, array in arrays.items()}, other, {"k": "v"})
    expected = digests(one)
    assert digests(other, backend="pread") == expected
    verify(other, expected)
    changed = dict(arrays, a=arrays["a"] + 1)
    save_file(changed, other)
    with pytest.raises(SafetensorError, match="tensor a has digest"):
        verify(other, expected)
    save_file({"a": arrays["a"] * 2, "d": arrays["a"]}, other)
    with pytest.raises(SafetensorError, match="b is missing.*d was not expected.*a has digest"):
        verify(other, expected)


def test_digests_are_those_of_the_bytes():
    for entry in manifest()["valid"][:40]:
        found = digests(VECTORS / "safetensors" / entry["file"])
        listed = {tensor["name"]: tensor["sha256"] for tensor in entry.get("tensors", [])}
        assert listed.items() <= found.items()


def test_checkpoints(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path / "run")
    assert checkpoints.steps() == [] and checkpoints.latest() is None and checkpoints.resume() is None
    weights = np.arange(6.0).reshape(2, 3).T
    for step in (1, 5, 10):
        path = checkpoints.save(
            step,
            {"w": weights + step},
            metrics={"loss": 1 / step},
            model_class="Linear",
            optimizer={"w.m": weights.astype(ml_dtypes.bfloat16)},
            optimizer_state={"lr": 0.1, "betas": [0.9, 0.99]},
            optimizer_class="Adam",
        )
        assert path.is_dir()
    assert checkpoints.steps() == [1, 5, 10]
    newest = checkpoints.resume()
    assert newest.step == 10 and newest.verified and not newest.skipped
    assert newest.model["w"].tolist() == (weights + 10).tolist()
    newest.model["w"] += 1
    assert newest.metrics == {"loss": 0.1}
    assert (newest.model_class, newest.optimizer_class) == ("Linear", "Adam")
    assert newest.optimizer["w.m"].tolist() == weights.tolist()
    assert newest.optimizer_state == {"lr": 0.1, "betas": [0.9, 0.99]}
    with pytest.raises(OSError):
        checkpoints.save(10, {"w": weights})
    # One changed bit in the newest: the one before it is used, and the reason is kept.
    file = newest.path / "model.safetensors"
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(SafetensorError, match="checksum mismatch"):
        checkpoints.load(10)
    older = checkpoints.resume()
    assert older.step == 5 and list(older.skipped) == [10]
    (older.path / "manifest.json").unlink()
    with pytest.raises(SafetensorError):
        checkpoints.load(5)
    assert not checkpoints.load(5, require_manifest=False).verified
    assert checkpoints.keep_last(1) == [1, 5]
    with pytest.raises(ValueError, match="at least one"):
        checkpoints.keep_last(0)
    plain = checkpoints.save(11, {"w": weights})
    assert checkpoints.load(11).optimizer is None
    assert json.loads((plain / "meta.json").read_text())["step"] == 11


def test_the_arrays_of_a_closed_set_stay(tmp_path):
    save_file({"a": np.arange(3.0)}, tmp_path / "model.safetensors")
    with apr.open(tmp_path) as model:
        array = model["a"]
    with safe_open(tmp_path / "model.safetensors", "np") as file:
        assert (array == file["a"]).all()
    assert load_file(tmp_path / "model.safetensors")["a"].sum() == array.sum()
