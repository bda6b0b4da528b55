"""Lets scanners of model files judge the vectors of foreign formats and one large state dict, and prints tables in Markdown.

    scanners.py APR VECTORS FOLDER ROUNDS

VECTORS has files with sidecars (`NAME.vector.json`) that say which verdicts are right. FOLDER is scratch space.
A peer is imported once and forked for each file, so that its times are without its start and no file can spoil the next. In the
forked process, whatever a scanner does not need ends the process: resolving a name of a pickle, starting programs, the network.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import pickle
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import types
import zipfile
from collections import Counter
from pathlib import Path

SECONDS = 60
MEMORY = 8 << 30
FORBIDDEN = {"pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect"}

# Suffixes of files that a person gives to fickling.
PICKLES = {".bin", ".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".pdparams", ".pdopt"}

# What a scanner said of a file.
CLEAN, NOTED, REPORTED, ERROR, SKIPPED = "clean", "noted", "reported", "error", "not scanned"


# Ours


def apr_words(program: str, path: Path) -> list[str]:
    return [program, "scan", "--json", str(path)]


def apr_verdict(code: int) -> str:
    return {0: CLEAN, 4: REPORTED}.get(code, ERROR)


# Peers: each function judges one file in the process that calls it.


def picklescan(path: Path) -> str:
    """Exit code 1 for dangerous names, 2 for errors; suspicious names are counted in the text, with exit code 0."""
    from picklescan.scanner import scan_directory_path, scan_file_path

    found = scan_directory_path(str(path)) if path.is_dir() else scan_file_path(str(path))
    if found.scan_err:
        return ERROR
    if found.issues_count:
        return REPORTED
    if found.suspicious_count:
        return NOTED
    return CLEAN if found.scanned_files else SKIPPED


def fickling(path: Path) -> str:
    """What its mode for repositories does without torch: archives by their members, pickles by their first byte or suffix, nothing
    else. LIKELY_SAFE is clean."""
    from fickling.loader import scan_file, scan_zip_archive

    if path.is_dir():
        return SKIPPED
    with open(path, "rb") as file:
        is_pickle = file.read(1) == b"\x80" or path.suffix in PICKLES
    if zipfile.is_zipfile(path):
        found = list(scan_zip_archive(str(path), graceful=True).values())
    else:
        found = [scan_file(str(path), graceful=True)] if is_pickle else []
    if any(result.results and not result.is_safe for result in found):
        return REPORTED
    if any(result.errors for result in found):
        return ERROR
    return CLEAN if any(result.results for result in found) else SKIPPED


def modelscan(path: Path) -> str:
    """Exit code 1 for issues, 2 for errors, 3 if nothing was scanned."""
    from modelscan.cli import cli

    code = cli.main(["scan", "-p", str(path)], standalone_mode=False)
    return {0: CLEAN, 1: REPORTED, 3: SKIPPED}.get(code, ERROR)


PEERS = [picklescan, fickling, modelscan]


def command_of(peer: str, path: Path) -> list[str]:
    """The command that scans a file and does nothing else."""
    bin_ = Path(sys.executable).parent
    module = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import scanners; from pathlib import Path"
    return {
        "picklescan": [str(bin_ / "picklescan"), "-p", str(path)],
        "fickling": [sys.executable, "-c", f"{module}; scanners.fickling(Path({str(path)!r}))"],
        "modelscan": [str(bin_ / "modelscan"), "scan", "-p", str(path)],
    }[peer]


def forked(peer, path: Path) -> tuple[str, float]:
    """The verdict of a peer and its seconds, from a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.addaudithook(lambda event, _: os._exit(99) if event in FORBIDDEN else None)
        signal.alarm(SECONDS)
        begin = time.perf_counter()
        try:
            verdict = peer(path)
        except BaseException:
            verdict = ERROR
        os.write(writing, json.dumps([verdict, time.perf_counter() - begin]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 99:
        raise SystemExit(f"{peer.__name__} tried to run what is in {path}")
    return tuple(json.loads(text)) if text else (ERROR, float(SECONDS))


# Vectors


class Vector:
    def __init__(self, sidecar: Path, facts: dict, made: Path):
        self.path = sidecar.with_name(sidecar.name.removesuffix(".vector.json"))
        self.allowed = set(facts.get("scan", []))
        if "generate" in facts:
            made.mkdir(parents=True, exist_ok=True)
            self.path = made / self.path.name
            self.path.write_bytes(b"".join(bytes.fromhex(unit) * count for unit, count in facts["generate"]))

    @property
    def kind(self) -> str:
        harmless = self.allowed & {"safe", "not-applicable"}
        if not harmless:
            return "bad"
        return "good" if self.allowed == harmless else "either"


def vectors(folder: Path, made: Path) -> list[Vector]:
    sidecars = sorted(folder.rglob("*.vector.json"))
    found = [Vector(sidecar, json.loads(sidecar.read_text()), made) for sidecar in sidecars]
    return [vector for vector in found if vector.allowed]


def judge(apr: str, found: list[Vector]) -> None:
    verdicts: dict[str, dict[Path, str]] = {}
    times: dict[str, list[float]] = {}

    def note(tool: str, path: Path, verdict: str, seconds: float) -> None:
        verdicts.setdefault(tool, {})[path] = verdict
        times.setdefault(tool, []).append(seconds)

    benign = next(vector.path for vector in found if vector.path.name == "zip_deflated.pt")
    with tempfile.TemporaryDirectory() as folder:
        # fickling writes reports where it is started.
        os.chdir(folder)
        for peer in PEERS:
            with open(os.devnull, "w") as null:
                before, sys.stdout = sys.stdout, null
                peer(benign)  # imports
                sys.stdout = before
            for vector in found:
                note(peer.__name__, vector.path, *forked(peer, vector.path))
        for vector in found:
            begin = time.perf_counter()
            ran = subprocess.run(apr_words(apr, vector.path), capture_output=True)
            note("apr", vector.path, apr_verdict(ran.returncode), time.perf_counter() - begin)

    bad = [vector.path for vector in found if vector.kind == "bad"]
    good = [vector.path for vector in found if vector.kind == "good"]
    print(f"{len(bad)} files that must not be called safe, {len(good)} without anything to report:\n")
    print("| scanner | missed | of them not scanned | noted with exit code 0 | errors | false alarms | of them errors | of them noted |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for tool in tools(times):
        said = Counter(verdicts[tool][path] for path in bad)
        falsely = Counter(verdicts[tool][path] for path in good)
        missed = said[CLEAN] + said[SKIPPED]
        alarms = falsely[NOTED] + falsely[REPORTED] + falsely[ERROR]
        cells = [missed, said[SKIPPED], said[NOTED], said[ERROR], alarms, falsely[ERROR], falsely[NOTED]]
        print(f"| {title(tool)} | " + " | ".join(map(str, cells)) + " |")
    n_bytes = sum(size_of(vector.path) for vector in found)
    print(f"\nAll {len(found)} files, {n_bytes / 1e6:.1f} MB; apr with the start of its process, the others without:\n")
    print("| scanner | median | p99 | slowest | all |")
    print("|---|---:|---:|---:|---:|")
    for tool in tools(times):
        row = sorted(times[tool])
        p99 = row[len(row) * 99 // 100]
        print(f"| {title(tool)} | {ms(statistics.median(row))} | {ms(p99)} | {ms(row[-1])} | {sum(row):.2f} s |")
    print()
    for tool in tools(times):
        for name, paths, wrong in [("missed", bad, (CLEAN, SKIPPED)), ("false alarm", good, (NOTED, REPORTED, ERROR))]:
            for path in paths:
                if verdicts[tool][path] in wrong:
                    print(f"{tool}: {name} ({verdicts[tool][path]}): {path.name}", file=sys.stderr)


def tools(times: dict) -> list[str]:
    return ["apr"] + [peer.__name__ for peer in PEERS if peer.__name__ in times]


def title(tool: str) -> str:
    return "apr scan" if tool == "apr" else f"{tool} {importlib.metadata.version(tool)}"


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


# One large state dict


def state_dict(path: Path, n_bytes: int) -> None:
    """Writes what torch.save writes, without torch: 256 tensors in stored members."""
    n_tensors = 256
    numel = n_bytes // n_tensors // 4
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    class FloatStorage:
        pass

    class Storage(FloatStorage):
        def __init__(self, key: int):
            self.key = key

    def _rebuild_tensor_v2(*_):
        raise NotImplementedError

    class Tensor:
        def __init__(self, key: int):
            self.key = key

        def __reduce__(self):
            from collections import OrderedDict

            shape = (numel // 64, 64)
            return _rebuild_tensor_v2, (Storage(self.key), 0, shape, (64, 1), False, OrderedDict())

    for thing, module in [(FloatStorage, torch), (_rebuild_tensor_v2, utils)]:
        thing.__module__, thing.__qualname__ = module.__name__, thing.__name__
        setattr(module, thing.__name__, thing)
    torch._utils = utils
    sys.modules.update({"torch": torch, "torch._utils": utils})

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            return ("storage", FloatStorage, str(thing.key), "cpu", numel) if isinstance(thing, Storage) else None

    stream = io.BytesIO()
    Pickler(stream, protocol=2).dump({f"layers.{key}.weight": Tensor(key) for key in range(n_tensors)})
    del sys.modules["torch"], sys.modules["torch._utils"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model/data.pkl", stream.getvalue())
        archive.writestr("model/byteorder", "little")
        for key in range(n_tensors):
            archive.writestr(f"model/data/{key}", os.urandom(1 << 20) * (numel * 4 >> 20))
        archive.writestr("model/version", "3\n")


def measured(words: list[str]) -> tuple[int, float]:
    """Exit code and seconds of a command."""
    begin = time.perf_counter()
    code = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    return code, time.perf_counter() - begin


def large(apr: str, folder: Path, rounds: int) -> None:
    path = folder / "gigabyte.pt"
    if not path.exists():
        state_dict(path.with_suffix(".part"), 1 << 30)
        path.with_suffix(".part").rename(path)
    small = folder / "small.pt"
    state_dict(small, 64 << 20)
    commands = {"apr": lambda file: apr_words(apr, file)}
    commands |= {peer.__name__: lambda file, name=peer.__name__: command_of(name, file) for peer in PEERS}
    times: dict[str, list[float]] = {}
    codes: dict[str, int] = {}
    os.chdir(folder)
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass  # warm
    for turn in range(rounds):
        for tool, words in commands.items():
            # The others take seconds.
            if tool != "apr" and turn >= 5:
                continue
            code, seconds = measured(words(path))
            times.setdefault(tool, []).append(seconds)
            codes[tool] = code
    starts = {tool: statistics.median(measured(words(small))[1] for _ in range(3)) for tool, words in commands.items()}
    n_bytes = path.stat().st_size
    print(f"A state dict of {n_bytes / 1e9:.2f} GB in 256 tensors, in the page cache; whole processes, in turn:\n")
    print("| scanner | runs | median | best | GB/s | a file of 64 MiB | exit code |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for tool in tools(times):
        row = times[tool]
        median = statistics.median(row)
        cells = [len(row), ms(median), ms(min(row)), f"{n_bytes / 1e9 / median:.1f}"]
        cells += [ms(starts[tool]), codes[tool]]
        print(f"| {title(tool)} | " + " | ".join(map(str, cells)) + " |")


def main() -> None:
    apr, folder, rounds = sys.argv[1], Path(sys.argv[3]).resolve(), int(sys.argv[4])
    judge(apr, vectors(Path(sys.argv[2]).resolve(), folder / "generated"))
    large(apr, folder, rounds)


if __name__ == "__main__":
    main()
