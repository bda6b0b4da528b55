"""What several test modules use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of the conformance vectors."""
    return VECTORS


def manifest() -> dict:
    """What the official package said about the safetensors vectors."""
    return json.loads((VECTORS / "safetensors" / "MANIFEST.json").read_text())
