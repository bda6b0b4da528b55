"""Two builds of this package beside each other: a process for each, which take turns; medians and ratios.

usage: two_builds.py BEFORE AFTER [--rounds N] [--only WORDS]

BEFORE and AFTER are folders with a package `apr` and its native module. Needs numpy. Prints rows for docs/performance.md: CPU time,
which other programs on the machine change less than the time that passes.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Calls = dict[str, tuple[Callable[[], Any], int]]
SIZES = (10, 1_000, 100_000)
MODEL = Path(__file__).parents[2] / "conformance/vectors/apr/a0723_linreg_none_plain.apr"


def calls(folder: str) -> Calls:
    """What is measured, and how often in a round."""
    import apr
    from apr.safetensors import safe_open
    from apr.safetensors.numpy import load_file

    paths = {size: os.path.join(folder, f"{size}.safetensors") for size in SIZES}

    def read_first(opener: Callable[[str], Any], size: int) -> Callable[[], None]:
        def call() -> None:
            with opener(paths[size]) as file:
                file.get_tensor(next(iter(file.keys())))

        return call

    handle, files = safe_open(paths[1_000], "np"), apr.open(paths[1_000])
    names = list(handle.keys())[:100]
    found: Calls = {}
    for opener, word in ((lambda path: safe_open(path, "np"), "`safe_open`"), (apr.open, "`apr.open`")):
        for size in SIZES:
            what = f"{word}, `keys()` and the first tensor, of {size:,}"
            found[what] = read_first(opener, size), max(1, 2_000 // size)
    return found | {
        "`get_tensor`, 100 tensors": (lambda: [handle.get_tensor(name) for name in names], 50),
        "`get_slice(...)[1:3]`, 100 tensors": (lambda: [handle.get_slice(name)[1:3] for name in names], 20),
        "`apr.open(...)[...]`, 100 tensors": (lambda: [files[name] for name in names], 50),
        "`load_file`, 1,000 tensors": (lambda: load_file(paths[1_000]), 10),
        "`apr.load` of a linear model": (lambda: apr.load(MODEL), 200),
        "`apr.inspect` of that file": (lambda: apr.inspect(MODEL), 200),
    }


def write_files(folder: str) -> None:
    import numpy as np
    from apr.safetensors.numpy import save_file

    for size in SIZES:
        arrays = {f"model.layers.{idx}.weight": np.full((4, 4), idx, np.float32) for idx in range(size)}
        save_file(arrays, os.path.join(folder, f"{size}.safetensors"))


def work(folder: str) -> None:
    """Runs the calls that are named on standard input, one a line, and prints the CPU seconds of each."""
    known = calls(folder)
    print("\t".join(known), flush=True)
    for line in sys.stdin:
        call, repeats = known[line.rstrip("\n")]
        gc.collect()
        gc.disable()
        begun = time.process_time()
        for _ in range(repeats):
            call()
        print((time.process_time() - begun) / repeats, flush=True)
        gc.enable()


def start(build: str, folder: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--work", folder]
    environment = {**os.environ, "PYTHONPATH": build}
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("builds", nargs=2)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--write", folder]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": options.builds[1]}, check=True)
        # The first build once more: what two runs of the same build differ by.
        workers = [start(os.path.abspath(build), folder) for build in (*options.builds, options.builds[0])]
        names = [worker.stdout.readline().rstrip("\n").split("\t") for worker in workers][0]
        print("| call | before | after | ratio | ratio of before to itself |\n|---|---:|---:|---:|---:|")
        for name in names:
            if options.only in name:
                print(row(name, workers, options.rounds), flush=True)
        for worker in workers:
            worker.communicate()


def row(name: str, workers: list[subprocess.Popen[str]], rounds: int) -> str:
    times: list[list[float]] = [[] for _ in workers]
    for turn in range(rounds):
        for idx in (*range(turn % len(workers), len(workers)), *range(turn % len(workers))):
            workers[idx].stdin.write(f"{name}\n")
            times[idx].append(float(workers[idx].stdout.readline()))
    before, after, again = times
    ratios = [
        statistics.median(other / first for other, first in zip(others, before, strict=True)) for others in (after, again)
    ]
    medians = [f"{statistics.median(seconds) * 1e6:,.1f} us" for seconds in (before, after)]
    return f"| {name} | {' | '.join(medians)} | {ratios[0]:.2f} | {ratios[1]:.2f} |"


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(sys.argv[2])
    elif sys.argv[1] == "--write":
        write_files(sys.argv[2])
    else:
        main()
