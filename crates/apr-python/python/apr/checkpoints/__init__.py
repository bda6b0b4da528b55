"""Training checkpoints: a folder for each step, complete or absent, verified when it is read.

What is saved may be a dictionary of arrays, or a training: modules and optimizers of PyTorch, pytrees of JAX with Flax and Optax,
models of Keras, with whatever else it takes to go on bit for bit. Nothing is pickled, and no name in a file is imported. The project's
page ``docs/checkpoint-format.md`` specifies the folder.
"""

from __future__ import annotations

from ._checkpoint import Checkpoint, Restored
from ._folder import Checkpoints

__all__ = ["Checkpoint", "Checkpoints", "Restored"]

# However they are spread over files, this is where they are known from.
for _public in (Checkpoint, Checkpoints, Restored):
    _public.__module__ = __name__
del _public
