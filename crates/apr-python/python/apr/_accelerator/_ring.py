"""Reader threads, the ring of buffers between them and the copies, and the copies."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from .._native import Stop
from ._limits import Limits
from ._plan import Batch, Piece, Place

_TICK = 0.1
"""Seconds after which a wait looks for a signal, on systems where a signal does not end it."""


class Buffer(Protocol):
    """Memory that reads write to and copies read from."""

    memory: memoryview

    def release(self) -> None:
        """Frees it. Nothing uses it any more."""


class Event(Protocol):
    """A point in the order of copies."""

    def query(self) -> bool:
        """Whether all copies before it are complete."""

    def synchronize(self) -> None:
        """Waits for them."""


class Device(Protocol):
    """Where tensors are put. All but `buffer` is called by one thread."""

    def check(self, place: Place) -> None:
        """Raises SafetensorError if it has no such tensors."""

    def buffer(self, length: int) -> Buffer:
        """New memory for reads. Several threads call it at once."""

    def tensor(self, place: Place) -> Any:
        """A new tensor; its content is unspecified."""

    def copy(self, buffer: Buffer, copies: Sequence[tuple[Any, Piece]]) -> Event:
        """Begins to copy pieces of a buffer into tensors, and gives the event that follows these copies."""

    def drain(self) -> None:
        """Waits for the copies that have begun."""


class _Copied(NamedTuple):
    """Copies that have begun."""

    event: Event
    buffer: Buffer
    complete: list[tuple[str, Any]]
    """Names and tensors, the first one last."""


def stream(
    device: Device, places: Sequence[Place], batches: Sequence[Batch], limits: Limits
) -> Generator[tuple[str, Any], None, None]:
    """Loads tensors, and gives the name and the tensor of each as soon as it is complete, in order. None is kept here then.

    When it ends, for whatever reason, no thread and no copy of it is left.
    """
    readers = _Readers(device, batches, limits)
    copied: deque[_Copied] = deque()
    begun: dict[int, Any] = {}

    def finished() -> Iterator[tuple[str, Any]]:
        """Waits for the oldest copies, whose buffer may be filled again then."""
        event, buffer, complete = copied.popleft()
        event.synchronize()
        readers.give_back(buffer)
        while complete:
            yield complete.pop()

    try:
        readers.start()
        for number, batch in enumerate(batches):
            # As long as buffers are filled, copies follow each other without a wait.
            while (buffer := readers.filled(number, wait=not copied)) is None:
                yield from finished()
            # Those without bytes are in no piece.
            for index in (*(piece.tensor for piece in batch.pieces), *batch.complete):
                if index not in begun:
                    begun[index] = device.tensor(places[index])
            event = device.copy(buffer, [(begun[piece.tensor], piece) for piece in batch.pieces])
            complete = [(places[index].name, begun.pop(index)) for index in reversed(batch.complete)]
            copied.append(_Copied(event, buffer, complete))
            while copied and copied[0].event.query():
                yield from finished()
        while copied:
            yield from finished()
    except BaseException:
        readers.end()
        # Copies read buffers and write to tensors until then. If this fails too, the first error is the one to raise.
        with contextlib.suppress(Exception):
            device.drain()
        raise
    finally:
        readers.end()
        readers.release()


class _Readers:
    """Threads that fill buffers with batches. They begin with them in order, each when there is a buffer for it, so that the batch that is
    copied next has one."""

    def __init__(self, device: Device, batches: Sequence[Batch], limits: Limits) -> None:
        self._device = device
        self._batches = batches
        longest = max((batch.length for batch in batches), default=0)
        # A power of two, of which there are not more than the batches need.
        self._buffer_len = min(limits.buffer_len, 1 << max(longest - 1, 0).bit_length())
        self._n_buffers = limits.n_buffers
        is_local = all(batch.source._is_local for batch in batches)
        n_readers = min(limits.n_readers, len(batches)) if is_local else 1
        # Daemons: a program can end although an iterator is not exhausted.
        self._threads = [threading.Thread(target=self._run, name="apr-reader", daemon=True) for _ in range(n_readers)]
        self._changed = threading.Condition()
        self._next = 0
        self._buffers: list[Buffer] = []
        self._n_begun = 0
        self._free: list[Buffer] = []
        self._filled: dict[int, Buffer] = {}
        self._failure: BaseException | None = None
        self._is_ended = False
        self._stop = Stop()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def filled(self, number: int, *, wait: bool) -> Buffer | None:
        """The buffer with a batch; None if it is not filled and `wait` is not set.

        Raises:
            BaseException: what a thread has raised.
        """
        with self._changed:
            while True:
                if self._failure is not None:
                    raise self._failure
                buffer = self._filled.pop(number, None)
                if buffer is not None or not wait:
                    return buffer
                self._changed.wait(_TICK)

    def give_back(self, buffer: Buffer) -> None:
        """A buffer that may be filled again."""
        with self._changed:
            self._free.append(buffer)
            self._changed.notify_all()

    def end(self) -> None:
        """Ends the threads, after what they are reading."""
        self._stop.set()
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        for thread in self._threads:
            # One that has not begun finds that there is nothing to do.
            if thread.ident is not None:
                thread.join()

    def release(self) -> None:
        """Frees the buffers, after the threads have ended: an exception that was raised may refer to them for long."""
        for buffer in self._buffers:
            buffer.release()
        self._buffers, self._free, self._filled = [], [], {}

    def _claim(self) -> tuple[int, Buffer] | None:
        """The next batch and a buffer for it, or None if there is none."""
        with self._changed:
            while not (self._is_ended or self._failure is not None or self._next == len(self._batches)):
                if self._free or self._n_begun < self._n_buffers:
                    break
                self._changed.wait()
            else:
                return None
            number = self._next
            self._next += 1
            if self._free:
                return number, self._free.pop()
            self._n_begun += 1
        # Other threads read meanwhile: it takes long.
        buffer = self._device.buffer(self._buffer_len)
        with self._changed:
            self._buffers.append(buffer)
        return number, buffer

    def _run(self) -> None:
        try:
            while (claimed := self._claim()) is not None:
                number, buffer = claimed
                batch = self._batches[number]
                if batch.hint is not None:
                    batch.source._will_read(*batch.hint)
                if batch.length:
                    batch.source._read_at(batch.offset, buffer.memory[: batch.length], self._stop)
                with self._changed:
                    self._filled[number] = buffer
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                if self._failure is None:
                    self._failure = error
                self._changed.notify_all()
