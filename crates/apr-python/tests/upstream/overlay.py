"""A pytest plugin that runs the tests of another package, `safetensors`, on `apr.safetensors`.

    python -m pytest -p overlay --judge-package apr --judge-expect official.json tests

`--judge-package` says what `import safetensors` means: `apr` (ours) or `safetensors` (the official wheel).
`--judge-record FILE` writes the outcome of each test as JSON. `--judge-expect FILE` reads such a record of
the official wheel: what it passed must pass, and what it did not pass may fail.

`deviations.json` names tests with a reason for each: those that we must fail, because we differ on purpose
(`differs`), and those that end the process of the official wheel (`official_aborts`), which it does not run
and we must pass.

Where torch is not installed, a stand-in lets the test modules that import it be collected. A test that
touches the stand-in is skipped.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import platform
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

DEVIATIONS = Path(__file__).with_name("deviations.json")

RECORD: dict[str, str] = {}
"""The outcome of each test of this run."""


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `safetensors` and what is below it in `apr.safetensors`: the same modules, not copies of them."""

    NATIVE = "safetensors._safetensors_rust"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module whose name begins with `safetensors`, and of no other."""
        if fullname.partition(".")[0] != "safetensors":
            return None
        actual = "apr._native" if fullname == self.NATIVE else f"apr.{fullname}"
        found = importlib.util.find_spec(actual)
        if found is None:
            return None
        package = found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, self, loader_state=actual, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module of ours, imported now; what the import machinery writes over is kept in the spec."""
        module = importlib.import_module(spec.loader_state)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the module ran when it was imported under its own name."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


class Absent:
    """Stands for anything in a module that is not installed.

    While test modules are imported it can be called, subclassed and compared. In a test, any use skips the
    test.
    """

    in_test = False

    def __init__(self, name: str) -> None:
        self._name = name

    def _touched(self) -> None:
        if Absent.in_test:
            pytest.skip(f"{self._name.partition('.')[0]} is not installed")

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        self._touched()
        return Absent(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Absent:
        self._touched()
        return Absent(self._name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[()]:
        return ()

    def __instancecheck__(self, instance: Any) -> bool:
        self._touched()
        return False

    def __lt__(self, other: Any) -> bool:
        return True

    def __bool__(self) -> bool:
        return False


class AbsentModule(ModuleType):
    """A module whose every attribute is [`Absent`]."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(Absent(self.__name__), name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The three options of the module's text."""
    group = parser.getgroup("judge")
    group.addoption("--judge-package", choices=("apr", "safetensors"), default="apr")
    group.addoption("--judge-record", type=Path, metavar="FILE")
    group.addoption("--judge-expect", type=Path, metavar="FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Puts the names in place before any test module is imported."""
    if config.getoption("--judge-package") == "apr":
        if "safetensors" in sys.modules:
            raise pytest.UsageError("`safetensors` was imported before it could be replaced")
        sys.meta_path.insert(0, Alias())
    if importlib.util.find_spec("torch") is None:
        sys.modules["torch"] = AbsentModule("torch")


def pytest_report_header(config: pytest.Config) -> str:
    """Which package is on trial."""
    module = importlib.import_module("safetensors")
    return f"safetensors means {module.__name__} {module.__version__} ({module.__file__})"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Imports the tests of mlx as if on macOS, the only system on which they run; mlx runs elsewhere too."""
    tests_mlx = isinstance(collector, pytest.Module) and "mlx" in collector.path.name
    if tests_mlx and importlib.util.find_spec("mlx") is not None:
        with mock.patch.object(platform, "system", return_value="Darwin"):
            return (yield)
    return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what must fail and what may, or for the official wheel what cannot be run."""
    known: dict[str, dict[str, str]] = json.loads(DEVIATIONS.read_text(encoding="utf-8"))
    differs, aborts = known["differs"], known["official_aborts"]
    if config.getoption("--judge-package") == "safetensors":
        for item in items:
            if item.nodeid in aborts:
                item.add_marker(pytest.mark.skip(reason=aborts[item.nodeid]))
    expect: Path | None = config.getoption("--judge-expect")
    if expect is None:
        return
    official: dict[str, str] = json.loads(expect.read_text(encoding="utf-8"))
    must_be_there = {name for name, outcome in official.items() if outcome == "passed"}
    if missing := sorted(must_be_there - {item.nodeid for item in items}):
        raise pytest.UsageError(f"the official package passes {missing}, which are not collected now")
    for item in items:
        if reason := differs.get(item.nodeid):
            item.add_marker(pytest.mark.xfail(strict=True, reason=f"differs on purpose: {reason}"))
        elif official.get(item.nodeid) != "passed" and item.nodeid not in aborts:
            item.add_marker(pytest.mark.xfail(reason="the official package does not pass it here"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """From here on a use of what is not installed skips the test."""
    Absent.in_test = True
    try:
        return (yield)
    finally:
        Absent.in_test = False


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keeps the outcome of a test: of its call, or of the step that did not get as far."""
    if report.when == "call" or report.outcome != "passed":
        RECORD[report.nodeid] = report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the record."""
    path: Path | None = session.config.getoption("--judge-record")
    if path is not None:
        path.write_text(json.dumps(RECORD, indent=1, sort_keys=True) + "\n", encoding="utf-8")
