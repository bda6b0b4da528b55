"""Tensors of a file into the memory of a GPU: apr beside raw copies from pinned memory, and beside the loaders that are installed, in turn.

usage: into_accelerator.py [--gib N] [--folder DIR] [--rounds N] [--device NAME] [--cold]

Needs torch with a GPU; prints `no accelerator` without one. Of other packages, those that are installed are measured: safetensors (of 0.9, also its
`prefetch`), fastsafetensors, InstantTensor. Each load is from the page cache, with `--cold` from the disk, into new memory of the device; the
bytes of every tensor are compared once. Prints rows for docs/performance.md. A folder in main memory (`--folder /dev/shm`) leaves the disk out.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SIZES = (4 << 10, 16 << 10, 64 << 10, 1 << 20, 8 << 20, 32 << 20, 128 << 20, 512 << 20)
"""Bytes of tensors, of which a file has as many as fit: most are small, most bytes are in large ones."""


def write(path: Path, length: int) -> None:
    """A file of BF16 tensors of all sizes with random bytes."""
    import torch

    names, left = [], length
    while left >= SIZES[0]:
        for size in SIZES:
            if size <= left:
                names.append((f"t{len(names)}", size))
                left -= size
    at, header = 0, {}
    for name, size in names:
        header[name] = {"dtype": "BF16", "shape": [size // 2048, 1024], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = torch.randint(-(2**63), 2**63 - 1, ((64 << 20) // 8,)).numpy().tobytes()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for number, (_, size) in enumerate(names):
            # No two tensors begin alike.
            shift = number * 4099 % len(block)
            while size:
                piece = block[shift : shift + size]
                file.write(piece)
                size, shift = size - len(piece), 0
        file.flush()
        # Only what is on the disk leaves the page cache.
        os.fsync(file.fileno())


def drop(*paths: Path) -> None:
    """Removes files from the page cache."""
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path: Path) -> None:
    """Reads a file by threads, and does nothing with it."""
    length, n_threads = 16 << 20, min(16, os.cpu_count() or 1)
    with path.open("rb") as file, ThreadPoolExecutor(n_threads) as pool:

        def work(first: int) -> None:
            buffer = bytearray(length)
            for at in range(first * length, path.stat().st_size, n_threads * length):
                os.preadv(file.fileno(), [buffer], at)

        list(pool.map(work, range(n_threads)))


def versions_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def loaders(path: Path, sealed: Path, device: str) -> Iterator[tuple[str, Callable[[], dict[str, Any] | None]]]:
    """Names of loaders, and what loads all tensors."""
    import apr
    from apr.safetensors.torch import load_file

    yield "reads alone", lambda: read(path)
    yield "apr", lambda: load_file(path, device=device)
    yield "apr, sealed", lambda: load_file(apr.open_sealed(sealed, identity=str(sealed) + ".key"), device=device)
    version = versions_of("safetensors")
    if version is not None:
        import safetensors.torch

        yield f"safetensors {version}", lambda: safetensors.torch.load_file(path, device=device)
        if hasattr(safetensors.safe_open, "prefetch"):

            def prefetched() -> dict[str, Any]:
                with safetensors.safe_open(path, framework="pt") as file:
                    names = list(file.keys())
                    with file.prefetch(device=device) as loader:
                        return {name: loader.take(name) for name in names}

            yield f"safetensors {version}, prefetch", prefetched
    version = versions_of("fastsafetensors")
    if version is not None:
        from fastsafetensors import fastsafe_open

        def fast() -> dict[str, Any]:
            with fastsafe_open(str(path), device=device, nogds=True) as file:
                return {name: file.get_tensor(name) for name in file.keys()}

        yield f"fastsafetensors {version}", fast
    version = versions_of("instanttensor")
    if version is not None:
        import instanttensor

        def instant() -> dict[str, Any]:
            with instanttensor.safe_open(str(path), framework="pt", device=device) as file:
                return dict(file.tensors())

        yield f"InstantTensor {version}", instant


def raw_seconds_of_gib(device: str) -> float:
    """Seconds of a copy of 1 GiB from pinned memory, by the events of the device."""
    import torch

    host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begun.record()
    there.copy_(host, non_blocking=True)
    ended.record()
    ended.synchronize()
    return begun.elapsed_time(ended) / 1000


def compare(found: dict[str, Any], expected: dict[str, Any], name: str) -> None:
    import torch

    for tensor, values in expected.items():
        same = torch.equal(found[tensor].view(torch.int16).cpu(), values.view(torch.int16))
        if not same or found.keys() != expected.keys():
            raise SystemExit(f"{name}: {tensor} has other bytes than the file")


def first_tensor(path: Path, device: str) -> float:
    from apr.safetensors.torch import iter_file

    begun = time.perf_counter()
    tensors = iter_file(path, device)
    next(tensors)
    seconds = time.perf_counter() - begun
    tensors.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    try:
        import torch
    except ModuleNotFoundError:
        print("no accelerator: torch is not installed")
        return
    if not torch.cuda.is_available():
        print("no accelerator")
        return
    import apr
    from apr.safetensors.torch import load_file

    torch.cuda.set_device(options.device)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, sealed = Path(folder, "m.safetensors"), Path(folder, "m.sealed")
        write(path, int(options.gib * (1 << 30)))
        key, length = str(sealed) + ".key", path.stat().st_size
        subprocess.run([sys.executable, "-m", "apr", "keygen", "encrypt", "--output", key, "--quiet"], check=True)
        apr.seal(path, sealed, recipients=key + ".pub")
        calls = dict(loaders(path, sealed, options.device))
        # Not mapped: pages that are mapped stay in the page cache.
        expected = load_file(path, backend="pread")
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        raw: list[float] = []
        for turn in range(options.rounds + 1):
            raw.append(raw_seconds_of_gib(options.device))
            for name, call in list(calls.items())[:: -1 if turn % 2 else 1]:
                gc.collect()
                torch.cuda.empty_cache()
                torch.cuda.synchronize()
                if options.cold:
                    drop(path, sealed)
                begun = time.perf_counter()
                found = call()
                torch.cuda.synchronize()
                seconds[name].append(time.perf_counter() - begun)
                if turn == 0 and found is not None:
                    compare(found, expected, name)
                del found
            expected.clear()
        # The first round, which compares, is left out: it also fills the page cache and the pools of pinned memory.
        bandwidth = (1 << 30) / statistics.median(raw[1:])
        machine = f"{torch.cuda.get_device_name()}, {os.cpu_count()} processors"
        print(f"{machine}, torch {torch.__version__}, Python {sys.version.split()[0]}, {length} bytes\n")
        print("| loader | time | GB/s | of a raw copy |\n|---|---:|---:|---:|")
        print(f"| raw copy from pinned memory | | {bandwidth / 1e9:.3g} | 1.00 |")
        for name, times in seconds.items():
            median = statistics.median(times[1:])
            print(f"| {name} | {median:.3f} s | {length / median / 1e9:.3g} | {length / median / bandwidth:.2f} |")
        print(f"\nfirst tensor after {first_tensor(path, options.device) * 1000:.1f} ms; the first load took {seconds['apr'][0]:.3f} s")
        torch.cuda.memory.reset_peak_host_memory_stats()
        calls["apr"]()
        print(f"pinned memory: {torch.cuda.memory.host_memory_stats()['allocated_bytes.peak']} bytes")


if __name__ == "__main__":
    main()
