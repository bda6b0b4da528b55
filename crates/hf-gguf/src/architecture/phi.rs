//! Phi 2, 3 and 4.

use super::{Architecture, DECODER, FUSED, NORM, Name, OUTER};
use crate::config::missing;
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::parameters::{Entry, LAYERS, Parameters, number_u32};
use crate::restore::{Restore, Stored, float, int, text};
use crate::tensors::build::Builder;

pub(super) const PHI2: Architecture = Architecture {
    name: "phi2",
    classes: &["PhiForCausalLM"],
    entries: &[
        Entry::U32("context_length", CONTEXT),
        Entry::U32("embedding_length", HIDDEN),
        Entry::With(|parameters| parameters.set_multiple("feed_forward_length", 4, HIDDEN)),
        Entry::U32("block_count", LAYERS),
        Entry::U32("attention.head_count", HEADS),
        Entry::U32("attention.head_count_kv", HEADS),
        Entry::F32("attention.layer_norm_epsilon", &["layer_norm_epsilon", "layer_norm_eps"]),
        Entry::With(|parameters| {
            let share = parameters.rotated_share()?.ok_or_else(|| missing(&["partial_rotary_factor"]))?;
            let len = rotated_dimensions(parameters.config, share)?;
            parameters.set("rope.dimension_count", len);
            Ok(())
        }),
        Entry::FileType,
        Entry::With(|parameters| {
            parameters.set_global("tokenizer.ggml.add_bos_token", false);
            Ok(())
        }),
    ],
    names: &[PHI2_NAMES, DECODER],
    restore: Some(Restore {
        model: |_| Ok(("PhiForCausalLM", "phi")),
        config: |stored, config| {
            config.set("hidden_act", text("gelu_new"));
            config.set("intermediate_size", int(stored.need_u32("feed_forward_length")?));
            config.set("partial_rotary_factor", share(stored)?);
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const PHI3: Architecture = Architecture {
    name: "phi3",
    classes: &["Phi3ForCausalLM"],
    entries: &[
        Entry::U32("context_length", CONTEXT),
        Entry::With(|parameters| {
            let original = original_context(parameters.rope)?;
            parameters.set("rope.scaling.original_context_length", original);
            Ok(())
        }),
        Entry::U32("embedding_length", HIDDEN),
        Entry::U32("feed_forward_length", &["intermediate_size"]),
        Entry::U32("block_count", LAYERS),
        Entry::U32("attention.head_count", HEADS),
        Entry::U32("attention.head_count_kv", &["num_key_value_heads", "n_head_kv"]),
        Entry::F32("attention.layer_norm_rms_epsilon", &["rms_norm_eps"]),
        Entry::With(|parameters| {
            let share = parameters.rotated_share()?.unwrap_or(1.0);
            let len = rotated_dimensions(parameters.config, share)?;
            parameters.set("rope.dimension_count", len);
            Ok(())
        }),
        Entry::With(|parameters| {
            let base = parameters.rope_f32("rope_theta")?.ok_or_else(|| missing(&["rope_theta"]))?;
            parameters.set("rope.freq_base", base);
            Ok(())
        }),
        Entry::FileType,
        Entry::With(window),
    ],
    names: &[DECODER, PHI3_NAMES],
    needed: &[OUTER, NORM, FUSED],
    generate: long_factors,
    restore: Some(Restore {
        model: |_| Ok(("Phi3ForCausalLM", "phi3")),
        config: |stored, config| {
            config.set("hidden_act", text("silu"));
            config.set("pad_token_id", Json::Null);
            config.set("partial_rotary_factor", share(stored)?);
            config.set(ORIGINAL, int(stored.need_u32("rope.scaling.original_context_length")?));
            config.set("rope_theta", stored.f32("rope.freq_base")?.map_or(Json::Null, float));
            let window = stored.u32("attention.sliding_window")?.filter(|len| *len > 0);
            config.set("sliding_window", window.map_or(Json::Null, int));
            config.set("rope_scaling", Json::Null);
            if let (Some(long), Some(short)) =
                (stored.values("rope_factors_long.weight"), stored.values("rope_factors_short.weight"))
            {
                let list = |factors: &[f32]| Json::Array(factors.iter().copied().map(float).collect());
                let mut scaling = Object::default();
                scaling.set("type", text("longrope"));
                scaling.set("long_factor", list(long));
                scaling.set("short_factor", list(short));
                config.set("rope_scaling", Json::Object(scaling));
            }
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const CONTEXT: &[&str] = &["n_positions", "max_position_embeddings"];
const HIDDEN: &[&str] = &["hidden_size", "n_embd"];
const HEADS: &[&str] = &["num_attention_heads", "n_head"];
const ORIGINAL: &str = "original_max_position_embeddings";

const PHI2_NAMES: &[Name] = &[
    ("layers.{}.self_attn.dense", "blk.{}.attn_output"),
    ("layers.{}.mlp.fc1", "blk.{}.ffn_up"),
    ("layers.{}.mlp.fc2", "blk.{}.ffn_down"),
    ("final_layernorm", "output_norm"),
];

const PHI3_NAMES: &[Name] = &[
    ("layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
    ("layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];

/// The share of the hidden size that is rotated.
fn share(stored: &Stored<'_>) -> Result<Json, Error> {
    let heads = stored.need_u32("attention.head_count")?;
    let rotated = stored.need_u32("rope.dimension_count")?.saturating_mul(heads);
    Ok(Stored::share(rotated, stored.need_u32("embedding_length")?))
}

/// A share of the hidden size, without its fraction, per head.
fn rotated_dimensions(config: &crate::Config, share: f64) -> Result<u32, Error> {
    let hidden = config.need_u32(HIDDEN)?;
    let rotated = (share * f64::from(hidden)) as u32;
    let len = rotated.checked_div(config.need_u32(HEADS)?);
    len.ok_or_else(|| config.unexpected(HEADS, "a number above zero"))
}

fn original_context(rope: &crate::rope::Rope) -> Result<u32, Error> {
    number_u32(rope.get(ORIGINAL).ok_or_else(|| missing(&[ORIGINAL]))?, ORIGINAL)
}

/// Zero for models without a sliding window, which tells Phi-4 from the others.
fn window(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    let len = parameters.config.u32(&["sliding_window"])?;
    parameters.set("attention.sliding_window", len.unwrap_or(0));
    Ok(())
}

/// The factors of long and short contexts, and what attention is scaled with.
fn long_factors(builder: &mut Builder<'_>) -> Result<(), Error> {
    let Some(long) = builder.rope.factors("long_factor")?.filter(|long| !long.is_empty()) else {
        return Ok(());
    };
    let (config, rope) = (builder.config, builder.rope);
    let original = f64::from(original_context(rope)?);
    let scale = f64::from(config.need_u32(CONTEXT)?) / original;
    let kind = rope.get("rope_type").and_then(Json::as_str).unwrap_or_default();
    let factor = match kind {
        _ if scale <= 1.0 => 1.0,
        "su" | "longrope" => libm::sqrt(1.0 + libm::log(scale) / libm::log(original)),
        "yarn" => 0.1 * libm::log(scale) + 1.0,
        _ => return Err(config.unexpected(&["rope_scaling"], "a scaling of the type longrope")),
    };
    let short = rope.factors("short_factor")?.ok_or_else(|| missing(&["short_factor"]))?;
    let share = rope.get("partial_rotary_factor").and_then(Json::as_f64).unwrap_or(1.0);
    let len = rotated_dimensions(config, share)?;
    for factors in [&long, &short] {
        if factors.len() as u64 * 2 != u64::from(len) {
            let (expected, found) = (u64::from(len / 2), factors.len() as u64);
            return Err(ErrorKind::RopeFactors { expected, found }.into());
        }
    }
    builder.set_early("rope.scaling.attn_factor", factor as f32);
    builder.add_constant("rope_factors_long.weight", long)?;
    builder.add_constant("rope_factors_short.weight", short)
}
