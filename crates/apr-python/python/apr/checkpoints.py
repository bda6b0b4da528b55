"""Training checkpoints: a folder for each step, complete or absent, verified when it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._native import CheckpointFolder, SafetensorError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Checkpoint", "Checkpoints"]


@dataclass(frozen=True)
class Checkpoint:
    """What was saved at a step. The arrays are copies of what was verified and can be written to."""

    step: int
    path: Path
    model: dict[str, np.ndarray] = field(repr=False)
    metrics: dict[str, float]
    model_class: str | None
    optimizer: dict[str, np.ndarray] | None = field(repr=False)
    optimizer_state: Any = field(repr=False)
    optimizer_class: str | None
    verified: bool
    skipped: dict[int, str] = field(default_factory=dict)
    """After `resume`: newer steps that could not be used, and why."""


class Checkpoints:
    """A folder of checkpoints.

    ```python
    checkpoints = apr.Checkpoints("run-7")
    checkpoints.save(100, {"w": weights}, metrics={"loss": 0.3}, optimizer={"w.m": moment}, optimizer_state={"lr": 0.1})
    checkpoints.keep_last(3)
    newest = checkpoints.resume()
    ```

    Each step is a folder `step_N` with safetensors files, `meta.json` and a manifest of SHA-256 digests. It appears whole, after
    everything in it has reached the medium; nothing is ever unpickled.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._native = CheckpointFolder(self.folder)

    def save(
        self,
        step: int,
        model: Mapping[str, np.ndarray],
        *,
        metrics: Mapping[str, float] | None = None,
        model_class: str = "",
        optimizer: Mapping[str, np.ndarray] | None = None,
        optimizer_state: Any = None,
        optimizer_class: str = "",
    ) -> Path:
        """Saves a checkpoint and returns its folder.

        Args:
            step: 0 or more; there must be none of this step.
            model: names and arrays, with any strides and byte order.
            metrics: numbers worth remembering; NaN and infinities too.
            model_class, optimizer_class: names, for people.
            optimizer: names and arrays of the optimizer's state.
            optimizer_state: the rest of it, as JSON can hold it.

        Raises:
            SafetensorError: the tensors or the state cannot be written in this form.
            OSError: the folder cannot be written, or the step exists. Nothing is left behind.
        """
        if optimizer is None and (optimizer_state is not None or optimizer_class):
            optimizer = {}
        state = {} if optimizer_state is None else optimizer_state
        text = json.dumps(state, allow_nan=False)
        path = self._native.save(step, model, dict(metrics or {}), model_class, optimizer, text, optimizer_class)
        return Path(path)

    def load(self, step: int, *, require_manifest: bool = True) -> Checkpoint:
        """A checkpoint whose every file has the digest of its manifest.

        Args:
            step: which.
            require_manifest: refuse a checkpoint without a manifest, of which nothing can be verified.

        Raises:
            SafetensorError: a file is missing, damaged or not listed, or there is no such step; `code` says which.
            OSError: something cannot be read.
        """
        loaded = self._native.load(step, require_manifest)
        meta = json.loads(loaded["meta"])
        state = loaded["optimizer_json"]
        return Checkpoint(
            step=step,
            path=Path(loaded["path"]),
            model=loaded["model"],
            metrics=meta.get("metrics") or {},
            model_class=meta.get("model_class") or None,
            optimizer=loaded["optimizer"],
            optimizer_state=None if state is None else json.loads(state),
            optimizer_class=meta.get("optimizer_class") or None,
            verified=loaded["verified"],
        )

    def steps(self) -> list[int]:
        """The steps that are there, ascending; nothing is verified."""
        return self._native.steps()

    def latest(self) -> int | None:
        """The highest step, if there is one; nothing is verified."""
        steps = self.steps()
        return steps[-1] if steps else None

    def resume(self, *, require_manifest: bool = True) -> Checkpoint | None:
        """The newest checkpoint that `load` accepts; None if there is none. Newer ones that were refused are in its `skipped`."""
        skipped: dict[int, str] = {}
        for step in reversed(self.steps()):
            try:
                checkpoint = self.load(step, require_manifest=require_manifest)
            except (SafetensorError, OSError) as error:
                skipped[step] = str(error)
                continue
            checkpoint.skipped.update(skipped)
            return checkpoint
        return None

    def keep_last(self, count: int) -> list[int]:
        """Removes all but the `count` newest checkpoints and returns the steps that went, ascending."""
        return self._native.keep_last(count)
