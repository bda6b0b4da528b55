"""What transformers computes from the model folders of the vectors.

    hf_logits.py VECTORS OUT

Writes OUT/NAME.npy: for each token of the text, logits, or the vectors of a model that has none, as F32. Folders whose class transformers does
not have, or that are no decoders and no encoders alone, are passed over.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

VECTORS, OUT = (Path(word) for word in sys.argv[1:3])
TOKENS = [5, 17, 33, 64, 100, 7, 9, 200, 201, 31, 8, 150]


def main() -> None:
    logging.disable(logging.CRITICAL)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    for path in sorted(VECTORS.glob("*/config.json")):
        folder = path.parent
        name = json.loads(path.read_text())["architectures"][0]
        kind = getattr(transformers, name, None)
        if kind is None or name.startswith("T5"):
            print(f"{folder.name}: {name} is passed over")
            continue
        try:
            model = kind.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager").eval()
        except Exception as error:  # noqa: BLE001
            print(f"{folder.name}: {type(error).__name__}: {str(error)[:200]}")
            continue
        with torch.no_grad():
            made = model(torch.tensor([TOKENS]))
        rows = made.logits if hasattr(made, "logits") else made.last_hidden_state
        np.save(OUT / f"{folder.name}.npy", rows[0].numpy().astype(np.float32))


main()
