"""Commands of the program as functions: run in a process of its own, which can be interrupted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._native import advice, is_url
from ._refusals import refused, status

# The exit code of the program where the system refused something.
_SYSTEM = 5


def report_of(command: str, src: str | os.PathLike[str], /, *more: str, **options: object) -> dict[str, Any]:
    """The report of a command of the program for `src`, a path or URL, as `--json` prints it, without its schema.

    Options are named as the program's, with `_` for `-`. None and False leave one out, True gives it without a value, mappings
    give `KEY=VALUE` of each item and other iterables each value.

    Raises:
        AprError: what the program refuses, and what a URL cannot be read for, with its `code`.
        OSError: a file cannot be read or written.
    """
    # Whether it is there is asked here, for an error of Python's own classes.
    if not is_url(os.fsdecode(src)):
        status(src)
    words = [word for name, value in options.items() for word in _words(f"--{name.replace('_', '-')}", value)]
    exit, report = answer_of([command, *words, "--", path_word(src), *more])
    if exit != 0:
        flags = {name: not isinstance(value, bool) for name, value in options.items()}
        raise error_of(exit, _in_python(report["error"], flags))
    del report["schema"]
    return report


def answer_of(args: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """Exit code and report of a command of the program.

    Raises:
        OSError: it printed none.
    """
    exit, answer = _answer(args)
    try:
        report: dict[str, Any] = json.loads(answer)
    except ValueError:
        raise OSError(f"the program apr ended with exit code {exit} and no answer") from None
    return exit, report


def _words(option: str, value: object) -> list[str]:
    match value:
        case None | False:
            return []
        case True:
            return [option]
        case Mapping():
            # The program takes what is before the first `=` for the key.
            odd = next((key for key in value if "=" in str(key)), None)
            if odd is not None:
                raise ValueError(f"{option.removeprefix('--')}: the key {odd!r} has an `=`, which the program cannot be given")
            return [f"{option}={key}={item}" for key, item in value.items()]
        case Iterable() if not isinstance(value, str):
            return [f"{option}={item}" for item in value]
        case _:
            return [f"{option}={value}"]


def _answer(args: Sequence[str]) -> tuple[int, str]:
    """Exit code and JSON of a command of the program. As a process of its own, it can be interrupted."""
    if not sys.executable:
        raise OSError("sys.executable is empty: there is no interpreter to run the program in")
    # It imports what this process would: `-c` looks in the working directory first, where a downloaded `json.py` may be, so nothing but
    # what is compiled in is imported before the path is set. Its arguments are not on the command line, which every user of the machine
    # can see: the query of a URL may be a signature.
    code = (
        f"import sys; sys.path[:] = {[*map(str, sys.path)]}; import json; sys.argv[1:] = json.load(sys.stdin.buffer); "
        "from apr.__main__ import main; main()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        answer, _ = child.communicate(json.dumps(["--json", "--quiet", *args]).encode())
    except BaseException:
        # A terminal interrupts both, and a second signal would end the program before it has removed what is unfinished.
        try:
            child.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            child.terminate()
            child.communicate()
        raise
    return child.returncode, answer.decode("utf-8", "replace")


# Commands of the program, which stay as they are, and options, which are arguments here.
_OPTION = re.compile(r"`apr [^`]*`|--([a-z][a-z0-9-]*)")


def _in_python(told: dict[str, Any], takes_value: Mapping[str, bool]) -> dict[str, Any]:
    """An error with the options of the command under the names of the arguments: `force=True` for `--force`, `format=` for `--format`."""

    def argument(found: re.Match[str]) -> str:
        name = (found[1] or "").replace("-", "_")
        if name not in takes_value:
            return found[0]
        return f"{name}=" if takes_value[name] else f"{name}=True"

    texts = {key: _OPTION.sub(argument, told[key]) for key in ("message", "why", "help") if told.get(key)}
    return {**told, **texts}


def path_word(path: str | os.PathLike[str]) -> str:
    """A path or URL that is nothing else to the program: `-` would be a stream."""
    text = os.fsdecode(path)
    return os.path.join(os.curdir, text) if text.startswith("-") else text


def error_of(exit: int, told: dict[str, Any]) -> Exception:
    """What the program said, as an exception."""
    name, code = told.get("tensor", told.get("key")), told["code"]
    is_remote = code.startswith("rm-")
    # Options of the program are arguments here, but `fs=` is one of other functions alone.
    help = advice(code) if is_remote and code != "rm-scheme" else None
    parts = [told.get("file"), name and f"`{name}`", told["message"], told.get("why"), help or told.get("help")]
    text = ": ".join(str(part) for part in parts if part)
    # Of URLs, what the network refused has a code, as everywhere.
    if exit == _SYSTEM and not is_remote:
        return OSError(text)
    return refused(code, f"{text} ({code})", offset=told.get("offset"), name=name, path=told.get("file"))
