"""Checkpoints of PyTorch as tensors of torch, without unpickling, and batches that a checkpoint can go on with."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import files

if TYPE_CHECKING:
    import torch

__all__ = ["ResumableLoader", "load"]


def load(
    f: str | os.PathLike[str],
    map_location: Any = None,
    pickle_module: None = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    object: str = "",
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
        object: the nested object to read, by its keys: "model", "state_dict.ema".
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
    with files.open(f, "pt", object=object, exclude=exclude) as model:
        return model.get_tensors()


class ResumableLoader:
    """Batches of a dataset in an order that depends on seed and epoch alone, from where a checkpoint was saved.

    ```python
    loader = apr.torch.ResumableLoader(dataset, batch_size=32, shuffle=True, num_workers=4)
    for batch in loader:
        ...
        checkpoints.save(step, model, optimizer, loader=loader)
    ```

    It counts the batches that it has given out, not those that workers have prepared. An iteration that was left goes on with the
    next batch; one that was finished is followed by the next epoch. Global generators of random numbers are not touched; what a
    dataset draws from them inside of workers depends on when the workers were started.

    Args:
        dataset: with `len` and indices.
        batch_size, drop_last: as of `torch.utils.data.DataLoader`.
        shuffle: whether each epoch has another order.
        seed: of the orders, 0 to 2^31-1.
        rank, ranks: of a distributed training, which process this is, and how many there are: each gets other samples, and as many
            batches as the others, for which some samples may occur again at the end.
        options: further arguments of `DataLoader`, such as `num_workers` and `collate_fn`.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        ranks: int = 1,
        **options: Any,
    ) -> None:
        for name in ("sampler", "batch_sampler", "generator"):
            if name in options:
                raise ValueError(f"{name} decides the order of batches, which ResumableLoader does: leave it out")
        if batch_size < 1 or not 0 <= rank < ranks or not 0 <= seed < 1 << 31:
            raise ValueError("batch_size is 1 or more, rank 0 or more and less than ranks, seed 0 or more and less than 2^31")
        self.dataset = dataset
        self.epoch = 0
        """Epochs that were finished."""
        self.batch = 0
        """Batches of this epoch that were given out."""
        self._fixed = {"samples": len(dataset), "batch_size": batch_size, "shuffle": shuffle, "seed": seed, "drop_last": drop_last, "ranks": ranks}
        self._rank = rank
        self._options = options

    def _generator(self) -> torch.Generator:
        import torch

        # torch takes 32 bits of a seed: of neighbouring seeds and epochs they have to differ.
        digest = hashlib.sha256(f"{self._fixed['seed']} {self.epoch}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:4], "little"))

    def _batches(self) -> list[list[int]]:
        """The indices of all batches of this epoch and rank."""
        import torch

        count, ranks, size = (self._fixed[name] for name in ("samples", "ranks", "batch_size"))
        order = torch.randperm(count, generator=self._generator()).tolist() if self._fixed["shuffle"] else list(range(count))
        own = list(itertools.islice(itertools.cycle(order), self._rank, -(-count // ranks) * ranks, ranks))
        batches = [own[start : start + size] for start in range(0, len(own), size)]
        return batches[:-1] if batches and self._fixed["drop_last"] and len(batches[-1]) < size else batches

    def __len__(self) -> int:
        """Batches of an epoch."""
        samples = -(-self._fixed["samples"] // self._fixed["ranks"])
        size = self._fixed["batch_size"]
        return samples // size if self._fixed["drop_last"] else -(-samples // size)

    def __iter__(self) -> Iterator[Any]:
        from torch.utils.data import DataLoader

        left = self._batches()[self.batch :]
        for batch in DataLoader(self.dataset, batch_sampler=left, generator=self._generator(), **self._options):
            # First: what was given out is not given out again.
            self.batch += 1
            yield batch
        self.epoch, self.batch = self.epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """Where it is, and what decides the order."""
        return {**self._fixed, "epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the state was taken.

        Raises:
            ValueError: the order would be another: number of samples, batch size, seed or ranks differ.
        """
        for name, value in self._fixed.items():
            if state[name] != value:
                raise ValueError(f"{name} is {value}, in the checkpoint it is {state[name]}: the batches would be others")
        self.epoch, self.batch = state["epoch"], state["batch"]
