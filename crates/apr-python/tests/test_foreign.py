"""Files of other programs: every conformance vector of import and scan through Python, and what the functions add."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import VECTORS, sidecars
from test_vectors import bytes_in_file

import apr
from apr.safetensors import numpy as st

FOLDER = VECTORS / "import"
ENTRIES = sidecars("import")
# Formats of this project have readers of their own.
READABLE = [e for e in ENTRIES if "import" in e and e.get("format") not in ("safetensors", "gguf")]
FOREIGN = [e for e in READABLE if (FOLDER / e["file"]).exists()]
# Elements of these types are in no array.
PACKED = {"I4", "U4", "I2", "U2"}
# What sidecars allow in words: the array of a checkpoint of PyTorch, an attribute of an estimator.
MAY_ADD = {"torch/np_leaves.ckpt": "arr", "joblib/sk_logreg.joblib": "n_iter_", "joblib/sk_logreg.pkl": "n_iter_"}


def name_of(entry: dict) -> str:
    return entry["file"]


def content(entry: dict) -> bytes:
    """The bytes of a vector: stored, or repeated as its sidecar says."""
    if "generate" in entry:
        return b"".join(bytes.fromhex(piece) * count for piece, count in entry["generate"])
    return (FOLDER / entry["file"]).read_bytes()


def rows(tensors: list[dict] | None) -> set[tuple]:
    return {(each["name"], each["dtype"], tuple(each["shape"]), each["sha256"]) for each in tensors or []}


def read(model: apr.ModelFiles) -> set[tuple]:
    """Name, type, shape and digest of every tensor; arrays have the bytes of the file."""
    found = set()
    for name, info in model.info().items():
        digest = hashlib.sha256(model.get_bytes(name)).hexdigest()
        if info["dtype"] in PACKED:
            with pytest.raises(apr.AprError) as caught:
                model[name]
            assert (caught.value.code, caught.value.name) == ("mo-unknown-encoding", name)
        else:
            array = model[name]
            assert list(array.shape) == info["shape"] and array.flags.writeable
            assert hashlib.sha256(bytes_in_file(array, info["dtype"])).hexdigest() == digest, name
        found.add((name, info["dtype"], tuple(info["shape"]), digest))
    return found


@pytest.mark.parametrize("entry", FOREIGN, ids=name_of)
def test_tensors_are_those_of_the_sidecar(entry):
    path, allowed = FOLDER / entry["file"], entry["import"]
    try:
        with apr.open(path) as model:
            found = read(model)
            with_aliases = {name for name, info in model.info().items() if "alias_of" in info}
    except (apr.AprError, apr.SafetensorError, OSError) as error:
        assert "refused" in allowed, error
        assert isinstance(error, OSError) or error.code or path.is_dir(), error
        return
    if path.is_file():
        told = apr.inspect(path)
        assert set(told["tensors"]) | set(told["aliases"]) == {row[0] for row in found}
        assert set(told["aliases"]) == with_aliases and set(told["aliases"].values()) <= set(told["tensors"])
        assert "ok" in allowed or ("ok-with-warnings" in allowed and told["warnings"]), told
    listed, others = rows(entry.get("tensors")), rows(entry.get("alternatives"))
    if not listed and not others or found == others:
        return
    assert listed <= found
    assert {row for row in found - listed - others if row[0] != MAY_ADD.get(entry["file"])} == set()


@pytest.mark.parametrize("entry", [e for e in ENTRIES if "scan" in e], ids=name_of)
def test_verdicts_are_those_of_the_sidecar(entry):
    path, allowed = FOLDER / entry["file"], entry["scan"]
    reports = [apr.scan(path)] if path.exists() else []
    if not path.is_dir():
        reports.append(apr.scan(content(entry)))
    for report in reports:
        assert report.verdict in allowed or report.verdict == "safe" and "not-applicable" in allowed, report
        assert report["schema"] == "apr.scan/1" and not report.unread
        assert report.is_safe == (report.verdict == "safe")
        names = {name for file in report.files for stream in file["pickles"] for name in stream["names"]}
        assert {f"{module}.{name}" for module, name, *_ in entry.get("globals", [])} <= names
    if len(reports) == 2:
        # Paths differ, and with them what a name alone says.
        told = [{**report.files[0], "path": ""} for report in reports]
        if "no format that the name stands for" in str(told[0]["findings"]):
            assert (told[0]["verdict"], told[1]["verdict"]) == ("suspicious", "safe")
        else:
            assert told[0] == told[1]


TIED = FOLDER / "torch" / "pytorch_model.bin"
BASIC = FOLDER / "torch" / "sd_basic.pt"
SPARSE = FOLDER / "torch" / "sparse_coo.pt"


def test_tensors_with_several_names_share_their_memory():
    with apr.open(TIED) as model:
        assert model.format == "torch" and repr(model).endswith("3 tensors in 1 files>")
        assert model.info("model.embed.weight")["alias_of"] == "head.weight"
        arrays = model.get_tensors()
        assert list(arrays) == list(model)
        assert np.shares_memory(arrays["head.weight"], arrays["model.embed.weight"])
        arrays["bias"][:] = 7
        assert (model["bias"] != 7).all()
    assert apr.inspect(TIED)["aliases"] == {"model.embed.weight": "head.weight"}
    with pytest.raises(apr.SafetensorError, match="File is closed"):
        model["bias"]


def test_parts_of_tensors_follow_numpy():
    with apr.open(FOLDER / "torch" / "views.pt") as model:
        for name in model:
            whole, part = model[name], model.get_slice(name)
            assert part.get_shape() == list(whole.shape) and part.get_dtype() == model.info(name)["dtype"]
            for key in (np.s_[...], np.s_[1:3], np.s_[::-2], np.s_[-1:], np.s_[..., :1], np.s_[5:-200]):
                if whole.ndim:
                    assert (part[key] == whole[key]).all() and part[key].shape == whole[key].shape, (name, key)


def test_a_folder_of_another_program_is_opened_by_its_file(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(TIED.read_bytes())
    with apr.open(tmp_path) as model:
        assert model.format == "torch" and len(model) == 3
    assert apr.inspect(tmp_path) == apr.inspect(TIED)
    apr.convert(tmp_path, tmp_path / "a.npz")
    apr.convert(TIED, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    st.save_file({"a": np.ones(1)}, tmp_path / "model.safetensors")
    with apr.open(tmp_path) as model:
        assert model.format == "safetensors" and list(model) == ["a"]
    told = apr.inspect(tmp_path)
    assert told["format"] == "safetensors" and list(told["tensors"]) == ["a"]
    (tmp_path / "empty").mkdir()
    with pytest.raises((apr.AprError, OSError)):
        apr.inspect(tmp_path / "empty")


@pytest.mark.parametrize("folder", sorted(path.parent for path in FOLDER.glob("tf/**/saved_model.pb")), ids=lambda path: path.name)
def test_the_folder_of_a_saved_model_is_inspected_and_converted(folder, tmp_path):
    told = apr.inspect(folder)
    assert told["format"] == "saved-model" and told["warnings"]
    with apr.open(folder) as model:
        assert set(told["tensors"]) | set(told["aliases"]) == set(model)
        apr.convert(folder, tmp_path / "a.safetensors", allow_empty=not told["tensors"])
        with apr.open(tmp_path / "a.safetensors") as written:
            assert all((written[name] == model[name]).all() for name in written) and set(written) == set(told["tensors"])


def test_what_arrays_do_not_have_is_named_when_it_is_asked_for():
    model = apr.open(SPARSE)
    assert list(model) == ["s", "d"] and model["d"].shape == (2,)
    for ask in (lambda: model["s"], lambda: model.get_bytes("s"), model.get_tensors):
        with pytest.raises(apr.AprError, match="sparse tensor") as caught:
            ask()
        assert (caught.value.code, caught.value.name, caught.value.path) == ("ft-tensor-unsupported", "s", str(SPARSE))
    assert list(apr.open(SPARSE, exclude="s").get_tensors()) == ["d"]
    assert "s: a sparse tensor cannot be represented" in apr.inspect(SPARSE)["warnings"]


def test_names_are_left_out_in_every_format(tmp_path):
    arrays = {name: np.ones(2, np.float32) for name in ("layer.0.w", "layer.0.b", "layer.10.w", "head[0]")}
    st.save_file(arrays, tmp_path / "a.safetensors")
    np.savez(tmp_path / "a.npz", **arrays)
    for path in tmp_path.iterdir():
        for exclude, left in ((["layer.?.*"], 2), ("*w", 2), (("head[0]",), 3), (["*"], 0), ((), 4)):
            with apr.open(path, exclude=exclude) as model:
                assert len(model) == len(model.get_tensors()) == left, (path, exclude)


def test_a_nested_object_is_chosen_by_its_key(tmp_path):
    path = FOLDER / "torch/trainer.ckpt"
    key = next(name for name in apr.open(path) if "." in name).partition(".")[0]
    below = {name.removeprefix(key + ".") for name in apr.open(path) if name.startswith(key + ".")}
    assert set(apr.open(path, object=key)) == below
    apr.convert(path, tmp_path / "part.safetensors", object=key)
    assert set(apr.open(tmp_path / "part.safetensors")) <= below
    with pytest.raises(apr.AprError, match="no such object") as caught:
        apr.open(path, object="nothing")
    assert caught.value.code == "ft-key"
    np.save(tmp_path / "a.npy", np.ones(2))
    with pytest.raises(apr.AprError, match="no nested objects"):
        apr.open(tmp_path / "a.npy", object="model")
    with pytest.raises(ValueError, match="no nested objects"):
        apr.open(tmp_path / "part.safetensors", object="model")


def test_elements_without_a_type_are_bfloat16_on_request(tmp_path):
    wanted = np.arange(4).astype(ml_dtypes.bfloat16)
    np.savez(tmp_path / "a.npz", w=wanted)
    with pytest.raises(apr.AprError, match="void") as caught:
        apr.open(tmp_path / "a.npz")["w"]
    assert caught.value.name == "w"
    assert (apr.open(tmp_path / "a.npz", void_as_bf16=True)["w"] == wanted).all()
    apr.convert(tmp_path / "a.npz", tmp_path / "a.safetensors", void_as_bf16=True)
    assert (apr.open(tmp_path / "a.safetensors")["w"] == wanted).all()
    with pytest.raises(apr.AprError) as caught:
        apr.convert(tmp_path / "a.safetensors", tmp_path / "b.npz")
    assert (caught.value.code, caught.value.name) == ("cli-not-carried", "w")
    apr.convert(BASIC, tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as arrays, apr.open(BASIC) as model:
        assert set(arrays) == set(model) and all((arrays[name] == model[name]).all() for name in model)


def test_files_of_this_project_are_opened_by_the_same_name(tmp_path):
    path = tmp_path / "a.gguf"
    apr.gguf.save(path, {"w": np.ones((2, 256), np.float32), "q": np.ones((2, 256), np.float32)}, {"k": 1}, types={"q": "Q4_K"})
    with apr.open(path) as model:
        assert model["w"].shape == (2, 256) and model.metadata() == {"k": 1}
        assert len(model.get_bytes("q")) == 288
        with pytest.raises(apr.AprError) as caught:
            model["q"]
        assert (caught.value.code, caught.value.name) == ("mo-unknown-encoding", "q")


def test_a_model_to_predict_with_is_refused_with_the_way():
    for path, way in ((BASIC, "apr.open"), (FOLDER / "joblib" / "sk_logreg.pkl", "apr.sklearn.export")):
        for file in (path, path.read_bytes()):
            with pytest.raises(apr.AprError, match=way) as caught:
                apr.load(file)
            assert caught.value.code == "ac-magic"


def test_a_tensor_is_read_when_it_is_asked_for(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **{f"w{idx}": np.full(1 << 20, idx, np.float64) for idx in range(4)})
    tracemalloc.start()
    with apr.open(path) as model:
        assert all((model[f"w{idx}"] == idx).all() for idx in range(4))
        # numpy tells tracemalloc of its memory.
        assert 8 << 20 <= tracemalloc.get_traced_memory()[1] < 17 << 20
    tracemalloc.stop()


class Command:
    """What a scanner has to name."""

    def __reduce__(self):
        return print, ("run",)


def test_folders_are_scanned_with_what_is_below_them(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "bad.pkl").write_bytes(pickle.dumps(Command()))
    st.save_file({"a": np.ones(1)}, tmp_path / "good.safetensors")
    report = apr.scan(tmp_path)
    assert report.verdict == "dangerous" and not report.is_safe
    assert {Path(file["path"]).name: file["verdict"] for file in report.files} == {
        "bad.pkl": "dangerous",
        "good.safetensors": "safe",
    }
    (bad,) = [file for file in report.files if file["verdict"] == "dangerous"]
    assert bad["sha256"] == hashlib.sha256(pickle.dumps(Command())).hexdigest()
    assert bad["findings"][0]["name"] == "builtins.print"
    assert "2 files" in repr(report) and "builtins.print" in report._repr_html_()
    assert json.loads(json.dumps(report)) == report


def test_a_scan_follows_its_options(tmp_path):
    stream = pickle.dumps(Command())
    (tmp_path / "-a.pkl").write_bytes(stream)
    for file in (stream, tmp_path / "-a.pkl"):
        assert apr.scan(file, allow=["builtins.print"]).verdict == "safe"
        assert apr.scan(file, max_opcodes=2).verdict != "safe"
        with pytest.raises(ValueError, match="module"):
            apr.scan(file, allow=["print"])
    with pytest.raises(FileNotFoundError):
        apr.scan(tmp_path / "none")
    with pytest.raises(TypeError):
        apr.scan(7)


def test_a_conversion_is_that_of_the_program(tmp_path):
    ours, theirs = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    report = apr.convert(TIED, ours)
    assert (report["tensors"], report["bytes"]) == (2, ours.stat().st_size)
    command = [sys.executable, "-m", "apr", "--quiet", "convert", TIED, theirs]
    subprocess.run(command, check=True)
    assert ours.read_bytes() == theirs.read_bytes()
    with apr.open(ours) as written, apr.open(TIED) as model:
        assert written.metadata() == {"format": "pt", "model.embed.weight": "head.weight"}
        assert all((written[name] == model[name]).all() for name in written)


def test_a_conversion_follows_its_options(tmp_path):
    path = tmp_path / "-a.safetensors"
    with pytest.raises(apr.AprError, match="sparse") as caught:
        apr.convert(SPARSE, path)
    assert caught.value.name == "s" and not path.exists()
    with pytest.raises(ValueError, match="the key 'd=e' has an `=`"):
        apr.convert(SPARSE, path, rename={"d=e": "x"})
    apr.convert(SPARSE, path, exclude=["s"], rename={"d": "x"}, set={"licence": "MIT"})
    assert list(apr.open(path)) == ["x"] and apr.open(path).metadata() == {"format": "pt", "licence": "MIT"}
    before = path.read_bytes()
    with pytest.raises(apr.AprError):
        apr.convert(BASIC, path)
    assert path.read_bytes() == before
    assert apr.convert(BASIC, path, force=True, dry_run=True)["written"] is False
    apr.convert(BASIC, path, force=True)
    assert set(apr.open(path)) == set(apr.open(BASIC))
    with pytest.raises(FileNotFoundError):
        apr.convert(tmp_path / "none", path)


ARRAYS = {
    **{f"{kind}{shape}": np.arange(np.prod(shape)).reshape(shape).astype(kind)
       for kind in ("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8")
       for shape in ((), (0,), (3,), (2, 3), (1, 0, 4), (1,) * 30)},
    "long": np.zeros((1, 1000, 1), "<f4"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_file_has_the_bytes_of_numpy(name, tmp_path):
    source, ours, theirs = tmp_path / "a.safetensors", tmp_path / "a.npy", tmp_path / "b.npy"
    st.save_file({"a": ARRAYS[name]}, source)
    apr.convert(source, ours)
    np.save(theirs, ARRAYS[name])
    assert ours.read_bytes() == theirs.read_bytes()
    apr.convert(theirs, ours, force=True)
    assert ours.read_bytes() == theirs.read_bytes()


def test_an_archive_of_arrays_is_loaded_by_numpy(tmp_path):
    st.save_file(ARRAYS, tmp_path / "a.safetensors")
    apr.convert(tmp_path / "a.safetensors", tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as loaded:
        assert set(loaded) == set(ARRAYS)
        for name, array in ARRAYS.items():
            found = loaded[name]
            assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes()), name


@pytest.mark.parametrize("compression", ["bz2", "lzma", "lz4", "xz", "zfile"])
def test_every_compression_of_joblib_is_read(compression):
    with apr.open(FOLDER / "joblib/dict_plain.joblib") as plain, apr.open(FOLDER / f"joblib/dict_{compression}.joblib") as model:
        assert read(model) == read(plain)


def test_torch_load_refuses_what_it_cannot_follow():
    # Before torch is imported.
    for arguments, error in (
        ({"weights_only": False}, ValueError),
        ({"map_location": "cuda:0"}, ValueError),
        ({"pickle_module": pickle}, ValueError),
    ):
        with pytest.raises(error):
            apr.torch.load(BASIC, **arguments)
    with BASIC.open("rb") as file, pytest.raises(TypeError, match="path"):
        apr.torch.load(file)
