"""Where the program `apr` is: in this module, beside the interpreter, or on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence

from . import _native

__all__ = ["MISSING", "find", "run_cli", "run_json"]

MISSING = "the program apr is not installed: `pip install apr-cli` or `cargo install apr-tools`"

# In modules that were built with the feature `program`.
run_cli: Callable[[Sequence[str]], int] | None = getattr(_native, "run_cli", None)
_run_json: Callable[[Sequence[str]], tuple[int, str]] | None = getattr(_native, "run_json", None)


def find() -> str | None:
    """The path of the program; the environment of the interpreter comes first."""
    return shutil.which("apr", path=sysconfig.get_path("scripts")) or shutil.which("apr")


def run_json(args: Sequence[str]) -> tuple[int, str]:
    """Exit code and JSON of a command. FileNotFoundError if there is no program."""
    if _run_json is not None:
        return _run_json(args)
    program = find()
    if program is None:
        raise FileNotFoundError(MISSING)
    ran = subprocess.run(
        [program, "--json", "--quiet", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )
    return ran.returncode, ran.stdout.decode("utf-8", "replace")
