"""Looks for files that `apr scan` calls safe although loading or using them runs code of their author.

    fuzz.py APR [--seconds 600] [--seed 1] [--out findings] [--kind KIND]...

Each round writes a batch of generated files, lets `apr scan --json` judge it, and loads what is safe as its program does, in a process
whose audit hook reports running code, programs, writing, sockets, new imports and reading files of the machine. Weaker signs count too,
because they are found long before a whole exploit is: a function that lies in a file is called by a library; a template reaches an object
that is none of its data; a member of an archive is another pickle for `tarfile`. Exit code 1 if anything was found; each kind of finding
is kept once, as a file and as a line of findings.jsonl.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import archives
import loaders
import pickles
import templates

BATCH = 64


@dataclass(frozen=True)
class Kind:
    """A kind of generated files: how they are made, how they are loaded, and how often they are chosen."""

    make: Callable[[random.Random], tuple[str, bytes]]
    load: Callable[[loaders.Watch, str, bytes], None]
    weight: float


KINDS = {
    "pickle": Kind(pickles.make, loaders.load_pickle, 6),
    "exchanged": Kind(pickles.make_exchanged, loaders.load_pickle, 4),
    "names": Kind(pickles.make_neighbor, loaders.load_pickle, 0.5),
    "template": Kind(templates.make, loaders.load_template, 3),
    "tar": Kind(archives.make, loaders.load_tar, 3),
    "yaml": Kind(templates.make_yaml, loaders.load_yaml, 0.3),
    "keras": Kind(archives.make_keras, loaders.load_keras, 1),
}


class Findings:
    """Each kind of finding once."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed, self.began = folder, seed, time.monotonic()
        self.seen: collections.Counter[tuple[str, ...]] = collections.Counter()

    def note(self, sign: tuple[str, ...], name: str, data: bytes) -> None:
        self.seen[sign] += 1
        if self.seen[sign] > 1:
            return
        kept = f"{hashlib.sha256(data).hexdigest()[:12]}-{name}"
        (self.folder / kept).write_bytes(data)
        after = round(time.monotonic() - self.began, 1)
        with open(self.folder / "findings.jsonl", "a") as lines:
            lines.write(json.dumps({"sign": sign, "file": kept, "seed": self.seed, "after": after}) + "\n")
        print(f"{after:7.1f} s  {' '.join(sign)}  ({kept})", flush=True)


def judged(apr: str, folder: str) -> dict[str, str] | str:
    """The verdict of each file below the folder; a text if the program did not give them."""
    done = subprocess.run([apr, "scan", folder, "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode not in (0, 4):
        return f"exit code {done.returncode}: {done.stderr}"
    return {entry["path"]: entry["verdict"] for entry in json.loads(done.stdout)["files"]}


def one_round(apr: str, rng: random.Random, kinds: list[str], findings: Findings, counts: collections.Counter[str]) -> None:
    made: dict[str, tuple[str, str, bytes]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in range(BATCH):
            kind = rng.choices(kinds, [KINDS[kind].weight for kind in kinds])[0]
            name, data = KINDS[kind].make(rng)
            path = Path(folder, f"{n:03}", name)
            path.parent.mkdir()
            path.write_bytes(data)
            made[str(path)] = (kind, name, data)
        verdicts = judged(apr, folder)
        if isinstance(verdicts, str):
            findings.note(("scan", verdicts[:60]), "batch.txt", verdicts.encode())
            return
        for path, verdict in verdicts.items():
            kind, name, data = made[path]
            counts[f"{kind} {verdict}"] += 1
            if verdict == "safe" and (sign := loaders.happens(KINDS[kind].load, path, data)):
                findings.note((kind, *sign), name, data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apr")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("findings"))
    parser.add_argument("--kind", action="append", choices=[*KINDS], default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    loaders.warm_up()
    # Files in archives and texts name the working directory: nothing of it is overwritten.
    os.chdir(tempfile.mkdtemp())
    rng, findings = random.Random(options.seed), Findings(options.out.absolute(), options.seed)
    counts: collections.Counter[str] = collections.Counter()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        one_round(options.apr, rng, options.kind or [*KINDS], findings, counts)
    absent = [name for name in ("numpy", "torch", "joblib", "sklearn", "jinja2", "yaml", "keras") if getattr(loaders, name) is None]
    print(f"files: {counts.total()}; safe: {sum(n for key, n in counts.items() if key.endswith(' safe'))}; seed: {options.seed}")
    print("; ".join(f"{key}: {n}" for key, n in sorted(counts.items())))
    print(f"not installed: {', '.join(absent) or 'none'}")
    print(f"kinds of findings: {len(findings.seen)}")
    return 1 if findings.seen else 0


if __name__ == "__main__":
    sys.exit(main())
