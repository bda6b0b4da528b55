"""A pytest plugin that runs safestructures' tests on `apr.structures`: with `--judge-structures`, its functions and its
class are ours.

Its class is one that saves, loads, and hands out the schema in between; ours are functions and hand out nothing. What a
schema is asked for is taken from the file that ours write.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from apr import structures

SCHEMA_FIELD = "_safestructures_schema_"


class Serializer:
    """`safestructures.serializer.Serializer`, made of our functions."""

    def __init__(self, plugins: Any = None) -> None:
        self.plugins = plugins
        self.mode: Any = None
        self.tensors: dict[str, Any] = {}
        self._file: bytes = b""

    def save(self, data: Any, save_path: Any, metadata: Any = None) -> None:
        structures.save_file(data, save_path, metadata, self.plugins)

    def load(self, load_path: Any, framework: str = "np", device: str = "cpu") -> Any:
        return structures.load_file(load_path, framework, device, self.plugins)

    def serialize(self, data: Any) -> Any:
        self._file = structures.save(data, plugins=self.plugins)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(self._file)
            with importlib.import_module("apr.safetensors").safe_open(path, "np") as file:
                metadata = file.metadata()
                self.tensors = {name: file.get_tensor(name) for name in file.keys()}
        return json.loads(metadata[SCHEMA_FIELD])

    def deserialize(self, _: Any) -> Any:
        return structures.load(self._file, plugins=self.plugins)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option of the module's text."""
    parser.getgroup("judge").addoption("--judge-structures", action="store_true")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Puts the names in place: after `overlay`, which says what safetensors is, and before any test is imported."""
    if config.getoption("--judge-structures"):
        official = importlib.import_module("safestructures")
        importlib.import_module("safestructures.serializer").Serializer = Serializer  # type: ignore[attr-defined]
        official.save_file, official.load_file = structures.save_file, structures.load_file
