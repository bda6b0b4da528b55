"""Reader threads fill a ring of buffers; the calling thread copies them to the device.

A signal or the garbage collector can interrupt the code here between any two steps, so no thread takes a lock of Python's `threading`: an
interrupt in `Condition.wait` or `Thread.start` can leave it locked. What threads share are queues, dicts and sets, each changed by single calls.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from .._native import Stop
from ._limits import Limits
from ._plan import Batch, Piece, Place

_TICK = 0.1
"""Seconds after which a wait looks for a signal, on systems where a signal does not end it."""

_Item = TypeVar("_Item")


class Buffer(Protocol):
    """Memory that reads write to and copies read from."""

    memory: memoryview

    def release(self) -> None:
        """Frees the memory. It is called when no read and no copy uses it, and again if an interrupt has ended it."""


class Event(Protocol):
    """A point in the order of copies."""

    def query(self) -> bool:
        """Whether all copies before it are complete."""

    def synchronize(self) -> None:
        """Waits for them."""


class Device(Protocol):
    """Where tensors are put. One thread calls `tensor` and `copy`."""

    def check(self, place: Place) -> None:
        """Raises SafetensorError if it has no such tensors."""

    def buffer(self, length: int) -> Buffer:
        """Allocates a buffer. Several threads call it at once."""

    def tensor(self, place: Place) -> Any:
        """A new tensor; its content is unspecified."""

    def copy(self, buffer: Buffer, copies: Sequence[tuple[Any, Piece]]) -> Event:
        """Begins to copy pieces of a buffer into tensors. Returns the event that follows these copies."""

    def drain(self) -> None:
        """Waits for the copies that have begun."""


class _Copied(NamedTuple):
    """Copies that have begun."""

    event: Event
    buffer: Buffer
    complete: list[int]
    """The tensors that are complete after them, by their index in the plan."""


def stream(
    device: Device, places: Sequence[Place], batches: Sequence[Batch], limits: Limits
) -> Generator[tuple[str, Any], None, None]:
    """Loads tensors, and yields the name and the tensor of each as soon as it is complete, in order. It keeps no tensor that it has yielded.

    When it ends, for whatever reason, no thread and no copy of it is left.
    """
    readers = _Readers(device, batches, limits)
    interrupts: list[BaseException] = []
    try:
        # The loops are in another function: in Python 3.12 and 3.13, an interrupt at the end of a loop's body skips a `finally` around it.
        yield from _copies(device, places, batches, readers)
    finally:
        while True:
            try:
                readers.end()
                break
            except KeyboardInterrupt as error:
                interrupts[:] = [error]
        if interrupts:
            raise interrupts.pop()


def _copies(
    device: Device, places: Sequence[Place], batches: Sequence[Batch], readers: _Readers
) -> Generator[tuple[str, Any], None, None]:
    begun, copied = readers.begun, readers.copied

    def finished() -> Iterator[tuple[str, Any]]:
        """Waits for the oldest copies, whose buffer may be filled again then."""
        event, buffer, complete = copied.popleft()
        event.synchronize()
        readers.give_back(buffer)
        for index in complete:
            yield places[index].name, begun.pop(index)

    readers.start()
    for number, batch in enumerate(batches):
        # As long as buffers are filled, copies follow each other without a wait.
        while (buffer := readers.filled(number, wait=not copied)) is None:
            yield from finished()
        # Tensors without bytes have no pieces.
        for index in (*(piece.tensor for piece in batch.pieces), *batch.complete):
            if index not in begun:
                begun[index] = device.tensor(places[index])
        event = device.copy(buffer, [(begun[piece.tensor], piece) for piece in batch.pieces])
        copied.append(_Copied(event, buffer, batch.complete))
        while copied and copied[0].event.query():
            yield from finished()
    while copied:
        yield from finished()


class _Readers:
    """Threads that fill buffers with batches, in order. Each takes a buffer first and then the next batch, so the batch that is copied
    next always has a buffer."""

    def __init__(self, device: Device, batches: Sequence[Batch], limits: Limits) -> None:
        self.begun: dict[int, Any] = {}
        """Tensors that have begun and are not yielded yet, by their index in the plan."""
        self.copied: deque[_Copied] = deque()
        self._device = device
        is_local = all(batch.source._is_local for batch in batches)
        self._n_readers = min(limits.n_readers if is_local else 1, len(batches))
        self._unclaimed = deque(enumerate(batches))
        # A power of two, which need not be longer than the longest batch.
        longest = max((batch.length for batch in batches), default=0)
        buffer_len = min(limits.buffer_len, 1 << max(longest - 1, 0).bit_length())
        self._unallocated = deque([buffer_len] * min(limits.n_buffers, len(batches)))
        self._buffers: list[Buffer] = []
        self._free: queue.SimpleQueue[Buffer | None] = queue.SimpleQueue()
        self._filled: dict[int, Buffer] = {}
        self._failures: dict[int, BaseException] = {}
        self._changed: queue.SimpleQueue[None] = queue.SimpleQueue()
        """An item for each change of `_filled`, `_failures` and `_running`."""
        self._running: set[int] = set()
        """The threads that may read, by their identifiers."""
        self._pid = os.getpid()
        self._stop = Stop()
        self._is_failed = self._is_ended = self._is_left = False

    def start(self) -> None:
        for _ in range(self._n_readers):
            # Not `Thread.start`, which waits. These threads do not keep a program from ending.
            _thread.start_new_thread(self._run, ())

    def filled(self, number: int, *, wait: bool) -> Buffer | None:
        """The buffer with a batch; without `wait`, None if it is not filled.

        Raises:
            BaseException: what the thread has raised that was to fill it.
        """
        while number not in self._filled:
            if not wait:
                return None
            if number in self._failures:
                raise self._failures.pop(number)
            self._wait()
        return self._filled.pop(number)

    def give_back(self, buffer: Buffer) -> None:
        """Lets a buffer be filled again."""
        self._free.put(buffer)

    def end(self) -> None:
        """Ends the threads after what they are reading, then waits for the copies and frees the memory. It can be called again if an
        exception has ended it."""
        self._is_ended = True
        self._stop.set()
        for _ in range(self._n_readers):
            self._free.put(None)
        # The garbage collector may end an iterator in one of its own threads, which cannot wait for itself.
        is_reader = threading.get_ident() in self._running
        try:
            # In a forked process, and while the interpreter ends, the threads do not continue.
            while self._running and not (is_reader or sys.is_finalizing() or os.getpid() != self._pid):
                self._wait()
        finally:
            self._is_left = bool(self._running)
            self._release()

    def _release(self) -> None:
        """Waits for the copies and frees the memory, unless a thread is running: the last one does it then."""
        if self._running or sys.is_finalizing():
            return
        # If this fails too, the error that ended the load is the one to raise.
        with contextlib.suppress(Exception):
            self._device.drain()
        for buffer in self._buffers:
            buffer.release()
        # An error that was raised may refer to this object for long.
        for items in (self.begun, self.copied, self._buffers, self._filled, self._failures):
            items.clear()

    def _wait(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._changed.get(timeout=_TICK)

    def _run(self) -> None:
        # If `end` has not found a thread here, the thread finds `_is_ended` set.
        self._running.add(threading.get_ident())
        while not (self._is_ended or self._is_failed) and self._fill():
            self._changed.put(None)
        self._running.discard(threading.get_ident())
        if self._is_left:
            self._release()
        self._changed.put(None)

    def _fill(self) -> bool:
        """Fills a buffer with the next batch. Returns whether there was one and it was read."""
        claimed = None
        try:
            buffer = self._buffer()
            if buffer is None or (claimed := _taken(self._unclaimed)) is None:
                return False
            number, batch = claimed
            if batch.hint is not None:
                batch.source._will_read(*batch.hint)
            if batch.length:
                batch.source._read_at(batch.offset, buffer.memory[: batch.length], self._stop)
            self._filled[number] = buffer
            return True
        except BaseException as error:
            # All batches before this one are claimed, and are copied before the error is raised.
            self._is_failed = True
            claimed = claimed or _taken(self._unclaimed)
            if claimed is not None:
                self._failures[claimed[0]] = error
            return False

    def _buffer(self) -> Buffer | None:
        """A free buffer, or a new one while there are fewer than the limit. None if there is nothing more to read."""
        with contextlib.suppress(queue.Empty):
            return self._free.get_nowait()
        length = _taken(self._unallocated) if self._unclaimed else None
        if length is None:
            return self._free.get() if self._unclaimed else None
        # It takes long, and other threads can read meanwhile.
        buffer = self._device.buffer(length)
        self._buffers.append(buffer)
        return buffer


def _taken(items: deque[_Item]) -> _Item | None:
    """The first item, which is removed; None if there is none."""
    with contextlib.suppress(IndexError):
        return items.popleft()
    return None
