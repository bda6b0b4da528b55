"""What several test modules use."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of the conformance vectors."""
    return VECTORS


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the token and the proxies of the environment in which the tests run."""
    for name in list(os.environ):
        if name.startswith(("HF_", "APR_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", "/nonexistent")


@pytest.fixture
def interrupts() -> Iterator[Callable[[], None]]:
    """A function that sends SIGINT to the main thread."""
    if not hasattr(signal, "pthread_kill"):
        pytest.skip("needs pthread_kill")
    # A shell may have started the tests in the background, where SIGINT is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def sidecars(folder: str) -> list[dict]:
    """What is known about the vectors of a folder, each with its path below the folder as `file`."""
    root, suffix = VECTORS / folder, ".vector.json"
    found = []
    for path in sorted(root.rglob(f"*{suffix}")):
        file = path.relative_to(root).as_posix().removesuffix(suffix)
        found.append({"file": file, **json.loads(path.read_text(encoding="utf-8"))})
    assert found, f"no vectors in {root}"
    return found


def manifest() -> dict:
    """The safetensors vectors that the official package has judged, by kind."""
    kinds = ("valid", "quirk", "invalid", "sharded")
    found = {kind: [] for kind in kinds}
    for entry in sidecars("safetensors"):
        kind = entry["file"].split("/")[0]
        if kind in found:
            found[kind].append(entry)
    found["slices"] = [
        {"file": entry["file"], **case} for entry in found["valid"] for case in entry.get("slices", [])
    ]
    return found
