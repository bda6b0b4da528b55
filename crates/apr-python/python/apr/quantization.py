"""Models in fewer bits: `apr quantize` as a function. The program does the work, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._refusals import refused, status
from ._tables import table

__all__ = ["Report", "quantize"]

# The exit code of the program where the system refused something.
_SYSTEM = 5


class Report(dict[str, Any]):
    """The report of `apr quantize --json`, a dict: shown as one line, and by notebooks as a table."""

    def __repr__(self) -> str:
        what = f"{len(self['tensors'])} tensors, {self['bytes']:,} bytes, {self['bits_per_number']:.2f} bits per number"
        return f"<Report {self['output']!r} {self['type']}: {what}>"

    def _repr_html_(self) -> str:
        def row(tensor: Mapping[str, Any]) -> tuple[Any, ...]:
            error = tensor["error"]
            worst = "" if error is None else f"{float(error['relative_rmse']):.3%}"
            return tensor["name"], tensor["from"], tensor["to"], tensor["bytes"], worst, tensor["reason"]

        columns = ("name", "from", "to", "bytes", "relative RMSE", "reason")
        return table(repr(self), columns, map(row, self["tensors"]), len(self["tensors"]))


def quantize(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    type: str,
    *,
    format: str | None = None,
    tensor_type: Mapping[str, str] | None = None,
    output_tensor_type: str | None = None,
    token_embedding_type: str | None = None,
    leave_output_tensor: bool = False,
    pure: bool = False,
    allow_requantize: bool = False,
    imatrix: str | os.PathLike[str] | None = None,
    no_provenance: bool = False,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    compat: bool = False,
    force: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    trusted: bool = False,
) -> Report:
    """Makes a GGUF, safetensors or `.apr` model smaller: its numbers in blocks of few bits.

    Args:
        src, dst: the model and the new file, whose ending says its format unless `format` does: "gguf", "apr2" or "safetensors".
        type: what the tensors become: "q8_0", "q4_k_m", "q4_0", "f16" and so on.
        tensor_type: other types, by regular expressions over names of tensors.
        include, exclude: patterns of names, as `apr quantize` takes them.
        force: replace `dst` if it exists.
        dry_run: write nothing; the report has the sizes, and errors from a sample.
        The rest: the options of `apr quantize`, under their names.

    Returns:
        The report of `apr quantize --json`, a dict: "bytes", "bits_per_number", "tensors" with "from", "to" and "error" of each,
        and more.

    Raises:
        AprError: what the program refuses, with its `code`.
        OSError: a file cannot be read or written.
        KeyboardInterrupt: the program was ended, and what it had begun to write is removed.
    """
    words: list[str] = [f"--output={_path(dst)}", f"--type={type}"]
    options: dict[str, Any] = {
        "format": format,
        "output-tensor-type": output_tensor_type,
        "token-embedding-type": token_embedding_type,
        "imatrix": None if imatrix is None else _path(imatrix),
    }
    words += [f"--{name}={value}" for name, value in options.items() if value is not None]
    words += [f"--tensor-type={pattern}={name}" for pattern, name in (tensor_type or {}).items()]
    words += [f"--include={pattern}" for pattern in include]
    words += [f"--exclude={pattern}" for pattern in exclude]
    flags = {
        "leave-output-tensor": leave_output_tensor,
        "pure": pure,
        "allow-requantize": allow_requantize,
        "no-provenance": no_provenance,
        "compat": compat,
        "force": force,
        "dry-run": dry_run,
        "allow-unverified": allow_unverified,
        "trusted": trusted,
    }
    words += [f"--{name}" for name, wanted in flags.items() if wanted]
    # Whether it is there is asked here, for an error of Python's own classes.
    status(src)
    exit, answer = _answer(["quantize", *words, "--", _path(src)])
    try:
        report = Report(json.loads(answer))
    except ValueError:
        raise OSError(f"the program apr ended with exit code {exit} and no answer") from None
    if exit != 0:
        raise _error(exit, report["error"])
    del report["schema"]
    return report


def _answer(args: Sequence[str]) -> tuple[int, str]:
    """Exit code and JSON of a command of the program. As a process of its own, it can be interrupted."""
    if not sys.executable:
        raise OSError("sys.executable is empty: apr.quantize needs an interpreter to run the program in")
    # It imports what this process would: without the path, `-c` would begin to look in the working directory.
    code = f"import sys; sys.path[:] = {[*map(str, sys.path)]}; from apr.__main__ import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, "--json", "--quiet", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        answer, _ = child.communicate()
    except BaseException:
        # A terminal interrupts both, and a second signal would end the program before it has removed what is unfinished.
        try:
            child.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            child.terminate()
            child.communicate()
        raise
    return child.returncode, answer.decode("utf-8", "replace")


def _path(path: str | os.PathLike[str]) -> str:
    """A path that is nothing else to the program: `-` would be a stream."""
    text = os.fsdecode(path)
    return os.path.join(os.curdir, text) if text.startswith("-") else text


def _error(exit: int, told: dict[str, Any]) -> Exception:
    """What the program said, as an exception."""
    name = told.get("tensor", told.get("key"))
    parts = [told.get("file"), name and f"`{name}`", told["message"], told.get("why"), told.get("help")]
    text = ": ".join(str(part) for part in parts if part)
    if exit == _SYSTEM:
        return OSError(text)
    code = told["code"]
    return refused(code, f"{text} ({code})", offset=told.get("offset"), name=name, path=told.get("file"))
