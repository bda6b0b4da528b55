"""apr.safetensors beside safetensors 0.8.0 in one process, in turn: medians and ratios.

usage: beside_safetensors.py [--gib N] [--folder DIR]

Needs numpy, msgpack and safetensors==0.8.0 beside the package. Prints rows for docs/performance.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import safetensors
import safetensors.numpy as theirs

import apr.safetensors
import apr.safetensors.numpy as ours


def in_turn(calls: dict[str, Callable[[], Any]], rounds: int, repeats: int = 1) -> dict[str, float]:
    """Median seconds of each call; the calls take turns, and what they return is dropped outside the time."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        # Each goes first as often as the others: a large save pays for the pages that the one before left behind.
        for name, call in list(calls.items())[:: -1 if turn % 2 else 1]:
            gc.collect()
            gc.disable()
            begun = time.perf_counter()
            for _ in range(repeats):
                result = call()
            seconds[name].append((time.perf_counter() - begun) / repeats)
            gc.enable()
            del result
    return {name: statistics.median(times) for name, times in seconds.items()}


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def row(what: str, medians: dict[str, float]) -> None:
    reference = medians.pop("theirs")
    mine = medians.pop("ours")
    others = "; ".join(f"{name} {shown(median)}" for name, median in medians.items())
    print(f"| {what} | {shown(mine)} | {shown(reference)} | {reference / mine:.3g}x | {others} |", flush=True)


def peak(program: str, *arguments: str) -> int:
    """Most resident memory of a program of its own, in MiB, less what it says it began with."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments], capture_output=True, text=True, check=True
    )
    return int(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=2.0)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    print("| call | apr | safetensors 0.8.0 | ratio | beside it |\n|---|---:|---:|---:|---|")

    numbers = np.random.default_rng(1).random(10_000, dtype=np.float32)
    arrays = {"x": numbers}
    data = theirs.save(arrays)
    assert ours.save(arrays) == data
    packed = msgpack.packb(numbers.tobytes())
    row(
        "save 10,000 float32 to bytes",
        in_turn(
            {
                "ours": lambda: ours.save(arrays),
                "theirs": lambda: theirs.save(arrays),
                "MessagePack of bytes": lambda: msgpack.packb(numbers.tobytes()),
                "tobytes": lambda: numbers.tobytes(),
            },
            15,
            2000,
        ),
    )
    row(
        "load them from bytes",
        in_turn(
            {
                "ours": lambda: ours.load(data),
                "theirs": lambda: theirs.load(data),
                "MessagePack of bytes": lambda: np.frombuffer(msgpack.unpackb(packed), dtype=np.float32),
                "frombuffer": lambda: np.frombuffer(data, dtype=np.float32, offset=80),
            },
            15,
            2000,
        ),
    )

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = os.path.join(folder, "many.safetensors")
        ours.save_file({f"model.layers.{idx}.weight": np.zeros(4, np.float32) for idx in range(100_000)}, path)
        row(
            "open a file of 100,000 tensors",
            in_turn(
                {
                    "ours": lambda: apr.safetensors.safe_open(path, "np"),
                    "theirs": lambda: safetensors.safe_open(path, "np"),
                },
                9,
            ),
        )
        mine, upstream = apr.safetensors.safe_open(path, "np"), safetensors.safe_open(path, "np")
        assert mine.keys() == upstream.keys()
        row("its keys()", in_turn({"ours": mine.keys, "theirs": upstream.keys}, 9))

        count = 64
        each = int(options.gib * 2**30) // 4 // count
        tensors = {f"layer.{idx}": np.full(each, idx, np.float32) for idx in range(count)}
        path = os.path.join(folder, "large.safetensors")
        size = f"{options.gib:g} GiB in {count} tensors"
        row(
            f"save_file, {size}",
            in_turn(
                {
                    "ours": lambda: ours.save_file(tensors, path),
                    "theirs": lambda: theirs.save_file(tensors, path),
                },
                10,
            ),
        )
        row(
            f"load_file, {size}, handles",
            in_turn({"ours": lambda: ours.load_file(path), "theirs": lambda: theirs.load_file(path)}, 5),
        )

        def touched(load: Callable[[str], dict[str, np.ndarray]]) -> int:
            return sum(int(array.view(np.uint8)[::4096].sum()) for array in load(path).values())

        row(
            f"load_file, {size}, every page touched",
            in_turn({"ours": lambda: touched(ours.load_file), "theirs": lambda: touched(theirs.load_file)}, 5),
        )
        row("one column of 65,536 rows of 2 KiB", column(folder))
        del tensors
        gc.collect()
        program = """
            import resource, sys
            import numpy as np
            import importlib
            module = importlib.import_module(sys.argv[1])
            peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            arrays = {str(i): np.ones(8 << 20, np.float32) for i in range(8)}
            before = peak()
            module.save_file(arrays, sys.argv[2])
            print(peak() - before)
        """
        mine, upstream = (peak(program, f"{name}.numpy", path) for name in ("apr.safetensors", "safetensors"))
        print(f"\nPeak memory of save_file beyond the arrays (256 MiB): apr {mine} MiB, safetensors {upstream} MiB.")


def column(folder: str) -> dict[str, float]:
    path = os.path.join(folder, "matrix.safetensors")
    ours.save_file({"m": np.ones((65_536, 512), np.float32)}, path)

    def read(package: Any) -> Any:
        with package.safe_open(path, "np") as file:
            return file.get_slice("m")[:, 5]

    def read_by_position() -> Any:
        with apr.safetensors.safe_open(path, "np", backend="pread") as file:
            return file.get_slice("m")[:, 5]

    return in_turn(
        {"ours": lambda: read(apr.safetensors).sum(), "theirs": lambda: read(safetensors).sum(), "apr by pread": read_by_position},
        9,
    )


if __name__ == "__main__":
    main()
