"""Checkpoints of trainings, with objects that have the methods of torch's and arrays of numpy: what needs no framework."""

from __future__ import annotations

import collections
import errno
import gc
import hashlib
import json
import pickle
import random
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import apr
from apr import structures
from apr.checkpoints import _folder, _ranks
from apr.safetensors import SafetensorError
from apr.safetensors.numpy import load_file

N_STEPS = 12


class Model:
    """A linear map with a counter that no array holds."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.w = generator.normal(size=(4, 3))
        self.b = np.zeros(3, np.float32)
        self.seen = 0

    def state_dict(self) -> dict[str, Any]:
        return {"w": self.w, "b": self.b, "seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.w[:], self.b[:] = state["w"], state["b"]
        self.seen = state["seen"]


class Momentum:
    """An optimizer whose state is nested as torch's."""

    def __init__(self, model: Model, lr: float) -> None:
        self.model = model
        self.state: dict[str, Any] = {}
        self.groups = [{"lr": lr, "betas": (0.9, 0.5), "names": ["w", "b"], "nesterov": False, "maximize": None}]

    def step(self, grads: dict[str, np.ndarray]) -> None:
        for group in self.groups:
            for name in group["names"]:
                value = getattr(self.model, name)
                entry = self.state.setdefault(name, {"step": np.float32(0), "moment": np.zeros_like(value)})
                entry["step"] = np.float32(entry["step"] + 1)
                entry["moment"] = group["betas"][0] * entry["moment"] + grads[name].astype(value.dtype)
                value -= (group["lr"] / entry["step"] * entry["moment"]).astype(value.dtype)

    def state_dict(self) -> dict[str, Any]:
        return {"state": self.state, "param_groups": self.groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state, self.groups = state["state"], state["param_groups"]


class Schedule:
    def __init__(self, optimizer: Momentum) -> None:
        self.optimizer, self.at, self.best = optimizer, 0, float("inf")

    def step(self, loss: float) -> None:
        self.at += 1
        self.best = min(self.best, loss)
        self.optimizer.groups[0]["lr"] *= 0.9

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at, "best": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at, self.best = state["at"], state["best"]


class Loader:
    """Batches in an order of its own, with the methods of other libraries."""

    def __init__(self, seed: int) -> None:
        self.generator, self.left = random.Random(seed), []

    def next(self) -> list[int]:
        if not self.left:
            self.left = list(range(20))
            self.generator.shuffle(self.left)
        return [self.left.pop() for _ in range(5)]

    def get_state(self) -> bytes:
        return json.dumps([self.generator.getstate(), self.left]).encode()

    def set_state(self, state: bytes) -> None:
        (version, numbers, gauss), self.left = json.loads(state)
        self.generator.setstate((version, tuple(numbers), gauss))


class Training:
    """Everything that a training is made of."""

    def __init__(self, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)
        self.model = Model(seed)
        self.optimizer = Momentum(self.model, 0.1 + seed)
        self.schedule = Schedule(self.optimizer)
        self.average = Model(seed)
        self.loader = Loader(seed)
        self.noise = np.random.default_rng(seed)
        self.old_noise = np.random.RandomState(seed)
        self.choice = random.Random(seed)
        self.losses: list[float] = []

    def step(self) -> None:
        rows = np.array(self.loader.next(), float)[:, None] + self.noise.normal(size=(5, 4)) + self.old_noise.normal(size=(5, 4))
        rows *= random.random() + np.random.rand() + self.choice.gauss(0, 1)
        out = rows @ self.model.w + self.model.b
        loss = float((out**2).mean()) / 1e3
        self.optimizer.step({"w": rows.T @ out / 1e5, "b": out.mean(0) / 1e3})
        self.model.seen += 5
        self.schedule.step(loss)
        self.average.w = 0.9 * self.average.w + 0.1 * self.model.w
        self.losses.append(loss)

    def parts(self) -> dict[str, Any]:
        generators = {"noise": self.noise, "old": self.old_noise, "choice": self.choice}
        return {"scheduler": self.schedule, "ema": self.average, "loader": self.loader, "generators": generators}


def test_a_training_that_stopped_goes_on_to_the_bit(tmp_path):
    stop = random.SystemRandom().randrange(1, N_STEPS)
    whole = Training(0)
    checkpoints = apr.Checkpoints(tmp_path)
    for step in range(N_STEPS):
        if step == stop:
            checkpoints.save(step, whole.model, whole.optimizer, {"loss": whole.losses[-1]}, extra={"epoch": 3}, **whole.parts())
        whole.step()
    resumed = Training(99)
    checkpoint = checkpoints.resume()
    assert (checkpoint.step, checkpoint.model_class, checkpoint.optimizer_class) == (stop, "Model", "Momentum")
    restored = checkpoint.load_into(resumed.model, resumed.optimizer, **resumed.parts())
    assert restored.model is resumed.model and restored.optimizer is resumed.optimizer and restored.ema is resumed.average
    for _ in range(stop, N_STEPS):
        resumed.step()
    assert resumed.losses == whole.losses[stop:], f"stopped at {stop}"
    assert np.array_equal(resumed.model.w, whole.model.w) and np.array_equal(resumed.average.w, whole.average.w)
    assert (resumed.model.seen, resumed.schedule.best) == (whole.model.seen, whole.schedule.best)
    assert checkpoint.extra == {"epoch": 3} and checkpoint.metrics == {"loss": whole.losses[stop - 1]}
    group = resumed.optimizer.groups[0]
    assert type(group["betas"]) is tuple and group["nesterov"] is False and group["maximize"] is None


def saved(tmp_path: Path, **more: Any) -> tuple[apr.Checkpoints, Training]:
    training = Training(1)
    for _ in range(3):
        training.step()
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(3, training.model, training.optimizer, {"loss": 0.5}, **training.parts(), **more)
    return checkpoints, training


def test_the_files_are_safetensors_and_json_that_others_open(tmp_path):
    checkpoints, training = saved(tmp_path)
    folder = tmp_path / "step_3"
    assert sorted(path.name for path in folder.iterdir()) == [
        "ema.safetensors",
        "manifest.json",
        "meta.json",
        "model.safetensors",
        "optimizer.json",
        "optimizer.safetensors",
        "training.safetensors",
    ]
    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["format_version"], meta["parts"], "framework" in meta) == ("1.1", ["ema", "training"], False)
    assert np.array_equal(load_file(folder / "model.safetensors")["w"], training.model.w)
    assert sorted(load_file(folder / "optimizer.safetensors")) == [
        "state.b.moment",
        "state.b.step",
        "state.w.moment",
        "state.w.step",
    ]
    assert (folder / "optimizer.json").read_text() == "{}"
    optimizer = structures.load_file(folder / "optimizer.safetensors")
    assert optimizer["param_groups"] == training.optimizer.groups and optimizer["state"]["w"]["step"] == 3
    state = structures.load_file(folder / "training.safetensors")
    assert state["model"] == {"values": {"seen": 15}} and state["scheduler"]["at"] == 3
    assert sorted(state["ranks"][0]) == ["generators", "loader", "rng"]
    assert state["ranks"][0]["rng"]["python"]["state"].dtype == np.uint32
    assert apr.scan(folder).is_safe


def test_nothing_is_pickled(tmp_path, monkeypatch):
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("pickled")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    checkpoints, training = saved(tmp_path)
    checkpoints.load(3).load_into(training.model, training.optimizer, **training.parts())


def test_same_training_same_bytes(tmp_path):
    for name in ("a", "b"):
        saved(tmp_path / name)
    for path in (tmp_path / "a" / "step_3").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / "step_3" / path.name).read_bytes(), path.name


def test_what_somebody_wrote_into_is_refused_by_name(tmp_path):
    checkpoints, training = saved(tmp_path)
    for path in sorted((tmp_path / "step_3").iterdir()):
        good = path.read_bytes()
        for at in (0, len(good) // 2, len(good) - 1):
            path.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
            with pytest.raises(SafetensorError) as caught:
                checkpoints.load(3)
            assert path.name == "manifest.json" or caught.value.code == "sm-checksum-mismatch" and path.name in str(caught.value)
            with pytest.warns(UserWarning, match=r"no checkpoint in .* can be loaded: step 3: Error while reading"):
                assert checkpoints.resume() is None
        path.write_bytes(good)
    (tmp_path / "step_3" / "notes.txt").write_text("hello")
    with pytest.raises(SafetensorError, match=r"notes\.txt.* is not listed"):
        checkpoints.load(3)


def rewrite_meta(folder: Path, **changes: Any) -> None:
    """Changes a description, and the manifest with it."""
    path = folder / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["meta.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_later_minor_versions_are_read_and_major_ones_refused(tmp_path):
    checkpoints, training = saved(tmp_path)
    rewrite_meta(tmp_path / "step_3", format_version="1.7", later={"a": 1})
    checkpoints.load(3).load_into(training.model, training.optimizer, **training.parts())
    rewrite_meta(tmp_path / "step_3", format_version="2.0")
    with pytest.raises(SafetensorError, match=r"format version 2\.0, this release reads 1\.x") as caught:
        checkpoints.load(3)
    assert caught.value.code == "sm-version"


@pytest.mark.parametrize("state", ['{"lr": 0.', "1" * 5000, "[" * 200_000])
def test_resume_skips_state_that_cannot_be_parsed(state, tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    for step in (1, 2):
        checkpoints.save(step, {"w": np.ones(1)}, {"m": np.ones(1)})
        (tmp_path / f"step_{step}" / "manifest.json").unlink()
    (tmp_path / "step_2" / "optimizer.json").write_text(state)
    with pytest.raises(SafetensorError, match=r"optimizer\.json cannot be read as JSON") as caught:
        checkpoints.load(2, require_manifest=False)
    assert caught.value.code == "sm-json"
    found = checkpoints.resume(require_manifest=False)
    assert found.step == 1 and "optimizer.json" in found.skipped[2]


def test_what_json_cannot_hold_is_refused_or_kept(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    metrics = {"nan": float("nan"), "most": float("inf"), "least": float("-inf"), "loss": 0.5}
    checkpoints.save(1, {"w": np.ones(1)}, metrics=metrics)
    found = checkpoints.load(1).metrics
    assert found.pop("nan") != metrics.pop("nan") and found == metrics
    rewrite_meta(tmp_path / "step_1", metrics={"note": "NaNs", "list": [1]})
    assert checkpoints.load(1).metrics == {"note": "NaNs", "list": [1]}
    with pytest.raises(SafetensorError, match=r"optimizer\.json would have \d+ bytes") as caught:
        checkpoints.save(2, {"w": np.ones(1)}, optimizer_state="a" * (64 << 20))
    assert caught.value.code == "sm-too-long" and checkpoints.steps() == [1]


def test_what_a_checkpoint_lacks_is_said_before_anything_is_filled(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    training = Training(2)
    checkpoints.save(1, training.model)
    other = Training(3)
    before = other.model.w.copy()
    with pytest.raises(ValueError, match="step 1 has no optimizer, scheduler, loader, generators, ema"):
        checkpoints.load(1).load_into(other.model, other.optimizer, **other.parts())
    assert np.array_equal(other.model.w, before)
    checkpoints.load(1).load_into(other.model)
    assert np.array_equal(other.model.w, training.model.w)


def test_a_training_that_leaves_out_a_part_is_warned(tmp_path):
    checkpoints, training = saved(tmp_path)
    with pytest.warns(UserWarning, match="step 3 also has ema, generators, loader, scheduler, which"):
        checkpoints.load(3).load_into(training.model, training.optimizer)
    with pytest.warns(UserWarning, match="also has rng"):
        checkpoints.load(3).load_into(training.model, training.optimizer, rng=False, **training.parts())
    parts = training.parts()
    del parts["generators"]["old"]
    with pytest.warns(UserWarning, match="step 3 also has generator 'old', which"):
        checkpoints.load(3).load_into(training.model, training.optimizer, **parts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = random.getstate()
        checkpoints.load(3).load_into(training.model)
        assert random.getstate() == state, "weights alone leave the generators as they are"
        checkpoints.load(3).load_into(training.model, training.optimizer, **training.parts())


def test_a_generator_gets_the_state_of_its_own_kind(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"w": np.ones(1)}, generators={"a": np.random.default_rng(0)})
    checkpoint = checkpoints.load(1)
    for generator in (random.Random(), np.random.Generator(np.random.SFC64(1))):
        with pytest.raises(ValueError):
            checkpoint.load_into({"w": np.ones(1)}, generators={"a": generator})
    with pytest.raises(ValueError, match="no generator 'b'"):
        checkpoint.load_into({"w": np.ones(1)}, generators={"b": np.random.default_rng(0)})
    with pytest.raises(TypeError, match="generator 'a' is a int"):
        checkpoints.save(2, {"w": np.ones(1)}, generators={"a": 7})
    for kind in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM):
        generator = np.random.Generator(kind(3))
        checkpoints.save(10 + (step := len(checkpoints.steps())), {"w": np.ones(1)}, generators={"a": generator})
        expected = generator.normal(size=3)
        other = np.random.Generator(kind(4))
        checkpoints.load(10 + step).load_into({}, generators={"a": other})
        assert np.array_equal(other.normal(size=3), expected)


def test_several_objects_are_saved_in_lists_and_mappings(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    one, two = Training(1), Training(2)
    for training in (one, two):
        training.step()
    parts = {"scheduler": [one.schedule, two.schedule], "ema": {"fast": one.average, "slow": two.average}}
    checkpoints.save(1, one.model, {"g": one.optimizer, "d": two.optimizer}, **parts)
    assert json.loads((tmp_path / "step_1" / "meta.json").read_text())["parts"] == ["ema.fast", "ema.slow", "training"]
    three, four = Training(3), Training(4)
    parts = {"scheduler": [three.schedule, four.schedule], "ema": {"fast": three.average, "slow": four.average}}
    checkpoint = checkpoints.load(1)
    checkpoint.load_into(three.model, {"g": three.optimizer, "d": four.optimizer}, **parts)
    assert four.optimizer.groups == two.optimizer.groups and four.schedule.best == two.schedule.best
    assert np.array_equal(four.average.w, two.average.w) and sorted(checkpoint.ema) == ["fast", "slow"]
    for optimizers, schedules in (({"g": three.optimizer}, parts["scheduler"]), ({"g": three.optimizer, "d": four.optimizer}, [three.schedule])):
        with pytest.raises(ValueError, match="does not have the entries that were saved"):
            checkpoint.load_into(three.model, optimizers, scheduler=schedules, ema=parts["ema"])


class Keeper:
    """Keeps and changes what it is given."""

    def __init__(self) -> None:
        self.state: Any = {"a": np.zeros(3), "b": [np.zeros(2)]}

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        assert not state["a"].any() and not state["b"][0].any()
        self.state = state
        state["a"] += 1
        state["b"][0] += 1


def test_what_was_loaded_is_not_the_checkpoints(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    flat = {"a": np.zeros(3), "none": np.zeros((0, 2)), "scalar": np.float32(0)}
    nested = {name: Keeper() for name in ("optimizer", "scheduler", "scaler", "ema", "loader")}
    checkpoints.save(1, flat, **nested)
    checkpoint = checkpoints.load(1)
    for _ in range(2):
        restored = checkpoint.load_into(flat, **nested)
        assert all(np.array_equal(restored.model[name], value) for name, value in flat.items())
        restored.model["a"] += 1
    # Its own tensors are views of the file.
    assert checkpoint.model["a"].base is not None and not checkpoint.ema["a"].any()


def test_averages_may_have_the_ending_of_files(tmp_path):
    checkpoints, averages = apr.Checkpoints(tmp_path), {"a.safetensors": Keeper(), "a": Keeper()}
    checkpoints.save(1, {"w": np.ones(1)}, ema=averages)
    checkpoint = checkpoints.load(1)
    assert sorted(checkpoint.ema) == ["a", "a.safetensors"]
    checkpoint.load_into({}, ema=averages)


def test_names_that_are_taken_get_a_number(tmp_path):
    state = {"a.b": np.ones(1), "a": {"b": np.zeros(1)}, "__metadata__": np.ones(2), 7: [np.ones(3)]}
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"w": np.ones(1)}, extra=state)
    assert sorted(load_file(tmp_path / "step_1" / "training.safetensors")) == [
        "extra.7.0",
        "extra.__metadata__",
        "extra.a.b",
        "extra.a.b~2",
    ]
    extra = checkpoints.load(1).extra
    assert np.array_equal(extra["a"]["b"], [0.0]) and np.array_equal(extra["a.b"], [1.0]) and list(extra) == list(state)


def test_what_cannot_be_saved_is_refused_and_leaves_nothing(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path / "run")
    model = {"w": np.ones(2)}
    for more, error in (
        ({"extra": object()}, structures.UnsupportedTypeError),
        ({"scheduler": {1: 0, "1": 0}}, structures.StructureError),
        ({"optimizer": {"m": np.ones(1, object)}}, SafetensorError),
        ({"optimizer": {"state": {0: lambda: 0}}}, structures.UnsupportedTypeError),
        ({"metrics": {"loss": "high"}}, ValueError),
        ({"ema": {"../x": Model(1)}}, SafetensorError),
        ({"other_ranks": "run"}, ValueError),
    ):
        with pytest.raises(error):
            checkpoints.save(1, model, **more)
    with pytest.raises(TypeError, match="a ndarray cannot be saved as a model"):
        checkpoints.save(1, np.ones(2))
    assert not (tmp_path / "run").exists() or not list((tmp_path / "run").iterdir())


def test_an_asynchronous_save_has_the_values_of_its_time(tmp_path):
    training = Training(5)
    training.step()
    expected = {name: np.array(value) for name, value in training.model.state_dict().items()}
    moment = training.optimizer.state["w"]["moment"].copy()
    with apr.Checkpoints(tmp_path) as checkpoints:
        path = checkpoints.save(1, training.model, training.optimizer, asynchronous=True, **training.parts())
        assert path == tmp_path / "step_1"
        training.model.w += 1
        training.model.b += 1
        training.optimizer.state["w"]["moment"] += 1
        training.noise.normal(size=100)
    checkpoint = checkpoints.load(1)
    assert np.array_equal(checkpoint.model["w"], expected["w"]) and np.array_equal(checkpoint.model["b"], expected["b"])
    assert np.array_equal(checkpoint.optimizer["state"]["w"]["moment"], moment)


def test_errors_of_an_asynchronous_save_surface_later(tmp_path, capfd):
    checkpoints = apr.Checkpoints(tmp_path)
    model = {"w": np.ones(2)}
    for step in (1, 1):
        checkpoints.save(step, model, asynchronous=True)
    with pytest.raises(OSError, match="exists"):
        checkpoints.save(2, model)
    assert checkpoints.steps() == [1], "the save that told the error has not saved"
    checkpoints.save(2, model, asynchronous=True)
    checkpoints.wait()
    checkpoints.save(2, model, asynchronous=True)
    with pytest.raises(OSError, match="exists"):
        checkpoints.wait()
    checkpoints.wait()
    # What cannot be saved at all is told at once.
    with pytest.raises(structures.UnsupportedTypeError):
        checkpoints.save(3, model, extra=object(), asynchronous=True)
    checkpoints.save(2, model, asynchronous=True)
    checkpoints._background._thread.join()
    del checkpoints
    gc.collect()
    assert "a checkpoint was not saved" in capfd.readouterr().err


def test_rules_keep_the_best_and_the_newest(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path, keep_last=2, keep_best=["1:val_loss", "1:acc:max"], keep_every=5)
    model = {"w": np.ones(1)}
    losses = [0.9, 0.1, 0.5, float("nan"), 0.4, 0.8, 0.3, 0.2]
    for step, loss in enumerate(losses, 1):
        checkpoints.save(step, model, metrics={"val_loss": loss, "acc": step % 4})
    assert checkpoints.steps() == [2, 5, 7, 8]
    assert checkpoints.prune(keep_best="1:acc", dry_run=True) == [2, 5]
    assert checkpoints.prune(keep_best="1:acc") == [2, 5]
    assert checkpoints.steps() == [7, 8], "the newest stays"
    with pytest.raises(SafetensorError, match='no checkpoint has the metric "los"') as caught:
        checkpoints.prune(keep_best="1:los:min")
    assert caught.value.code == "sm-no-metric"
    with pytest.raises(ValueError, match="needs a rule"):
        checkpoints.prune()
    for rule in ("1:top1", "best", "0:loss"):
        with pytest.raises(SafetensorError) as caught:
            apr.Checkpoints(tmp_path, keep_best=rule)
        assert caught.value.code == "sm-keep-rule"


def test_nothing_goes_until_the_metric_was_measured(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path, keep_best="1:val_loss")
    for step in range(4):
        checkpoints.save(step, {"w": np.ones(1)})
    assert checkpoints.steps() == [0, 1, 2, 3]
    checkpoints.save(4, {"w": np.ones(1)}, metrics={"val_loss": 1})
    assert checkpoints.steps() == [4]


def test_frameworks_that_are_not_there_are_named(tmp_path):
    checkpoints, _ = saved(tmp_path)
    rewrite_meta(tmp_path / "step_3", framework="torch")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(ModuleNotFoundError, match="framework='np'"):
            checkpoints.load(3).model  # noqa: B018
    assert isinstance(checkpoints.load(3, framework="np").model["w"], np.ndarray)
    with pytest.raises(SafetensorError, match="Device cuda is not supported"):
        checkpoints.load(3, framework="np", device="cuda").model  # noqa: B018


class Group:
    """Two processes as two threads: what `_ranks.Ranks` does with torch."""

    def __init__(self, rank: int, shared: dict[str, Any]) -> None:
        self.rank, self.count, self.shared = rank, 2, shared

    def gather(self, value: Any) -> list[Any]:
        self.shared[self.rank] = _ranks.to_bytes(value)
        self.shared["barrier"].wait(10)
        return [_ranks.from_bytes(self.shared[rank]) for rank in (0, 1)]

    def agree(self, failed: bool) -> bool:
        self.shared["failed", self.rank] = failed
        self.shared["barrier"].wait(10)
        found = self.shared["failed", 0] or self.shared["failed", 1]
        self.shared["barrier"].wait(10)
        return found


@pytest.fixture
def two_ranks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs a function in two threads that are the processes of a training; what each raised, or None."""
    here = threading.local()
    for module in (_folder, apr.checkpoints._checkpoint):
        monkeypatch.setattr(module, "ranks", lambda: getattr(here, "group", None))

    def both(work: Any) -> list[BaseException | None]:
        shared: dict[str, Any] = {"barrier": threading.Barrier(2)}
        raised: list[BaseException | None] = [None, None]

        def run(rank: int) -> None:
            here.group = Group(rank, shared)
            try:
                work(rank)
            except BaseException as error:  # noqa: BLE001
                raised[rank] = error

        threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return raised

    return both


def test_rank_0_writes_and_every_rank_gets_its_own_state(tmp_path, two_ranks):
    trainings = [Training(1), Training(2)]
    for training in trainings:
        training.step()
    expected = [np.random.Generator(type(training.noise.bit_generator)()) for training in trainings]
    for copy, training in zip(expected, trainings, strict=True):
        copy.bit_generator.state = training.noise.bit_generator.state

    def save(rank: int) -> None:
        training = trainings[rank]
        checkpoints = apr.Checkpoints(tmp_path)
        checkpoints.save(1, training.model, {"m": np.ones(1)}, loader=training.loader, generators={"noise": training.noise})

    assert two_ranks(save) == [None, None]
    assert apr.Checkpoints(tmp_path).steps() == [1]

    def load(rank: int) -> None:
        training = Training(7)
        apr.Checkpoints(tmp_path).load(1).load_into(training.model, loader=training.loader, generators={"noise": training.noise})
        assert training.loader.left == trainings[rank].loader.left
        assert np.array_equal(training.noise.normal(size=3), expected[rank].normal(size=3))
        assert np.array_equal(training.model.w, trainings[0].model.w)

    assert two_ranks(load) == [None, None]
    with pytest.warns(UserWarning, match="saved by 2 processes, and this training has 1: the generators and loaders of the others"):
        alone = Training(7)
        parts = {"loader": alone.loader, "generators": {"noise": alone.noise}}
        apr.Checkpoints(tmp_path).load(1).load_into(alone.model, {"m": np.ones(1)}, **parts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apr.Checkpoints(tmp_path).load(1).load_into(Training(7).model)


def test_states_of_ranks_keep_the_types_of_their_arrays():
    torch = pytest.importorskip("torch")
    state = {"t": torch.arange(3), "n": np.arange(3, dtype=np.int16), "b": b"x", "s": np.float32(2), "none": [torch.ones(0, 2), None]}
    found = _ranks.from_bytes(_ranks.to_bytes(state))
    assert torch.equal(found["t"], state["t"]) and found["none"][0].shape == (0, 2)
    assert type(found["n"]) is np.ndarray and found["n"].dtype == np.int16 and np.array_equal(found["n"], state["n"])
    assert found["b"] == b"x" and type(found["s"]) is np.float32


def test_an_error_of_rank_0_ends_the_others_too(tmp_path, two_ranks):
    for parts, error in (
        ({"extra": object()}, structures.UnsupportedTypeError),
        ({"extra": object(), "asynchronous": True}, structures.UnsupportedTypeError),
        ({"generators": {"a": object()}}, TypeError),
    ):

        def save(rank: int, parts: Any = parts) -> None:
            # Only what rank 0 gives cannot be saved.
            parts = parts if rank == 0 else {"asynchronous": "asynchronous" in parts}
            apr.Checkpoints(tmp_path).save(1, {"w": np.ones(1)}, **parts)

        first, second = two_ranks(save)
        assert isinstance(first, error)
        assert isinstance(second, RuntimeError) and "another process could not save the checkpoint of step 1" in str(second)

    def late(rank: int) -> None:
        checkpoints = apr.Checkpoints(tmp_path)
        for step in (5, 5, 6):
            checkpoints.save(step, {"w": np.ones(1)}, asynchronous=True)

    first, second = two_ranks(late)
    assert isinstance(first, OSError) and "earlier checkpoint" in str(second)


def test_an_error_of_another_rank_ends_all(tmp_path, two_ranks):
    def save(rank: int) -> None:
        parts = {"generators": {"a": object()}} if rank == 1 else {}
        apr.Checkpoints(tmp_path).save(1, {"w": np.ones(1)}, **parts)

    first, second = two_ranks(save)
    assert isinstance(first, RuntimeError) and "another process could not save the checkpoint of step 1" in str(first)
    assert isinstance(second, TypeError)
    assert apr.Checkpoints(tmp_path).steps() == []


def test_other_ranks_may_skip(tmp_path, two_ranks):
    def save(rank: int) -> None:
        checkpoints = apr.Checkpoints(tmp_path)
        if rank == 0:
            checkpoints.save(1, {"w": np.ones(1)}, generators={"a": np.random.default_rng(1)}, other_ranks="skip")
        else:
            assert checkpoints.save(1, {"w": np.ones(1)}, other_ranks="skip") == tmp_path / "step_1"

    assert two_ranks(save) == [None, None]

    def load(rank: int) -> None:
        checkpoint = apr.Checkpoints(tmp_path).load(1)
        if rank == 0:
            checkpoint.load_into({}, generators={"a": np.random.default_rng()})
        else:
            with warnings.catch_warnings(record=True) as told, pytest.raises(ValueError, match="no generators"):
                warnings.simplefilter("always")
                checkpoint.load_into({}, generators={"a": np.random.default_rng()})
            assert "saved by 1 processes" in str(told[0].message)

    assert two_ranks(load) == [None, None]


def test_resume_lists_again_while_what_it_found_vanishes(tmp_path, monkeypatch):
    writer, reader = apr.Checkpoints(tmp_path, keep_last=1), apr.Checkpoints(tmp_path)
    writer.save(1, {"w": np.ones(1)})
    load, rounds = reader.load, []

    def overtaken(step, **options):
        # Another process saves a newer one, and removes the one that was listed.
        if len(rounds) < 3:
            rounds.append(step)
            writer.save(step + 1, {"w": np.ones(1)})
        return load(step, **options)

    monkeypatch.setattr(reader, "load", overtaken)
    found = reader.resume()
    assert rounds == [1, 2, 3] and found.step == 4 and not found.skipped


def test_an_empty_listing_counts_when_it_is_repeated(tmp_path, monkeypatch):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"w": np.ones(1)})
    listings = iter([[], [1]])
    monkeypatch.setattr(checkpoints, "steps", lambda: next(listings))
    assert checkpoints.resume().step == 1


def test_containers_come_back_as_what_they_were(tmp_path):
    made = {
        "order": collections.OrderedDict([("b", 1), ("a", collections.Counter("aab"))]),
        "lists": [collections.defaultdict(list, x=[1]), (collections.deque([1], maxlen=2), {"n": None})],
    }
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"w": np.ones(1)}, {"m": np.ones(1), **made}, scheduler=made, extra=made)
    loaded = checkpoints.load(1)
    optimizer = loaded.optimizer
    assert optimizer.pop("m").tolist() == [1]
    for found in (loaded.extra, optimizer, loaded.load_into({"w": np.ones(1)}, scheduler=made).scheduler):
        assert repr(found) == repr(made)


def test_objects_in_containers_leave_these_as_they_are(tmp_path):
    class Counted:
        def __init__(self, count: int) -> None:
            self.count = count

        def state_dict(self) -> dict:
            return {"count": self.count}

        def load_state_dict(self, state: dict) -> None:
            self.count = state["count"]

    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"w": np.ones(1)}, scheduler=collections.OrderedDict(b=Counted(7), a=[1]))
    fresh = collections.OrderedDict(b=Counted(0), a=[1])
    checkpoints.load(1).load_into({"w": np.ones(1)}, scheduler=fresh)
    assert fresh["b"].count == 7


def test_data_without_an_end_are_refused(tmp_path):
    endless: list = []
    endless.append({"again": endless})
    deep: list = []
    for _ in range(3_000):
        deep = [deep]
    checkpoints = apr.Checkpoints(tmp_path)
    for data in (endless, deep):
        for given in ({"extra": data}, {"optimizer": {"m": data}}, {"scheduler": data}, {"loader": data}):
            with pytest.raises(apr.structures.StructureError) as caught:
                checkpoints.save(1, {"w": np.ones(1)}, **given)
            assert caught.value.code == "ss-depth", given.keys()
    assert checkpoints.steps() == []


def test_arrays_of_a_checkpoint_hold_its_memory(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, {"w": np.ones(1_000)})
    owned = array = checkpoints.load(1).model["w"]
    while isinstance(owned, np.ndarray):
        owned = owned.base
    with pytest.raises(BufferError):
        owned.obj.clear()
    assert array.sum() == 1_000


def test_masked_arrays_are_refused_by_name(tmp_path):
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    checkpoints = apr.Checkpoints(tmp_path)
    for given in ((1, {"w": masked}), (1, {"w": np.ones(1)}, {"w": masked})):
        for asynchronous in (False, True):
            with pytest.raises(SafetensorError, match="`w` is a masked array, whose mask no file can hold"):
                checkpoints.save(*given, asynchronous=asynchronous)
    with pytest.raises(structures.UnsupportedTypeError):
        checkpoints.save(1, {"w": np.ones(1)}, extra=[masked])
    assert checkpoints.steps() == []


def test_a_step_that_is_there_is_named(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    path = checkpoints.save(1, {"w": np.ones(1)})
    with pytest.raises(FileExistsError, match="File exists .*step_1 exists") as caught:
        checkpoints.save(1, {"w": np.ones(1)})
    assert (caught.value.errno, caught.value.filename, caught.value.code) == (errno.EEXIST, str(path), "df-exists")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    long = "n" * 65_537
    for given in ((1, {long: np.ones(1)}), (1, {"w": np.ones(1)}, {long: np.ones(1)})):
        with pytest.raises(SafetensorError, match="limit on bytes of a tensor name exceeded: 65536") as caught:
            checkpoints.save(*given)
        assert caught.value.code == "st-limit"
    with pytest.raises(SafetensorError, match="limit on bytes of a tensor name"):
        checkpoints.save(1, {"w": np.ones(1)}, extra={long: np.ones(1)})
    assert checkpoints.steps() == []
    checkpoints.save(1, {long[1:]: np.ones(1)}, extra={"n" * 65_000: np.ones(1)})
    assert list(checkpoints.load(1).model) == [long[1:]]


def test_numbers_that_are_none_are_named(tmp_path):
    for options, error, message in (
        ({"keep_last": -1}, ValueError, "keep_last is -1: give 0"),
        ({"keep_every": 1.5}, TypeError, "keep_every is a whole number, not 1.5"),
        ({"keep_best": [3]}, TypeError, "keep_best is a text"),
    ):
        with pytest.raises(error, match=message):
            apr.Checkpoints(tmp_path, **options)
        with pytest.raises(error, match=message):
            apr.Checkpoints(tmp_path).prune(**options)
    checkpoints = apr.Checkpoints(tmp_path)
    model = {"w": np.ones(1)}
    for given, error, message in (
        ((-1, model), ValueError, "step is -1"),
        ((1 << 64, model), ValueError, "step is 18446744073709551616: give 0 to 2\\^64-1"),
        (("1", model), TypeError, "step is a whole number, not '1'"),
        ((1, model, None, {3: 0.5}), TypeError, "the name of a metric is a text, not 3"),
    ):
        with pytest.raises(error, match=message):
            checkpoints.save(*given)
    with pytest.raises(ValueError, match="count is -1"):
        checkpoints.keep_last(-1)
    for step, name in ((False, "step_0"), (np.int64(7), "step_7")):
        assert checkpoints.save(step, model) == tmp_path / name and (tmp_path / name).is_dir()
    assert checkpoints.steps() == [0, 7]


def test_threads_may_share_a_folder(tmp_path):
    checkpoints, errors = apr.Checkpoints(tmp_path), []

    def save(thread: int) -> None:
        try:
            for number in range(8):
                checkpoints.save(thread * 100 + number, {"w": np.ones(100)}, asynchronous=True)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=save, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checkpoints.wait()
    assert not errors and len(checkpoints.steps()) == 32


def test_a_handler_of_a_signal_saves_while_its_thread_waits(tmp_path, monkeypatch):
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers of signals here")
    checkpoints = apr.Checkpoints(tmp_path)
    begun = checkpoints._background.start
    monkeypatch.setattr(checkpoints._background, "start", lambda work: begun(lambda: (time.sleep(0.3), work())))
    model = {"w": np.ones(3)}
    handled: list[int] = []

    def save(*_: Any) -> None:
        checkpoints.save(2, model, asynchronous=True)
        handled.append(2)

    before = signal.signal(signal.SIGALRM, save)
    try:
        checkpoints.save(1, model, asynchronous=True)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        checkpoints.wait()
        checkpoints.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert handled == [2] and checkpoints.steps() == [1, 2]
