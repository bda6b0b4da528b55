"""`.apr` files: what the first implementations wrote and predicted, what others broke, what is written here."""

from __future__ import annotations

import base64
import json
import os
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import sidecars

import apr

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"
FILES = VECTORS / "apr"
INPUTS = json.loads((FILES / "inputs.json").read_text())
ROWS = np.array(INPUTS["rows"], dtype=np.float32)
KEYS = INPUTS["keys"]
# In front of 32 bytes: PKCS #8 of X25519 and Ed25519, SubjectPublicKeyInfo of the same.
PEM = {
    "x25519_secret_hex": ("PRIVATE", "302e020100300506032b656e04220420"),
    "ed25519_seed_hex": ("PRIVATE", "302e020100300506032b657004220420"),
    "x25519_public_hex": ("PUBLIC", "302a300506032b656e032100"),
    "ed25519_public_hex": ("PUBLIC", "302a300506032b6570032100"),
}


def pem(group: str, name: str, key: str | None = None) -> str:
    """A key of the vectors, or another one of that kind, as text that loaders take."""
    half, prefix = PEM[name]
    der = base64.b64encode(bytes.fromhex(prefix + (key or KEYS[group][name]))).decode()
    return f"-----BEGIN {half} KEY-----\n{der}\n-----END {half} KEY-----\n"


IDENTITY = pem("recipient", "x25519_secret_hex")
RECIPIENT = pem("recipient", "x25519_public_hex")
SIGN_KEY = pem("signed", "ed25519_seed_hex")
VERIFY_KEY = pem("signed", "ed25519_public_hex")
PASSWORD = KEYS["password"]["password"]
OTHER_IDENTITY = pem("recipient", "x25519_secret_hex", bytes(range(32)).hex())

FIRST = [
    entry
    for entry in sidecars("apr")
    if entry["container"] == "apr-v1" and entry["file"].endswith(".apr")
]
# What opens the files of each kind. Those of the peers do not bind their header to what is encrypted.
OPENING: dict[str, dict[str, Any]] = {
    "plain": {},
    "password": {"password": PASSWORD, "compat": True},
    "recipient": {"identity": IDENTITY, "compat": True},
    "signed": {"verify_key": VERIFY_KEY},
}
FOREIGN = {"Kitchen"}


def opened(entry: dict[str, Any]) -> apr.Model:
    return apr.load(FILES / entry["file"], **OPENING[entry["protection"]])


def floats(digits: str | list[list[float]]) -> np.ndarray:
    """Numbers of the manifest: words of hexadecimal digits with their bits, or rows of decimal ones."""
    if not isinstance(digits, str):
        return np.array(digits, dtype=np.float32)
    words = [bytes.fromhex(word) for word in digits.split()]
    return np.array([struct.unpack(">f", word)[0] for word in words], dtype=np.float32)


def refused(code: str) -> Any:
    """A refusal with this code, whose text names it."""
    return pytest.raises(apr.AprError, check=lambda error: error.code == code and code in str(error))


def regression(**save: Any) -> bytes:
    """A file of a small model, made by saving one of the vectors."""
    return apr.load(FILES / "a0723_linreg_none_plain.apr").to_bytes(**save)


# What the peers wrote.


def test_there_are_vectors_of_all_kinds() -> None:
    assert len(FIRST) > 150
    assert {entry["protection"] for entry in FIRST} == set(OPENING)


@pytest.mark.parametrize("entry", FIRST, ids=lambda entry: entry["file"])
def test_models_of_peers_predict_what_the_peers_predicted(entry: dict[str, Any]) -> None:
    payload = json.loads((FILES / "payloads" / f"{entry['payload']}.json").read_text())
    if payload["type"] in FOREIGN:
        with refused("am-unknown-model"):
            opened(entry)
        return
    model, expected = opened(entry), payload.get("expected", {})
    if isinstance(expected.get("predictions"), str):
        found = model.predict(ROWS)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, floats(expected["predictions"]), rtol=1e-6)
    elif "predictions" in expected:
        found = model.predict(ROWS)
        assert found.dtype == np.int64
        assert found.tolist() == expected["predictions"]
    if "probabilities" in expected:
        found = model.predict_proba(ROWS)
        assert found.shape == (len(ROWS), 2)
        np.testing.assert_allclose(found[:, 1], floats(expected["probabilities"]), rtol=1e-6)
    if "scores" in expected:
        np.testing.assert_allclose(model.scores(ROWS), floats(expected["scores"]), rtol=1e-6)
    if "transformed" in expected:
        wanted = floats(expected["transformed"]).reshape(len(ROWS), -1)
        np.testing.assert_allclose(model.transform(ROWS), wanted, rtol=1e-6, atol=1e-7)
    if "coefficients" in expected and payload["type"] == "LinearRegression":
        np.testing.assert_array_equal(model.tensors()["coefficients"], floats(expected["coefficients"]))
    for key, value in entry.get("metadata", {}).items():
        if isinstance(value, str):
            assert model.metadata[key] == value


# What others broke.


HOSTILE = {entry["file"]: entry for entry in sidecars("apr/hostile")}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("compat", [False, True])
def test_hostile_files_are_refused_with_the_codes_of_the_rust_reader(name: str, compat: bool) -> None:
    verdict = HOSTILE[name]["compat" if compat else "strict"]
    file = FILES / "hostile" / name
    for load, expected in ((apr.inspect, verdict["inspect"]), (apr.load, verdict["load"])):
        for source in (file, file.read_bytes()):
            try:
                load(source, compat=compat)
            except apr.AprError as error:
                assert error.code and str(error)
                # Files of tensors are checked tensor by tensor there, and as a model here.
                if expected != "accept" and not name.startswith("v2"):
                    # A bomb is refused for what it expands to or for what its model takes.
                    bombs = {"ac-expansion", "ac-model-memory"}
                    assert error.code == expected["code"] or {error.code, expected["code"]} == bombs
                elif load is apr.inspect:
                    assert expected != "accept" or error.code == "ac-encrypted"
            else:
                assert expected == "accept" or (load is apr.inspect and expected["code"] == "ac-checksum")


def test_any_changed_byte_is_refused_and_any_cut_too() -> None:
    file = regression(password="secret", sign_key=SIGN_KEY)
    for at in range(0, len(file), 7):
        changed = bytearray(file)
        changed[at] ^= 0x10
        with pytest.raises(apr.AprError):
            apr.load(bytes(changed), password="secret", verify_key=VERIFY_KEY)
    plain = regression()
    for length in range(len(plain)):
        with pytest.raises(apr.AprError):
            apr.load(plain[:length])


@pytest.mark.parametrize(
    "content", [b"", b"APRN", b"GGUF", b"\x89APRS\r\n\x1a", b"PK\x03\x04" * 9, b"\xff" * 64]
)
def test_what_is_no_model_is_a_typed_refusal(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for source in (content, path, bytearray(content)):
        for look in (apr.load, apr.inspect):
            with pytest.raises((apr.AprError, EOFError)):
                look(source)


def test_files_that_are_not_there_or_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        apr.load(tmp_path / "missing.apr")
    with pytest.raises(FileNotFoundError):
        apr.inspect(str(tmp_path / "missing.apr"))
    with refused("df-not-regular"):
        apr.load(tmp_path)
    with pytest.raises(TypeError):
        apr.load(7)


# Samples.


@pytest.fixture(scope="module")
def model() -> apr.Model:
    return apr.load(FILES / "a0723_linreg_none_plain.apr")


def layouts() -> dict[str, Any]:
    wide = np.zeros((len(ROWS) * 2, ROWS.shape[1] * 2), dtype=np.float32)
    wide[::2, ::2] = ROWS
    return {
        "fortran": np.asfortranarray(ROWS),
        "big-endian": ROWS.astype(">f4"),
        "float64": ROWS.astype(np.float64),
        "big-endian float64": ROWS.astype(">f8"),
        "strided": wide[::2, ::2],
        "reversed": np.ascontiguousarray(ROWS[::-1, ::-1])[::-1, ::-1],
        "read-only": np.frombuffer(ROWS.tobytes(), dtype=np.float32).reshape(ROWS.shape),
        "list": ROWS.tolist(),
        "memoryview": memoryview(ROWS),
        "memoryview of bytes": memoryview(ROWS.tobytes()).cast("f", list(ROWS.shape)),
    }


@pytest.mark.parametrize("name", layouts())
def test_samples_of_any_layout_are_the_same_samples(model: apr.Model, name: str) -> None:
    np.testing.assert_array_equal(model.predict(layouts()[name]), model.predict(ROWS))


def test_integers_truth_values_and_small_floats_are_numbers(model: apr.Model) -> None:
    ones = np.ones((2, 3), dtype=np.float32)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (np.int64, np.uint8, np.bool_, np.float16, ml_dtypes.bfloat16):
        np.testing.assert_array_equal(model.predict(ones.astype(dtype)), model.predict(ones))
    row = np.broadcast_to(np.float32(1), (2, 3))
    np.testing.assert_array_equal(model.predict(row), model.predict(ones))


@pytest.mark.parametrize(
    ("samples", "error"),
    [
        (np.zeros(3, dtype=np.float32), ValueError),
        (np.zeros((1, 1, 3), dtype=np.float32), ValueError),
        (np.float32(1), ValueError),
        (np.array([["1", "2", "3"]]), TypeError),
        (np.zeros((1, 3), dtype=complex), TypeError),
        (np.array([[1, "a", None]], dtype=object), TypeError),
        (np.zeros((1, 3), dtype="M8[s]"), TypeError),
        ([[1.0, 2.0], [1.0]], ValueError),
        (None, TypeError),
        (np.zeros((1, 3), dtype=[("a", "f4"), ("b", "f4")]), (TypeError, ValueError)),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(model: apr.Model, samples: Any, error: Any) -> None:
    with pytest.raises(error):
        model.predict(samples)


def test_tables_that_do_not_fit_the_model_are_refused(model: apr.Model) -> None:
    assert model.n_features == 3
    with refused("am-feature-count"):
        model.predict(np.zeros((1, 4), dtype=np.float32))
    with refused("am-empty-matrix"):
        model.predict(np.zeros((0, 3), dtype=np.float32))
    with refused("am-no-predictions"):
        model.predict_proba(ROWS)
    with refused("am-no-predictions"):
        model.transform(ROWS)
    with refused("am-no-predictions"):
        model.scores(ROWS)
    with refused("am-no-predictions"):
        model.terms(["text"])
    with pytest.raises(TypeError):
        model.terms("text")


def test_answers_are_arrays_of_their_own(model: apr.Model) -> None:
    first = model.predict(ROWS)
    first[:] = 0
    assert first.flags.c_contiguous and first.flags.aligned
    assert (model.predict(ROWS) != 0).all()


def test_a_model_answers_many_threads() -> None:
    forest = apr.load(FILES / "a0723_rforest_zstd-default_plain.apr")
    rows = np.tile(ROWS, (500, 1))
    expected, wrong = forest.predict(rows), []

    def ask() -> None:
        for _ in range(20):
            if not np.array_equal(forest.predict(rows), expected):
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Saving.


@pytest.mark.parametrize("compression", [None, "none", "zstd", "zstd-max", "lz4"])
def test_saved_models_are_the_same_models(model: apr.Model, compression: str | None, tmp_path: Path) -> None:
    path = tmp_path / "model.apr"
    apr.save(model, path, compression=compression, metadata={"model_name": "houses", "created_at": "0"})
    loaded = apr.load(path)
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    info = apr.inspect(path)
    assert info["compression"] == (compression or "none")
    assert (info["model"], info["signature"], info["encryption"]) == ("LinearRegression", None, None)
    assert info["metadata"]["model_name"] == loaded.metadata["model_name"] == "houses"
    assert info["file_size"] == path.stat().st_size
    again = loaded.to_bytes(compression=compression)
    assert again == path.read_bytes()


def test_metadata_go_in_and_come_back(model: apr.Model) -> None:
    metadata = {
        "model_name": "houses",
        "description": "d\u00e9partement",
        "hyperparameters": {"alpha": 0.5, "grid": [1, None, "x"], "big": 2**64 - 1, "neg": -(2**63)},
        "metrics": {"r2": np.float64(0.25), "n": np.int32(7), "ok": True},
        "custom": {"bytes": b"\x00\xff", "nested": {"a": {"b": [{}]}}, "tuple": (1, 2)},
        "owner": "somebody",
    }
    found = apr.load(model.to_bytes(metadata=metadata)).metadata
    assert found["hyperparameters"] == metadata["hyperparameters"]
    assert found["metrics"] == {"r2": 0.25, "n": 7, "ok": True}
    assert found["custom"]["bytes"] == b"\x00\xff"
    assert found["custom"]["nested"] == {"a": {"b": [{}]}}
    assert found["custom"]["tuple"] == [1, 2]
    assert found["owner"] == "somebody" and found["created_at"].isdigit()


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"custom": {"x": object()}}, TypeError),
        ({"custom": {1: 2}}, TypeError),
        ({"custom": {"x": 2**64}}, ValueError),
        ({"model_name": 7}, apr.AprError),
        ({"custom": "text"}, apr.AprError),
        ("text", TypeError),
    ],
)
def test_what_metadata_cannot_hold_is_refused(model: apr.Model, metadata: Any, error: Any) -> None:
    with pytest.raises(error):
        model.to_bytes(metadata=metadata)


def test_metadata_that_hold_themselves_are_refused(model: apr.Model) -> None:
    loop: dict[str, Any] = {}
    loop["custom"] = loop
    with pytest.raises(ValueError, match="levels"):
        model.to_bytes(metadata=loop)


def test_a_save_that_fails_leaves_the_old_file(model: apr.Model, tmp_path: Path) -> None:
    path = tmp_path / "model.apr"
    path.write_bytes(b"old")
    with pytest.raises(ValueError):
        model.save(path, compression="brotli")
    with pytest.raises(ValueError):
        model.save(path, password="a", recipients=RECIPIENT)
    with pytest.raises(ValueError):
        model.save(path, recipients=[RECIPIENT, RECIPIENT])
    with pytest.raises(apr.AprError):
        model.save(path, password="")
    with refused("cy-key-kind"):
        model.save(path, recipients=IDENTITY)
    with refused("cy-key-kind"):
        model.save(path, sign_key=VERIFY_KEY)
    with pytest.raises(FileNotFoundError):
        model.save(path, sign_key=tmp_path / "missing.key")
    with pytest.raises(TypeError):
        apr.save({"weights": ROWS}, path)  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["model.apr"]
    with pytest.raises(OSError):
        model.save(tmp_path / "no folder" / "model.apr")
    with pytest.raises((OSError, apr.AprError)):
        model.save(tmp_path)


def test_models_become_safetensors_files_and_come_back(model: apr.Model, tmp_path: Path) -> None:
    numpy = pytest.importorskip("apr.safetensors.numpy")
    path = tmp_path / "model.safetensors"
    numpy.save_file(model.tensors(), path, metadata={"apr.model": model.model_type, "note": "mine"})
    loaded = apr.load(path)
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    assert loaded.metadata["custom"]["note"] == "mine"
    for keys in ({"password": "x"}, {"identity": IDENTITY}):
        with refused("ac-not-encrypted"):
            apr.load(path, **keys)
    with refused("ac-not-signed"):
        apr.load(path, verify_key=VERIFY_KEY)


# Protection.


def test_passwords() -> None:
    file = regression(password="geheim")
    info = apr.inspect(file)
    assert info["encryption"] == {"by": "password", "recipient": None, "bound": True}
    assert apr.load(file, password="geheim").predict(ROWS).shape == (4,)
    assert apr.load(file, password=b"geheim").signer is None
    with refused("ac-encrypted"):
        apr.load(file)
    with refused("ac-decryption"):
        apr.load(file, password="Geheim")
    with refused("ac-decryption"):
        apr.load(file, identity=IDENTITY)
    with refused("ac-not-encrypted"):
        apr.load(regression(), password="geheim")
    with pytest.raises(ValueError):
        apr.load(file, password="geheim", identity=IDENTITY)
    with pytest.raises(TypeError):
        apr.load(file, password=7)


def test_what_was_encrypted_is_plain_when_saved_without_a_key() -> None:
    opened = apr.load(regression(password="geheim"), password="geheim")
    plain = opened.to_bytes()
    info = apr.inspect(plain)
    assert info["encryption"] is None
    assert not any(key in ("apr.commit", "apr.mode") for key in info["metadata"]["custom"])
    assert apr.load(plain).predict(ROWS).shape == (4,)


def test_recipients() -> None:
    file = regression(recipients=RECIPIENT)
    info = apr.inspect(file)
    assert info["encryption"]["by"] == "recipient"
    assert len(info["encryption"]["recipient"]) > 8
    assert apr.load(file, identity=IDENTITY).predict(ROWS).shape == (4,)
    assert apr.load(file, identity=IDENTITY.encode()).n_features == 3
    with refused("ac-decryption"):
        apr.load(file, identity=OTHER_IDENTITY)
    with refused("cy-key-kind"):
        apr.load(file, identity=SIGN_KEY)
    with refused("cy-key-kind"):
        apr.load(file, identity=RECIPIENT)


def test_signatures() -> None:
    file = regression(sign_key=SIGN_KEY)
    signer = apr.load(file, verify_key=VERIFY_KEY).signer
    assert signer is not None and signer["trusted"] and signer["name"] is None
    assert apr.inspect(file)["signature"]["fingerprint"] == signer["fingerprint"]
    anyone = apr.load(file, any_signer=True).signer
    assert anyone == {"name": None, "fingerprint": signer["fingerprint"], "trusted": False}
    assert apr.load(file, allow_unverified=True).signer is None
    # A signed file is refused if no verification was requested.
    with refused("ac-signed"):
        apr.load(file)
    with refused("ac-not-signed"):
        apr.load(regression(), verify_key=VERIFY_KEY)
    with refused("ac-not-signed"):
        apr.load(regression(), any_signer=True)
    with refused("ac-not-signed"):
        apr.load(regression(), verify_key=VERIFY_KEY, allow_unverified=True, compat=True)
    with pytest.raises(ValueError):
        apr.load(file, verify_key=VERIFY_KEY, any_signer=True)
    with pytest.raises(ValueError):
        apr.load(file, verify_key=[])


def test_another_signer_is_not_trusted() -> None:
    other = pem("signed", "ed25519_seed_hex", bytes(range(32)).hex())
    file = regression(sign_key=other)
    for permissive in ({}, {"allow_unverified": True}, {"compat": True}):
        with refused("ac-untrusted-signer"):
            apr.load(file, verify_key=VERIFY_KEY, **permissive)


def test_key_files(tmp_path: Path) -> None:
    keys = {"identity": IDENTITY, "recipient": RECIPIENT, "sign": SIGN_KEY, "verify": VERIFY_KEY}
    for name, text in keys.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    model = apr.load(FILES / "a0723_linreg_none_plain.apr")
    path = tmp_path / "model.apr"
    model.save(path, recipients=tmp_path / "recipient", sign_key=str(tmp_path / "sign"), compression="zstd")
    loaded = apr.load(str(path), identity=tmp_path / "identity", verify_key=[tmp_path / "verify"])
    np.testing.assert_array_equal(loaded.predict(ROWS), model.predict(ROWS))
    if os.name == "posix":
        (tmp_path / "identity").chmod(0o644)
        with refused("cy-exposed"):
            apr.load(path, identity=tmp_path / "identity", verify_key=VERIFY_KEY)
    with refused("cy-no-key"):
        apr.load(path, identity=b"# nothing here", verify_key=VERIFY_KEY)
    # The error of a key says nothing of the key.
    line = "apr-secret-1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0se6vexd"
    (tmp_path / "broken").write_text(f"{line}\n")
    (tmp_path / "broken").chmod(0o600)
    with pytest.raises(apr.AprError) as caught:
        apr.load(path, identity=tmp_path / "broken", verify_key=VERIFY_KEY)
    assert "qqqsyqcyq5" not in str(caught.value)


# What files say.


def test_inspect_knows_every_format() -> None:
    info = apr.inspect(FILES / "f0723v2_streaming.apr")
    assert (info["format"], info["version"], info["format_version"]) == ("apr", 2, (2, 0))
    assert info["tensors"]["a"] == {"dtype": "F32", "shape": (4, 5), "nbytes": 80}
    info = apr.inspect(FILES / "a0723_linreg_lz4_recipient.apr")
    assert (info["format"], info["version"], info["format_version"]) == ("apr", 1, (1, 0))
    assert "generation" not in info
    tensors = apr.inspect(FILES / "a0723_linreg.safetensors")
    assert tensors["format"] == "safetensors" and tensors["tensors"]["coefficients"]["dtype"] == "F32"
    gguf = [path for path in (VECTORS / "gguf" / "files").iterdir() if path.suffix == ".gguf"]
    found = 0
    for path in gguf:
        try:
            info = apr.inspect(path)
        except apr.AprError:
            continue
        assert info["format"] == "gguf" and info["file_size"] == path.stat().st_size
        assert isinstance(info["metadata"], dict)
        found += 1
    assert found > 0


def test_inspect_of_memory_is_that_of_the_file() -> None:
    for name in ("a0723_linreg_lz4_recipient.apr", "f0723v2_streaming.apr", "a0723_linreg.safetensors"):
        path = FILES / name
        array = np.fromfile(path, dtype=np.uint8)
        assert apr.inspect(path) == apr.inspect(path.read_bytes()) == apr.inspect(array)


def test_refusals_say_where() -> None:
    assert not issubclass(apr.AprError, apr.SafetensorError)
    with pytest.raises(apr.AprError) as caught:
        apr.load(b"APRN" + bytes(40))
    assert caught.value.offset is not None
    assert caught.value.path is None
