//! MPT.

use super::{Architecture, FUSED, NORM, Name, OUTER};
use crate::config::missing;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::parameters::{Entry, LAYERS, Parameters, number_f32, number_u32};
use crate::restore::{Restore, float, int};

pub(super) const MPT: Architecture = Architecture {
    name: "mpt",
    classes: &["MPTForCausalLM"],
    // Without the file type, which the reference implementation leaves out here.
    entries: &[
        Entry::U32("context_length", &["max_seq_len"]),
        Entry::U32("embedding_length", &["d_model"]),
        Entry::U32("block_count", LAYERS),
        Entry::With(|parameters| parameters.set_multiple("feed_forward_length", 4, &["d_model"])),
        Entry::U32("attention.head_count", &["n_heads"]),
        Entry::With(attention),
    ],
    prefix: "transformer.",
    names: &[NAMES],
    needed: &[OUTER, NORM, FUSED],
    restore: Some(Restore {
        // The class of the published models, which is not that of transformers.
        model: |_| Ok(("MPTForCausalLM", "mpt")),
        config: |stored, config| {
            let bias = stored.f32("attention.max_alibi_bias")?.filter(|bias| *bias > 0.0);
            let mut attention = Object::default();
            attention.set("alibi", Json::Bool(bias.is_some()));
            if let Some(bias) = bias {
                attention.set("alibi_bias_max", float(bias));
            }
            attention.set("clip_qkv", stored.f32("attention.clamp_kqv")?.map_or(Json::Null, float));
            if let Some(heads) = stored.u32("attention.head_count_kv")? {
                attention.set("kv_n_heads", int(heads));
            }
            attention.set("qk_ln", Json::Bool(stored.layer_has("attn_q_norm.weight")));
            config.set("attn_config", Json::Object(attention));
            config.set("no_bias", Json::Bool(!stored.layer_has("ffn_up.bias")));
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const NAMES: &[Name] = &[
    ("wte", "token_embd"),
    ("wpe", "position_embd"),
    ("blocks.{}.norm_1", "blk.{}.attn_norm"),
    ("blocks.{}.attn.Wqkv", "blk.{}.attn_qkv"),
    ("blocks.{}.attn.q_ln", "blk.{}.attn_q_norm"),
    ("blocks.{}.attn.k_ln", "blk.{}.attn_k_norm"),
    ("blocks.{}.attn.out_proj", "blk.{}.attn_output"),
    ("blocks.{}.norm_2", "blk.{}.ffn_norm"),
    ("blocks.{}.ffn.up_proj", "blk.{}.ffn_up"),
    ("blocks.{}.ffn.down_proj", "blk.{}.ffn_down"),
    ("norm_f", "output_norm"),
    ("lm_head", "output"),
];

fn attention(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    const CONFIG: &str = "attn_config";
    let attention = parameters.config.get(CONFIG).ok_or_else(|| missing(&[CONFIG]))?;
    let number = |name: &str| attention.get(name).map(|value| number_f32(value, name)).transpose();
    let heads = attention.get("kv_n_heads").map(|value| number_u32(value, "kv_n_heads")).transpose()?;
    parameters.set_some("attention.head_count_kv", heads.filter(|heads| *heads > 0));
    parameters.set("attention.layer_norm_epsilon", 1e-5_f32);
    parameters.set_some("attention.clamp_kqv", number("clip_qkv")?);
    let has_bias = attention.get("alibi").and_then(Json::as_bool) == Some(true);
    let bias = if has_bias { number("alibi_bias_max")? } else { None };
    parameters.set("attention.max_alibi_bias", bias.unwrap_or(0.0));
    Ok(())
}
