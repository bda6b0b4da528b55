"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

# Rows of a table that is shown.
_MOST = 200


def shown(value: Any) -> str:
    """A value as HTML. What names of files and tensors have of markup, and of characters that are not seen, is escaped."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    """HTML of a table with a caption; of many rows the first ones."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{shown(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in islice(rows, _MOST))
    rest = f"<p>and {count - _MOST:,} more</p>" if count > _MOST else ""
    return f"<table><caption>{shown(caption)}</caption>{line('th', columns)}{body}</table>{rest}"
