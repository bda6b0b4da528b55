"""Damaged vectors of every format through every function: only the documented errors."""

from __future__ import annotations

import os
import random

import numpy as np
from conftest import VECTORS

import apr
from apr import structures
from apr.safetensors import SafetensorError, deserialize, safe_open
from apr.safetensors.numpy import load

# numpy refuses dimensions beyond its own with a ValueError, the system what it cannot do with an OSError.
REFUSALS = (SafetensorError, apr.AprError, structures.StructureError, ValueError, OSError)

# More rounds and another seed, for longer searches.
ROUNDS = int(os.environ.get("APR_DAMAGE_ROUNDS", "1500"))
SEED = int(os.environ.get("APR_DAMAGE_SEED", "1"))


def damaged(content, choose):
    """The content with up to eight bytes changed, removed or added, or cut."""
    content = bytearray(content)
    for _ in range(choose.choice([0, 1, 1, 2, 8])):
        place = choose.randrange(len(content) + 1)
        some = choose.randbytes(choose.randrange(1, 9))
        match choose.randrange(4):
            case 0:
                content[place : place + 1] = some[:1]
            case 1:
                del content[place : place + len(some)]
            case 2:
                content[place:place] = some
            case 3:
                del content[place:]
    return bytes(content)


def read_all(path, backend):
    with safe_open(path, framework="np", backend=backend) as file:
        for name in file:
            assert file.get_slice(name)[...].shape == file[name].shape


def ask(content, compat):
    model = apr.load(content, allow_unverified=True, compat=compat)
    for question in (lambda: model.predict(np.zeros((2, model.n_features or 3), np.float32)), model.to_bytes):
        try:
            question()
        except apr.AprError as error:
            assert error.code.startswith(("am-", "ac-"))


def read_model(path):
    with apr.open(path) as model:
        for name in model:
            assert list(model[name].shape) == list(model.info(name)["shape"])


def read_sealed(path):
    file = apr.open_sealed(path, password="x")
    for name in file:
        file[name]


def test_damage_is_refused_by_every_function(tmp_path):
    choose = random.Random(SEED)
    paths = sorted(path for path in VECTORS.rglob("*") if path.is_file() and path.stat().st_size < 200_000)
    contents = [path.read_bytes() for path in paths if path.suffix not in (".json", ".md", ".tsv")]
    path = tmp_path / "damaged"
    for _ in range(ROUNDS):
        content = damaged(choose.choice(contents), choose)
        path.write_bytes(content)
        backend, compat = choose.choice(["mmap", "pread", "read"]), choose.random() < 0.5
        for call in (
            lambda: load(content),
            lambda: deserialize(content),
            lambda: read_all(path, backend),
            lambda: ask(content, compat),
            lambda: apr.inspect(content),
            lambda: apr.inspect(path),
            lambda: read_model(path),
            lambda: apr.scan(content),
            lambda: structures.load(content),
            lambda: read_sealed(path),
        ):
            try:
                call()
            except REFUSALS:
                pass
