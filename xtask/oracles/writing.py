"""What the writers of oracles share: a folder of files, and `expected.jsonl` with what is in them.

Each line is a file: `file`, `tensors` (name to [dtype, shape, SHA-256 of the little-endian bytes in row-major order], or null if the
library cannot say), `refused` if a reader may also say that it cannot read the file, `partial` if there may be other tensors.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from pathlib import Path

import numpy as np

# Names of NumPy and ml_dtypes.
NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "complex64": "C64",
    "complex128": "C128",
    "bool": "BOOL",
} | {f"{sign}int{bits}": f"{sign[:1].upper() or 'I'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def row_of(array: np.ndarray, dtype: str | None = None) -> list:
    """Type, shape and digest of an array."""
    values = np.asarray(array)
    little = values if values.dtype.kind == "V" else values.astype(values.dtype.newbyteorder("<"))
    digest = hashlib.sha256(little.tobytes(order="C")).hexdigest()
    return [dtype or NAMES[values.dtype.name], list(values.shape), digest]


def datasets(source) -> dict[str, list]:
    """The datasets of an HDF5 file with numbers in them."""
    import h5py

    rows = {}

    def visit(name: str, found) -> None:
        if isinstance(found, h5py.Dataset) and found.dtype.name in NAMES:
            rows[name.replace("/", ".")] = row_of(found[()])

    with h5py.File(source, "r") as file:
        file.visititems(visit)
    return rows


class Writing:
    """The arguments are FOLDER, COUNT and SEED."""

    def __init__(self):
        self.folder = Path(sys.argv[1])
        self.count, seed = int(sys.argv[2]), int(sys.argv[3])
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.expected = open(self.folder / "expected.jsonl", "w")

    def expect(self, file: str, tensors: dict[str, list] | None, refused: bool = False, partial: bool = False) -> None:
        line = {"file": file, "tensors": tensors, "refused": bool(refused), "partial": partial}
        print(json.dumps(line), file=self.expected, flush=True)

    def shape(self, max_rank: int = 4) -> tuple[int, ...]:
        """Now and then no elements at all."""
        dims = [1, 2, 3, 4, 5, 7, 8, 16, 33]
        rank = self.random.choice(range(max_rank + 1))
        return tuple(0 if self.random.random() < 0.02 else self.random.choice(dims) for _ in range(rank))

    def array(self, dtype, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Any bits, infinities and signalling NaNs too; Booleans are 0 or 1."""
        shape = self.shape() if shape is None else shape
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.numbers.integers(0, 2, shape).astype(dtype)
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return np.frombuffer(self.numbers.bytes(n_bytes), dtype=dtype).reshape(shape)

    def view(self, array: np.ndarray) -> np.ndarray:
        """The array, or a view of it that is not contiguous."""
        kind = self.random.randrange(5)
        if kind == 0 and array.ndim > 1:
            return array.transpose(self.random.sample(range(array.ndim), array.ndim))
        if kind == 1 and array.ndim:
            return array[:: self.random.choice([-1, 2, 3])]
        if kind == 2:
            return np.asfortranarray(array)
        return array

    def name(self) -> str:
        letters = "abcdefgh_:/-0123456789ÄЖ日"
        return "".join(self.random.choice(letters) for _ in range(self.random.randint(1, 8))).strip("/") or "x"
