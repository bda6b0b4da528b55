"""``python -m apr.bench``: what file formats cost from Python.

The measurement of ``apr bench formats`` with the libraries of Python: every format writes the same arrays to a file and reads them back,
in turn, round by round; what is read is compared. Times are medians, files are in the page cache. Libraries that are not installed are
left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pickle
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = dict[str, "np.ndarray[Any, Any]"]

N_ARRAYS = 10
"""Arrays of a set, as in ``apr bench formats``."""

FEWEST_ROUNDS, MOST_ROUNDS = 3, 1001


@dataclass(frozen=True)
class Format:
    """How a format writes arrays, reads all of them, and one."""

    name: str
    needs: str | None
    write: Callable[[Arrays, str], object]
    read: Callable[[str], Arrays]
    read_one: Callable[[str, str], np.ndarray[Any, Any]] | None = None


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _dump(arrays: Arrays, path: str) -> None:
    with open(path, "wb") as file:
        pickle.dump(arrays, file, protocol=pickle.HIGHEST_PROTOCOL)


def _load(path: str) -> Arrays:
    with open(path, "rb") as file:
        return pickle.load(file)  # noqa: S301 - this process wrote it


def _dump_json(arrays: Arrays, path: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        json.dump({name: array.tolist() for name, array in arrays.items()}, file)


def _load_json(path: str) -> Arrays:
    with open(path, encoding="ascii") as file:
        return {name: np.array(values, np.float32) for name, values in json.load(file).items()}


def _dump_orjson(arrays: Arrays, path: str) -> None:
    orjson = _module("orjson")
    with open(path, "wb") as file:
        file.write(orjson.dumps(arrays, option=orjson.OPT_SERIALIZE_NUMPY))


def _load_orjson(path: str) -> Arrays:
    with open(path, "rb") as file:
        return {name: np.array(values, np.float32) for name, values in _module("orjson").loads(file.read()).items()}


def _dump_msgpack(arrays: Arrays, path: str) -> None:
    with open(path, "wb") as file:
        _module("msgpack").pack({name: array.tobytes() for name, array in arrays.items()}, file)


def _load_msgpack(path: str) -> Arrays:
    with open(path, "rb") as file:
        return {name: np.frombuffer(values, np.float32) for name, values in _module("msgpack").unpack(file).items()}


def _dump_torch(arrays: Arrays, path: str) -> None:
    torch = _module("torch")
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, path)


def _load_torch(path: str) -> Arrays:
    loaded = _module("torch").load(path, weights_only=True)
    return {name: tensor.numpy() for name, tensor in loaded.items()}


def _dump_hdf5(arrays: Arrays, path: str) -> None:
    with _module("h5py").File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)


def _load_hdf5(path: str) -> Arrays:
    with _module("h5py").File(path, "r") as file:
        return {name: file[name][()] for name in file}


def _one_hdf5(path: str, name: str) -> np.ndarray[Any, Any]:
    with _module("h5py").File(path, "r") as file:
        array: np.ndarray[Any, Any] = file[name][()]
        return array


def _load_npz(path: str) -> Arrays:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def _one_npz(path: str, name: str) -> np.ndarray[Any, Any]:
    with np.load(path) as file:
        array: np.ndarray[Any, Any] = file[name]
        return array


def _save_ours(arrays: Arrays, path: str) -> None:
    from .safetensors.numpy import save_file

    save_file(arrays, path)


def _load_ours(path: str) -> Arrays:
    from .safetensors.numpy import load_file

    loaded: Arrays = load_file(path)
    return loaded


def _one_ours(path: str, name: str) -> np.ndarray[Any, Any]:
    from .safetensors import safe_open

    with safe_open(path, "np") as file:
        array: np.ndarray[Any, Any] = file.get_tensor(name)
        return array


def _one_theirs(path: str, name: str) -> np.ndarray[Any, Any]:
    with _module("safetensors").safe_open(path, "np") as file:
        array: np.ndarray[Any, Any] = file.get_tensor(name)
        return array


FORMATS = (
    Format("json", None, _dump_json, _load_json),
    Format("orjson", "orjson", _dump_orjson, _load_orjson),
    Format("pickle", None, _dump, _load),
    Format("joblib", "joblib", lambda arrays, path: _module("joblib").dump(arrays, path), lambda path: _module("joblib").load(path)),
    Format("messagepack", "msgpack", _dump_msgpack, _load_msgpack),
    Format("npz", None, lambda arrays, path: np.savez(path, **arrays), _load_npz, _one_npz),  # type: ignore[arg-type]
    Format("torch.save", "torch", _dump_torch, _load_torch),
    Format("hdf5", "h5py", _dump_hdf5, _load_hdf5, _one_hdf5),
    Format(
        "safetensors (theirs)",
        "safetensors",
        lambda arrays, path: _module("safetensors.numpy").save_file(arrays, path),
        lambda path: _module("safetensors.numpy").load_file(path),
        _one_theirs,
    ),
    Format("safetensors (apr)", None, _save_ours, _load_ours, _one_ours),
)


def _installed(fmt: Format) -> bool:
    try:
        return fmt.needs is None or _module(fmt.needs) is not None
    except (ImportError, OSError, ValueError):  # what a library that is only half installed raises
        return False


def measure(formats: list[Format], n_values: int, seconds: float, folder: str) -> list[dict[str, Any]]:
    """Medians of every format, over ``n_values`` values in ten arrays."""
    rng = np.random.default_rng(0)
    arrays = {f"layers.{number:02}.weight": rng.standard_normal(n_values // N_ARRAYS, np.float32) for number in range(N_ARRAYS)}
    one = f"layers.{N_ARRAYS // 2:02}.weight"
    times: dict[str, tuple[list[float], list[float], list[float]]] = {fmt.name: ([], [], []) for fmt in formats}
    sizes: dict[str, int] = {}
    began = time.perf_counter()
    for rounds in range(MOST_ROUNDS):
        if rounds >= FEWEST_ROUNDS and time.perf_counter() - began >= seconds * len(formats):
            break
        for fmt in formats:
            # The ending is np.savez's, which adds it to other names.
            path = os.path.join(folder, "arrays.npz")
            if os.path.exists(path):
                os.remove(path)
            write, read, part = times[fmt.name]
            start = time.perf_counter()
            fmt.write(arrays, path)
            write.append(time.perf_counter() - start)
            start = time.perf_counter()
            loaded = fmt.read(path)
            read.append(time.perf_counter() - start)
            if any(not np.array_equal(loaded[name], array) for name, array in arrays.items()):
                raise RuntimeError(f"{fmt.name}: what is read is not what was written")
            del loaded
            start = time.perf_counter()
            _ = fmt.read(path)[one] if fmt.read_one is None else fmt.read_one(path, one)
            part.append(time.perf_counter() - start)
            sizes[fmt.name] = os.path.getsize(path)
    keys = ("write_seconds", "read_seconds", "read_one_seconds")
    return [
        {"format": name, "bytes": sizes[name], "rounds": len(kinds[0])}
        | {key: statistics.median(kind) for key, kind in zip(keys, kinds, strict=True)}
        for name, kinds in times.items()
    ]


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _values(text: str) -> list[int]:
    numbers = [float(number) for number in text.split(",")]
    if any(number < N_ARRAYS or number > 1e9 or number % N_ARRAYS for number in numbers):
        raise argparse.ArgumentTypeError("multiples of ten from 10 to 1e9, such as 1e5")
    return [int(number) for number in numbers]


def main(argv: list[str] | None = None) -> int:
    """Measures and prints. Returns the exit code."""
    parser = argparse.ArgumentParser("python -m apr.bench", description="Compare file formats from Python.")
    parser.add_argument("--values", type=_values, default=[1000, 10_000, 100_000, 1_000_000], help="values of each set, such as 1e3,1e5")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each format and set; three rounds in any case")
    parser.add_argument("--only", help="only these formats, separated by commas")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    wanted = args.only.split(",") if args.only else [fmt.name for fmt in FORMATS]
    if unknown := [name for name in wanted if all(name != fmt.name for fmt in FORMATS)]:
        parser.error(f"no format {unknown[0]}: {', '.join(fmt.name for fmt in FORMATS)}")
    formats = [fmt for fmt in FORMATS if fmt.name in wanted and _installed(fmt)]
    sets = []
    with tempfile.TemporaryDirectory(prefix="apr-bench-") as folder:
        for n_values in args.values:
            rows = measure(formats, n_values, args.seconds, folder)
            sets.append({"arrays": N_ARRAYS, "values": n_values, "raw_bytes": 4 * n_values, "formats": rows})
    machine = {"python": platform.python_version(), "numpy": np.__version__, "system": sys.platform, "cores": os.cpu_count()}
    versions = {fmt.needs: _module(fmt.needs).__version__ for fmt in formats if fmt.needs and hasattr(_module(fmt.needs), "__version__")}
    if args.json:
        print(json.dumps({"machine": machine | versions, "seconds": args.seconds, "sets": sets}, indent=2))
        return 0
    print(", ".join(f"{name} {version}" for name, version in (machine | versions).items()))
    for table in sets:
        print(f"\n{table['values']:,} values in {N_ARRAYS} arrays, {table['raw_bytes']:,} bytes")
        print(f"{'format':<22}{'bytes':>14}{'write':>10}{'read':>10}{'read one':>10}")
        for row in table["formats"]:
            cells = "".join(f"{_duration(row[key]):>10}" for key in ("write_seconds", "read_seconds", "read_one_seconds"))
            print(f"{row['format']:<22}{row['bytes']:>14,}{cells}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
