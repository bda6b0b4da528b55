"""Checkpoints of trainings of PyTorch, and what goes into and comes out of layers."""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import apr  # noqa: E402
from apr import structures  # noqa: E402
from apr.safetensors import SafetensorError  # noqa: E402
from apr.safetensors.torch import load_file, load_model  # noqa: E402
from torch import nn  # noqa: E402
from torch.optim import lr_scheduler as schedulers  # noqa: E402
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn  # noqa: E402

N_STEPS = 14


class Net(nn.Module):
    """With tied weights, a normalization that counts, and dropout."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(width, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: Any) -> Any:
        x = self.embed(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(self.drop(self.norm(x)))


class Training:
    def __init__(self, seed: int, optimizer: Any = None, scheduler: Any = None, workers: int = 0) -> None:
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        self.model = Net()
        self.optimizer = (optimizer or (lambda params: torch.optim.AdamW(params, 0.01)))(self.model.parameters())
        self.scheduler = (scheduler or (lambda optimizer: schedulers.OneCycleLR(optimizer, 0.02, total_steps=50)))(self.optimizer)
        is_scaled = not isinstance(self.optimizer, torch.optim.LBFGS)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3, enabled=is_scaled)
        self.ema = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
        data = torch.arange(40) % 20
        self.loader = apr.torch.ResumableLoader(data, 6, shuffle=True, seed=3, num_workers=workers)
        self.noise = torch.Generator().manual_seed(seed)
        self.losses: list[float] = []

    def parts(self) -> dict[str, Any]:
        names = ("scheduler", "scaler", "ema", "loader")
        return {**{name: getattr(self, name) for name in names}, "generators": {"noise": self.noise}}

    def run(self, until: int, save: Any = None) -> None:
        while len(self.losses) < until:
            for batch in self.loader:
                self.step(batch)
                if save is not None:
                    save(self)
                if len(self.losses) == until:
                    return

    def step(self, batch: Any) -> None:
        weight = 1 + random.random() + float(np.random.rand()) + float(torch.rand((), generator=self.noise))

        def closure() -> Any:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(batch), batch) * weight
            self.scaler.scale(loss).backward()
            return loss

        if isinstance(self.optimizer, torch.optim.LBFGS):
            loss = self.optimizer.step(closure)
        else:
            loss = closure()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if isinstance(self.scheduler, schedulers.ReduceLROnPlateau):
            self.scheduler.step(loss.item())
        else:
            self.scheduler.step()
        self.ema.update_parameters(self.model)
        self.losses.append(loss.item())


def same(a: Any, b: Any) -> bool:
    """Whether two states are equal to the bit, and of one type."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def goes_on(tmp_path: Path, **kinds: Any) -> None:
    """A training that is stopped at a random step and resumed has the losses of one that was not."""
    stop = random.SystemRandom().randrange(1, N_STEPS)
    checkpoints = apr.Checkpoints(tmp_path)
    whole = Training(0, **kinds)

    def save(training: Training) -> None:
        if len(training.losses) == stop:
            checkpoints.save(stop, training.model, training.optimizer, {"loss": training.losses[-1]}, **training.parts())

    whole.run(N_STEPS, save)
    resumed = Training(9, **kinds)
    resumed.losses = whole.losses[:stop]
    checkpoint = checkpoints.resume()
    checkpoint.load_into(resumed.model, resumed.optimizer, **resumed.parts())
    resumed.run(N_STEPS)
    assert resumed.losses == whole.losses, f"stopped at {stop}"
    for name in ("model", "optimizer", "scheduler", "scaler", "ema", "loader"):
        assert same(getattr(resumed, name).state_dict(), getattr(whole, name).state_dict()), f"{name}, stopped at {stop}"


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, 0.05),
        lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
        lambda p: torch.optim.Adam(p, torch.tensor(0.01), amsgrad=True, foreach=False),
        lambda p: torch.optim.AdamW(p, 0.01, fused=True),
        lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
        lambda p: torch.optim.Adagrad(p, 0.05),
        lambda p: torch.optim.Adadelta(p, 0.5),
        lambda p: torch.optim.Adamax(p, 0.01),
        lambda p: torch.optim.NAdam(p, 0.01),
        lambda p: torch.optim.RAdam(p, 0.01),
        lambda p: torch.optim.ASGD(p, 0.05),
        lambda p: torch.optim.Rprop(p, 0.01),
        lambda p: torch.optim.Adafactor(p, 0.05),
        lambda p: torch.optim.LBFGS(p, 0.1, max_iter=3, history_size=4),
    ],
    ids=["SGD", "momentum", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Adafactor", "LBFGS"],
)
def test_every_optimizer_goes_on_to_the_bit(optimizer, tmp_path):
    goes_on(tmp_path, optimizer=optimizer, scheduler=lambda optimizer: schedulers.ExponentialLR(optimizer, 0.99))


@pytest.mark.parametrize(
    "scheduler",
    [
        lambda o: schedulers.OneCycleLR(o, 0.02, total_steps=50),
        lambda o: schedulers.StepLR(o, 4, 0.5),
        lambda o: schedulers.MultiStepLR(o, [3, 3, 8], 0.5),
        lambda o: schedulers.CosineAnnealingWarmRestarts(o, 5),
        lambda o: schedulers.CyclicLR(o, 1e-3, 1e-2, step_size_up=4, cycle_momentum=False),
        lambda o: schedulers.LambdaLR(o, lambda step: 0.9**step),
        lambda o: schedulers.ReduceLROnPlateau(o, patience=1),
        lambda o: SWALR(o, 0.05, 6, "linear"),
        lambda o: schedulers.SequentialLR(o, [schedulers.ConstantLR(o, 0.1, 3), schedulers.PolynomialLR(o, 30)], [4]),
        lambda o: schedulers.ChainedScheduler([schedulers.LinearLR(o, 0.1, total_iters=6), schedulers.ExponentialLR(o, 0.9)]),
    ],
    ids=["OneCycle", "Step", "MultiStep", "WarmRestarts", "Cyclic", "Lambda", "Plateau", "SWA", "Sequential", "Chained"],
)
def test_every_scheduler_goes_on_to_the_bit(scheduler, tmp_path):
    goes_on(tmp_path, scheduler=scheduler)


def test_workers_do_not_change_the_order_of_the_data(tmp_path):
    goes_on(tmp_path, workers=2)


SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    sys.path.insert(0, sys.argv[1])
    from test_checkpoints_torch import Training
    import apr

    folder, until, kill_at = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    checkpoints = apr.Checkpoints(folder, keep_last=2)
    training = Training(0)
    newest = checkpoints.resume()
    if newest is not None:
        newest.load_into(training.model, training.optimizer, **training.parts())
        training.losses = [0.0] * newest.step

    def save(training):
        print(len(training.losses), training.losses[-1].hex(), flush=True)
        checkpoints.save(len(training.losses), training.model, training.optimizer, asynchronous=True, **training.parts())
        if len(training.losses) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    training.run(until, save)
    checkpoints.wait()
    """
)


def test_a_killed_process_goes_on_in_a_new_one(tmp_path):
    def losses(folder: str, kill_at: int) -> tuple[dict[int, str], int]:
        command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(tmp_path / folder), str(N_STEPS), str(kill_at)]
        ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
        lines = (line.split() for line in ran.stdout.splitlines())
        assert ran.returncode in (0, -signal.SIGKILL), ran.stderr
        return {int(step): loss for step, loss in lines}, ran.returncode

    whole, _ = losses("whole", 0)
    assert len(whole) == N_STEPS
    kill_at = random.SystemRandom().randrange(3, N_STEPS)
    first, status = losses("cut", kill_at)
    assert status == -signal.SIGKILL
    steps = apr.Checkpoints(tmp_path / "cut").steps()
    assert steps and max(steps) in (kill_at - 1, kill_at)
    second, _ = losses("cut", 0)
    assert min(second) == max(steps) + 1
    assert {**first, **second} == whole, f"killed at {kill_at}"


def test_tied_weights_are_stored_once(tmp_path):
    training = Training(1)
    path = apr.Checkpoints(tmp_path).save(1, training.model)
    stored = load_file(path / "model.safetensors")
    assert "embed.weight" in stored and "head.weight" not in stored
    other = Net()
    # The official package's function ties them again.
    load_model(other, path / "model.safetensors")
    assert same(other.state_dict(), training.model.state_dict())
    model = apr.Checkpoints(tmp_path).load(1).model
    assert model["head.weight"] is model["embed.weight"] and model.keys() == training.model.state_dict().keys()
    untied = Net()
    untied.head.weight = nn.Parameter(torch.zeros(20, 8))
    apr.Checkpoints(tmp_path).load(1).load_into(untied)
    assert torch.equal(untied.head.weight, training.model.embed.weight)


def test_views_of_one_storage_keep_their_values(tmp_path):
    whole = torch.arange(12.0)
    state = {"whole": whole, "part": whole[:4], "again": whole[:4], "rows": whole.view(3, 4), "turned": whole.view(3, 4).T, "none": whole[:0]}
    apr.Checkpoints(tmp_path).save(1, state)
    loaded = apr.Checkpoints(tmp_path).load(1).model
    assert same(loaded, state)
    assert loaded["again"] is loaded["part"] and loaded["part"] is not loaded["whole"]


def test_conjugate_and_negative_views_keep_their_values(tmp_path):
    value = torch.complex(torch.arange(3.0), torch.arange(3.0) + 1)
    state = {"a": value, "conj": value.conj(), "imag": value.imag, "neg": value.conj().imag}
    apr.Checkpoints(tmp_path).save(1, state)
    loaded = apr.Checkpoints(tmp_path).load(1).model
    assert loaded.keys() == state.keys() and all(torch.equal(loaded[name], state[name].resolve_conj().resolve_neg()) for name in state)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.float8_e4m3fn, torch.int64, torch.bool])
def test_every_type_survives(dtype, tmp_path):
    state = {"a": torch.arange(6).reshape(2, 3).to(dtype), "scalar": torch.ones((), dtype=dtype), "empty": torch.zeros(0, 2, dtype=dtype)}
    apr.Checkpoints(tmp_path).save(1, state, {"state": {0: dict(state)}, "param_groups": []})
    loaded = apr.Checkpoints(tmp_path).load(1)
    assert same(loaded.model, state) and same(loaded.optimizer["state"][0], state)


def test_state_of_more_digits_than_its_parameter_keeps_them(tmp_path):
    def made() -> tuple[Any, Any]:
        model = nn.Linear(3, 2, dtype=torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        return model, optimizer

    model, optimizer = made()
    for param in model.parameters():
        optimizer.state[param]["momentum_buffer"] = torch.rand(param.shape)
    apr.Checkpoints(tmp_path).save(1, model, optimizer)
    other, restored = made()
    apr.Checkpoints(tmp_path).load(1).load_into(other, restored)
    for ours, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert same(restored.state[ours]["momentum_buffer"], optimizer.state[theirs]["momentum_buffer"])


def test_parameters_are_known_by_their_names(tmp_path):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, model, optimizer)
    checkpoint = checkpoints.load(1)
    assert list(checkpoint.optimizer["state"]) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert "state.1.weight.exp_avg" in load_file(checkpoint.path / "optimizer.safetensors")
    # In another order, all of one shape.
    other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    turned = torch.optim.Adam(list(other.parameters())[::-1])
    checkpoint.load_into(other, turned)
    for ours, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert same(turned.state[ours], optimizer.state[theirs])
    # What is filled is not the checkpoint's.
    turned.state[other[0].weight]["exp_avg"] += 1
    assert torch.equal(checkpoint.optimizer["state"]["0.weight"]["exp_avg"], optimizer.state[model[0].weight]["exp_avg"])

    fewer = torch.optim.Adam(other[0].parameters())
    with pytest.raises(ValueError, match=r"only in the checkpoint 1\.bias, 1\.weight, only in the optimizer none"):
        checkpoint.load_into(other, fewer)
    groups = torch.optim.Adam([{"params": other[0].parameters()}, {"params": other[1].parameters()}])
    with pytest.raises(ValueError, match="the checkpoint has 1 groups of parameters, the optimizer 2"):
        checkpoint.load_into(other, groups)
    # A parameter of no model keeps its number.
    stranger = nn.Parameter(torch.ones(3))
    mixed = torch.optim.SGD([*model.parameters(), stranger], 0.1)
    checkpoints.save(2, model, mixed)
    assert checkpoints.load(2).optimizer["param_groups"][0]["params"][-1] == 4


def test_models_that_differ_are_refused_in_the_words_of_torch(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, nn.Linear(2, 3))
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        checkpoints.load(1).load_into(nn.Linear(2, 4))
    with pytest.raises(RuntimeError, match="Missing key"):
        checkpoints.load(1).load_into(nn.Sequential(nn.Linear(2, 3)))
    checkpoints.load(1).load_into(nn.Linear(2, 3, bias=False), strict=False)
    for dtype in (torch.bfloat16, torch.float64):
        other = nn.Linear(2, 3).to(dtype)
        before = other.weight.clone()
        with pytest.raises(ValueError, match=rf"is torch\.float32 in the checkpoint, {dtype} in the model"):
            checkpoints.load(1).load_into(other)
        assert torch.equal(other.weight, before)


def test_several_models_and_optimizers(tmp_path):
    def made() -> tuple[dict[str, Any], dict[str, Any]]:
        models = {"gen": nn.Linear(2, 2), "disc": nn.Linear(2, 1)}
        optimizers = {name: torch.optim.Adam(model.parameters()) for name, model in models.items()}
        for name, model in models.items():
            model(torch.ones(1, 2)).sum().backward()
            optimizers[name].step()
        return models, optimizers

    models, optimizers = made()
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, models, optimizers)
    others, restored = made()
    checkpoint = checkpoints.load(1)
    assert sorted(checkpoint.model) == ["disc.bias", "disc.weight", "gen.bias", "gen.weight"]
    checkpoint.load_into(others, restored)
    assert same({name: model.state_dict() for name, model in others.items()}, {name: model.state_dict() for name, model in models.items()})
    assert same(restored["gen"].state_dict(), optimizers["gen"].state_dict())
    with pytest.raises(ValueError, match="tensors of no model that was given: disc"):
        checkpoint.load_into({"gen": others["gen"]})


def test_models_whose_names_begin_with_another(tmp_path):
    def made() -> dict[str, Any]:
        return {"model": nn.Linear(2, 2), "model.ema": nn.Linear(3, 3), "other": nn.Linear(1, 1)}

    checkpoints, models, others = apr.Checkpoints(tmp_path), made(), made()
    checkpoints.save(1, models)
    checkpoints.load(1).load_into(others)
    assert all(same(others[name].state_dict(), models[name].state_dict()) for name in models)
    # A tensor of one could be that of another.
    vae = nn.ModuleDict({"decoder": nn.Linear(2, 2)})
    for decoder in (nn.Linear(2, 2), nn.Linear(2, 2, bias=False)):
        with pytest.raises(ValueError, match=r"model 'vae' has `decoder\.\w+`, whose name is that of a tensor of model 'vae\.decoder'"):
            checkpoints.save(2, {"vae": vae, "vae.decoder": decoder})
    assert checkpoints.steps() == [1]


def test_tensors_of_groups_stay_on_their_device(tmp_path):
    def made(lr: float) -> Any:
        return torch.optim.Adam([nn.Parameter(torch.ones(2))], torch.tensor(lr), foreach=False)

    checkpoints, optimizer = apr.Checkpoints(tmp_path), made(0.25)
    optimizer.param_groups[0]["betas"] = (torch.tensor(0.5), 0.75)
    checkpoints.save(1, nn.Linear(1, 1), optimizer)
    other = made(0.5)
    # In place of a GPU.
    other.param_groups[0] |= {"lr": torch.tensor(0.5, device="meta"), "betas": (torch.tensor(0.5, device="meta"), 0.5)}
    checkpoints.load(1).load_into(nn.Linear(1, 1), other)
    (group,) = other.param_groups
    assert group["lr"].device.type == group["betas"][0].device.type == "meta" and group["betas"][1] == 0.75
    checkpoints.load(1).load_into(nn.Linear(1, 1), other := made(0.5))
    assert other.param_groups[0]["lr"] == 0.25 and other.param_groups[0]["betas"] == (0.5, 0.75)


def test_wrappers_do_not_show_in_the_names(tmp_path):
    model = Net()
    for step, wrapped in enumerate((torch.compile(model), nn.DataParallel(model), torch.compile(nn.DataParallel(model)))):
        optimizer = torch.optim.SGD(wrapped.parameters(), 0.1, momentum=0.9)
        apr.Checkpoints(tmp_path).save(step, wrapped, optimizer)
        checkpoint = apr.Checkpoints(tmp_path).load(step)
        assert checkpoint.model.keys() == model.state_dict().keys() and checkpoint.model_class == "Net"
        assert checkpoint.optimizer["param_groups"][0]["params"][0] == "embed.weight"
        checkpoint.load_into(Net())
        checkpoint.load_into(torch.compile(Net()))


def test_what_a_module_has_beside_tensors_is_kept(tmp_path):
    class Counting(nn.Linear):
        seen: Any = None

        def get_extra_state(self) -> Any:
            return {"seen": self.seen, "shape": (1, 2)}

        def set_extra_state(self, state: Any) -> None:
            assert state["shape"] == (1, 2)
            self.seen = state["seen"]

    model = Counting(2, 2)
    model.seen = 12
    apr.Checkpoints(tmp_path).save(1, model)
    other = Counting(2, 2)
    apr.Checkpoints(tmp_path).load(1).load_into(other)
    assert other.seen == 12


@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps"])
def test_generators_of_gpus_are_saved(kind, tmp_path, monkeypatch):
    class Module:
        states = [torch.arange(3, dtype=torch.uint8)] if kind == "mps" else [torch.arange(3, dtype=torch.uint8), torch.ones(2, dtype=torch.uint8)]

        def device_count(self) -> int:
            return len(self.states)

        if kind == "mps":

            def get_rng_state(self) -> Any:
                return self.states[0]

            def set_rng_state(self, state: Any) -> None:
                self.states = [state]

        else:

            def is_initialized(self) -> bool:
                return True

            def get_rng_state_all(self) -> Any:
                return self.states

            def set_rng_state_all(self, states: Any) -> None:
                self.states = states

    checkpoints, weights, module = apr.Checkpoints(tmp_path), {"w": torch.ones(1)}, Module()
    monkeypatch.setattr(torch, kind, module)
    checkpoints.save(1, weights)
    expected, module.states = module.states, [state * 0 for state in module.states]
    checkpoints.load(1).load_into(weights, rng=True)
    assert same(module.states, expected)
    module.states = []
    if kind == "mps":
        # Every Mac saves it, used or not.
        checkpoints.load(1).load_into(weights, rng=True)
        return
    with pytest.raises(ValueError, match=f"generators of {len(expected)} `{kind}` devices, and this process has 0: leave them out with rng=False"):
        checkpoints.load(1).load_into(weights, rng=True)


def test_what_no_rank_can_save_is_refused_by_name(tmp_path):
    class FullyShardedDataParallel(nn.Module):
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

    class ZeroRedundancyOptimizer(torch.optim.SGD):
        pass

    checkpoints = apr.Checkpoints(tmp_path / "run")
    for model in (FullyShardedDataParallel(Net()), nn.Sequential(FullyShardedDataParallel(Net()))):
        with pytest.raises(ValueError, match="is a FullyShardedDataParallel, of which each rank has a part: gather it"):
            checkpoints.save(1, model)
    model = Net()
    with pytest.raises(ValueError, match="ZeroRedundancyOptimizer.*consolidate_state_dict"):
        checkpoints.save(1, model, [ZeroRedundancyOptimizer(model.parameters(), 0.1)])
    for value, message in (
        (torch.eye(3).to_sparse(), "`a` is sparse"),
        (torch.empty(3, device="meta"), "`a` has no values"),
    ):
        with pytest.raises(ValueError, match=message):
            checkpoints.save(1, {"a": value})
    with pytest.raises(SafetensorError, match="complex128"):
        checkpoints.save(1, {"a": torch.ones(3, dtype=torch.complex128)})
    assert not (tmp_path / "run").exists() or not list((tmp_path / "run").iterdir())


def test_an_asynchronous_save_has_the_weights_of_its_time(tmp_path):
    training = Training(2)
    training.run(3)
    model = {name: value.clone() for name, value in training.model.state_dict().items()}
    moments = training.optimizer.state_dict()["state"][0]["exp_avg"].clone()
    with apr.Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(3, training.model, training.optimizer, asynchronous=True, **training.parts())
        with torch.no_grad():
            for param in training.model.parameters():
                param.fill_(7)
            training.optimizer.state_dict()["state"][0]["exp_avg"].fill_(7)
    checkpoint = checkpoints.load(3)
    assert same(checkpoint.model, dict(model))
    assert torch.equal(checkpoint.optimizer["state"]["embed.weight"]["exp_avg"], moments)


def test_tensors_come_in_the_framework_and_on_the_device_that_is_asked_for(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    training = Training(2)
    training.run(2)
    checkpoints.save(1, training.model, training.optimizer, {"loss": torch.tensor(0.5)}, ema=training.ema)
    loaded = checkpoints.load(1, framework="np")
    assert isinstance(loaded.model["norm.weight"], np.ndarray) and isinstance(loaded.ema["module.norm.weight"], np.ndarray)
    assert isinstance(loaded.optimizer["state"]["norm.weight"]["exp_avg"], np.ndarray) and loaded.metrics == {"loss": 0.5}
    # On a device without memory nothing is stored.
    meta = checkpoints.load(1, device="meta")
    assert meta.model["norm.weight"].device.type == "meta" and meta.optimizer["state"]["norm.weight"]["exp_avg"].device.type == "meta"
    assert checkpoints.resume(device=torch.device("cpu")).model["norm.weight"].device.type == "cpu"
    state = loaded.load_into(dict(training.model.state_dict()))
    assert same(dict(state.model), dict(training.model.state_dict()))


DISTRIBUTED = textwrap.dedent(
    """
    import random, sys
    import torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    import apr

    rank, folder, store = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)

    def made(seed):
        torch.manual_seed(seed)
        model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1)))
        torch.manual_seed(seed + rank)
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        loader = apr.torch.ResumableLoader(torch.arange(64.0).reshape(16, 4), 3, shuffle=True, seed=1, rank=rank, ranks=2)
        return model, optimizer, loader

    def run(model, optimizer, loader, count):
        losses = []
        while len(losses) < count:
            for batch in loader:
                loss = model(batch).square().mean()
                optimizer.zero_grad(); loss.backward(); optimizer.step()
                losses.append(loss.item())
                if len(losses) == count:
                    break
        return losses

    checkpoints = apr.Checkpoints(folder)
    model, optimizer, loader = made(1)
    run(model, optimizer, loader, 4)
    noise = torch.Generator().manual_seed(rank)
    checkpoints.save(4, model, optimizer, loader=[loader, noise])
    expected, noises = run(model, optimizer, loader, 5), torch.rand(3, generator=noise)
    model, optimizer, loader = made(7)
    checkpoint = checkpoints.resume()
    assert not any(name.startswith("module.") for name in checkpoint.model)
    checkpoint.load_into(model, optimizer, loader=[loader, noise])
    assert run(model, optimizer, loader, 5) == expected and torch.equal(torch.rand(3, generator=noise), noises)
    # What rank 0 cannot do, all hear of.
    for asynchronous in (False, True):
        try:
            checkpoints.save(4, model, asynchronous=asynchronous)
            checkpoints.save(5, model)
            raise SystemExit("not refused")
        except OSError:
            assert rank == 0
        except RuntimeError as error:
            assert rank == 1 and "another process could not save" in str(error), error

    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    sharded = fully_shard(torch.nn.Linear(4, 4), mesh=mesh)
    try:
        checkpoints.save(9, sharded)
        raise SystemExit("not refused")
    except ValueError as error:
        assert "of which each rank has a part: gather it on every rank" in str(error), error
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    full = get_model_state_dict(sharded, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        checkpoints.save(9, full, other_ranks="skip")
        assert sorted(checkpoints.load(9).model) == ["bias", "weight"]
    dist.barrier()
    dist.destroy_process_group()
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="gloo over a file")
def test_two_processes_go_on_to_the_bit(tmp_path):
    arguments = [str(tmp_path / "run"), str(tmp_path / "store")]
    started = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", DISTRIBUTED, str(rank), *arguments], stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    try:
        told = [process.communicate(timeout=120)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], told


class Agent:
    """An object around a module, with a counter in an array of numpy."""

    def __init__(self, *, is_mixed: bool = False) -> None:
        self.net, self.seen = nn.Linear(2, 2), np.zeros(1)
        self.is_mixed = is_mixed

    def state_dict(self) -> dict[str, Any]:
        return {**self.net.state_dict(), **({"seen": self.seen} if self.is_mixed else {})}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        state = dict(state)
        self.seen = state.pop("seen", self.seen)
        assert type(self.seen) is np.ndarray
        self.net.load_state_dict(state)


@pytest.mark.parametrize("is_mixed", [False, True])
def test_objects_around_tensors_get_tensors(is_mixed, tmp_path):
    agent = Agent(is_mixed=is_mixed)
    agent.seen += 3
    optimizer = torch.optim.Adam(agent.net.parameters())
    agent.net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    generator = torch.Generator().manual_seed(5)
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, agent, optimizer, scheduler=generator, ema=agent, extra={"t": torch.ones(2), "n": np.ones(2)})
    expected = torch.rand(3, generator=generator)
    other, average = Agent(is_mixed=is_mixed), Agent(is_mixed=is_mixed)
    restored = torch.optim.Adam(other.net.parameters())
    checkpoint = checkpoints.load(1)
    assert isinstance(checkpoint.model["weight"], torch.Tensor) and isinstance(checkpoint.ema["weight"], torch.Tensor)
    assert isinstance(checkpoint.extra["t"], torch.Tensor) and isinstance(checkpoint.extra["n"], np.ndarray)
    assert isinstance(checkpoints.load(1, framework="np").model["weight"], np.ndarray)
    # Whatever the framework of `model` is.
    checkpoints.load(1, framework="np").load_into(other, restored, scheduler=generator, ema=average)
    assert same(other.net.state_dict(), agent.net.state_dict()) and same(average.net.state_dict(), agent.net.state_dict())
    assert same(restored.state_dict(), optimizer.state_dict()) and torch.equal(torch.rand(3, generator=generator), expected)
    assert not is_mixed or other.seen == [3.0]


def test_what_was_loaded_is_not_the_checkpoints(tmp_path):
    class Keeping(nn.Linear):
        kept: Any = torch.zeros(2)

        def get_extra_state(self) -> Any:
            return self.kept

        def set_extra_state(self, state: Any) -> None:
            self.kept = state

    model = Keeping(2, 2)
    checkpoints = apr.Checkpoints(tmp_path)
    weights = {"w": torch.ones(2), "none": torch.ones(0, 2), "scalar": torch.ones(())}
    checkpoints.save(1, weights, {"m": np.zeros(2)}, ema=weights)
    checkpoints.save(2, model)
    checkpoint, other = checkpoints.load(1), checkpoints.load(2)
    for _ in range(2):
        restored = checkpoint.load_into(weights, {"m": np.zeros(2)}, ema=weights)
        assert same(restored.model, weights) and same(restored.ema, weights) and np.array_equal(restored.optimizer["m"], [0, 0])
        for tensor in (restored.model["w"], restored.ema["w"], restored.optimizer["m"]):
            tensor += 5
        other.load_into(model)
        assert torch.equal(model.kept, torch.zeros(2))
        model.kept += 5


class TestResumableLoader:
    DATA = torch.arange(17)

    def batches(self, loader: Any, epochs: int = 1) -> list[list[int]]:
        return [batch.tolist() for _ in range(epochs) for batch in loader]

    def test_every_sample_comes_once_an_epoch_in_orders_of_their_own(self):
        loader = apr.torch.ResumableLoader(self.DATA, 5, shuffle=True, seed=1)
        epochs = [sum(self.batches(loader), []) for _ in range(3)]
        assert all(sorted(epoch) == list(range(17)) for epoch in epochs) and len({tuple(epoch) for epoch in epochs}) == 3
        assert len(loader) == 4 and loader.epoch == 3
        again = apr.torch.ResumableLoader(self.DATA, 5, shuffle=True, seed=1)
        assert sum(self.batches(again), []) == epochs[0]
        other = apr.torch.ResumableLoader(self.DATA, 5, shuffle=True, seed=2)
        assert sum(self.batches(other), []) not in epochs
        assert self.batches(apr.torch.ResumableLoader(self.DATA, 5)) == [list(range(i, min(i + 5, 17))) for i in (0, 5, 10, 15)]

    @pytest.mark.parametrize("workers", [0, 2])
    def test_it_goes_on_after_any_batch(self, workers):
        options = {"shuffle": True, "seed": 4, "num_workers": workers}
        whole = self.batches(apr.torch.ResumableLoader(self.DATA, 5, **options), 3)
        for count in (1, 3, 4, 6, 12):
            loader, given = apr.torch.ResumableLoader(self.DATA, 5, **options), []
            while len(given) < count:
                for batch in loader:
                    given.append(batch.tolist())
                    if len(given) == count:
                        break
            other = apr.torch.ResumableLoader(self.DATA, 5, **options)
            other.load_state_dict(loader.state_dict())
            while len(given) < 12:
                given += self.batches(other)
            assert given == whole, count

    def test_global_generators_are_not_touched(self):
        state = torch.get_rng_state()
        self.batches(apr.torch.ResumableLoader(self.DATA, 5, shuffle=True))
        assert torch.equal(torch.get_rng_state(), state)

    def test_ranks_get_other_samples_and_as_many_batches(self):
        for drop_last in (False, True):
            loaders = [apr.torch.ResumableLoader(self.DATA, 2, shuffle=True, rank=rank, ranks=3, drop_last=drop_last) for rank in range(3)]
            batches = [self.batches(loader) for loader in loaders]
            assert {len(found) for found in batches} == {len(loaders[0])}
            if not drop_last:
                seen = sorted(sum(sum(batches, []), []))
                assert set(seen) == set(range(17)) and len(seen) == 18

    def test_fewer_samples_than_ranks(self):
        for count, ranks in ((3, 8), (1, 7), (0, 2), (4, 4)):
            loaders = [apr.torch.ResumableLoader(self.DATA[:count], 2, rank=rank, ranks=ranks) for rank in range(ranks)]
            batches = [self.batches(loader) for loader in loaders]
            assert [len(found) for found in batches] == [min(count, 1)] * ranks == [len(loader) for loader in loaders]

    def test_another_order_is_refused(self):
        state = apr.torch.ResumableLoader(self.DATA, 5, shuffle=True, seed=1).state_dict()
        for other in (
            apr.torch.ResumableLoader(self.DATA, 4, shuffle=True, seed=1),
            apr.torch.ResumableLoader(self.DATA, 5, shuffle=True, seed=2),
            apr.torch.ResumableLoader(self.DATA[1:], 5, shuffle=True, seed=1),
            apr.torch.ResumableLoader(self.DATA, 5, shuffle=True, seed=1, ranks=2),
        ):
            with pytest.raises(ValueError, match="the batches would be others"):
                other.load_state_dict(state)
        with pytest.raises(ValueError, match="sampler decides"):
            apr.torch.ResumableLoader(self.DATA, sampler=[0])
        for wrong in ({"batch_size": 0}, {"rank": 1}, {"seed": -1}):
            with pytest.raises(ValueError, match="or more"):
                apr.torch.ResumableLoader(self.DATA, **wrong)


class TestCapture:
    def test_inputs_and_outputs_of_layers_survive_a_file(self, tmp_path):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Sequential(nn.Linear(4, 2), nn.Identity()))
        seen = {}

        def see(layer: Any, args: Any, output: Any) -> None:
            seen.setdefault("first", output.detach().clone())

        model[0].register_forward_hook(see)
        with structures.capture(model) as captured:
            for scale in (1.0, 2.0):
                model(torch.full((2, 3), scale))
        assert list(captured) == ["0", "1", "2.0", "2.1"] and [len(calls) for calls in captured.values()] == [2, 2, 2, 2]
        # As they were: the next layer changed the tensor in place.
        assert torch.equal(captured["0"][0]["output"], seen["first"]) and torch.equal(captured["1"][0]["args"][0], seen["first"])
        assert (captured["1"][0]["output"] >= 0).all() and not captured["0"][0]["output"].requires_grad
        model(torch.ones(2, 3))
        assert len(captured["0"]) == 2, "after the block nothing is kept"
        captured.save_file(tmp_path / "a.safetensors", {"run": "7"})
        loaded = structures.load_file(tmp_path / "a.safetensors", "pt")
        assert same(loaded, {name: captured[name] for name in captured})
        # Replayed: the recorded input gives the recorded output.
        for name, calls in loaded.items():
            assert torch.equal(model.get_submodule(name)(*calls[1]["args"]), calls[1]["output"])

    def test_layers_are_chosen_by_patterns(self):
        model = nn.ModuleDict({"enc": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]), "head": nn.Linear(2, 1)})
        x = torch.ones(1, 2)
        with structures.capture(model, ["enc.*", "head"], calls=1, inputs=False) as captured:
            for _ in range(3):
                for layer in model["enc"]:
                    layer(x)
        assert sorted(captured) == ["enc.0", "enc.1", "head"] and captured["head"] == []
        assert [list(call) for call in captured["enc.0"]] == [["output"]]
        assert repr(captured) == "<calls of 3 layers: 'enc.0': 1, 'enc.1': 1, 'head': 0>"
        with pytest.raises(ValueError, match="no layer is called 'heads': did you mean 'head'"):
            structures.capture(model, "heads")
        assert list(structures.capture(nn.Linear(2, 2))) == [""]

    def test_keywords_containers_and_recursion(self, tmp_path):
        class Inner(nn.Module):
            def forward(self, x: Any, *, depth: int, mask: Any = None) -> Any:
                return {"x": self(x + 1, depth=depth - 1)["x"] if depth else x, "mask": [mask, None]}

        model = nn.Sequential(Inner())
        with structures.capture(model, "0") as captured:
            model[0](torch.zeros(2), depth=2, mask=torch.ones(1))
        assert [call["kwargs"]["depth"] for call in captured["0"]] == [2, 1, 0]
        assert [call["output"]["x"].tolist() for call in captured["0"]] == [[2.0, 2.0]] * 3
        captured.save_file(tmp_path / "a.safetensors")
        assert structures.load_file(tmp_path / "a.safetensors")["0"][0]["kwargs"]["mask"].tolist() == [1.0]


def test_arrays_of_other_libraries_in_a_model_are_read(tmp_path):
    checkpoints = apr.Checkpoints(tmp_path)
    model = {"w": torch.ones(1), "mean": np.arange(3.0), "epoch": 3}
    checkpoints.save(1, model, ema=model)
    loaded = checkpoints.load(1)
    for found in (loaded.model, loaded.ema):
        assert found.keys() == {"w", "mean"} and isinstance(found["w"], torch.Tensor) and isinstance(found["mean"], np.ndarray)
        assert found["mean"].tolist() == [0, 1, 2]
    as_numpy = checkpoints.load(1, framework="np").model
    assert all(isinstance(value, np.ndarray) for value in as_numpy.values()) and as_numpy.keys() == {"w", "mean"}
    assert loaded.load_into(model).model["epoch"] == 3


def test_nested_state_keeps_its_digits_and_containers(tmp_path):
    fine = torch.tensor([1 + 2**-20])
    nested = {
        "hist": [fine.clone(), fine.clone()],
        "more": {"deep": (collections.OrderedDict(x=fine.clone()), 3)},
        "last": collections.deque([fine.clone()], maxlen=4),
        "count": torch.tensor([2**40 + 1]),
        "counter": collections.Counter(a=1),
        "note": "text",
    }

    def made() -> tuple[Any, Any]:
        model = nn.Linear(2, 3).bfloat16()
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(2).bfloat16()).sum().backward()
        optimizer.step()
        return model, optimizer

    model, optimizer = made()
    for state in optimizer.state.values():
        state.update(nested)
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, model, optimizer)
    other, filled = made()
    checkpoints.load(1).load_into(other, filled)
    for state in filled.state.values():
        assert {name: repr(state[name]) for name in nested} == {name: repr(value) for name, value in nested.items()}
        assert state["hist"][0].dtype == torch.float32 and torch.equal(state["hist"][0], fine)
        assert torch.equal(state["more"]["deep"][0]["x"], fine) and torch.equal(state["last"][0], fine)
        assert state["exp_avg"].dtype == torch.bfloat16


def test_a_refused_checkpoint_changes_nothing(tmp_path):
    def made(width: int = 3) -> tuple[Any, Any]:
        model = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(4, 2)).sum().backward()
        optimizer.step()
        return model, optimizer

    model, optimizer = made()
    generators = {"a": np.random.default_rng(1), "b": np.random.RandomState(1)}
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, model, optimizer, ema=model, generators=generators)
    checkpoint = checkpoints.load(1)

    def unchanged(here: Any, there: Any, message: str, error: type[Exception] = ValueError, **more: Any) -> None:
        before = {name: tensor.clone() for name, tensor in here.state_dict().items()}
        with pytest.raises(error, match=message):
            checkpoint.load_into(here, there, **{"ema": made()[0], "generators": generators, **more})
        assert all(torch.equal(tensor, before[name]) for name, tensor in here.state_dict().items())

    here, there = made()
    unchanged(here, torch.optim.Adam([here[0].weight]), "a group of parameters differs")
    unchanged(here, [there], "list does not have the entries that were saved")
    unchanged(here, there, "size mismatch for 0.weight", RuntimeError, ema=made(5)[0])
    unchanged(here, there, "generator 'b' is one of MT19937, the checkpoint .* MT19937 in a RandomState", generators={
        "a": generators["a"], "b": np.random.Generator(np.random.MT19937(1))
    })
    # Torch itself fills what fits, and refuses the rest afterwards.
    unchanged(*made(5), "size mismatch for 0.weight", RuntimeError)
    here = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(1, 1))
    unchanged(here, there, "Missing key.* \"2.weight\"", RuntimeError)
    here = nn.Sequential(nn.Linear(2, 3))
    unchanged(here, there, "Unexpected key.* \"1.weight\"", RuntimeError)
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(4))
    try:
        unchanged(*made(), "global generator of numpy is one of PCG64, the checkpoint has the state of one of MT19937")
    finally:
        np.random.set_bit_generator(before)


class Renamed(nn.Module):
    """Takes weights under the name that they had before."""

    def __init__(self) -> None:
        super().__init__()
        self.new = nn.Linear(2, 2)
        self.register_load_state_dict_pre_hook(self.rename)

    @staticmethod
    def rename(module: Any, state: dict, prefix: str, *_: Any) -> None:
        for name in [name for name in state if name.startswith(f"{prefix}old.")]:
            state[name.replace("old.", "new.")] = state.pop(name)


def test_hooks_of_modules_may_take_other_names(tmp_path):
    old = nn.ModuleDict({"old": nn.Linear(2, 2)})
    apr.Checkpoints(tmp_path).save(1, old)
    new = Renamed()
    apr.Checkpoints(tmp_path).load(1).load_into(new)
    assert torch.equal(new.new.weight, old["old"].weight)
    lazy = nn.ModuleDict({"old": nn.LazyLinear(2)})
    apr.Checkpoints(tmp_path).load(1).load_into(lazy)
    assert torch.equal(lazy["old"].weight, old["old"].weight)


@pytest.mark.parametrize("names", [("pt", "format"), ("w", "_safestructures_schema_"), ("w", "_safestructures_schema_version_"), ("w", "v")])
def test_tied_weights_may_have_any_names(names, tmp_path):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name in names:
                self.register_parameter(name, nn.Parameter(torch.randn(2)))
            setattr(self, names[1], getattr(self, names[0]))

    model, other = Tied(), Tied()
    checkpoints = apr.Checkpoints(tmp_path)
    checkpoints.save(1, model)
    loaded = checkpoints.load(1)
    assert loaded.model.keys() == set(names)
    loaded.load_into(other)
    assert all(torch.equal(getattr(other, name), getattr(model, names[0])) for name in names)
    assert getattr(other, names[0]) is getattr(other, names[1])


def test_the_annealing_of_a_scheduler_is_saved_by_its_name(tmp_path):
    def made(strategy: str) -> tuple[Any, Any, Any]:
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        one = SWALR(optimizer, 0.05, 4, strategy)
        return model, optimizer, {"one": one, "chained": schedulers.ChainedScheduler([one])}

    checkpoints = apr.Checkpoints(tmp_path)
    for step, strategy in enumerate(("linear", "cos")):
        model, optimizer, scheduler = made(strategy)
        checkpoints.save(step, model, optimizer, scheduler=scheduler)
        model, optimizer, other = made("cos" if strategy == "linear" else "linear")
        checkpoints.load(step).load_into(model, optimizer, scheduler=other)
        assert other["one"].anneal_func(0.25) == scheduler["one"].anneal_func(0.25)


def test_parameters_beside_the_model_have_names_of_their_own(tmp_path):
    def made() -> tuple[Any, Any]:
        model = nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))])
        extra = nn.Parameter(torch.ones(1))
        optimizer = torch.optim.Adam([extra, *model])
        sum(((index + 2) * param.sum() for index, param in enumerate((extra, *model)))).backward()
        optimizer.step()
        return model, optimizer

    checkpoints = apr.Checkpoints(tmp_path)
    model, optimizer = made()
    checkpoints.save(1, model, optimizer)
    assert checkpoints.load(1).optimizer["param_groups"][0]["params"] == ["0~2", "0", "1"]
    other, filled = made()
    filled.state.clear()
    checkpoints.load(1).load_into(other, filled)
    assert same(filled.state_dict(), optimizer.state_dict())


def test_schedulers_keep_texts_that_are_called_like_functions(tmp_path):
    class Named(schedulers.LambdaLR):
        def __init__(self, optimizer: Any, name: str) -> None:
            super().__init__(optimizer, lambda _: 1.0)
            self.anneal_func = name

    def made(name: str) -> tuple[Any, Any, Any]:
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return model, optimizer, Named(optimizer, name)

    model, optimizer, scheduler = made("cosine")
    apr.Checkpoints(tmp_path).save(1, model, optimizer, scheduler=scheduler)
    model, optimizer, other = made("linear")
    apr.Checkpoints(tmp_path).load(1).load_into(model, optimizer, scheduler=other)
    assert other.anneal_func == "cosine"


def test_hooks_of_modules_may_need_values(tmp_path):
    class Limited(Renamed):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("limit", torch.ones(1), persistent=False)

        @staticmethod
        def rename(module: Any, state: dict, prefix: str, *more: Any) -> None:
            assert float(module.limit) == 1
            Renamed.rename(module, state, prefix, *more)

    old = nn.ModuleDict({"old": nn.Linear(2, 2)})
    apr.Checkpoints(tmp_path).save(1, old)
    new = Limited()
    apr.Checkpoints(tmp_path).load(1).load_into(new)
    assert torch.equal(new.new.weight, old["old"].weight)


def test_a_model_is_read_without_what_is_beside_it(tmp_path):
    pytest.importorskip("jax")
    model = nn.Linear(2, 2)
    apr.Checkpoints(tmp_path).save(1, model, extra={"count": torch.tensor([2**40])})
    assert set(apr.Checkpoints(tmp_path).load(1, framework="jax").model) == {"weight", "bias"}
