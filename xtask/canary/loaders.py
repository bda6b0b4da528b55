"""Loads files as their programs do, in a forked process that ends at the first sign of code of the file's author."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import pickle
import resource
import shutil
import signal
import struct
import sys
import tarfile
import tempfile
import types
import zlib
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

from pickles import PLANTED, VOCABULARY

SECONDS = 10
MEMORY = 12 << 30
# Events that no loader of tensors causes.
EVENTS = (
    "ctypes.dlopen", "ftplib.", "marshal.loads", "mmap.__new__", "os.chmod", "os.exec", "os.fork", "os.kill", "os.link", "os.mkdir",
    "os.posix_spawn", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.spawn", "os.symlink", "os.system", "os.truncate",
    "shutil.", "smtplib.", "socket.", "sqlite3.connect", "subprocess.Popen", "urllib.Request", "webbrowser.open",
)  # fmt: skip
# Modules that the loaders import for honest files.
IMPORTED = VOCABULARY | {
    "copy", "decimal", "encodings.cp437", "encodings.latin_1", "jinja2.debug", "jinja2.ext", "linecache", "stringprep", "unicodedata",
}  # fmt: skip
# Files whose functions may call what is planted, because they are the unpicklers.
UNPICKLERS = ("pickle.py", "serialization.py", "numpy_pickle.py", "format.py", "_format_impl.py")


def module(name: str) -> Any:
    """The module, or None where it is not installed or not for this machine."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


os.environ.setdefault("KERAS_BACKEND", "torch")
numpy, torch, joblib, jinja2, yaml, sklearn, keras = map(module, ("numpy", "torch", "joblib", "jinja2", "yaml", "sklearn", "keras"))


class Seen(BaseException):
    """The sign was reported: nothing else runs."""


class Watch:
    """What happens in this process while the watch is on."""

    def __init__(self, out: TextIO, path: str) -> None:
        self.out, self.path, self.on = out, path, False
        sys.addaudithook(self.hook)

    def report(self, sign: str, detail: object) -> NoReturn:
        self.on = False
        self.out.write(json.dumps([sign, str(detail)[:160]]) + "\n")
        self.out.flush()
        raise Seen

    def during(self, action: Callable[[], Any]) -> Any:
        """The result of the action; None if it fails, which is no finding."""
        try:
            self.on = True
            return action()
        except Seen:
            raise
        except BaseException:
            return None
        finally:
            self.on = False

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "exec" or event.startswith(EVENTS):
            # Jinja compiles templates, and the tracebacks of their errors.
            if getattr(args[0] if args else None, "co_filename", "") != "<template>":
                self.report(event, args[:1])
        elif event == "compile":
            if args[1] not in ("<unknown>", "<template>") and args[0] != b"raise __jinja_exception__":
                self.report(event, args[:1])
        elif event == "open":
            path, _, flags = args
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes:
                self.report("write", path)
            if isinstance(path, str) and path != self.path and not is_of_installation(path):
                self.report("read", path)
        elif event == "import":
            name = args[0]
            if name not in sys.modules and name not in IMPORTED and not any(known.startswith(f"{name}.") for known in IMPORTED):
                self.report("import", name)


def is_of_installation(path: str) -> bool:
    return path.startswith((sys.prefix, sys.base_prefix, "/proc/", "/sys/", "/dev/")) or "/site-packages/" in path


def warm_up() -> None:
    """Imports and runs what the loaders need for honest files, so that nothing of it is taken for a sign."""
    steps = [
        lambda: torch.nn.Linear(1, 1)(torch.zeros(1, 1)),
        lambda: repr(torch.nn.Sequential(torch.nn.ReLU())),
        lambda: torch.load(os.devnull, weights_only=False),
        lambda: jinja2.Environment().from_string("{{ [1]|map('string')|join }}").render(),
        lambda: repr(module("sklearn.linear_model").LinearRegression()),
        lambda: keras.saving.load_model(os.devnull),
        lambda: keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, "relu")]).get_config(),
    ]
    for step in steps:
        try:
            step()
        except Exception:
            continue
    for name in IMPORTED | {"sklearn.pipeline", "sklearn.ensemble", "sklearn.svm", "sklearn.utils._repr_html.estimator"}:
        module(name)


def planted(watch: Watch, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is for unpicklers; a finding where a library calls it."""

    def call(*args: object, **kwargs: object) -> Any:
        caller = sys._getframe(1)
        if caller.f_code.co_filename.endswith(UNPICKLERS) or caller.f_globals is globals():
            return original(*args, **kwargs)
        watch.report("planted", f"{name} called in {os.path.basename(caller.f_code.co_filename)}:{caller.f_code.co_name}")

    return call


def load_pickle(watch: Watch, path: str, data: bytes) -> None:
    for owner_name, name in PLANTED:
        owner = sys.modules.get(owner_name)
        if owner is not None:
            setattr(owner, name, planted(watch, name, getattr(owner, name)))
    if path.endswith((".npz", ".npy")):
        ways = [lambda: read_arrays(path)] if numpy else []
    elif path.endswith(".pt"):
        ways = [lambda: torch.load(path, weights_only=False)] if torch else []
    elif path.endswith(".joblib") and joblib is not None:
        ways = [lambda: joblib.load(path)]
    else:
        raw = gzip.decompress(data) if path.endswith(".gz") else zlib.decompress(data) if data[:1] == b"\x78" else data
        ways = [lambda: pickle.loads(raw), lambda: pickle._loads(raw)]  # type: ignore[attr-defined]
    for way in ways:
        use(watch, watch.during(way))


def read_arrays(path: str) -> Any:
    loaded = numpy.load(path, allow_pickle=True)
    return [loaded[name] for name in loaded.files] if hasattr(loaded, "files") else loaded


def use(watch: Watch, model: Any) -> None:
    """Calls what programs call of a model."""
    if torch is not None and isinstance(model, torch.nn.Module):
        rows = torch.zeros(1, 4)
        calls = [lambda: model(rows), model.state_dict, lambda: model.load_state_dict({}, strict=False), lambda: model.to("cpu"), model.eval]
    elif sklearn is not None and type(model).__module__.startswith("sklearn."):
        rows = numpy.zeros((1, 4))
        calls = [lambda: model.predict(rows), lambda: model.transform(rows), lambda: model.get_params()]
    else:
        return
    for call in [*calls, lambda: repr(model)]:
        watch.during(call)


def load_template(watch: Watch, path: str, data: bytes) -> None:
    if jinja2 is None:
        return
    if data[:4] == b"GGUF":
        (length,) = struct.unpack("<Q", data[24:32])
        text = data[32 + length + 12 :].decode()
    else:
        text = json.loads(data)["chat_template"]
    runtime = jinja2.runtime
    plain = (str, int, float, bool, type(None), list, tuple, dict, jinja2.Undefined, runtime.LoopContext, jinja2.utils.Namespace)
    inner = (types.FunctionType, types.FrameType, types.ModuleType, types.CodeType, type)

    class Watched(jinja2.Environment):  # type: ignore[misc, name-defined]
        """An environment without a sandbox that reports what is not data."""

        def seen(self, owner: Any, key: Any, found: Any) -> Any:
            is_hidden = isinstance(key, str) and key.startswith("_")
            if isinstance(found, jinja2.Undefined) or isinstance(owner, jinja2.utils.Namespace) and not is_hidden:
                return found
            if is_hidden or not isinstance(owner, plain) or isinstance(found, inner) and not isinstance(owner, dict):
                watch.report("inside", f"{type(owner).__name__}.{key}")
            return found

        def getattr(self, owner: Any, key: str) -> Any:
            return self.seen(owner, key, super().getattr(owner, key))

        def getitem(self, owner: Any, key: Any) -> Any:
            return self.seen(owner, key, super().getitem(owner, key))

    def raise_exception(message: str) -> NoReturn:
        raise ValueError(message)

    context = {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [],
        "bos_token": "<s>",
        "eos_token": "</s>",
        "add_generation_prompt": True,
        "raise_exception": raise_exception,
        "strftime_now": lambda _: "now",
    }
    template = watch.during(lambda: Watched(extensions=["jinja2.ext.loopcontrols"]).from_string(text))
    shown = watch.during(lambda: template.render(**context)) or ""
    if " at 0x" in shown or "<class " in shown:
        watch.report("inside", "shows")


def load_tar(watch: Watch, path: str, data: bytes) -> None:
    folder = tempfile.mkdtemp()
    try:
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                extract(watch, archive, member, os.path.realpath(folder))
    except (tarfile.TarError, OSError, ValueError, KeyError):
        return
    finally:
        watch.on = False
        shutil.rmtree(folder, ignore_errors=True)


def extract(watch: Watch, archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    """Reads a member as `tarfile` gives it, and looks at where it would lead."""
    content = archive.extractfile(member) if member.isreg() else None
    if content is not None:
        stored = content.read()
        watch.during(lambda: pickle.loads(stored))
    target = os.path.realpath(os.path.join(folder, member.name))
    link = os.path.realpath(os.path.join(os.path.dirname(target), member.linkname))
    if not target.startswith(folder) or (member.islnk() or member.issym()) and not link.startswith(folder):
        watch.report("extract", f"leads outside: type {member.type!r}")


def load_yaml(watch: Watch, path: str, data: bytes) -> None:
    if yaml is not None:
        watch.during(lambda: yaml.unsafe_load(data))


def load_keras(watch: Watch, path: str, data: bytes) -> None:
    if keras is not None:
        watch.during(lambda: keras.saving.load_model(path, compile=True))


def happens(load: Callable[[Watch, str, bytes], None], path: str, data: bytes) -> tuple[str, str] | None:
    """The first sign while the file is loaded in a process of its own: its kind, and a detail."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            out = os.fdopen(writing, "w")
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            load(Watch(out, path), path, data)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        first = lines.readline()
    os.waitpid(child, 0)
    return tuple(json.loads(first)) if first else None
