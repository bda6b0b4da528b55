"""The pipeline into an accelerator, with a device in main memory: order, bound, overlap, errors, interrupts. Nothing here needs torch."""

from __future__ import annotations

import _thread
import gc
import os
import random
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apr._accelerator import _devices, iterate
from apr._accelerator._limits import Limits, limits
from apr._accelerator._plan import plan
from apr.safetensors import numpy as st
from apr.safetensors import safe_open
from memory_device import MemoryDevice, Source, begun, check_end, loaded, readers_alive, written
from range_server import Handler, serving

BITS = {"U8": 8, "I16": 16, "BF16": 16, "F16": 16, "F32": 32, "F64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "BOOL": 8, "F4": 4}


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert readers_alive() == []


def random_file(path: Path, seed: int) -> dict[str, tuple[str, list[int], bytes]]:
    chance = random.Random(seed)
    tensors = {"scalar": ("F32", [], chance.randbytes(4)), "empty": ("BF16", [3, 0, 2], b"")}
    for number in range(chance.randrange(1, 30)):
        dtype = chance.choice(list(BITS))
        shape = [chance.choice((0, 1, 2, 3, 5, 16, 40)) for _ in range(chance.randrange(0, 4))]
        if dtype == "F4":
            shape.append(2)
        count = int(np.prod(shape, dtype=np.int64)) * BITS[dtype] // 8
        data = bytes(chance.randrange(2) for _ in range(count)) if dtype == "BOOL" else chance.randbytes(count)
        tensors[f"t{number}"] = (dtype, shape, data)
    names = list(tensors)
    chance.shuffle(names)
    tensors = {name: tensors[name] for name in names}
    written(path, tensors)
    return tensors


@pytest.mark.parametrize("seed", range(40))
def test_bytes_types_and_shapes_are_those_of_the_file(seed: int, tmp_path: Path) -> None:
    tensors = random_file(tmp_path / "m.safetensors", seed)
    chance = random.Random(~seed)
    bounds = Limits(1 << chance.randrange(6, 14), chance.randrange(2, 6), chance.randrange(1, 6))
    device = MemoryDevice()
    with safe_open(tmp_path / "m.safetensors", "np", backend=chance.choice(("mmap", "pread", "read"))) as file:
        found = dict(begun(device, [(file, None)], bounds))
    assert list(found) == list(tensors), "file order"
    for name, (dtype, shape, data) in tensors.items():
        assert (found[name].dtype, found[name].shape, bytes(found[name].data)) == (dtype, shape, data)
    assert device.peak <= bounds.n_buffers
    check_end(device)


@pytest.mark.parametrize("sizes", [[], [0], [0, 0], [1], [64], [65], [64, 64], [0, 64, 0, 1, 0], [1000], [10] * 50, [63, 1, 64, 200, 0, 3]])
def test_pieces_cover_each_tensor_once(sizes: list[int]) -> None:
    source = Source(sizes)
    places, batches = plan([(source, None)], 64)
    assert [index for batch in batches for index in batch.complete] == list(range(len(sizes)))
    covered: dict[int, int] = {}
    for batch in batches:
        assert batch.length <= 64 and sum(piece.length for piece in batch.pieces) == batch.length
        for piece in batch.pieces:
            assert piece.offset == covered.get(piece.tensor, 0)
            assert batch.offset + piece.start == places[piece.tensor].begin + piece.offset
            covered[piece.tensor] = piece.offset + piece.length
    assert covered == {index: size for index, size in enumerate(sizes) if size}
    assert len(batches) == max(-(-sum(sizes) // 64), 1 if sizes else 0), "small tensors share a buffer"


def test_some_names_are_read_without_what_is_far_from_them() -> None:
    source = Source([10, 200_000, 20, 30])
    places, batches = plan([(source, ["t0", "t2", "t3"])], 1 << 20)
    assert [place.name for place in places] == ["t0", "t2", "t3"]
    assert [(batch.offset, batch.length) for batch in batches] == [(0, 10), (200_010, 50)]
    device = MemoryDevice()
    expected = source.expected()
    assert loaded(device, [(source, {"t3", "t0"})], Limits(64, 2, 2)) == {name: expected[name] for name in ("t0", "t3")}


def test_limits() -> None:
    most = min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    assert limits(256 << 20) == limits() == Limits(16 << 20, 16, most)
    assert limits(40 << 20)[:2] == (16 << 20, 2)
    assert limits(8 << 10)[:2] == (4 << 10, 2)
    for pinned_bytes in (8 << 10, 10_000, 1 << 20, 31 << 20, 33 << 20, 1 << 30):
        bounds = limits(pinned_bytes)
        assert bounds.buffer_len * bounds.n_buffers <= pinned_bytes and bounds.n_buffers >= 2
        assert bounds.buffer_len & (bounds.buffer_len - 1) == 0
    with pytest.raises(ValueError, match="at least 8192 bytes"):
        limits(8191)


def test_the_environment_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APR_PINNED_BYTES", str(64 << 20))
    assert limits()[:2] == (16 << 20, 4) and limits(32 << 20)[:2] == (16 << 20, 2)
    monkeypatch.setenv("APR_PINNED_BYTES", "much")
    with pytest.raises(ValueError, match="APR_PINNED_BYTES is 'much'"):
        limits()


def in_thread(work: Any) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    return thread, found


def test_later_buffers_are_read_before_earlier_ones_are_copied() -> None:
    third = threading.Event()
    source = Source([64] * 10, lambda count, _: third.set() if count == 2 else None)
    device = MemoryDevice(is_held=True)
    thread, found = in_thread(lambda: loaded(device, [(source, None)], Limits(64, 3, 1)))
    assert third.wait(20), "the third read begins while the first copy is held"
    assert device.n_copied == 0
    device.open()
    thread.join(20)
    assert found == [source.expected()]
    check_end(device)


@pytest.mark.parametrize("n_readers", [1, 4])
def test_a_buffer_is_not_filled_before_it_was_copied(n_readers: int) -> None:
    n_buffers, reads = 3, threading.Semaphore(0)
    source = Source([64] * 12, lambda *_: reads.release())
    device = MemoryDevice(is_held=True)
    thread, found = in_thread(lambda: loaded(device, [(source, None)], Limits(64, n_buffers, n_readers)))
    for _ in range(n_buffers):
        assert reads.acquire(timeout=20)
    for copied in range(1, 10):
        # All buffers are filled or being copied: a read that began now would be into one of them.
        assert len(source.reads) < n_buffers + copied
        device.allow()
        assert reads.acquire(timeout=20), "the buffer that was copied is filled again"
    device.open()
    thread.join(20)
    assert found == [source.expected()] and device.peak == n_buffers
    check_end(device)


def test_several_threads_read_at_once() -> None:
    together = threading.Barrier(4, timeout=20)
    source = Source([64] * 8, lambda *_: together.wait())
    device = MemoryDevice()
    assert loaded(device, [(source, None)], Limits(64, 4, 4)) == source.expected()
    check_end(device)


def test_a_source_that_is_elsewhere_is_read_in_order_by_one_thread() -> None:
    second = threading.Event()
    alone = []

    def on_read(count: int, _: int) -> None:
        if count == 0:
            alone.append(not second.wait(0.3))
        second.set()

    source = Source([100] * 10, on_read, is_local=False)
    device = MemoryDevice()
    assert loaded(device, [(source, None)], Limits(64, 4, 4)) == source.expected()
    assert alone == [True] and source.reads == sorted(source.reads) and source.hints == [(0, 1000)]


def test_tensors_are_handed_out_in_order_whatever_is_read_first() -> None:
    first_may_end = threading.Event()

    def on_read(_: int, offset: int) -> None:
        if offset == 0:
            assert first_may_end.wait(20)
        elif offset == 192:
            first_may_end.set()

    source = Source([64] * 6, on_read)
    device = MemoryDevice()
    found = loaded(device, [(source, None)], Limits(64, 4, 4))
    assert list(found) == [f"t{number}" for number in range(6)] and found == source.expected()


def test_a_tensor_is_handed_out_when_it_is_complete_and_not_kept() -> None:
    source = Source([64] * 4)
    device = MemoryDevice(is_held=True)
    tensors = begun(device, [(source, None)], Limits(64, 2, 2))
    device.allow()
    name, array = next(tensors)
    assert (name, bytes(array.data)) == ("t0", source.expected()["t0"])
    device.tensors.clear()
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None, "the iterator keeps no tensor"
    device.open()
    assert [name for name, _ in tensors] == ["t1", "t2", "t3"]
    check_end(device)


def test_an_iterator_that_is_closed_ends_its_threads() -> None:
    device = MemoryDevice()
    tensors = begun(device, [(Source([64] * 100), None)], Limits(64, 3, 3))
    next(tensors)
    tensors.close()
    check_end(device)
    tensors = begun(device, [(Source([64] * 100), None)], Limits(64, 3, 3))
    next(tensors)
    del tensors
    gc.collect()
    check_end(device)


class Broken(Exception):
    """An error of a test."""

    code = "test"


@pytest.mark.parametrize("number", [0, 5, 19])
@pytest.mark.parametrize("n_readers", [1, 3])
def test_an_error_of_a_read_is_raised_as_it_is(number: int, n_readers: int) -> None:
    raised = Broken("read")

    def on_read(_: int, offset: int) -> None:
        if offset == number * 64:
            raise raised

    device = MemoryDevice()
    found = {}
    with pytest.raises(Broken) as caught:
        for name, array in begun(device, [(Source([64] * 20, on_read), None)], Limits(64, 3, n_readers)):
            found[name] = bytes(array.data)
    assert caught.value is raised
    assert list(found) == [f"t{before}" for before in range(number)], "the tensors before the error"
    check_end(device)


@pytest.mark.parametrize("step", ["buffer", "tensor", "copy", "copied"])
@pytest.mark.parametrize("number", [0, 2])
def test_an_error_of_the_device_is_raised_as_it_is(step: str, number: int) -> None:
    def fail(at: str, count: int) -> None:
        if (at, count) == (step, number):
            raise Broken(step)

    # Without readers that need the third buffer it is never allocated.
    held = threading.Barrier(3, timeout=20) if step == "buffer" and number else None
    device = MemoryDevice(fail=fail)
    source = Source([64] * 20, (lambda count, _: held.wait() if count < 2 else None) if held else None)
    if held:
        device._fail = lambda at, count: (held.wait(), fail(at, count)) if (at, count) == (step, number) else None
    with pytest.raises(Broken, match=step):
        loaded(device, [(source, None)], Limits(64, 3, 3))
    check_end(device)


def test_a_thread_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    start, count = _thread.start_new_thread, [0]

    def limited(*args: Any) -> int:
        count[0] += 1
        if count[0] == 2:
            raise RuntimeError("can't start new thread")
        return start(*args)

    device = MemoryDevice()
    monkeypatch.setattr(_thread, "start_new_thread", limited)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        loaded(device, [(Source([64] * 20), None)], Limits(64, 3, 3))
    check_end(device)


@pytest.mark.parametrize("is_held", [False, True])
def test_an_interrupt_ends_a_load(is_held: bool, interrupts: Any) -> None:
    # Held: the main thread waits for a copy; otherwise for a read, or is anywhere.
    device = MemoryDevice(is_held=is_held)

    def on_read(_: int, offset: int) -> None:
        if offset == 128:
            while is_held and not device.n_pending:
                time.sleep(0.001)
            interrupts()

    source = Source([64] * 2000, on_read)
    with pytest.raises(KeyboardInterrupt):
        loaded(device, [(source, None)], Limits(64, 3, 3))
    assert len(source.reads) < 2000
    check_end(device)


def test_an_interrupt_ends_a_wait_for_the_network(interrupts: Any) -> None:
    answer, answered = threading.Event(), threading.Event()

    def silent(handler: Handler) -> None:
        interrupts()
        answer.wait(20)
        answered.set()
        handler.close_connection = True

    model = st.save({"a": np.arange(100_000, dtype=np.float32)})
    with serving({"/m.safetensors": model}) as site:
        site.faults = {1: silent}
        device = MemoryDevice()
        with safe_open(site.url("/m.safetensors"), "np") as file, pytest.raises(KeyboardInterrupt):
            loaded(device, [(file, None)], Limits(1 << 20, 2, 2))
        assert not answered.is_set(), "before the server has answered"
        check_end(device)
        answer.set()


def test_two_loads_at_once(tmp_path: Path) -> None:
    tensors = random_file(tmp_path / "m.safetensors", 99)
    together = threading.Barrier(2, timeout=20)
    with safe_open(tmp_path / "m.safetensors", "np") as file:

        def load() -> tuple[MemoryDevice, dict[str, bytes]]:
            device = MemoryDevice()
            together.wait()
            return device, loaded(device, [(file, None)], Limits(64, 3, 3))

        pairs = [in_thread(load) for _ in range(2)]
        for thread, _ in pairs:
            thread.join(20)
    for _, ((device, found),) in pairs:
        assert found == {name: data for name, (_, _, data) in tensors.items()}
        check_end(device)


def test_iterate_checks_before_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    device = MemoryDevice(fail=lambda step, count: (_ for _ in ()).throw(Broken(step)) if step == "check" else None)
    monkeypatch.setattr(_devices, "opened", lambda _: device)
    source = Source([64] * 3)
    with pytest.raises(Broken, match="check"):
        dict(iterate([(source, None)], "memory"))
    assert not source.reads and device.peak == 0
    with pytest.raises(ValueError, match="8192"):
        dict(iterate([(source, None)], "memory", 100))
