"""A folder of checkpoints."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apr._native import CheckpointFolder, SafetensorError

from . import _random, _states
from ._background import Background
from ._checkpoint import Checkpoint
from ._files import Part, flat_or_structure, structure
from ._ranks import Ranks, ranks

if TYPE_CHECKING:
    from typing_extensions import Self

_NO_METRIC = "sm-no-metric"

# How often `resume` looks for checkpoints while all that it found vanish.
_MOST_LISTINGS = 1_000


class Checkpoints:
    """A folder of checkpoints.

    ```python
    checkpoints = apr.Checkpoints("run-7", keep_last=3, keep_best="1:val_loss")
    checkpoints.save(100, model, optimizer, {"val_loss": 0.3}, scheduler=scheduler)
    newest = checkpoints.resume()
    if newest is not None:
        newest.load_into(model, optimizer, scheduler=scheduler)
    ```

    Each step is a folder `step_N` with safetensors files, `meta.json` and a manifest of SHA-256 digests. It appears whole, after
    everything in it has reached the medium; nothing is ever pickled or unpickled.

    Args:
        folder: where they are; the first save makes it.
        keep_last, keep_best, keep_every: which ones each save leaves, as for `prune`. Without any, nothing is removed.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        keep_last: int = 0,
        keep_best: str | Iterable[str] = (),
        keep_every: int = 0,
    ) -> None:
        self.folder = Path(folder)
        self._native = CheckpointFolder(self.folder)
        self._background = Background()
        self._rules = _rules(keep_last, keep_best, keep_every)
        # What cannot be read is refused now, not after the first save.
        CheckpointFolder(self.folder / "no such folder").prune(self._rules, True)

    def save(
        self,
        step: int,
        model: Any,
        optimizer: Any = None,
        metrics: Mapping[str, Any] | None = None,
        *,
        scheduler: Any = None,
        scaler: Any = None,
        ema: Any = None,
        loader: Any = None,
        generators: Mapping[str, Any] | None = None,
        extra: Any = None,
        rng: bool | None = None,
        model_class: str = "",
        optimizer_class: str = "",
        optimizer_state: Any = None,
        asynchronous: bool = False,
        other_ranks: str = "wait",
    ) -> Path:
        """Saves a checkpoint and returns its folder.

        Of a distributed training (`torch.distributed`) every process calls it: rank 0 writes, and generators and loaders of all are saved.

        Args:
            step: 0 or more; there must be none of this step.
            model: a `torch.nn.Module` or a mapping of them; an object of `flax.nnx` or a pytree of JAX; a model of Keras; an object
                with `state_dict` and `load_state_dict`; or names and arrays, with any strides and byte order. Wrappers of torch for
                parallel training and compilation do not show in the names.
            optimizer: the optimizer, several in a list or mapping, its state as a pytree, or names and arrays. Of a compiled model of
                Keras it is the model's unless another is given.
            metrics: numbers worth remembering; NaN and infinities too.
            scheduler, scaler, loader: objects with `state_dict` and `load_state_dict` (or `get_state` and `set_state`), several in a
                list or mapping, or nested data.
            ema: averaged weights, what `model` may be; several modules in a mapping.
            generators: generators of `random`, `numpy.random` and torch by name.
            extra: nested data, as `apr.structures` takes it.
            rng: whether to save the global generators of Python, numpy and torch, GPUs included; None: of trainings, not of names
                and arrays.
            model_class, optimizer_class: names, for people; those of the objects unless given.
            optimizer_state: JSON to keep beside an optimizer that is names and arrays.
            asynchronous: whether to copy everything to memory and write while the caller goes on. What fails then is raised by the next
                `save` or by `wait`.
            other_ranks: what the other processes of a distributed training do: `"wait"` until rank 0 has written, or `"skip"`, which
                saves generators and loader of rank 0 alone and lets rank 0 call alone.

        Raises:
            SafetensorError: tensors or state cannot be written in this form.
            ValueError, TypeError: something cannot be saved, such as a model that is sharded over processes; the text says what to do.
            OSError: the folder cannot be written, or the step exists. Nothing is left behind.
            RuntimeError: another process could not save; its own error says why.
        """
        if other_ranks not in ("wait", "skip"):
            raise ValueError(f"other_ranks is 'wait' or 'skip', not {other_ranks!r}")
        adapter = _states.adapter_of(model)
        if adapter.NAME == "keras" and optimizer is None:
            optimizer = getattr(model, "optimizer", None)
        if adapter.NAME == "torch":
            adapter.refuse_sharded(model, optimizer)
        is_training = bool(adapter.NAME) or _states.methods_of(model) is not None

        # Those that take part; without others, or where they skip, this process alone.
        group = ranks() if other_ranks == "wait" else None
        here = ranks()
        with _shared_errors(group, "an earlier checkpoint"):
            self._background.wait()
        own: dict[str, Any] = {}
        with _shared_errors(group, f"the checkpoint of step {step}"):
            step = _count("step", step)
            if is_training if rng is None else rng:
                own["rng"] = _random.global_states()
            if generators is not None:
                own["generators"] = {name: _random.state_of(name, generator) for name, generator in generators.items()}
            if loader is not None:
                own["loader"] = _states.state_of(loader)
        saved = [own] if group is None else group.gather(own)
        path = self.folder / f"step_{step}"

        def work() -> None:
            self._native.save(step, given)
            self._keep()

        with _shared_errors(group, f"the checkpoint of step {step}"):
            if here is not None and here.rank != 0:
                return path
            given = _given(
                adapter,
                model,
                optimizer,
                {"scheduler": scheduler, "scaler": scaler, "extra": extra},
                ema,
                saved if any(saved) else None,
                copy=asynchronous,
                optimizer_state=optimizer_state,
            )
            given |= {
                "metrics": _numbers(metrics),
                "model_class": model_class or adapter.class_name(model),
                "optimizer_class": optimizer_class or _states.class_name(optimizer),
                "framework": _states.framework_of(adapter, model, optimizer),
            }
            if asynchronous:
                self._background.start(work)
            else:
                work()
        return path

    def wait(self) -> None:
        """Returns when an asynchronous save is done.

        Raises:
            SafetensorError, OSError: what it failed with.
        """
        self._background.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def load(
        self, step: int, *, require_manifest: bool = True, framework: str | None = None, device: Any = None
    ) -> Checkpoint:
        """A checkpoint whose every file has the digest of its manifest.

        Args:
            step: which.
            require_manifest: refuse a checkpoint without a manifest, of which nothing can be verified.
            framework: what its tensors become, as for `apr.open`; those of the framework that wrote them unless given.
            device: where they are put, in the framework's words.

        Raises:
            SafetensorError: a file is missing, damaged or not listed, or there is no such step; `code` says which.
            OSError: something cannot be read.
        """
        return Checkpoint(self._native.load(step, require_manifest), framework, device)

    def steps(self) -> list[int]:
        """The steps that are there, ascending; nothing is verified."""
        return self._native.steps()

    def latest(self) -> int | None:
        """The highest step, if there is one; nothing is verified."""
        steps = self.steps()
        return steps[-1] if steps else None

    def resume(
        self, *, require_manifest: bool = True, framework: str | None = None, device: Any = None
    ) -> Checkpoint | None:
        """The newest checkpoint that `load` accepts; None if there is none. Newer ones that were refused are in its `skipped`.

        Warns where there are checkpoints and none is accepted, with the reasons: a training that began anew would have lost them.
        """
        skipped: dict[int, str] = {}
        for _ in range(_MOST_LISTINGS):
            # A folder that changes while it is listed may show neither what came nor what went.
            steps = self.steps() or self.steps()
            skipped = {}
            for step in reversed(steps):
                try:
                    checkpoint = self.load(step, require_manifest=require_manifest, framework=framework, device=device)
                except (SafetensorError, OSError) as error:
                    skipped[step] = str(error)
                    continue
                checkpoint.skipped.update(skipped)
                return checkpoint
            # Another process may have saved newer ones and removed all of these meanwhile.
            left = set(self.steps())
            if left <= set(steps) and bool(left) == bool(steps):
                skipped = {step: why for step, why in skipped.items() if step in left}
                break
        if skipped:
            reasons = "; ".join(f"step {step}: {why}" for step, why in skipped.items())
            warnings.warn(f"no checkpoint in {self.folder} can be loaded: {reasons}", stacklevel=2)
        return None

    def keep_last(self, count: int) -> list[int]:
        """Removes all but the `count` newest checkpoints and returns the steps that went, ascending."""
        return self._native.keep_last(_count("count", count))

    def prune(
        self,
        *,
        keep_last: int = 0,
        keep_best: str | Iterable[str] = (),
        keep_every: int = 0,
        dry_run: bool = False,
    ) -> list[int]:
        """Removes the checkpoints that no rule keeps and returns their steps, ascending. The newest always stays.

        Args:
            keep_last: how many of the highest steps.
            keep_best: `"COUNT:METRIC"`, with `":min"` or `":max"` after it unless the metric's name says which values are better; several
                in a list.
            keep_every: steps that are multiples of this.
            dry_run: remove nothing.

        Raises:
            SafetensorError: a rule cannot be read (`sm-keep-rule`), or no checkpoint has its metric (`sm-no-metric`).
            ValueError: there is no rule.
            OSError: something cannot be removed.
        """
        rules = _rules(keep_last, keep_best, keep_every)
        if not any(rules):
            raise ValueError("prune needs a rule: keep_last, keep_best or keep_every")
        return self._native.prune(rules, dry_run)

    def _keep(self) -> None:
        if any(self._rules):
            try:
                self._native.prune(self._rules, False)
            except SafetensorError as error:
                # Until a metric was measured, no checkpoint is worse than another.
                if error.code != _NO_METRIC:
                    raise


@contextmanager
def _shared_errors(group: Ranks | None, what: str) -> Iterator[None]:
    """An error of one process is raised by every one, or the others would wait for it."""
    failed = True
    try:
        yield
        failed = False
    finally:
        one_failed = group is not None and group.agree(failed)
    if one_failed:
        raise RuntimeError(f"another process could not save {what}: its own error says why")


def _rules(keep_last: int, keep_best: str | Iterable[str], keep_every: int) -> tuple[int, list[str], int]:
    best = [keep_best] if isinstance(keep_best, str) else list(keep_best)
    for rule in best:
        if not isinstance(rule, str):
            raise TypeError(f"keep_best is a text such as '3:val_loss', or several, not {rule!r}")
    return _count("keep_last", keep_last), best, _count("keep_every", keep_every)


def _count(name: str, value: Any) -> int:
    try:
        found = int(operator.index(value))
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if not 0 <= found < 1 << 64:
        raise ValueError(f"{name} is {found}: give 0 to 2^64-1")
    return found


def _numbers(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    for name in metrics or {}:
        if not isinstance(name, str):
            raise TypeError(f"the name of a metric is a text, not {name!r}")
    return {name: float(value) for name, value in (metrics or {}).items()}


def _given(
    adapter: Any,
    model: Any,
    optimizer: Any,
    training: Mapping[str, Any],
    ema: Any,
    saved_ranks: list[Any] | None,
    *,
    copy: bool,
    optimizer_state: Any,
) -> dict[str, Any]:
    """The files of a checkpoint, as the native module takes them."""
    state = {name: _states.state_of(value) for name, value in training.items() if value is not None}
    if saved_ranks is not None:
        state["ranks"] = saved_ranks
    keep: list[Part] = []

    def packed(name: str, pack: Callable[[], tuple[Part, dict[str, Any]]]) -> Any:
        part, notes = pack()
        keep.append(part)
        if notes:
            state[name] = notes
        return part.given()

    given: dict[str, Any] = {"model": packed("model", lambda: adapter.pack(model, copy)), "optimizer": None, "parts": {}}
    if optimizer is None and optimizer_state is not None:
        optimizer = {}
    if optimizer is not None:
        given["optimizer"] = packed("optimizer", lambda: adapter.pack_optimizer(optimizer, model, copy))
    given["optimizer_json"] = json.dumps({} if optimizer_state is None else optimizer_state, allow_nan=False)
    for name, average in _states.copies(ema).items():
        part = f"ema.{name}" if name else "ema"
        given["parts"][part] = packed(part, lambda average=average: _pack_average(average, copy))
    if state:
        given["parts"]["training"] = packed("training", lambda: (structure(state, copy), {}))
    # Memory that specs point at.
    given["keep"] = keep
    return given


def _pack_average(average: Any, copy: bool) -> tuple[Part, dict[str, Any]]:
    adapter = _states.adapter_of(average)
    if adapter.NAME or _states.methods_of(average) is None:
        return adapter.pack(average, copy)
    # Averages of other libraries have counters and lists beside the weights.
    return flat_or_structure(_states.state_of(average), copy), {}
