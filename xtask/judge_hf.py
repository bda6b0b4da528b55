"""Compares the files that `apr convert` writes with those of llama.cpp's converter.

    judge_hf.py APR FOLDER

FOLDER is what `oracles/write_hf.py` or `oracles/write_lora.py` wrote.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

APR, FOLDER = (Path(word) for word in sys.argv[1:3])
MOST_SHOWN = 12


def converted(line: dict, output_type: str) -> dict[str, str] | str:
    with tempfile.TemporaryDirectory() as out:
        words = [APR, "convert", FOLDER / line["folder"], f"{out}/out.gguf", "--type", output_type, "--no-provenance", *line["splits"]]
        if "base" in line:
            words += ["--base", FOLDER / line["base"]]
        if line["pre"]:
            words += ["--pre", line["pre"]]
        run = subprocess.run(words, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return run.stderr
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(Path(out).iterdir())}


def main() -> int:
    counts: Counter[str] = Counter()
    shown = 0
    by_family: dict[str, Counter[str]] = {}
    for line in map(json.loads, (FOLDER / "expected.jsonl").open()):
        family = by_family.setdefault(line["folder"].rsplit("-", 1)[0], Counter())
        for output_type, result in line["results"].items():
            found = converted(line, output_type)
            if "files" not in result:
                # What the reference stops on may be converted; it has to be looked at.
                kind = "both stop" if isinstance(found, str) else "only the reference stops"
            elif isinstance(found, str):
                kind = "only apr stops"
            else:
                kind = "equal" if found == result["files"] else "different"
            counts[kind] += 1
            family[kind] += 1
            if kind != "equal" and shown < MOST_SHOWN:
                shown += 1
                print(f"{line['folder']} as {output_type} {line['splits']}: {kind}")
                print("   ", (result.get("error") or "").strip().replace("\n", "\n    "))
                print("   ", found if isinstance(found, str) else "")
    for name, family in by_family.items():
        print(f"{name}: " + ", ".join(f"{count} {kind}" for kind, count in family.items()))
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 0 if set(counts) <= {"equal"} else 1


sys.exit(main())
