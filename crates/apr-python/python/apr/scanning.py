"""What loading files would run: `apr scan` as a function."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._native import is_url, scan_json, scan_words
from ._program import answer_of, error_of, path_word
from ._refusals import status
from ._tables import table

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["ScanReport", "scan"]


class ScanReport(dict[str, Any]):
    """The report of `apr scan --json`, a dict: shown as one line, and by notebooks as a table."""

    @property
    def verdict(self) -> str:
        """The worst of all files that were read: "safe", "suspicious", "malformed" or "dangerous"."""
        verdict: str = self["verdict"]
        return verdict

    @property
    def files(self) -> list[dict[str, Any]]:
        """Each file with "path", "format", "verdict", "findings" and "pickles"."""
        files: list[dict[str, Any]] = self["files"]
        return files

    @property
    def unread(self) -> list[dict[str, Any]]:
        """What below a folder could not be read, and why."""
        unread: list[dict[str, Any]] = self["unread"]
        return unread

    @property
    def is_safe(self) -> bool:
        """Whether everything was read and is safe."""
        return self.verdict == "safe" and not self.unread

    def __repr__(self) -> str:
        findings = sum(len(file["findings"]) for file in self.files)
        unread = f", {len(self.unread)} not read" if self.unread else ""
        return f"<ScanReport {self.verdict}: {len(self.files)} files, {findings} findings{unread}>"

    def _repr_html_(self) -> str:
        rows = [
            (file["path"], file["verdict"], finding.get("member", ""), finding["offset"], finding["message"])
            for file in self.files
            for finding in file["findings"] or [{"offset": "", "message": ""}]
        ]
        return table(repr(self), ("file", "verdict", "member", "offset", "finding"), rows, len(rows))


def scan(
    file: str | os.PathLike[str] | Buffer,
    *,
    allow: Iterable[str] = (),
    max_opcodes: int | None = None,
    max_depth: int | None = None,
    max_inflated: int | None = None,
    max_findings: int | None = None,
    allow_http: bool = False,
    time_limit: int | None = None,
) -> ScanReport:
    """Says what loading a model file would run, without running it.

    Args:
        file: the path of a file or folder, the URL of a file, or the bytes of a file. Folders are scanned with all below them but
            `.git`. Of a URL, the ranges that are needed are read, and all of a file that is not safe, for its SHA-256.
        allow: names to trust, "package.module.name", exactly and whatever is done with them.
        max_opcodes, max_depth, max_inflated, max_findings: limits, as `apr scan` has them.
        allow_http: read http:// URLs of other hosts than this machine.
        time_limit: seconds that all requests for URLs may take together.

    Returns:
        The report of `apr scan --json`, a dict with `verdict`, `files`, `unread` and `is_safe`.

    Raises:
        AprError: a URL cannot be read: "rm-not-found", "rm-denied", "rm-changed", "rm-gave-up" and the other codes of `docs/remote.md`.
        OSError: the file cannot be read. What cannot be read below a folder is in `unread`.
        ValueError: a name in `allow` without a module.
    """
    limits = (max_opcodes, max_depth, max_inflated, max_findings)
    if isinstance(file, str | os.PathLike):
        if is_url(file):
            # In a process of its own, which an interrupt ends.
            network = ["--allow-http"] if allow_http else []
            network += [] if time_limit is None else [f"--time-limit={time_limit}"]
            words = [*scan_words(list(allow), *limits), *network, "--", path_word(file)]
            report = ScanReport(answer_of(words)[1])
        else:
            status(file)
            report = ScanReport(json.loads(scan_json(path_word(file), list(allow), *limits)))
        if "error" in report:
            raise error_of(2, report["error"])
        if report.unread and not os.path.isdir(file):
            raise error_of(5, report.unread[0])
        return report
    report = ScanReport(json.loads(scan_json(file, list(allow), *limits)))
    if report.verdict != "safe":
        report.files[0]["sha256"] = hashlib.sha256(file).hexdigest()
    return report
