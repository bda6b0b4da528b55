"""Jobs: a command of the program over many inputs, as tasks for any executor. The program does the work, each task in a process of its own.

See docs/jobs.md. A plan is a file: workers need nothing but its path and the same folders.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

from ._program import answer_of, error_of, path_word

__all__ = ["TryAgain", "abort", "finish", "missing", "plan", "run", "run_task", "status", "submit"]

# The exit code of what may succeed if it is tried again.
_TRY_AGAIN = 75


class TryAgain(RuntimeError):
    """A task was not done because of the network or a disk, or tasks are missing: another try may succeed."""


def plan(
    path: str | os.PathLike[str],
    command: Sequence[str],
    *,
    to: str | os.PathLike[str],
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    list_file: str | os.PathLike[str] | None = None,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    task_size: int | str | None = None,
    digest: bool = False,
    skip_existing: bool = False,
    force: bool = False,
) -> Path:
    """Divides a command over many inputs into tasks, and writes the plan to `path`.

    Args:
        path: the plan. If it is there and the same request made it, it stays.
        command: words of a command of `apr` for one input: `["convert", "{in}", "{out}.gguf", "--type", "q8_0"]`.
        to: folder of the outputs.
        sources: files, folders, URLs and repositories of the hub; `list_file` has one on each line.
        include, exclude: patterns over paths below a source.
        task_size: bytes of the inputs of a task.
        digest: also record SHA-256 of the inputs.
        skip_existing: leave out inputs whose output is there. `force` replaces such outputs.

    Raises:
        AprError: what the program refuses, with its `code`.
        OSError: a file cannot be read or written.
    """
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    words = ["plan", f"--output={os.fspath(path)}", f"--to={os.fspath(to)}"]
    words += [f"--from={path_word(source)}" for source in sources]
    words += [f"--include={pattern}" for pattern in include]
    words += [f"--exclude={pattern}" for pattern in exclude]
    if list_file is not None:
        words.append(f"--list={os.fspath(list_file)}")
    if task_size is not None:
        words.append(f"--task-size={task_size}")
    given = {"--digest": digest, "--skip-existing": skip_existing, "--force": force}
    words += [option for option, is_given in given.items() if is_given]
    _report([*words, "--", *command])
    return Path(path)


def run_task(plan: str | os.PathLike[str], task: int) -> dict[str, Any]:
    """Does a task, unless it is done, and returns what was recorded: `results`, one for each input.

    An input that was refused is a result, with its exit code and error code.

    Raises:
        TryAgain: the network or a disk failed, and nothing was recorded.
        AprError: the task cannot be done: an input has changed (`cli-input-changed`), the plan is not valid.
    """
    exit, report = answer_of(["run-task", path_word(plan), str(task)])
    if "error" in report:
        raise error_of(exit, report["error"])
    (done,) = report["tasks"]
    if not done["done"]:
        raise TryAgain(f"task {task}: {done.get('input')}: {done.get('message')} ({done.get('code')})")
    record: dict[str, Any] = done
    return record


def status(plan: str | os.PathLike[str]) -> dict[str, Any]:
    """How many tasks there are and are done, which are missing, and whether the job is finished."""
    return _report(["status", path_word(plan)])


def missing(plan: str | os.PathLike[str]) -> list[int]:
    """Numbers of the tasks that are not done."""
    numbers: list[int] = status(plan)["missing"]
    return numbers


def submit(plan: str | os.PathLike[str], executor: Executor) -> dict[int, Future[dict[str, Any]]]:
    """Submits the missing tasks to an executor: of `concurrent.futures`, or one with the same `submit`, such as Dask's."""
    return {task: executor.submit(run_task, os.fspath(plan), task) for task in missing(plan)}


def run(plan: str | os.PathLike[str], executor: Executor, *, tries: int = 3, pause: float = 1.0) -> None:
    """Does the missing tasks with an executor. Tasks that end with `TryAgain`, or with their worker, are submitted again.

    A `ProcessPoolExecutor` takes no tasks after one of its workers was killed: call this again with a new one, which does what is missing.

    Args:
        tries: how often, at most.
        pause: seconds before the second try; twice as many before each later one.

    Raises:
        ValueError: `tries` is less than 1.
        BrokenExecutor: the executor takes no more tasks.
        Exception: the first failure of a task after the last try, or the first that another try would not change.
    """
    if tries < 1:
        raise ValueError(f"tries is 1 or more, not {tries}")
    for left in reversed(range(tries)):
        futures = submit(plan, executor)
        failures = [failure for future in futures.values() if (failure := future.exception()) is not None]
        final = [failure for failure in failures if getattr(failure, "code", None) is not None or isinstance(failure, BrokenExecutor)]
        if final or (failures and left == 0):
            raise (final or failures)[0]
        if not failures:
            return
        time.sleep(pause)
        pause *= 2


def finish(
    plan: str | os.PathLike[str], *, verify: bool = False, report: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Puts the outputs in their places, and returns what happened to each input. Called again it changes nothing.

    Raises:
        TryAgain: tasks are missing.
        AprError: an output is not what was recorded, or its place is taken.
    """
    words = ["finish", path_word(plan)]
    if verify:
        words.append("--verify")
    if report is not None:
        words.append(f"--report={os.fspath(report)}")
    return _report(words)


def abort(plan: str | os.PathLike[str]) -> None:
    """Removes what the job has stored. Outputs in their places and the plan stay."""
    _report(["abort", path_word(plan)])


def _report(words: Sequence[str]) -> dict[str, Any]:
    exit, report = answer_of(words)
    if exit == _TRY_AGAIN and "error" in report:
        raise TryAgain(f"{report['error']['message']}: {report['error'].get('why', '')}")
    if "error" in report:
        raise error_of(exit, report["error"])
    del report["schema"]
    return report
