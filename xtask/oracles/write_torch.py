"""Random nested state dicts, modules, programs and exported programs, written by torch.

    write_torch.py FOLDER COUNT SEED
"""

from __future__ import annotations

import collections
import hashlib
import warnings

import torch
from writing import NAMES, Writing

warnings.filterwarnings("ignore")
writing = Writing()
pick = writing.random

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
DTYPES = FLOATS + [getattr(torch, f"int{bits}") for bits in (8, 16, 32, 64)]
DTYPES += [getattr(torch, f"uint{bits}") for bits in (8, 16, 32, 64)]
DTYPES += [getattr(torch, name) for name in NAMES if name.startswith("float8") and hasattr(torch, name)]
DTYPES += [torch.bool, torch.complex64, torch.complex128]


def row_of(tensor: torch.Tensor) -> list:
    """Type, shape and digest of the values, whatever their layout."""
    values = tensor.detach().resolve_conj().resolve_neg().reshape(-1).clone(memory_format=torch.contiguous_format)
    data = values.view(torch.uint8).numpy().tobytes() if values.numel() else b""
    return [NAMES[str(tensor.dtype).removeprefix("torch.")], list(tensor.shape), hashlib.sha256(data).hexdigest()]


def base(dtype=None) -> torch.Tensor:
    dtype = dtype or pick.choice(DTYPES)
    shape = writing.shape()
    if dtype == torch.bool:
        return torch.from_numpy(writing.array("bool", shape).copy())
    n_bytes = torch.empty(shape, dtype=dtype).numel() * torch.empty((), dtype=dtype).element_size()
    data = bytearray(writing.numbers.bytes(n_bytes)) or bytearray(16)
    return torch.frombuffer(data, dtype=torch.uint8)[:n_bytes].clone().view(dtype).reshape(shape)


def view(tensor: torch.Tensor) -> torch.Tensor:
    kind = pick.randrange(12)
    if kind == 0 and tensor.dim() > 1:
        return tensor.permute(pick.sample(range(tensor.dim()), tensor.dim()))
    if kind == 1 and tensor.dim() and tensor.shape[0] > 1:
        return tensor[pick.randrange(tensor.shape[0] // 2 + 1) :: pick.choice([1, 2, 3])]
    if kind == 2 and tensor.dim() < 4:
        return tensor.unsqueeze(0).expand(3, *tensor.shape)  # stride 0
    if kind == 3 and tensor.numel() > 8:
        # Rows that overlap.
        numel = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
        return tensor.as_strided((min(3, numel - 5), 4), (1, 1), tensor.storage_offset())
    if kind == 4 and tensor.dim() > 1:
        return tensor.transpose(0, -1)
    if kind == 5 and tensor.dim() and tensor.shape[-1] > 1:
        return tensor[..., 1:]
    if kind == 6 and tensor.is_complex():
        return tensor.conj()
    if kind == 7 and tensor.is_complex():
        return tensor.conj().imag  # negated lazily
    if kind == 8 and tensor.dim() == 4 and tensor.dtype in FLOATS:
        return tensor.contiguous(memory_format=torch.channels_last)
    if kind == 9 and tensor.dtype in FLOATS:
        return torch.nn.Parameter(tensor, requires_grad=pick.random() < 0.5)
    return tensor


def leaf(known: list[torch.Tensor]) -> object:
    chance = pick.random()
    if chance < 0.1:
        return pick.choice([1, -(2**70), 0.5, float("inf"), "text", None, True, b"bytes"])
    if known and chance < 0.2:
        return pick.choice(known)  # tied
    tensor = view(pick.choice(known).detach() if known and chance < 0.4 else base())
    known.append(tensor)
    return tensor


def tree(known: list[torch.Tensor], depth: int, prefix: str, rows: dict) -> object:
    """A nested object; the names of its tensors are in `rows`."""
    if depth == 0 or (prefix and pick.random() < 0.5):
        value = leaf(known)
        if isinstance(value, torch.Tensor):
            rows[prefix] = row_of(value)
        return value
    join = lambda key: f"{prefix}.{key}" if prefix else str(key)
    n_children = pick.randint(1, 5)
    if prefix and pick.random() < 0.25:
        kind = pick.choice([list, tuple])
        return kind(tree(known, depth - 1, join(idx), rows) for idx in range(n_children))
    kind = pick.choice([dict, collections.OrderedDict])
    keys = sorted({writing.name() if pick.random() < 0.8 else pick.randrange(100) for _ in range(n_children)}, key=str)
    # Two keys that are one name, as 1 and "1", refuse the file.
    keys = list({str(key): key for key in keys}.values())
    return kind((key, tree(known, depth - 1, join(key), rows)) for key in keys)


def save(value: object, file: str, **options) -> None:
    torch.save(value, writing.folder / file, **options)


def state_dicts(count: int) -> None:
    number = 0
    while number < count:
        rows: dict = {}
        value = tree([], pick.randint(1, 4), "", rows)
        options = {"pickle_protocol": pick.choice([2, 2, 2, 3, 4, 5])}
        if pick.random() < 0.3:
            options["_use_new_zipfile_serialization"] = False
        file = f"state_{number}.pt"
        try:
            save(value, file, **options)
            torch.load(writing.folder / file, weights_only=False)
        except RuntimeError:
            continue  # two types over one storage
        except AttributeError:
            # Streams of types without a storage class of their own, which torch writes but does not read.
            save(value, file, pickle_protocol=options["pickle_protocol"])
        # A file without any tensor may be refused, and is not what is tested.
        writing.expect(file, rows, refused=not rows)
        number += 1


class Block(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, width, dtype=pick.choice([torch.float32, torch.float64, torch.bfloat16]))
        self.norm = torch.nn.BatchNorm1d(width)
        self.tied = self.linear if pick.random() < 0.5 else torch.nn.Linear(width, width)
        self.register_buffer("steps", torch.arange(width)[:: pick.choice([1, 2])])
        self.parts = torch.nn.ModuleList([torch.nn.Conv1d(width, width, 1, bias=pick.random() < 0.5)])

    def forward(self, x):
        return self.norm(self.parts[0](x[..., None])[..., 0])


def modules(count: int) -> None:
    for number in range(count):
        module = torch.nn.Sequential(*[Block(pick.randint(1, 9)) for _ in range(pick.randint(1, 3))]).eval()
        rows = {name: row_of(tensor) for name, tensor in module.state_dict().items()}
        save(module.state_dict(), f"module_{number}.pt")
        writing.expect(f"module_{number}.pt", rows)
        save(module, f"whole_{number}.pt")
        writing.expect(f"whole_{number}.pt", rows)
        width = module[0].norm.num_features
        traced = torch.jit.trace(module[0], torch.zeros(2, width))
        torch.jit.save(traced, writing.folder / f"traced_{number}.ts")
        writing.expect(f"traced_{number}.ts", {name: row_of(value) for name, value in traced.state_dict().items()})
        optimizer = torch.optim.Adam(module.parameters())
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        state = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
        save(state, f"trainer_{number}.ckpt")
        rows = {f"model.{name}": row_of(value) for name, value in module.state_dict().items()}
        for key, entry in state["optimizer"]["state"].items():
            rows |= {f"optimizer.state.{key}.{name}": row_of(value) for name, value in entry.items()}
        writing.expect(f"trainer_{number}.ckpt", rows)


modules(max(1, writing.count // 20))
state_dicts(writing.count)
