"""Checkpoints of PyTorch as tensors of torch, without unpickling."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import files

if TYPE_CHECKING:
    import torch

__all__ = ["load"]


def load(
    f: str | os.PathLike[str],
    map_location: Any = None,
    pickle_module: None = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    key: str = "",
    exclude: Iterable[str] = (),
) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint by name: takes the place of `torch.load` for state dicts, and runs nothing in the file.

    Of a state dict the names are its keys. Of nested objects they are the keys joined with `.`: "optimizer.state.0.exp_avg". What
    is no tensor is left out; `apr.inspect(f)["metadata"]` has it. Tensors with several names share their memory, and all are on
    the CPU. Files of other formats that `apr.open` reads are loaded too.

    Args:
        f: the path of the file.
        map_location: "cpu", torch.device("cpu") or None, which all mean the same.
        pickle_module: None: nothing is unpickled.
        weights_only: True or None.
        mmap: without effect.
        key: the nested object to read, by its keys: "model", "state_dict.ema".
        exclude: names to leave out; `*` is any text, `?` one character.

    Raises:
        AprError: the file is damaged, names what no tensor needs, or a tensor cannot be represented; `code` says why, `name` has
            the tensor.
        OSError: the file cannot be read.
        ValueError, TypeError: an argument that `torch.load` alone can follow.
        ModuleNotFoundError: torch is not installed.
    """
    if not isinstance(f, str | os.PathLike):
        raise TypeError(f"apr.torch.load reads a file by its path, not a {type(f).__name__}")
    if map_location is not None and str(map_location) != "cpu":
        raise ValueError(f"map_location is 'cpu' or None, not {map_location!r}: move the tensors with .to(device)")
    if weights_only is False:
        raise ValueError("weights_only=False asks to unpickle any object, which apr.torch.load never does")
    if pickle_module is not None:
        raise ValueError("apr.torch.load uses no pickle_module: nothing is unpickled")
    with files.open(f, "pt", key=key, exclude=exclude) as model:
        return model.get_tensors()
