"""Converts a model folder to GGUF: `apr convert` in turn with llama.cpp's converter and quantizer.

    hf_speed.py APR LLAMA_CPP QUANTIZER VECTORS FOLDER ROUNDS GIB

QUANTIZER is a Python with llama_cpp.

The model has the shape of Llama 3 8B with fewer layers, in BF16 and shards of 2 GiB. Prints a table in Markdown: seconds of whole processes, of
them on processors, the peak of their resident memory, and the bytes that they write.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import struct
import sys
import time
from pathlib import Path

import numpy as np

# Of an environment, the program is a link that has to stay one.
APR, LLAMA_CPP, QUANTIZER, VECTORS, FOLDER = (Path(word).absolute() for word in sys.argv[1:6])
ROUNDS, GIB = int(sys.argv[6]), float(sys.argv[7])
HIDDEN, FFN, HEADS, KEY_HEADS = 4096, 14336, 32, 8
SHARD = 2 << 30

QUANTIZE = """
import sys, ctypes, llama_cpp
params = llama_cpp.llama_model_quantize_default_params()
params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
params.nthread = int(sys.argv[3])
llama_cpp.llama_backend_init()
if llama_cpp.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), ctypes.byref(params)) != 0:
    sys.exit(1)
"""


def make(model: Path) -> None:
    shutil.rmtree(model, ignore_errors=True)
    model.mkdir(parents=True)
    source = VECTORS / "Tiny-Llama2-110K-Chat"
    for name in ["tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"]:
        shutil.copy(source / name, model / name)
    config = json.loads((source / "config.json").read_text())
    key_rows = HIDDEN // HEADS * KEY_HEADS
    vocab = config["vocab_size"]
    layer = 2 * HIDDEN * HIDDEN + 2 * HIDDEN * key_rows + 3 * HIDDEN * FFN + 2 * HIDDEN
    layers = round((GIB * 2**30 / 2 - 2 * vocab * HIDDEN) / layer)
    config |= {
        "hidden_size": HIDDEN, "intermediate_size": FFN, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
        "num_hidden_layers": layers, "head_dim": HIDDEN // HEADS,
    }
    (model / "config.json").write_text(json.dumps(config))
    tensors = [("model.embed_tokens.weight", (vocab, HIDDEN)), ("lm_head.weight", (vocab, HIDDEN)), ("model.norm.weight", (HIDDEN,))]
    for idx in range(layers):
        at = f"model.layers.{idx}"
        tensors += [(f"{at}.{name}.weight", (HIDDEN,)) for name in ["input_layernorm", "post_attention_layernorm"]]
        tensors += [(f"{at}.self_attn.{name}_proj.weight", (rows, HIDDEN)) for name, rows in [("q", HIDDEN), ("k", key_rows), ("v", key_rows), ("o", HIDDEN)]]
        tensors += [(f"{at}.mlp.{name}_proj.weight", (FFN, HIDDEN)) for name in ["gate", "up"]]
        tensors.append((f"{at}.mlp.down_proj.weight", (HIDDEN, FFN)))
    numbers = np.random.default_rng(1)
    halves = (numbers.standard_normal(1 << 24, dtype=np.float32) * np.float32(0.02)).view(np.uint32) >> 16
    data = halves.astype(np.uint16).tobytes()
    shards, size = [[]], 0
    for name, shape in tensors:
        n_bytes = 2 * int(np.prod(shape))
        if size + n_bytes > SHARD:
            shards.append([])
            size = 0
        shards[-1].append((name, shape, n_bytes))
        size += n_bytes
    weight_map = {}
    for idx, shard in enumerate(shards):
        file, header, offset = f"model-{idx + 1:05}-of-{len(shards):05}.safetensors", {}, 0
        for name, shape, n_bytes in shard:
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + n_bytes]}
            weight_map[name], offset = file, offset + n_bytes
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with (model / file).open("wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for _, _, left in shard:
                begin = 2 * int(numbers.integers(0, 1 << 16))
                while left > 0:
                    piece = data[begin : begin + left]
                    out.write(piece)
                    left, begin = left - len(piece), 0
    (model / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def measured(*commands: list[str]) -> tuple[float, float, float]:
    """Seconds of these processes, one after the other; those on processors; the peak of resident memory in MiB."""
    begin, processor, peak = time.perf_counter(), 0.0, 0
    for words in commands:
        child = os.fork()
        if child == 0:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            os.execvp(words[0], words)
        _, status, usage = os.wait4(child, 0)
        if status != 0:
            raise SystemExit(f"{words}: status {status}")
        processor += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss)
    return time.perf_counter() - begin, processor, peak / 1024


def main() -> None:
    model, out, between = FOLDER / "model", FOLDER / "out.gguf", FOLDER / "between.gguf"
    make(model)
    threads = str(len(os.sched_getaffinity(0)))

    def apr(output_type: str) -> list[list[str]]:
        return [[str(APR), "convert", str(model), str(out), "--type", output_type, "--no-provenance", "--force", "--quiet"]]

    def converter(output_type: str, path: Path) -> list[str]:
        return [sys.executable, "-W", "ignore", str(LLAMA_CPP / "convert_hf_to_gguf.py"), str(model), "--outtype", output_type, "--outfile", str(path)]

    quantizer = [str(QUANTIZER), "-c", QUANTIZE, str(between), str(out), threads]
    rows = {
        ("f16", "apr convert"): apr("f16"),
        ("f16", "convert_hf_to_gguf.py"): [converter("f16", out)],
        ("q8_0", "apr convert"): apr("q8_0"),
        ("q8_0", "convert_hf_to_gguf.py"): [converter("q8_0", out)],
        ("q4_k_m", "apr convert"): apr("q4_k_m"),
        ("q4_k_m", "convert_hf_to_gguf.py, llama-quantize"): [converter("bf16", between), quantizer],
    }
    results: dict[tuple[str, str], list[tuple[float, float, float]]] = {row: [] for row in rows}
    written = {}
    # Memory that is written for the first time takes several times as long where a hypervisor hands it out.
    measured(*rows["f16", "apr convert"])
    for _ in range(ROUNDS):
        for row, commands in rows.items():
            out.unlink(missing_ok=True)
            results[row].append(measured(*commands))
            written[row] = out.stat().st_size + (between.stat().st_size if between.exists() else 0)
            between.unlink(missing_ok=True)
    print("| type | with | median | best | on processors | peak memory | written | `apr`'s time to it |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for (output_type, name), runs in results.items():
        median = statistics.median(run[0] for run in runs)
        own = statistics.median(run[0] for run in results[output_type, "apr convert"])
        cells = [
            output_type, name, f"{median:.1f} s", f"{min(run[0] for run in runs):.1f} s", f"{statistics.median(run[1] for run in runs):.1f} s",
            f"{max(run[2] for run in runs):.0f} MiB", f"{written[output_type, name] / 2**30:.2f} GiB", f"{own / median:.2f}",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
    out.unlink(missing_ok=True)
    shutil.rmtree(model)


main()
