"""Model files saved, shipped and verified.

`apr.safetensors` reads and writes safetensors files; it has the names, arguments and results of the package `safetensors` and
takes its place by one changed import. `open` gives the tensors of a file of any format, `convert` writes another format, `scan`
says what loading a file would run, and `torch.load` reads checkpoints without unpickling. `load`, `save` and `inspect` are for
`.apr` files: models that predict; `private_predict` sends rows encrypted to the owner of a model; `seal` and `open_sealed` for files whose tensors are decrypted and verified one by one; `gguf`
for GGUF files; `jobs` for a command over many files; `quantize` for models in fewer bits; `structures` for nested data; `sklearn` for models of scikit-learn. Importing
`apr` imports nothing else: each module is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._native import (
    AprError,
    Model,
    SafetensorError,
    SealedFile,
    __version__,
    inspect,
    load,
    open_sealed,
    save,
    seal,
)

if TYPE_CHECKING:
    from . import gguf, jobs, safetensors, sklearn, structures, torch
    from .checkpoints import Checkpoint, Checkpoints
    from .conversion import convert
    from .files import ModelFiles, open
    from .inference import private_predict
    from .quantization import quantize
    from .scanning import ScanReport, scan

_MODULES = ("gguf", "jobs", "safetensors", "sklearn", "structures", "torch")
# Names and the modules that have them.
_NAMES = {
    "Checkpoint": "checkpoints",
    "Checkpoints": "checkpoints",
    "ModelFiles": "files",
    "ScanReport": "scanning",
    "convert": "conversion",
    "open": "files",
    "private_predict": "inference",
    "quantize": "quantization",
    "scan": "scanning",
}

# Written out, because type checkers do not evaluate it.
__all__ = [
    "AprError",
    "Model",
    "SafetensorError",
    "SealedFile",
    "__version__",
    "inspect",
    "load",
    "open_sealed",
    "save",
    "seal",
    "gguf",
    "jobs",
    "safetensors",
    "sklearn",
    "structures",
    "torch",
    "Checkpoint",
    "Checkpoints",
    "ModelFiles",
    "ScanReport",
    "convert",
    "open",
    "private_predict",
    "quantize",
    "scan",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        found = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
