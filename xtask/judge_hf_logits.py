"""Lets llama.cpp load what `apr convert` makes of the model folders of the vectors, and compares it with transformers.

    judge_hf_logits.py APR VECTORS EXPECTED FOLDER

EXPECTED is what `oracles/hf_logits.py` wrote. Each folder is converted to F32 and to F16 and loaded with its tensors checked; the logits of F32 (the
vectors of tokens, of models without logits) are compared with those of transformers. Fails if one is not loaded or differs, but for those
of KNOWN.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import llama_cpp.llama_cpp as api
import numpy as np

APR, VECTORS, EXPECTED, FOLDER = (Path(word) for word in sys.argv[1:5])
TOKENS = [5, 17, 33, 64, 100, 7, 9, 200, 201, 31, 8, 150]

# Root mean square of the difference over the deviation: sums in another order, and llama.cpp's GELU, a table of F16.
TOLERANCE = 1e-3

# Of these vectors, what is no matter of the conversion.
KNOWN = {
    "deepseek2-lite": "llama.cpp knows a model without a rank of queries by its 26 or 27 layers; the vector has fewer",
    "gemma2": "llama.cpp computes the scale of attention from the sizes; that of the vector is another one",
    "gemma3": "llama.cpp computes the scale of attention from the sizes; that of the vector is another one",
    "gptneox": "llama.cpp rotates even numbers of dimensions alone; the vector has 3",
}

complaints: list[str] = []


@api.llama_log_callback
def listen(level, text, _data):
    if level in (2, 3):
        complaints.append(text.decode("utf-8", "replace").strip())


def load(path: Path):
    complaints.clear()
    params = api.llama_model_default_params()
    params.check_tensors = True
    params.n_gpu_layers = 0
    # Other layouts of blocks, which round elsewhere and need instructions that not every virtual machine allows.
    params.use_extra_bufts = False
    return api.llama_model_load_from_file(str(path).encode(), params)


def evaluate(model, has_logits: bool) -> np.ndarray | str:
    params = api.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 32
    params.n_threads = params.n_threads_batch = 1
    params.type_k = params.type_v = 0
    params.flash_attn_type = 0
    params.embeddings = not has_logits
    params.pooling_type = 0
    context = api.llama_init_from_model(model, params)
    if not context:
        return "no context"
    batch = api.llama_batch_init(len(TOKENS), 0, 1)
    batch.n_tokens = len(TOKENS)
    for idx, token in enumerate(TOKENS):
        batch.token[idx], batch.pos[idx], batch.logits[idx], batch.n_seq_id[idx] = token, idx, True, 1
        batch.seq_id[idx][0] = 0
    status = api.llama_decode(context, batch)
    if status:
        return f"not evaluated, status {status}"
    width = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model)) if has_logits else api.llama_model_n_embd(model)
    rows = api.llama_get_logits(context) if has_logits else api.llama_get_embeddings(context)
    found = np.ctypeslib.as_array(rows, (len(TOKENS) * width,)).reshape(len(TOKENS), width).copy()
    api.llama_batch_free(batch)
    api.llama_free(context)
    return found


def judged(folder: Path) -> str:
    """What is said about a folder; begins with `FAIL` if it is not as it should be."""
    for output_type in ("f16", "f32"):
        out = FOLDER / f"{folder.name}-{output_type}.gguf"
        words = [APR, "convert", folder, out, "--type", output_type, "--force", "--quiet"]
        pre = json.loads((VECTORS / f"expected/{folder.name}.json").read_text())["pre_forced"]
        if pre:
            words += ["--pre", pre]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode:
            return f"FAIL: not converted: {ran.stderr}"
        model = load(out)
        if not model:
            return f"FAIL: {output_type} is not loaded: " + " | ".join(complaints[-3:])
        if output_type == "f16":
            api.llama_model_free(model)
    path = EXPECTED / f"{folder.name}.npy"
    if not path.exists():
        return "loaded; transformers does not compute it"
    expected = np.load(path)
    has_logits = expected.shape[1] == api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
    found = evaluate(model, has_logits)
    api.llama_model_free(model)
    if isinstance(found, str):
        return f"FAIL: {found}: " + " | ".join(complaints[-3:])
    if found.shape != expected.shape:
        return f"FAIL: {found.shape} instead of {expected.shape}"
    distance = float(np.sqrt(((found.astype(np.float64) - expected) ** 2).mean()) / expected.std())
    same = int((found.argmax(axis=1) == expected.argmax(axis=1)).sum())
    what = "logits" if has_logits else "vectors"
    verdict = "" if distance <= TOLERANCE else "FAIL: "
    return f"{verdict}{what} differ by {distance:.1e} of their deviation, largest at the same place in {same} of {len(TOKENS)}"


def in_child(folder: Path) -> str:
    """As `judged`, in a process of its own: what llama.cpp does not expect ends it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # What it says when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(judged(folder))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        verdict = pipe.read()
    os.waitpid(child, 0)
    return verdict or "FAIL: llama.cpp stops"


def main() -> int:
    os.environ["GGML_NO_BACKTRACE"] = "1"
    FOLDER.mkdir(parents=True, exist_ok=True)
    api.llama_log_set(listen, None)
    failures = 0
    for path in sorted(VECTORS.glob("*/config.json")):
        verdict = in_child(path.parent)
        if verdict.startswith("FAIL") and path.parent.name in KNOWN:
            verdict = f"{verdict.removeprefix('FAIL: ')}; {KNOWN[path.parent.name]}"
        failures += verdict.startswith("FAIL")
        print(f"{path.parent.name}: {verdict}", flush=True)
    return 1 if failures else 0


sys.exit(main())
