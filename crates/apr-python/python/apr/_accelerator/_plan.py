"""Files divided into ranges, each of which fits into a buffer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from .._native import SafetensorError

_GAP = 64 << 10
"""Most bytes between two tensors that are read with them, because that takes less time than another read."""


class Source(Protocol):
    """An open file: `safe_open` or a sealed file."""

    @property
    def _is_local(self) -> bool:
        """Whether several threads can read at once."""

    def _places(self) -> list[tuple[str, str, list[int], int, int]]:
        """The tensors in file order: name, element type, shape, first byte, end."""

    def _read_at(self, offset: int, buffer: memoryview, stop: Any = None) -> None:
        """Fills the buffer with the bytes from `offset` on."""

    def _will_read(self, begin: int, end: int) -> None:
        """Announces which bytes will be read."""


Group = tuple[Source, Collection[str] | None]
"""A file and the names of the tensors to load, or None for all."""


class Place(NamedTuple):
    """A tensor and its bytes in a file."""

    name: str
    dtype: str
    shape: list[int]
    begin: int
    end: int


class Piece(NamedTuple):
    """Bytes of a tensor in a buffer."""

    tensor: int
    """Index of the tensor in the plan."""
    offset: int
    """In the tensor."""
    start: int
    """In the buffer."""
    length: int


class Batch(NamedTuple):
    """A range of a file that is read into one buffer."""

    source: Source
    offset: int
    length: int
    pieces: list[Piece]
    complete: list[int]
    """The tensors that have no bytes in later batches, by their index in the plan."""
    hint: tuple[int, int] | None
    """In the first batch of a file that is not local: the range that will be read of it."""


def chosen(source: Source, names: Collection[str] | None) -> list[Place]:
    """The tensors with these names, or all, in file order.

    Raises:
        SafetensorError: the file has no tensor of one of the names.
    """
    places = {place[0]: Place(*place) for place in source._places()}
    for name in names or ():
        if name not in places:
            raise SafetensorError(f"File does not contain tensor {name}")
    found = places.values() if names is None else [places[name] for name in dict.fromkeys(names)]
    return sorted(found, key=lambda place: (place.begin, place.end))


def extent(places: Sequence[Place]) -> tuple[int, int]:
    """The range of a file that has all bytes of tensors in file order."""
    return places[0].begin, max(place.end for place in places)


def plan(groups: Sequence[Group], buffer_len: int) -> tuple[list[Place], list[Batch]]:
    """The tensors of all files in the order in which they will be complete, and what to read, in order."""
    places: list[Place] = []
    batches: list[Batch] = []
    for source, names in groups:
        found = chosen(source, names)
        batches += _of_file(source, found, len(places), buffer_len)
        places += found
    return places, batches


def _of_file(source: Source, places: list[Place], first: int, buffer_len: int) -> list[Batch]:
    batches: list[Batch] = []
    pieces: list[Piece] = []
    complete: list[int] = []
    begin = end = 0

    def flush() -> None:
        nonlocal pieces, complete
        if pieces or complete:
            batches.append(Batch(source, begin, end - begin, pieces, complete, None))
        pieces, complete = [], []

    for number, place in enumerate(places, first):
        at = place.begin
        while at < place.end:
            if pieces and (not 0 <= at - end <= _GAP or at - begin >= buffer_len):
                flush()
            if not pieces:
                begin = at
            length = min(place.end - at, begin + buffer_len - at)
            pieces.append(Piece(number, at - place.begin, at - begin, length))
            at = end = at + length
        complete.append(number)
    flush()
    if batches and not source._is_local:
        batches[0] = batches[0]._replace(hint=extent(places))
    return batches
