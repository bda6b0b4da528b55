"""Every conformance vector through Python: the verdicts, texts and values of the official package."""

from __future__ import annotations

import hashlib
import re

import ml_dtypes  # noqa: F401  (gives numpy the names of its types)
import numpy as np
import pytest
from conftest import VECTORS, manifest

from apr.safetensors import SafetensorError, deserialize, safe_open
from apr.safetensors.numpy import load, load_file, save

FOLDER = VECTORS / "safetensors"
MANIFEST = manifest()
READABLE = MANIFEST["valid"] + MANIFEST["quirk"]
PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


def name_of(entry):
    return entry["file"]


def bytes_in_file(array, dtype):
    """The bytes that a file would hold of this array."""
    if dtype not in PACKED:
        return np.ascontiguousarray(array).tobytes()
    bits = PACKED[dtype]
    word = sum(int(code) << (bits * idx) for idx, code in enumerate(np.ravel(array).view(np.uint8)))
    return word.to_bytes(-(-array.size * bits // 8), "little")


@pytest.mark.parametrize("entry", READABLE, ids=name_of)
@pytest.mark.parametrize("backend", ["mmap", "pread", "read"])
def test_what_the_official_package_reads_is_read(entry, backend):
    path = FOLDER / entry["file"]
    with safe_open(path, framework="np", backend=backend) as file:
        assert file.metadata() == entry["metadata"]
        assert len(file) == entry["n_tensors"]
        for tensor in entry.get("tensors", []):
            info = file.info(tensor["name"])
            assert info["dtype"] == tensor["dtype"]
            assert info["shape"] == tensor["shape"]
            assert info["data_offsets"] == tensor["data_offsets"]
            if max(tensor["shape"], default=0) > np.iinfo(np.intp).max:
                with pytest.raises(ValueError, match="dimension"):
                    file.get_tensor(tensor["name"])
                return
            array = file.get_tensor(tensor["name"])
            assert list(array.shape) == tensor["shape"]
            assert hashlib.sha256(bytes_in_file(array, tensor["dtype"])).hexdigest() == tensor["sha256"]
    in_memory = load(path.read_bytes())
    mapped = load_file(path)
    assert list(in_memory) == list(mapped)
    for name, array in mapped.items():
        assert in_memory[name].dtype == array.dtype
        assert in_memory[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("entry", MANIFEST["invalid"], ids=name_of)
def test_what_the_official_package_refuses_is_refused_in_its_words(entry):
    path = FOLDER / entry["file"]
    official = entry["official"]
    # What comes after these words depends on the JSON parser, or on which of two tensors is looked at first.
    steady = re.compile(r"(.*invalid (?:JSON in header|UTF-8 in header|offset for tensor))?.*", re.DOTALL)
    for call, said in (
        (lambda: safe_open(path, framework="np"), official["python_0_8_0_safe_open"]),
        (lambda: deserialize(path.read_bytes()), official["python_0_8_0_deserialize"]),
    ):
        with pytest.raises(Exception) as caught:
            call()
        if said["exception"] == "SafetensorError":
            assert isinstance(caught.value, SafetensorError)
            expected = steady.fullmatch(said["message"]).group(1) or said["message"]
            assert str(caught.value).startswith(expected), str(caught.value)
            assert caught.value.code.startswith("st-")


@pytest.mark.parametrize("entry", [e for e in MANIFEST["valid"] if e["byte_exact_reserialize"]], ids=name_of)
def test_writing_again_gives_the_same_bytes(entry):
    data = (FOLDER / entry["file"]).read_bytes()
    assert save(load(data), entry["metadata"]) == data


@pytest.mark.parametrize("entry", MANIFEST["slices"], ids=lambda entry: entry["tensor"] + entry["index"])
@pytest.mark.parametrize("backend", ["mmap", "pread", "read"])
def test_slices_are_those_of_numpy_and_refusals_those_of_the_official_package(entry, backend):
    with safe_open(FOLDER / entry["file"], framework="np", backend=backend) as file:
        part = file.get_slice(entry["tensor"])
    says = entry if entry["ok"] else entry["numpy_says"]
    if "shape" in says and entry["index"] != "[[0,1]]":
        array = eval(f"part{entry['index']}")
        assert isinstance(array, np.ndarray)
        assert list(array.shape) == says["shape"]
        assert hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() == says["sha256"]
    else:
        with pytest.raises(SafetensorError) as caught:
            eval(f"part{entry['index']}")
        assert str(caught.value) == entry["message"]
