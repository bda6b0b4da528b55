"""A checkpoint that was read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from apr._native import SafetensorError

from . import _arrays, _random, _states
from ._files import Convert, TensorFile, as_framework
from ._ranks import ranks

_TRAINING = "training"

# Metrics that JSON has no numbers for.
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")

# What tensors become if the caller names no framework.
_FRAMEWORKS = {"torch": "pt", "jax": "flax"}


def _parsed(file: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        refused = SafetensorError(f"Error while reading a checkpoint: {file} cannot be read as JSON: {error}")
        refused.code, refused.offset, refused.tensor = "sm-json", None, None
        raise refused from error


class Restored(NamedTuple):
    """What `Checkpoint.load_into` has filled: objects themselves, and of pytrees of JAX and dictionaries new ones."""

    model: Any
    optimizer: Any = None
    scheduler: Any = None
    scaler: Any = None
    ema: Any = None
    loader: Any = None


class Checkpoint:
    """What was saved at a step. All of it was verified while it was read, and is in memory.

    Attributes:
        step: the step.
        path: its folder.
        metrics: numbers that were saved with it.
        model_class, optimizer_class: names of classes, for people.
        optimizer_state: JSON beside the tensors of an optimizer that was saved as a dictionary.
        framework: what wrote it: `"torch"`, `"jax"`, `"keras"`, or None for dictionaries of arrays.
        verified: False only without a manifest, which `require_manifest=False` allows.
        skipped: after `resume`, newer steps that could not be used, and why.
    """

    def __init__(self, loaded: Mapping[str, Any], framework: str | None, device: Any) -> None:
        self.path = Path(loaded["path"])
        meta = _parsed(self.path / "meta.json", loaded["meta"])
        state = loaded["optimizer_json"]
        self.step: int = meta["step"]
        metrics = meta.get("metrics") or {}
        self.metrics: dict[str, Any] = {name: float(value) if value in _NOT_FINITE else value for name, value in metrics.items()}
        self.model_class: str | None = meta.get("model_class") or None
        self.optimizer_class: str | None = meta.get("optimizer_class") or None
        self.optimizer_state: Any = None if state is None else _parsed(self.path / "optimizer.json", state)
        self.framework: str | None = meta.get("framework") or None
        self.verified: bool = loaded["verified"]
        self.skipped: dict[int, str] = {}
        self._files = {name: TensorFile(*file) for name, file in loaded["files"].items()}
        self._asked = framework, device

    def __repr__(self) -> str:
        shown = ("step", "metrics", "framework", "verified", "skipped")
        return f"Checkpoint({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @cached_property
    def _convert(self) -> Convert | None:
        """What the caller asked for; None: tensors of the libraries that they were saved of."""
        framework, device = self._asked
        saved = _FRAMEWORKS.get(self.framework or "")
        if framework is None and saved is None and device in (None, "cpu"):
            return None
        try:
            return as_framework(framework or saved or "np", device, or_numpy=framework is None)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"the checkpoint is one of {self.framework}, and {error.name} is not installed: load it with framework='np'", name=error.name
            ) from error

    @cached_property
    def model(self) -> dict[str, Any]:
        """The tensors of the model by name, in the framework that wrote them or that `load` was asked for. They can be written to.

        Arrays of other libraries that were in it are there, too. Of a checkpoint of JAX, tensors of 64 bits are arrays of numpy unless
        `jax_enable_x64` is set."""
        return self._files["model"].value(self._convert) | self._arrays_beside("model")

    @cached_property
    def optimizer(self) -> Any:
        """The optimizer's state as it was saved, None if it was not: names and tensors, or of torch also the groups."""
        file = self._files.get("optimizer")
        return None if file is None else file.value(self._convert)

    @cached_property
    def ema(self) -> Any:
        """Averaged weights, None if there are none: by name, or of several copies by their names."""
        found = {}
        for name, file in self._ema().items():
            value = file.value(self._convert)
            found[name.removeprefix("ema").removeprefix(".")] = value if file.is_structure else value | self._arrays_beside(name)
        return found.get("", found or None)

    @property
    def extra(self) -> Any:
        """What was saved as `extra`."""
        return self._training(self._convert).get("extra")

    def _arrays_beside(self, part: str) -> dict[str, Any]:
        """Arrays of a model that its file cannot hold, for they are of another library than its tensors."""
        file = self._files.get(_TRAINING)
        notes = (file and file.copied().entry(part, self._convert)) or {}
        return {name: value for name, value in notes.get("values", {}).items() if _arrays.is_array(value)}

    def _ema(self) -> dict[str, TensorFile]:
        return {name: file for name, file in self._files.items() if name == "ema" or name.startswith("ema.")}

    def _training(self, convert: Convert | None = None) -> dict[str, Any]:
        """Everything that is no weights, read anew: objects keep and change what they are given."""
        file = self._files.get(_TRAINING)
        return {} if file is None else file.copied().value(convert)

    def load_into(
        self,
        model: Any,
        optimizer: Any = None,
        *,
        scheduler: Any = None,
        scaler: Any = None,
        ema: Any = None,
        loader: Any = None,
        generators: Mapping[str, Any] | None = None,
        rng: bool | None = None,
        strict: bool = True,
    ) -> Restored:
        """Fills the objects of a training with what was saved of them, wherever they are.

        Modules, optimizers, schedulers and objects of `flax.nnx` are filled in place. Pytrees of JAX cannot be: the trees that are
        returned take their place. Everything is checked first: what is refused has changed nothing, unless an object of the program's own
        refuses the state that it once gave.

        Args:
            model, optimizer, scheduler, scaler, ema, loader, generators: as for `Checkpoints.save`; None leaves one as it is. The
                optimizer of a compiled model of Keras is the model's unless another is given.
            rng: whether to set the global generators of random numbers; None: if an optimizer is given.
            strict: whether names that only one side has are an error. Of optimizers they always are.

        Returns:
            What was given, filled, or what takes its place.

        Raises:
            ValueError: the checkpoint lacks what is asked for, or names, shapes or element types differ.
            RuntimeError: names or shapes of a module of torch differ.
        """
        adapter = _states.adapter_of(model)
        if optimizer is None and adapter.NAME == "keras" and "optimizer" in self._files:
            optimizer = getattr(model, "optimizer", None)
        training = self._training()
        own = self._own_rank(training)
        given = {
            "optimizer": (optimizer, self._files),
            "scheduler": (scheduler, training),
            "scaler": (scaler, training),
            "loader": (loader, own),
            "generators": (generators, own),
        }
        several = _states.copies(ema)
        for name in several:
            given[f"ema.{name}" if name else "ema"] = (ema, self._files)
        lacking = [name for name, (value, where) in given.items() if value is not None and name not in where]
        if lacking:
            raise ValueError(f"the checkpoint of step {self.step} has no {', '.join(lacking)}")
        for name, generator in (generators or {}).items():
            if name not in own["generators"]:
                raise ValueError(f"the checkpoint of step {self.step} has no generator {name!r}")
            _random.check_state(name, generator, own["generators"][name])
        rng = optimizer is not None if rng is None else rng
        if rng and "rng" in own:
            _random.check_global_states(own["rng"])
        if optimizer is not None:
            self._warn_of_others(given, training, own, rng)

        def notes(part: str) -> dict[str, Any]:
            return training.get(part) or {}

        # Everything is checked before anything changes.
        fills = {"model": adapter.prepare(model, self._files["model"], notes("model"), strict)}
        if optimizer is not None:
            fills["optimizer"] = adapter.prepare_optimizer(optimizer, self._files["optimizer"], notes("optimizer"), model)
        if ema is not None:
            averages = {
                name: self._prepared_average(f"ema.{name}" if name else "ema", copy, notes, strict) for name, copy in several.items()
            }
            fills["ema"] = lambda: averages[""]() if "" in averages else {name: fill() for name, fill in averages.items()}
        for name, value, where in (("scheduler", scheduler, training), ("scaler", scaler, training), ("loader", loader, own)):
            if value is not None:
                fills[name] = _states.prepared(value, where[name])
        # Each is let go when it is done: it holds what it fills with.
        restored = Restored(**{name: fills.pop(name)() for name in tuple(fills)})
        for name, generator in (generators or {}).items():
            _random.set_state(generator, own["generators"][name])
        # The last: whatever is filled may draw from them.
        if rng and "rng" in own:
            _random.set_global_states(own["rng"])
        return restored

    def _prepared_average(self, part: str, target: Any, notes: Any, strict: bool) -> _states.Fill:
        file = self._files[part]
        if file.is_structure:
            return _states.prepared(target, file.copied().value())
        return _states.adapter_of(target).prepare(target, file, notes(part), strict)

    def _own_rank(self, training: Mapping[str, Any]) -> dict[str, Any]:
        """What was saved of this process."""
        saved = training.get("ranks") or [{}]
        here = ranks()
        rank = 0 if here is None else here.rank
        if rank < len(saved):
            return saved[rank]
        warnings.warn(
            f"the checkpoint of step {self.step} was saved by {len(saved)} processes and has no generators or loader of rank {rank}",
            stacklevel=3,
        )
        return {}

    def _warn_of_others(
        self, given: Mapping[str, tuple[Any, Any]], training: Mapping[str, Any], own: Mapping[str, Any], rng: bool
    ) -> None:
        """A training that goes on without a part of its state is not the same."""
        saved = {"scheduler", "scaler"} & training.keys() | self._ema().keys() | own.keys()
        asked = {name for name, (value, _) in given.items() if value is not None} | ({"rng"} if rng else set())
        generators = given["generators"][0]
        if generators is not None:
            saved |= {f"generator {name!r}" for name in own.get("generators", {}).keys() - generators.keys()}
        left = sorted(saved - asked)
        if left:
            warnings.warn(f"the checkpoint of step {self.step} also has {', '.join(left)}, which load_into was not given", stacklevel=3)
        here = ranks()
        count, saved_count = 1 if here is None else here.count, len(training.get("ranks", []))
        if saved_count > count:
            warnings.warn(
                f"the checkpoint of step {self.step} was saved by {saved_count} processes, and this training has {count}: the generators and loaders of "
                "the others are left out",
                stacklevel=3,
            )

