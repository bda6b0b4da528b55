"""A device in main memory for the pipeline of `apr._accelerator`: its copies are made by another thread, when a test allows them."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from apr._accelerator._limits import Limits
from apr._accelerator._plan import plan
from apr._accelerator._ring import _Readers, stream

UNWRITTEN = 0xEE
FREED = 0xDD


class Array:
    """A tensor of the device."""

    def __init__(self, dtype: str, shape: Sequence[int], length: int) -> None:
        self.dtype, self.shape = dtype, list(shape)
        self.data = bytearray([UNWRITTEN]) * length


class Buffer:
    """A buffer of the device."""

    def __init__(self, device: MemoryDevice, length: int) -> None:
        self.device = device
        self.data = bytearray(length)
        self.memory = memoryview(self.data)
        self.is_freed = False

    def release(self) -> None:
        with self.device.lock:
            if self.device.n_pending:
                self.device.wrong.append("a buffer was freed while copies were pending")
            if self.is_freed:
                return
            self.is_freed = True
            self.device.n_alive -= 1
        self.memory[:] = bytes([FREED]) * len(self.data)
        self.memory.release()


class Event:
    """When the copies of a buffer are complete."""

    def __init__(self) -> None:
        self.is_done = False
        self.error: Exception | None = None

    def query(self) -> bool:
        return self.is_done

    def synchronize(self) -> None:
        # An interrupt in a wait of `threading` can leave a lock behind.
        while not self.is_done:
            time.sleep(0.0005)
        if self.error is not None:
            raise self.error


class MemoryDevice:
    """What the pipeline is told to use.

    is_held: copies wait until `allow` is called, or everything is drained.
    fail: called with "check", "buffer", "tensor", "copy" or "copied", and how often that has happened before; what it raises is an error
    of the device.
    """

    def __init__(self, *, is_held: bool = False, fail: Callable[[str, int], None] | None = None) -> None:
        self.lock = threading.Lock()
        self.wrong: list[str] = []
        self.n_alive = self.peak = self.n_copied = 0
        self.tensors: dict[str, Array] = {}
        self._allowed: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_open = not is_held
        self._fail = fail
        self._counts: dict[str, int] = {}
        self._jobs: deque[Any] = deque()
        self._added: queue.SimpleQueue[None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="memory-device", daemon=True).start()

    def allow(self, count: int = 1) -> None:
        """Lets so many buffers be copied."""
        for _ in range(count):
            self._allowed.put(None)

    def open(self) -> None:
        """Lets everything be copied."""
        self._is_open = True
        self._allowed.put(None)

    @property
    def n_pending(self) -> int:
        """Copies that have begun and are not complete."""
        return len(self._jobs)

    def _may_fail(self, step: str) -> None:
        with self.lock:
            count = self._counts.get(step, 0)
            self._counts[step] = count + 1
        if self._fail is not None:
            self._fail(step, count)

    # What the pipeline calls.

    def check(self, place: Any) -> None:
        self._may_fail("check")

    def buffer(self, length: int) -> Buffer:
        self._may_fail("buffer")
        with self.lock:
            self.n_alive += 1
            self.peak = max(self.peak, self.n_alive)
        return Buffer(self, length)

    def tensor(self, place: Any) -> Array:
        self._may_fail("tensor")
        array = Array(place.dtype, place.shape, place.end - place.begin)
        self.tensors[place.name] = array
        return array

    def copy(self, buffer: Buffer, copies: Sequence[tuple[Array, Any]]) -> Event:
        self._may_fail("copy")
        event = Event()
        # What is in the buffer now has to be in it when it is copied.
        self._jobs.append((event, buffer, copies, bytes(buffer.data)))
        self._added.put(None)
        return event

    def drain(self) -> None:
        self.open()
        self._added.put(None)
        while self._jobs:
            time.sleep(0.0005)

    def _work(self) -> None:
        while True:
            self._added.get()
            while self._jobs:
                self._copy(*self._jobs[0])

    def _copy(self, event: Event, buffer: Buffer, copies: Any, content: bytes) -> None:
        if not self._is_open:
            self._allowed.get()
        try:
            self._may_fail("copied")
            if buffer.is_freed or bytes(buffer.data) != content:
                self.wrong.append("a buffer was used again before it was copied")
            for array, piece in copies:
                array.data[piece.offset : piece.offset + piece.length] = buffer.data[piece.start : piece.start + piece.length]
        except Exception as error:
            event.error = error
        self.n_copied += 1
        # Not kept until the next one.
        copies = array = None
        self._jobs.popleft()
        event.is_done = True


class Source:
    """A file in memory.

    sizes: bytes of each tensor.
    on_read: called with the number of reads that began before, and the offset.
    """

    def __init__(
        self, sizes: Sequence[int], on_read: Callable[[int, int], None] | None = None, *, is_local: bool = True
    ) -> None:
        self.sizes = sizes
        self.content = bytes((place * 7 + place // 251) % 251 for place in range(sum(sizes)))
        self._is_local = is_local
        self.on_read = on_read
        self.lock = threading.Lock()
        self.reads: list[int] = []
        self.hints: list[tuple[int, int]] = []

    def expected(self) -> dict[str, bytes]:
        return {name: self.content[begin:end] for name, _, _, begin, end in self._places()}

    def _places(self) -> list[tuple[str, str, list[int], int, int]]:
        at, places = 0, []
        for number, size in enumerate(self.sizes):
            places.append((f"t{number}", "U8", [size], at, at + size))
            at += size
        return places

    def _read_at(self, offset: int, buffer: memoryview, stop: Any = None) -> None:
        with self.lock:
            count = len(self.reads)
            self.reads.append(offset)
        if self.on_read is not None:
            self.on_read(count, offset)
        buffer[:] = self.content[offset : offset + len(buffer)]

    def _will_read(self, begin: int, end: int) -> None:
        self.hints.append((begin, end))


def written(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> Path:
    """A safetensors file with these types, shapes and bytes, in this order."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data for _, _, data in tensors.values()))
    return path


def readers_alive() -> list[int]:
    """The reader threads, after a wait for those that are about to exit."""
    end = time.monotonic() + 2
    while found := [thread for thread, frame in sys._current_frames().items() if _is_reader(frame)]:
        if time.monotonic() > end:
            break
        time.sleep(0.001)
    return found


def _is_reader(frame: Any) -> bool:
    while frame is not None and frame.f_code is not _Readers._run.__code__:
        frame = frame.f_back
    return frame is not None


def begun(device: Any, groups: Any, bounds: Limits) -> Any:
    places, batches = plan(groups, bounds.buffer_len)
    return stream(device, places, batches, bounds)


def loaded(device: MemoryDevice, groups: Any, bounds: Limits) -> dict[str, bytes]:
    return {name: bytes(array.data) for name, array in begun(device, groups, bounds)}


def check_end(device: MemoryDevice) -> None:
    """Nothing is left, and nothing was wrong meanwhile."""
    assert readers_alive() == []
    assert not device.wrong
    assert device.n_alive == 0 and device.n_pending == 0
