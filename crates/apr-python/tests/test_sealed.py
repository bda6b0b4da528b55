"""Sealed files: tensors that are decrypted and verified when they are asked for."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apr
from apr.safetensors.numpy import load_file, save_file

from test_apr import IDENTITY, OTHER_IDENTITY, RECIPIENT, SIGN_KEY, VERIFY_KEY, VECTORS, pem, refused

OTHER_SIGN_KEY = pem("signed", "ed25519_seed_hex", bytes(range(32)).hex())
TENSORS = {
    "weight": np.arange(60000, dtype=np.float32).reshape(200, 300),
    "bias": np.array([1, -2, 3], dtype=np.int64),
    "scalar": np.array(0.5),
    "empty": np.zeros((0, 7), dtype=np.float16),
}


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file(TENSORS, path, metadata={"note": "mine"})
    return path


@pytest.fixture
def sealed(plain: Path) -> Path:
    out = plain.with_suffix(".sealed")
    apr.seal(
        plain,
        out,
        recipients=RECIPIENT,
        sign_key=SIGN_KEY,
        metadata={"name": "m"},
        private_metadata={"order": "17"},
    )
    return out


def test_tensors_come_one_by_one(sealed: Path) -> None:
    reader = apr.open_sealed(sealed, identity=IDENTITY, verify_key=VERIFY_KEY)
    assert set(reader) == set(reader.keys()) == set(TENSORS)
    assert len(reader) == len(TENSORS) and "bias" in reader and "nothing" not in reader and 7 not in reader
    for name, expected in TENSORS.items():
        found = reader[name]
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        assert found.shape == expected.shape and found.flags.writeable
    assert reader.info("weight") == {"dtype": "F32", "shape": (200, 300), "nbytes": 240000}
    assert reader.info()["bias"] == reader.info("bias")
    assert reader.metadata == {"name": "m"}
    assert reader.private_metadata["order"] == "17"
    assert reader.private_metadata["file.name"] == "model.safetensors"
    assert reader.signer["trusted"]
    reader.verify()
    for name in ("nothing", ""):
        with pytest.raises(KeyError):
            reader[name]
        with pytest.raises(KeyError):
            reader.info(name)


def test_the_file_comes_back_byte_for_byte(sealed: Path, plain: Path, tmp_path: Path) -> None:
    reader = apr.open_sealed(sealed, identity=IDENTITY, verify_key=VERIFY_KEY)
    out = tmp_path / "again.safetensors"
    reader.restore(out)
    assert out.read_bytes() == plain.read_bytes()
    np.testing.assert_array_equal(load_file(out)["weight"], TENSORS["weight"])


def test_keys_are_demanded(sealed: Path, plain: Path, tmp_path: Path) -> None:
    with refused("ac-encrypted"):
        apr.open_sealed(sealed, verify_key=VERIFY_KEY)
    with refused("ac-decryption"):
        apr.open_sealed(sealed, identity=OTHER_IDENTITY, verify_key=VERIFY_KEY)
    with refused("ac-signed"):
        apr.open_sealed(sealed, identity=IDENTITY)
    assert not apr.open_sealed(sealed, identity=IDENTITY, any_signer=True).signer["trusted"]
    other = tmp_path / "other.sealed"
    apr.seal(plain, other, recipients=[RECIPIENT], sign_key=OTHER_SIGN_KEY)
    with refused("ac-untrusted-signer"):
        apr.open_sealed(other, identity=IDENTITY, verify_key=VERIFY_KEY)
    unsigned = tmp_path / "unsigned.sealed"
    apr.seal(plain, unsigned, password="geheim")
    with refused("ac-not-signed"):
        apr.open_sealed(unsigned, password="geheim", verify_key=VERIFY_KEY)
    with refused("ac-decryption"):
        apr.open_sealed(unsigned, password="Geheim")
    np.testing.assert_array_equal(apr.open_sealed(unsigned, password="geheim")["bias"], TENSORS["bias"])


def test_a_signed_file_that_is_not_encrypted(plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "signed.sealed"
    apr.seal(plain, out, sign_key=SIGN_KEY)
    np.testing.assert_array_equal(apr.open_sealed(out, verify_key=VERIFY_KEY)["weight"], TENSORS["weight"])
    with refused("ac-not-encrypted"):
        apr.open_sealed(out, verify_key=VERIFY_KEY, identity=IDENTITY)


def test_what_was_changed_is_not_given_out(sealed: Path, plain: Path, tmp_path: Path) -> None:
    whole, content = sealed.read_bytes(), plain.read_bytes()
    changed = tmp_path / "changed.sealed"
    refusals = 0
    for at in [*range(0, 600, 13), *range(600, len(whole), 9001), len(whole) - 1]:
        file = bytearray(whole)
        file[at] ^= 1
        changed.write_bytes(file)
        try:
            reader = apr.open_sealed(changed, identity=IDENTITY, verify_key=VERIFY_KEY)
            for name, expected in TENSORS.items():
                np.testing.assert_array_equal(reader[name], expected)
            reader.verify()
        except apr.AprError as error:
            assert error.code
            refusals += 1
        try:
            apr.open_sealed(changed, identity=IDENTITY, verify_key=VERIFY_KEY).restore(tmp_path / "out")
        except apr.AprError:
            assert not (tmp_path / "out").exists()
        else:
            # A hash that restoring does not need.
            assert (tmp_path / "out").read_bytes() == content
            (tmp_path / "out").unlink()
    assert refusals > 60
    for length in (0, 7, 8, 100, len(whole) - 1):
        changed.write_bytes(whole[:length])
        with pytest.raises(apr.AprError):
            apr.open_sealed(changed, identity=IDENTITY, verify_key=VERIFY_KEY)


def test_a_restore_or_seal_that_fails_leaves_the_old_file(sealed: Path, plain: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"old")
    both, twice = {"password": "a", "recipients": RECIPIENT}, {"recipients": [RECIPIENT] * 2}
    for options in ({}, {"password": ""}, both, twice):
        with pytest.raises((ValueError, apr.AprError)):
            apr.seal(plain, old, **options)
    with pytest.raises(FileNotFoundError):
        apr.seal(tmp_path / "missing", old, sign_key=SIGN_KEY)
    reader = apr.open_sealed(sealed, identity=IDENTITY, verify_key=VERIFY_KEY)
    with open(sealed, "r+b") as file:
        file.seek(sealed.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    # The header was sound when it was opened; the content is looked at when it is asked for.
    with pytest.raises(apr.AprError):
        reader.restore(old)
    with pytest.raises(apr.AprError):
        reader.verify()
    with pytest.raises(apr.AprError):
        reader["weight"]
    assert old.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors", "model.sealed", "old"]


def test_files_without_tensors_are_sealed_as_a_whole(tmp_path: Path) -> None:
    path, out = tmp_path / "notes.txt", tmp_path / "notes.sealed"
    path.write_bytes(b"")
    apr.seal(path, out, password="geheim")
    reader = apr.open_sealed(out, password="geheim")
    assert len(reader) == 0 and reader.info() == {}
    path.write_bytes(b"text")
    apr.seal(path, out, password="geheim")
    apr.open_sealed(out, password="geheim").restore(tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"text"
    with pytest.raises(apr.AprError):
        apr.open_sealed(path, password="geheim")


def test_tensors_of_gguf_files_are_told_apart(tmp_path: Path) -> None:
    out = tmp_path / "out.sealed"
    for path in (VECTORS / "gguf" / "files").iterdir():
        if path.suffix != ".gguf":
            continue
        try:
            info: dict[str, Any] = apr.inspect(path)
        except apr.AprError:
            continue
        apr.seal(path, out, sign_key=SIGN_KEY)
        reader = apr.open_sealed(out, verify_key=VERIFY_KEY)
        if info["byte_order"] == "little" and len(reader):
            assert reader.info() == info["tensors"]
            assert all(reader[name].nbytes == row["nbytes"] for name, row in info["tensors"].items())
        reader.restore(tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == path.read_bytes()


def test_a_reader_serves_many_threads(sealed: Path) -> None:
    reader, wrong = apr.open_sealed(sealed, identity=IDENTITY, verify_key=VERIFY_KEY), []

    def read() -> None:
        for _ in range(20):
            if not np.array_equal(reader["weight"], TENSORS["weight"]):
                wrong.append(1)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_inspect_shows_what_anyone_can_see(sealed: Path) -> None:
    info = apr.inspect(sealed)
    assert info["format"] == "sealed" and info["metadata"] == {"name": "m"}
    assert info["encryption"] == {"recipients": 1, "password": False, "bound": False}
    assert info["file_size"] == sealed.stat().st_size
    reader = apr.open_sealed(sealed, identity=IDENTITY, verify_key=VERIFY_KEY)
    assert info["signature"]["fingerprint"] == reader.signer["fingerprint"]
    assert apr.inspect(sealed.read_bytes()) == info
