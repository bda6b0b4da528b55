//! Llama, Mistral, Mixtral.

use super::{Architecture, DECODER, GATED, Name, permuted};
use crate::error::Error;
use crate::json::Json;
use crate::parameters::{Entry, Parameters};
use crate::restore::{Restore, Stored, text};
use crate::tensors::build::{Builder, Change, Experts, Incoming};

pub(super) const LLAMA: Architecture = Architecture {
    name: "llama",
    classes: &[
        "LlamaForCausalLM",
        "LLaMAForCausalLM",
        "LlamaModel",
        "MistralForCausalLM",
        "MixtralForCausalLM",
    ],
    entries: &[Entry::Common, Entry::U32("vocab_size", &["vocab_size"]), Entry::With(rotated_dimensions)],
    names: &[DECODER, GATED, ROUTER],
    experts: Some(EXPERTS),
    generate: rope_factors,
    change: permute,
    restore: Some(Restore {
        model: |stored| {
            Ok(match stored.u32("expert_count")?.unwrap_or(0) {
                0 if stored.key("attention.key_length").is_none() && !has_biases(stored) => {
                    ("MistralForCausalLM", "mistral")
                }
                0 => ("LlamaForCausalLM", "llama"),
                _ => ("MixtralForCausalLM", "mixtral"),
            })
        },
        config: |stored, config| {
            config.set("hidden_act", text("silu"));
            if config.get("model_type").and_then(Json::as_str) == Some("llama") {
                config.set("attention_bias", Json::Bool(stored.layer_has("attn_q.bias")));
                config.set("mlp_bias", Json::Bool(stored.layer_has("ffn_up.bias")));
            } else {
                config.set("sliding_window", Json::Null);
            }
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

/// Whether it is a Llama with biases, which Mistral does not have.
fn has_biases(stored: &Stored<'_>) -> bool {
    stored.layer_has("attn_q.bias") || stored.layer_has("ffn_up.bias")
}

pub(super) const ROUTER: &[Name] = &[("layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp")];

const EXPERTS: Experts = Experts {
    infix: ".block_sparse_moe.experts.",
    parts: &[("w1", "ffn_gate_exps"), ("w2", "ffn_down_exps"), ("w3", "ffn_up_exps")],
    count: &["num_local_experts"],
};

/// The length of a head, all of which is rotated.
pub(super) fn rotated_dimensions(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    let len = head_len(parameters.config)?;
    parameters.set("rope.dimension_count", len);
    Ok(())
}

/// The length of a head: `head_dim`, or the share of the hidden size.
pub(super) fn head_len(config: &crate::Config) -> Result<u32, Error> {
    if let Some(len) = config.u32(&["head_dim"])? {
        return Ok(len);
    }
    let heads = config.need_u32(&["num_attention_heads"])?;
    let len = config.need_u32(&["hidden_size"])?.checked_div(heads);
    len.ok_or_else(|| config.unexpected(&["num_attention_heads"], "a number above zero"))
}

/// The factors of Llama 3, if the model has them.
pub(super) fn rope_factors(builder: &mut Builder<'_>) -> Result<(), Error> {
    const MAX_LEN: u32 = 1 << 20;
    if !builder.rope.kind().eq_ignore_ascii_case("llama3") {
        return Ok(());
    }
    let len = head_len(builder.config)?;
    if len > MAX_LEN {
        return Err(builder.config.unexpected(&["head_dim", "hidden_size"], "a number up to 2^20"));
    }
    match builder.rope.llama3_factors(len) {
        Some(factors) => builder.add_constant("rope_freqs.weight", factors),
        None => Ok(()),
    }
}

/// Interleaves queries and keys.
pub(super) fn permute(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    let is = |part: &str| {
        name.strip_suffix(".weight").or(name.strip_suffix(".bias")).is_some_and(|name| name.ends_with(part))
    };
    let names: &[&str] = match () {
        () if is("q_proj") => &["n_heads", "num_attention_heads"],
        () if is("k_proj") => &["n_kv_heads", "num_key_value_heads"],
        () => return builder.add(&name, view),
    };
    let config = builder.config;
    let heads = config.u32(names)?;
    let heads = heads.map_or_else(|| config.need_u32(&["n_heads", "num_attention_heads"]), Ok)?;
    let shape = view.shape();
    match permuted(view.clone(), heads) {
        Some(permuted) => builder.add_views(&name, shape, alloc::vec![permuted], Change::Nothing),
        None => Err(builder.shape_error(&view, alloc::format!("rows in {heads} heads of even length"))),
    }
}
