"""Models in fewer bits: `apr quantize` as a function. The program does the work, in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ._program import path_word, report_of
from ._tables import table

__all__ = ["Report", "quantize"]


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
    object: str = "",
    tensor_type: Mapping[str, str] | None = None,
    output_tensor_type: str | None = None,
    token_embedding_type: str | None = None,
    leave_output_tensor: bool = False,
    pure: bool = False,
    allow_requantize: bool = False,
    imatrix: str | os.PathLike[str] | None = None,
    no_provenance: bool = False,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    compat: bool = False,
    force: bool = False,
    dry_run: bool = False,
    allow_unverified: bool = False,
    no_size_limit: bool = False,
    allow_http: bool = False,
    time_limit: int | None = None,
) -> Report:
    """Makes a GGUF, safetensors or `.apr` model smaller: its numbers in blocks of few bits.

    Args:
        src, dst: the path or URL of the model, and the new file, whose ending says its format unless `format` does: "gguf", "apr2" or
            "safetensors". Of a URL, the ranges that are needed are read, and nothing but `dst` is written.
        type: what the tensors become: "q8_0", "q4_k_m", "q4_0", "f16" and so on.
        object: the nested object to read of a file of another program, by its keys: "model", "state_dict.ema".
        tensor_type: other types, by regular expressions over names of tensors.
        select, exclude: patterns of names; `*` is any text, `?` one character.
        force: replace `dst` if it exists.
        dry_run: write nothing; the report has the sizes, and errors from a sample.
        allow_http: read http:// URLs of other hosts than this machine.
        time_limit: seconds that all requests for URLs may take together.
        The rest: the options of `apr quantize`, under their names.

    Returns:
        The report of `apr quantize --json`, a dict: "bytes", "bits_per_number", "tensors" with "from", "to" and "error" of each,
        and more.

    Raises:
        AprError: what the program refuses, with its `code`; for a URL also "rm-not-found", "rm-denied", "rm-changed", "rm-gave-up" and
            the other codes of `docs/remote.md`.
        OSError: a file cannot be read or written.
        KeyboardInterrupt: the program was ended, and what it had begun to write is removed.
    """
    # Every argument is an option of the program of the same name, but for these.
    options: dict[str, Any] = {**locals(), "object": object or None, "output": path_word(dst)}
    del options["src"], options["dst"]
    options["imatrix"] = None if imatrix is None else path_word(imatrix)
    return Report(report_of("quantize", src, **options))
