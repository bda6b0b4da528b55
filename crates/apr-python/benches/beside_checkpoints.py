"""Checkpoints beside torch.save and orbax: bytes on disk, and times of saving and resuming.

Runs in an environment with the wheel and torch, or JAX with flax, optax and orbax-checkpoint; what is not installed is left out.
Rounds are interleaved; a time is the median. What each library writes survives what it promises: `apr` waits until the medium has
the files, torch.save does not, unless the row says so. Files are in the page cache when they are read.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apr


def size_of(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def measured(works: dict[str, Callable[[Path, int], Path | None]], rounds: int, folder: Path) -> None:
    """Runs each work in turn. A work gets an empty folder and the round, and returns what it wrote."""
    times: dict[str, list[float]] = {name: [] for name in works}
    sizes: dict[str, int] = {}
    for round_number in range(rounds + 1):
        for name, work in works.items():
            place = folder / "place"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            gc.collect()
            os.sync()
            begun = time.perf_counter()
            written = work(place, round_number)
            taken = time.perf_counter() - begun
            # The first round pays for what is loaded once.
            if round_number:
                times[name].append(taken)
            if written is not None:
                sizes[name] = size_of(written)
    for name, taken in times.items():
        size = f"{sizes[name]:>13,}" if name in sizes else " " * 13
        print(f"{name:44} {statistics.median(taken) * 1e3:9.1f} ms  {size}")


def torch_rows(count: int, rounds: int, folder: Path) -> None:
    import torch

    print(f"\ntorch {torch.__version__}, AdamW, {count:,} parameters (float32)")
    width = int((count / 8) ** 0.5)

    def made() -> tuple[Any, Any, Any]:
        model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(8)))
        optimizer = torch.optim.AdamW(model.parameters())
        return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)

    model, optimizer, scheduler = made()
    model(torch.ones(1, width)).sum().backward()
    optimizer.step()
    other = made()

    def state() -> dict[str, Any]:
        rng = torch.get_rng_state()
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "rng": rng}

    def torch_save(place: Path, _: int) -> Path:
        torch.save(state(), place / "a.pt")
        return place / "a.pt"

    def torch_save_synced(place: Path, _: int) -> Path:
        with open(place / "a.pt", "wb") as file:
            torch.save(state(), file)
            file.flush()
            os.fsync(file.fileno())
        return place / "a.pt"

    def save(place: Path, _: int) -> Path:
        return apr.Checkpoints(place).save(1, model, optimizer, scheduler=scheduler)

    waiting: list[apr.Checkpoints] = []

    def save_asynchronously(_: Path, round_number: int) -> None:
        # The caller's time; the rest is waited for outside of it. In a folder of its own, which is not emptied meanwhile.
        waiting.append(apr.Checkpoints(folder / f"asynchronous-{round_number}"))
        waiting[-1].save(1, model, optimizer, scheduler=scheduler, asynchronous=True)

    def wait(place: Path, _: int) -> None:
        while waiting:
            waiting.pop().wait()

    measured(
        {
            "torch.save": torch_save,
            "torch.save and fsync": torch_save_synced,
            "apr.Checkpoints.save": save,
            "apr.Checkpoints.save, asynchronous: the call": save_asynchronously,
            "  until it is on the medium": wait,
        },
        rounds,
        folder,
    )
    kept = folder / "kept"
    kept.mkdir()
    file, checkpoints = torch_save(kept, 0), apr.Checkpoints(kept)
    checkpoints.save(1, model, optimizer, scheduler=scheduler)

    def torch_load(mmap: bool) -> Callable[[Path, int], None]:
        def work(*_: Any) -> None:
            loaded = torch.load(file, weights_only=True, mmap=mmap)
            for part, name in zip(other, ("model", "optimizer", "scheduler"), strict=True):
                part.load_state_dict(loaded[name])

        return work

    def resume(*_: Any) -> None:
        checkpoints.load(1).load_into(other[0], other[1], scheduler=other[2], rng=False)

    def inspect(*_: Any) -> None:
        checkpoints.load(1)

    import warnings

    warnings.simplefilter("ignore")
    measured(
        {
            "torch.load, load_state_dict": torch_load(False),
            "torch.load(mmap=True), load_state_dict": torch_load(True),
            "load (verified), load_into": resume,
            "load alone: read and verified": inspect,
        },
        rounds,
        folder,
    )


def jax_rows(count: int, rounds: int, folder: Path) -> None:
    import jax
    import jax.numpy as jnp
    import optax
    import orbax.checkpoint as ocp

    print(f"\njax {jax.__version__}, orbax-checkpoint {ocp.__version__}, optax.adamw, {count:,} parameters (float32)")
    width = int((count / 8) ** 0.5)
    keys = jax.random.split(jax.random.key(0), 8)
    params = {f"layer_{idx}": {"kernel": jax.random.normal(key, (width, width)), "bias": jnp.zeros(width)} for idx, key in enumerate(keys)}
    adamw = optax.adamw(1e-3)
    state = adamw.init(params)
    # Zeros would be compressed to nothing by those who compress.
    gradients = jax.tree.map(lambda leaf: jax.random.normal(jax.random.key(1), leaf.shape), params)
    _, state = adamw.update(gradients, state, params)
    tree = {"params": params, "state": state}

    def orbax_save(place: Path, _: int) -> Path:
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(place / "a", tree)
        return place / "a"

    def save(place: Path, _: int) -> Path:
        return apr.Checkpoints(place).save(1, params, state)

    measured({"orbax StandardCheckpointer.save": orbax_save, "apr.Checkpoints.save": save}, rounds, folder)
    kept = folder / "kept-jax"
    kept.mkdir()
    orbax_save(kept, 0)
    save(kept, 0)

    def orbax_restore(*_: Any) -> None:
        with ocp.StandardCheckpointer() as checkpointer:
            jax.block_until_ready(checkpointer.restore(kept / "a", tree))

    def resume(*_: Any) -> None:
        jax.block_until_ready(tuple(apr.Checkpoints(kept).load(1).load_into(params, state, rng=False))[:2])

    measured({"orbax StandardCheckpointer.restore": orbax_restore, "load (verified), load_into": resume}, rounds, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder unless given")
    options = parser.parse_args()
    for rows in (torch_rows, jax_rows):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            try:
                rows(options.parameters, options.rounds, Path(folder))
            except ModuleNotFoundError as error:
                print(f"left out: {error.name} is not installed")


if __name__ == "__main__":
    main()
