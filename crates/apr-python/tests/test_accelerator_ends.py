"""How a load into an accelerator ends: interrupts, abandoned iterators, the end of the program, references after an error."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apr
import pytest
from apr._accelerator import _ring
from apr._accelerator._limits import Limits
from memory_device import MemoryDevice, Source, begun, check_end, loaded, readers_alive

BOUNDS = Limits(64, 3, 3)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert readers_alive() == []


def until(is_reached: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not is_reached():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_second_interrupt_frees_nothing_that_a_read_writes_to(interrupts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    device = MemoryDevice(is_held=True)
    end, drain = _ring._Readers.end, device.drain

    def on_read(_: int, offset: int) -> None:
        if offset == 128:
            until(lambda: device.n_pending)
            for count in (1, 2):
                interrupts()
                until(lambda count=count: steps.count("end") == count)
            # Time for what must not happen.
            time.sleep(0.2)
            steps.append("read" if device.n_alive == 3 else "read into freed memory")

    monkeypatch.setattr(_ring._Readers, "end", lambda readers: (steps.append("end"), end(readers)))
    monkeypatch.setattr(device, "drain", lambda: (steps.append("drain"), drain()))
    with pytest.raises(KeyboardInterrupt):
        loaded(device, [(Source([64] * 20, on_read), None)], BOUNDS)
    check_end(device)
    assert steps[:4] == ["end", "end", "read", "drain"]


def test_an_interrupt_while_copies_are_waited_for(interrupts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device = MemoryDevice(is_held=True)
    drain, calls = device.drain, []

    def interrupted() -> None:
        calls.append(device.n_pending)
        if len(calls) == 1:
            interrupts()
        drain()

    monkeypatch.setattr(device, "drain", interrupted)
    tensors = begun(device, [(Source([64] * 20), None)], BOUNDS)
    device.allow()
    next(tensors)
    with pytest.raises(KeyboardInterrupt):
        tensors.close()
    assert len(calls) == 2
    check_end(device)


@pytest.mark.parametrize("is_before", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupt_while_threads_are_started(is_before: bool, number: int, interrupts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start, count = _thread.start_new_thread, [0]

    def interrupted(*args: Any) -> int:
        count[0] += 1
        if is_before and count[0] == number:
            interrupts()
        thread = start(*args)
        if count[0] == number:
            interrupts()
        return thread

    device = MemoryDevice()
    monkeypatch.setattr(_thread, "start_new_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loaded(device, [(Source([64] * 2000), None)], BOUNDS)
    check_end(device)


def run(program: str) -> None:
    """Runs a program with the modules of the tests."""
    folders = [str(Path(__file__).parent), str(Path(apr.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    subprocess.run([sys.executable, "-c", "from memory_device import *\n" + program], env=environment, check=True, timeout=60)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_interrupts_anywhere() -> None:
    run(
        """
import signal, sys
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
source, n_interrupted = Source([64] * 100), 0
for number in range(400):
    device = MemoryDevice()
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4 + number * 2e-5)
        loaded(device, [(source, None)], Limits(64, 4, 3))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        n_interrupted += 1
    # The exception has kept the iterator, if it was raised elsewhere.
    check_end(device)
assert n_interrupted > 50
"""
    )


@pytest.mark.parametrize("is_reading", [False, True])
def test_a_program_ends_although_an_iterator_is_not_exhausted(is_reading: bool) -> None:
    run(
        f"""
import threading
never = threading.Event()
source = Source([64] * 100, (lambda count, _: never.wait() if count == 2 else None) if {is_reading} else None)
tensors = begun(MemoryDevice(), [(source, None)], Limits(64, 3, 3))
next(tensors)
"""
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_closes_an_iterator() -> None:
    run(
        """
import os, warnings
warnings.simplefilter("ignore")
device = MemoryDevice()
tensors = begun(device, [(Source([64] * 100), None)], Limits(64, 3, 3))
next(tensors)
child = os.fork()
if not child:
    tensors.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert len(dict(tensors)) == 99
check_end(device)
"""
    )


@pytest.mark.parametrize("n_readers", [1, 3])
def test_an_iterator_that_is_collected_in_its_own_thread(n_readers: int) -> None:
    is_abandoned = threading.Event()
    unraisable: list[Any] = []

    def on_read(count: int, _: int) -> None:
        if count == 3:
            assert is_abandoned.wait(20)
            gc.collect()

    device = MemoryDevice(is_held=True)
    tensors = begun(device, [(Source([64] * 100, on_read), None)], Limits(64, 3, n_readers))
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    gc.disable()
    try:
        device.allow()
        next(tensors)
        cycle: list[Any] = [tensors]
        cycle.append(cycle)
        del tensors, cycle
        is_abandoned.set()
        until(lambda: not device.n_alive)
        check_end(device)
    finally:
        gc.enable()
        sys.unraisablehook = hook
    assert not unraisable


class Value:
    """Something that a caller has."""


def test_nothing_is_kept_after_an_error() -> None:
    def on_read(_: int, offset: int) -> None:
        if offset == 64 * 9:
            raise OSError("read")

    device = MemoryDevice()
    kept: list[Any] = []

    def load() -> None:
        value = Value()
        kept.append(weakref.ref(value))
        for item in begun(device, [(Source([64] * 5 + [10_000], on_read), None)], BOUNDS):
            del item

    gc.disable()
    try:
        with pytest.raises(OSError, match="read") as caught:
            load()
        kept += [weakref.ref(array) for array in device.tensors.values()]
        device.tensors.clear()
        assert len(kept) == 7 and all(found() is None for found in kept[1:]), "tensors, while the error is kept"
        del caught
        assert kept[0]() is None
    finally:
        gc.enable()
