"""Compares what `apr tensors` reads with what the writers of files say is in them.

    judge_foreign.py APR FOLDER...

Each folder has files and `expected.jsonl` (`xtask/oracles/writing.py`). Exit code 1 if anything differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path


def read(apr: str, path: Path, without: tuple[str, ...] = ()) -> dict[str, list] | str:
    """Name to type, shape and digest; or the error. What cannot be represented is left out."""
    words = [apr, "tensors", "--digest", "--json", str(path)]
    ran = subprocess.run(words + [f"--exclude={name}" for name in without], capture_output=True)
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        return f"exit code {ran.returncode}: {ran.stderr.decode(errors='replace')[:300]}"
    if "error" in answer:
        name = answer["error"].get("tensor")
        if answer["error"]["code"] == "ft-tensor-unsupported" and name and name not in without:
            return read(apr, path, (*without, name))
        return f"{answer['error']['code']}: {answer['error']['message']}"
    return {tensor["name"]: [tensor["dtype"], tensor["shape"], tensor.get("sha256")] for tensor in answer["tensors"]}


def differences(ours: dict[str, list], theirs: dict[str, list], partial: bool) -> list[str]:
    found = [f"{name!r} is missing" for name in theirs.keys() - ours.keys()]
    if not partial:
        found += [f"{name!r} is not in the file" for name in ours.keys() - theirs.keys()]
    both = theirs.keys() & ours.keys()
    return found + [f"{name!r}: {ours[name]}, not {theirs[name]}" for name in both if ours[name] != theirs[name]]


def main() -> None:
    apr, n_wrong = sys.argv[1], 0
    for folder in map(Path, sys.argv[2:]):
        counts: Counter = Counter()
        for line in (folder / "expected.jsonl").read_text().splitlines():
            expected = json.loads(line)
            ours = read(apr, folder / expected["file"])
            if isinstance(ours, str):
                wrong = [] if expected.get("refused") else [ours]
                counts["refused"] += not wrong
            elif expected["tensors"] is None:
                wrong = []
                counts["read"] += 1
            else:
                wrong = differences(ours, expected["tensors"], expected["partial"])
                counts["tensors"] += len(expected["tensors"])
            counts["files"] += 1
            counts["wrong"] += bool(wrong)
            for difference in wrong[:3]:
                print(f"{folder.name}/{expected['file']}: {difference}", file=sys.stderr)
        n_wrong += counts["wrong"]
        print(
            f"{folder.name}: {counts['files']} files, {counts['tensors']} tensors compared; {counts['wrong']} files differ, "
            f"{counts['refused']} are refused as they may be, {counts['read']} are read without comparison"
        )
    sys.exit(n_wrong > 0)


main()
