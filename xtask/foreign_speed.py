"""Converts 2 GiB of PyTorch and of ONNX with external data to safetensors: `apr convert` in turn with the libraries.

    foreign_speed.py APR FOLDER ROUNDS

Prints a table in Markdown: seconds of whole processes, the peak of their resident memory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

TORCH = """
import sys, torch
from safetensors.torch import save_file
save_file(torch.load(sys.argv[1], map_location="cpu", weights_only=True{mmap}), sys.argv[2])
"""

ONNX = """
import sys, onnx
from onnx import numpy_helper
from safetensors.numpy import save_file
model = onnx.load(sys.argv[1])
save_file({tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}, sys.argv[2])
"""

N_TENSORS, ROWS, COLUMNS = 128, 1024, 4096  # of F32: 2 GiB


def make_torch(path: Path) -> None:
    import torch

    torch.save({f"layers.{idx}.weight": torch.randn(ROWS, COLUMNS) for idx in range(N_TENSORS)}, path)


def make_onnx(path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    import numpy as np

    numbers, tensors, offset = np.random.default_rng(0), [], 0
    n_bytes = ROWS * COLUMNS * 4
    with open(path.with_suffix(".data"), "wb") as data:
        for idx in range(N_TENSORS):
            data.write(numbers.standard_normal((ROWS, COLUMNS), dtype=np.float32).tobytes())
            tensor = TensorProto(name=f"layers.{idx}.weight", dims=(ROWS, COLUMNS), data_type=TensorProto.FLOAT)
            tensor.data_location = TensorProto.EXTERNAL
            entries = {"location": path.with_suffix(".data").name, "offset": offset, "length": n_bytes}
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=str(value))
            tensors.append(tensor)
            offset += n_bytes
    onnx.save(helper.make_model(helper.make_graph([], "graph", [], [], initializer=tensors)), path)


def measured(words: list[str]) -> tuple[float, float]:
    """Seconds, and the peak of resident memory in MiB, which is polled."""
    peak = 0

    def poll(pid: int) -> None:
        nonlocal peak
        while True:
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                return
            if "VmHWM" not in status:
                return
            peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
            time.sleep(0.002)

    begin = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    watch = threading.Thread(target=poll, args=(child.pid,))
    watch.start()
    errors = child.stderr.read()
    if child.wait():
        sys.exit(errors.decode())
    seconds = time.perf_counter() - begin
    watch.join()
    return seconds, peak / 1024


def compare(title: str, source: Path, out: Path, ways: dict[str, list[str]], rounds: int) -> None:
    results: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for name, words in ways.items():
            out.unlink(missing_ok=True)
            os.sync()
            # In the page cache for each.
            for file in (source, source.with_suffix(".data")):
                if file.exists():
                    subprocess.run(["cat", str(file)], stdout=subprocess.DEVNULL, check=True)
            results.setdefault(name, []).append(measured([*words, str(source), str(out)]))
    ours = statistics.median(seconds for seconds, _ in results["apr convert"])
    for name, row in results.items():
        times = [seconds for seconds, _ in row]
        memory = max(mib for _, mib in row)
        median = statistics.median(times)
        print(f"| {title} | {name} | {median:.2f} s | {min(times):.2f} s | {memory:.0f} MiB | {ours / median:.2f} |", flush=True)


def main() -> None:
    apr, folder, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    out = folder / "out.safetensors"
    python = [sys.executable, "-c"]
    print("| from | with | median | best | peak memory | `apr`'s time to it |")
    print("|---|---|---:|---:|---:|---:|")
    ours = {"apr convert": [apr, "convert", "--quiet"]}
    source = folder / "model.pt"
    make_torch(source)
    ways = {"torch.load, save_file": [*python, TORCH.format(mmap="")]}
    ways["torch.load(mmap=True), save_file"] = [*python, TORCH.format(mmap=", mmap=True")]
    compare("`.pt`", source, out, ours | ways, rounds)
    source.unlink()
    source = folder / "model.onnx"
    make_onnx(source)
    compare("`.onnx` with external data", source, out, ours | {"onnx.load, save_file": [*python, ONNX]}, rounds)
    for file in (source, source.with_suffix(".data"), out):
        file.unlink(missing_ok=True)


main()
