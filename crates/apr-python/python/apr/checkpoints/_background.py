"""Work that is done while the caller goes on."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable


class Background:
    """One piece of work at a time, whichever threads begin it. Its error is raised when the next begins or when it is waited for; one that no
    one asks about is printed when the process ends."""

    def __init__(self) -> None:
        # Of one thread, too: a handler of a signal may save while the thread waits.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._errors: list[BaseException] = []
        weakref.finalize(self, _tell, self._errors)

    def start(self, work: Callable[[], None]) -> None:
        """Begins. The process does not end before it is done."""

        def run(errors: list[BaseException] = self._errors) -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001
                # The frames of a traceback would keep everything that was to be saved.
                errors.append(error.with_traceback(None))

        with self._lock:
            self._join()
            self._thread = threading.Thread(target=run, name="apr-checkpoint")
            self._thread.start()

    def wait(self) -> None:
        """Returns when the work is done, or raises its error."""
        with self._lock:
            self._join()

    def _join(self) -> None:
        while (thread := self._thread) is not None:
            thread.join()
            if self._thread is thread:
                self._thread = None
        if self._errors:
            raise self._errors.pop()


def _tell(errors: list[BaseException]) -> None:
    for error in errors:
        print(f"a checkpoint was not saved: {error}", file=sys.stderr)
