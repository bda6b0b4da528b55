"""A program that uses the package as users do, for type checkers: not one name or argument of it is unknown to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import apr
from apr.safetensors import safe_open
from apr.safetensors.numpy import load_file, save_file


def tensors(folder: Path) -> dict[str, Any]:
    save_file({"weights": np.zeros((2, 3), dtype=np.float32)}, folder / "model.safetensors", {"epoch": "3"})
    with safe_open(folder / "model.safetensors", framework="np") as file:
        names = list(file.keys())
    with apr.open(folder / "model.safetensors", exclude=["bias*"]) as model:
        found = {name: model[name] for name in model}
    assert names == sorted(found)
    return {**found, **load_file(folder / "model.safetensors")}


def conversions(folder: Path) -> int:
    source = folder / "model.safetensors"
    made = apr.convert(source, folder / "model.gguf", select=["weights"], force=True)
    smaller = apr.quantize(source, folder / "small.gguf", "q8_0", select=["weights"], dry_run=True)
    scanned: apr.ScanReport = apr.scan(source)
    return int(made["bytes"]) + int(smaller["bytes"]) + len(scanned)


def models(folder: Path) -> None:
    try:
        model: apr.Model = apr.load(folder / "model.apr")
    except apr.AprError as error:
        print(error)
    else:
        apr.save(model, folder / "copy.apr")
    apr.gguf.open(folder / "model.gguf").metadata.get("general.name")
    checkpoints = apr.Checkpoints(folder / "checkpoints")
    latest: apr.Checkpoint | None = checkpoints.resume()
    print(latest, apr.inspect(folder / "model.safetensors"))
