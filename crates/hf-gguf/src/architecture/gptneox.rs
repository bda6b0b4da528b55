//! GPT-NeoX and BLOOM, which store queries, keys and values head by head.

use super::{Architecture, FUSED, NORM, Name, OUTER};
use crate::error::Error;
use crate::json::Json;
use crate::parameters::{Entry, LAYERS, Parameters};
use crate::restore::{Restore, Stored, int, text};
use crate::tensors::build::{Builder, Change, Incoming};

pub(super) const GPT_NEOX: Architecture = Architecture {
    name: "gptneox",
    classes: &["GPTNeoXForCausalLM"],
    // Without the file type, which the reference implementation leaves out here.
    entries: &[
        Entry::U32("context_length", &["max_position_embeddings"]),
        Entry::U32("embedding_length", &["hidden_size"]),
        Entry::U32("block_count", LAYERS),
        Entry::U32("feed_forward_length", &["intermediate_size"]),
        Entry::With(|parameters| {
            let share = parameters.config.need_f64(&["rotary_pct"])?;
            parameters.set_rotated_of_head(share)
        }),
        Entry::U32("attention.head_count", &["num_attention_heads"]),
        Entry::With(|parameters| {
            let is_parallel = parameters.config.bool(&["use_parallel_residual"])?;
            parameters.set("use_parallel_residual", is_parallel.unwrap_or(true));
            Ok(())
        }),
        Entry::F32("attention.layer_norm_epsilon", &["layer_norm_eps"]),
    ],
    prefix: "gpt_neox.",
    names: &[GPT_NEOX_NAMES],
    needed: &[OUTER, NORM, FUSED],
    change: untangle,
    restore: Some(Restore {
        model: |_| Ok(("GPTNeoXForCausalLM", "gpt_neox")),
        config: |stored, config| {
            let heads = stored.need_u32("attention.head_count")?.max(1);
            let len = stored.need_u32("embedding_length")? / heads;
            config.set("rotary_pct", Stored::share(stored.need_u32("rope.dimension_count")?, len));
            let is_parallel = stored.bool("use_parallel_residual")?.unwrap_or(true);
            config.set("use_parallel_residual", Json::Bool(is_parallel));
            config.set("attention_bias", Json::Bool(stored.layer_has("attn_qkv.bias")));
            config.set("hidden_act", text("gelu"));
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const BLOOM: Architecture = Architecture {
    name: "bloom",
    classes: &["BloomForCausalLM", "BloomModel"],
    entries: &[
        Entry::U32("context_length", &["seq_length", "hidden_size", "n_embed"]),
        Entry::U32("embedding_length", HIDDEN),
        Entry::With(|parameters: &mut Parameters<'_>| {
            parameters.set_multiple("feed_forward_length", 4, HIDDEN)
        }),
        Entry::U32("block_count", LAYERS),
        Entry::U32("attention.head_count", HEADS),
        Entry::U32("attention.head_count_kv", HEADS),
        Entry::F32("attention.layer_norm_epsilon", &["layer_norm_epsilon"]),
        Entry::FileType,
    ],
    prefix: "transformer.",
    names: &[BLOOM_NAMES],
    needed: &[OUTER, &["token_embd_norm.weight"], NORM, FUSED],
    change: untangle,
    restore: Some(Restore {
        model: |_| Ok(("BloomForCausalLM", "bloom")),
        config: |stored, config| {
            config.set("seq_length", int(stored.need_u32("context_length")?));
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const HIDDEN: &[&str] = &["hidden_size", "n_embed"];
const HEADS: &[&str] = &["n_head", "num_attention_heads"];

const GPT_NEOX_NAMES: &[Name] = &[
    ("embed_in", "token_embd"),
    ("embed_out", "output"),
    ("layers.{}.input_layernorm", "blk.{}.attn_norm"),
    ("layers.{}.attention.query_key_value", "blk.{}.attn_qkv"),
    ("layers.{}.attention.dense", "blk.{}.attn_output"),
    ("layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
    ("final_layer_norm", "output_norm"),
];

const BLOOM_NAMES: &[Name] = &[
    ("word_embeddings", "token_embd"),
    ("word_embeddings_layernorm", "token_embd_norm"),
    ("h.{}.input_layernorm", "blk.{}.attn_norm"),
    ("h.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("h.{}.self_attention.dense", "blk.{}.attn_output"),
    ("h.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
];

/// Queries, keys and values of all heads, one after the other; weights and biases alike.
fn untangle(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    if !name.contains(".query_key_value.") {
        return builder.add(&name, view);
    }
    let heads = u64::from(builder.config.need_u32(HEADS)?);
    let shape = view.shape();
    let rows = shape.first().copied().unwrap_or(0);
    let len = rows.checked_div(heads.saturating_mul(3)).unwrap_or(0);
    match view.clone().split(0, &[heads, 3, len]).and_then(|view| view.swap(0, 1)) {
        Some(untangled) => builder.add_views(&name, shape, alloc::vec![untangled], Change::Nothing),
        None => Err(builder.shape_error(&view, alloc::format!("three matrices of {heads} heads"))),
    }
}
