"""Tar archives whose members are others for `tarfile` than their stored bytes, and configurations of Keras in ZIP archives."""

from __future__ import annotations

import io
import json
import random
import struct
import tarfile
import zipfile

from pickles import CANARY, named, text, tuple_of


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def record(key: str, value: object) -> bytes:
    """A record of an extended header: its length counts itself."""
    for length in range(8, 300):
        made = f"{length} {key}={value}\n".encode()
        if len(made) == length:
            return made
    raise ValueError(key)


def header(
    name: str,
    size: int,
    kind: bytes,
    magic: bytes = b"ustar\x0000",
    sparse: list[tuple[int, int]] | None = None,
    real: int = 0,
    link: str = "",
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[257:265] = magic
    if sparse:
        block[345:500] = bytes(155)
        for n, (offset, count) in enumerate(sparse[:4]):
            block[386 + 24 * n : 410 + 24 * n] = b"%011o\0%011o\0" % (offset, count)
        block[483:495] = b"%011o\0" % real
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def make(rng: random.Random) -> tuple[str, bytes]:
    payload = named(("os", "system")) + tuple_of(text(f"touch {CANARY}")) + b"R."
    n = len(payload)
    octal = b"%011o\0" % rng.choice([0, 0, 512])
    body = rng.choice(
        [
            b"\x80\x02C" + bytes([n]) + payload + b".",
            b"\x80\x02X" + struct.pack("<I", 200) + b"a" * 117 + octal + b"a" * 71 + b"0" + payload,
            b"\x80\x02" + payload,
        ]
    )
    stored, sparse, real = body, None, 0
    segments = [(0, 4), (4 + n, len(body) - 4)]
    kind = rng.choice([b"0", b"0", b"0", b"\0", b"7", b"S", b"1", b"2", b"5", b"L", b"K", b"V"])
    choices = [
        ("size", len(body)),
        ("size", 0),
        ("path", rng.choice(["storages", "../x", "/tmp/apr-canary/x", "data.pkl"])),
        ("GNU.sparse.major", 1),
        ("GNU.sparse.realsize", len(body) + n),
        ("linkpath", "/etc/hostname"),
        ("hdrcharset", "BINARY"),
    ]
    records = b"".join(record(*rng.choice(choices)) for _ in range(rng.randrange(3)))
    shape = rng.random()
    if shape < 0.2:
        records = record("GNU.sparse.map", "0,4,%d,%d" % segments[1]) + record("GNU.sparse.size", len(body) + n)
    elif shape < 0.35:
        stored = padded(b"2\n0\n4\n%d\n%d\n" % segments[1]) + body
        records = record("GNU.sparse.major", 1) + record("GNU.sparse.minor", 0) + record("GNU.sparse.realsize", len(body) + n)
    elif kind == b"S":
        sparse, real = segments, len(body) + n
    out = header("readme", 5, b"0") + padded(b"hello") if rng.random() < 0.7 else b""
    if records:
        out += header("pax", len(records), rng.choice([b"x", b"x", b"g", b"X"])) + padded(records)
    name = rng.choice(["storages", "data.pkl", "a/../../x", "model.pkl"])
    magic = rng.choice([b"ustar\x0000", b"ustar  \0", bytes(8)])
    size = len(stored) if rng.random() < 0.6 else 0
    out += header(name, size, kind, magic, sparse, real, "/etc/hostname") + padded(stored)
    return "a.tar", out + bytes(1024)


MODULES = ["keras.layers", "keras", "keras.src.layers", "keras.utils", "keras.saving", "builtins", "os", "subprocess", "numpy", None]
NAMES = [
    "Dense", "Lambda", "Activation", "Functional", "Sequential", "get_file", "load_model", "system", "eval", "TFSMLayer", "Rescaling",
    "TorchModuleWrapper", "StringLookup", "save_img", "deserialize_keras_object", "enable_unsafe_deserialization", "load",
]  # fmt: skip


def setting(rng: random.Random) -> object:
    """A value of a setting: plain, or an object or function that Keras makes of its name."""
    named_object = {
        "module": rng.choice(MODULES),
        "class_name": rng.choice(NAMES),
        "registered_name": rng.choice([None, "x>y"]),
        "config": rng.choice([{}, {"fname": CANARY, "origin": "file:///etc/hostname"}, "system", {"filepath": "/etc/hostname"}]),
    }
    function = {"module": rng.choice(MODULES), "class_name": "function", "config": rng.choice(NAMES), "registered_name": "function"}
    encoded = {"class_name": "__lambda__", "config": {"value": "4wEAAAA="}}
    return rng.choice([1, "relu", "/etc/hostname", None, named_object, function, encoded, {"class_name": "__bytes__", "config": {"value": "x"}}])


def make_keras(rng: random.Random) -> tuple[str, bytes]:
    keys = ["units", "activation", "kernel_initializer", "function", "vocabulary", "filepath", "arguments", "output_shape", "fn", "layer"]
    layer = {
        "module": rng.choice(MODULES),
        "class_name": rng.choice(NAMES),
        "config": {key: setting(rng) for key in rng.sample(keys, rng.randrange(5))},
        "registered_name": rng.choice([None, None, "builtins>eval"]),
    }
    model = {"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": [layer]}, "registered_name": None}
    model["build_config"] = {"input_shape": [None, 2]}
    if rng.random() < 0.3:
        model["compile_config"] = {"optimizer": setting(rng), "loss": setting(rng)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.0.0", "date_saved": "2026-01-01@00:00:00"}))
        archive.writestr("config.json", json.dumps(model))
        archive.writestr("model.weights.h5", b"")
    return "k.keras", out.getvalue()
