"""The pipeline into an accelerator from files of each kind, with a device in main memory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import apr
import numpy as np
import pytest
from apr._accelerator._limits import Limits
from apr._accelerator._plan import plan
from apr._accelerator._ring import stream
from apr.safetensors import SafetensorError, safe_open
from apr.safetensors import numpy as st
from memory_device import UNWRITTEN, MemoryDevice, check_end, loaded, readers_alive
from range_server import serving
from test_apr import IDENTITY, RECIPIENT, SIGN_KEY, VERIFY_KEY


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert readers_alive() == []


ARRAYS = {
    "weight": np.arange(60_000, dtype=np.float32).reshape(200, 300),
    "bias": np.array([1, -2, 3], dtype=np.int64),
    "scalar": np.array(0.5),
    "empty": np.zeros((0, 7), dtype=np.float16),
    "last": np.arange(50_000, dtype=np.int16),
}
EXPECTED = {name: array.tobytes() for name, array in ARRAYS.items()}


@pytest.mark.parametrize("backend", ["mmap", "pread", "read"])
def test_a_file_that_was_truncated(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    st.save_file(ARRAYS, path)
    device = MemoryDevice()
    with safe_open(path, "np", backend=backend) as file:
        os.truncate(path, path.stat().st_size - 10)
        if backend == "read":
            assert loaded(device, [(file, None)], Limits(4096, 3, 3)) == EXPECTED
        else:
            with pytest.raises(SafetensorError, match="m.safetensors") as caught:
                loaded(device, [(file, None)], Limits(4096, 3, 3))
            assert caught.value.code == "sm-shrunk"
    check_end(device)


def test_a_file_that_was_closed(tmp_path: Path) -> None:
    st.save_file(ARRAYS, tmp_path / "m.safetensors")
    device = MemoryDevice()
    with safe_open(tmp_path / "m.safetensors", "np") as file:
        places, batches = plan([(file, None)], 4096)
    with pytest.raises(SafetensorError, match="File is closed"):
        next(stream(device, places, batches, Limits(4096, 2, 2)))
    check_end(device)


def sealed(tmp_path: Path, **keys: Any) -> Path:
    st.save_file(ARRAYS, tmp_path / "m.safetensors")
    apr.seal(tmp_path / "m.safetensors", tmp_path / "m.sealed", **keys)
    return tmp_path / "m.sealed"


KINDS = [
    ({"recipients": RECIPIENT}, {"identity": IDENTITY}, ("ac-decryption",)),
    ({"sign_key": SIGN_KEY}, {"verify_key": VERIFY_KEY}, ("ac-signature",)),
    ({"recipients": RECIPIENT, "sign_key": SIGN_KEY}, {"identity": IDENTITY, "verify_key": VERIFY_KEY}, ("ac-decryption", "ac-signature")),
]


@pytest.mark.parametrize(("keys", "opening", "codes"), KINDS)
def test_a_sealed_file(keys: Any, opening: Any, codes: tuple[str, ...], tmp_path: Path) -> None:
    path = sealed(tmp_path, **keys)
    device = MemoryDevice()
    file = apr.open_sealed(path, **opening)
    assert loaded(device, [(file, None)], Limits(1 << 14, 3, 3)) == EXPECTED
    check_end(device)


@pytest.mark.parametrize(("keys", "opening", "codes"), KINDS)
def test_nothing_of_a_changed_chunk_is_copied(keys: Any, opening: Any, codes: tuple[str, ...], tmp_path: Path) -> None:
    path = sealed(tmp_path, **keys)
    # In the tensor that is last in the file, or in the hashes after it.
    name = apr.open_sealed(path, **opening).keys()[-1]
    data = bytearray(path.read_bytes())
    at = len(data) - len(data) // 8
    data[at] ^= 1
    path.write_bytes(data)
    file = apr.open_sealed(path, **opening)
    device = MemoryDevice()
    with pytest.raises(apr.AprError) as caught:
        loaded(device, [(file, None)], Limits(1 << 14, 3, 3))
    assert caught.value.code in codes
    for found, array in device.tensors.items():
        # What was copied is right; what was not copied was never written.
        expected = np.frombuffer(EXPECTED[found], np.uint8)
        copied = np.frombuffer(array.data, np.uint8)
        assert ((copied == expected) | (copied == UNWRITTEN)).all()
    assert name not in device.tensors or bytes(device.tensors[name].data) != EXPECTED[name]
    check_end(device)


def sharded() -> dict[str, bytes]:
    shards = {"one.safetensors": ["weight", "scalar"], "two.safetensors": ["bias", "empty", "last"]}
    files = {shard: st.save({name: ARRAYS[name] for name in names}) for shard, names in shards.items()}
    index = {
        "metadata": {"total_size": sum(array.nbytes for array in ARRAYS.values())},
        "weight_map": {name: shard for shard, names in shards.items() for name in names},
    }
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    return files


def test_a_set_of_shards(tmp_path: Path) -> None:
    for name, data in sharded().items():
        (tmp_path / name).write_bytes(data)
    with apr.open(tmp_path) as model:
        device = MemoryDevice()
        assert loaded(device, model._groups(), Limits(4096, 3, 3)) == EXPECTED
        check_end(device)
    with apr.open(tmp_path, exclude="*a*") as model:
        device = MemoryDevice()
        found = loaded(device, model._groups(), Limits(4096, 3, 3))
        assert set(found) == set(model) == {"weight", "empty"}


def test_files_at_urls(tmp_path: Path, plain_environment: None) -> None:
    files = {"/m.safetensors": st.save(ARRAYS), **{f"/s/{name}": data for name, data in sharded().items()}}
    files["/m.sealed"] = sealed(tmp_path, recipients=RECIPIENT, sign_key=SIGN_KEY).read_bytes()
    with serving(files) as site:
        with safe_open(site.url("/m.safetensors"), "np") as file:
            assert loaded(MemoryDevice(), [(file, None)], Limits(1 << 16, 3, 3)) == EXPECTED
        with apr.open(site.url("/s/model.safetensors.index.json")) as model:
            assert loaded(MemoryDevice(), model._groups(), Limits(1 << 16, 3, 3)) == EXPECTED
        opened = apr.open_sealed(site.url("/m.sealed"), identity=IDENTITY, verify_key=VERIFY_KEY)
        assert loaded(MemoryDevice(), [(opened, None)], Limits(1 << 16, 3, 3)) == EXPECTED


def test_a_file_at_a_url_that_was_replaced(plain_environment: None) -> None:
    with serving({"/m.safetensors": st.save(ARRAYS)}) as site:
        file = safe_open(site.url("/m.safetensors"), "np")
        site.tags["/m.safetensors"] = "v2"
        device = MemoryDevice()
        with pytest.raises(apr.AprError) as caught:
            loaded(device, [(file, None)], Limits(1 << 16, 3, 3))
        assert caught.value.code == "rm-changed"
        check_end(device)


def test_a_file_of_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.pipe("/accelerator/m.safetensors", st.save(ARRAYS))
    with safe_open("/accelerator/m.safetensors", "np", fs=fs) as file:
        assert loaded(MemoryDevice(), [(file, None)], Limits(1 << 16, 3, 3)) == EXPECTED
