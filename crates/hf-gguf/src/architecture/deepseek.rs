//! DeepSeek 2 and 3: attention with compressed keys and values.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::{Architecture, DECODER, GATED, NORM, Name, OUTER};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::parameters::{Entry, LAYERS, Parameters, SCORES, number_f64};
use crate::restore::{FolderTensor, Restore, Stored, float, int, text};
use crate::tensors::build::{Builder, Change, Experts, Incoming};

pub(super) const DEEPSEEK2: Architecture = Architecture {
    name: "deepseek2",
    classes: &["DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM"],
    entries: &[Entry::Common, Entry::With(attention), Entry::With(experts), Entry::With(rotation)],
    names: &[DECODER, GATED, NAMES],
    needed: &[OUTER, NORM, NEEDED],
    experts: Some(Experts { count: &["n_routed_experts"], ..super::qwen::EXPERTS }),
    prepare: |config| {
        // Folders that transformers 4.57 saved do not name the function of this class, which is always the same.
        if config.class()? == "DeepseekV3ForCausalLM" && config.find(SCORES).is_none() {
            config.set("scoring_func", text("sigmoid"));
        }
        Ok(None)
    },
    change: split_keys_and_values,
    restore: Some(Restore {
        model: |stored| {
            let is_third =
                stored.u32("expert_gating_func")? == Some(2) || stored.key("expert_weights_norm").is_some();
            Ok(match is_third {
                true => ("DeepseekV3ForCausalLM", "deepseek_v3"),
                false => ("DeepseekV2ForCausalLM", "deepseek_v2"),
            })
        },
        config: restored_config,
        tensors: restored_tensors,
        ..Restore::PLAIN
    }),
    is_left_out: |config, name, layer| {
        let n_layers = config.u32(&["num_hidden_layers"]).ok().flatten().unwrap_or(u32::MAX);
        let is_tied = config.bool(&["tie_word_embeddings"]).ok().flatten() == Some(true);
        let is_beyond = layer.is_some_and(|layer| layer >= n_layers.into());
        // Layers that predict further tokens.
        is_beyond && name.starts_with("model.layers.")
            || is_tied && matches!(name, "lm_head.weight" | "model.lm_head.weight")
    },
    ..Architecture::PLAIN
};

const NAMES: &[Name] = &[
    ("layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"),
    ("layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"),
    ("layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"),
    ("layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"),
    ("layers.{}.self_attn.k_b_proj", "blk.{}.attn_k_b"),
    ("layers.{}.self_attn.v_b_proj", "blk.{}.attn_v_b"),
    ("layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("layers.{}.mlp.gate.e_score_correction", "blk.{}.exp_probs_b"),
    ("layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp"),
    ("layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp"),
];

const NEEDED: &[&str] = &[
    "blk.{}.attn_kv_a_mqa.weight",
    "blk.{}.attn_kv_a_norm.weight",
    "blk.{}.attn_k_b.weight",
    "blk.{}.attn_v_b.weight",
    "blk.{}.attn_output.weight",
];

fn attention(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    let config = parameters.config;
    let need = |name: &str| config.need_u32(&[name]);
    // Keys and values are decompressed from one head.
    parameters.set("attention.head_count_kv", 1_u32);
    if !config.has("rms_norm_eps") {
        parameters.set("attention.layer_norm_rms_epsilon", 1e-6_f32);
    }
    let has_experts = config.get("n_routed_experts").is_some();
    let dense = match config.u32(&["first_k_dense_replace"])? {
        Some(count) => count,
        None if has_experts => 0,
        None => config.need_u32(LAYERS)?,
    };
    parameters.set("leading_dense_block_count", dense);
    parameters.set("vocab_size", need("vocab_size")?);
    parameters.set_some("attention.q_lora_rank", config.u32(&["q_lora_rank"])?);
    let rank = config.u32(&["kv_lora_rank"])?.unwrap_or(512);
    let rotated = need("qk_rope_head_dim")?;
    parameters.set("attention.kv_lora_rank", rank);
    parameters.set("attention.key_length", rank.saturating_add(rotated));
    parameters.set("attention.value_length", rank);
    parameters.set("attention.key_length_mla", need("qk_nope_head_dim")?.saturating_add(rotated));
    parameters.set("attention.value_length_mla", need("v_head_dim")?);
    Ok(())
}

fn experts(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    let config = parameters.config;
    let len = config.need_u32(&["moe_intermediate_size", "intermediate_size"])?;
    parameters.set("expert_feed_forward_length", len);
    parameters.set_some("expert_count", config.u32(&["n_routed_experts"])?);
    parameters.set("expert_shared_count", config.u32(&["n_shared_experts"])?.unwrap_or(0));
    parameters.set_some("expert_weights_scale", config.f32(&["routed_scaling_factor"])?);
    parameters.set_some("expert_weights_norm", config.bool(&["norm_topk_prob"])?.filter(|is_set| *is_set));
    Ok(())
}

fn rotation(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    const SCALE: &str = "mscale_all_dim";
    let rotated = parameters.config.need_u32(&["qk_rope_head_dim"])?;
    parameters.set("rope.dimension_count", rotated);
    let scale = parameters.rope.get(SCALE).map(|value| number_f64(value, SCALE)).transpose()?;
    parameters.set_some("rope.scaling.yarn_log_multiplier", scale.map(|scale| (0.1 * scale) as f32));
    Ok(())
}

/// Values that the file has under other names, or once for all.
fn restored_config(stored: &Stored<'_>, config: &mut Object) -> Result<(), Error> {
    let some = |key: &str| Ok::<_, Error>(stored.u32(key)?.map_or(Json::Null, int));
    let rotated = stored.need_u32("rope.dimension_count")?;
    let heads = stored.need_u32("attention.head_count")?;
    let keys = stored.need_u32("attention.key_length_mla")?.saturating_sub(rotated);
    config.set("hidden_act", text("silu"));
    config.set("head_dim", int(rotated));
    config.set("num_key_value_heads", int(heads));
    config.set("qk_rope_head_dim", int(rotated));
    config.set("qk_nope_head_dim", int(keys));
    config.set("v_head_dim", int(stored.need_u32("attention.value_length_mla")?));
    config.set("kv_lora_rank", int(stored.need_u32("attention.kv_lora_rank")?));
    config.set("q_lora_rank", some("attention.q_lora_rank")?);
    config.set("first_k_dense_replace", some("leading_dense_block_count")?);
    config.set("moe_intermediate_size", int(stored.need_u32("expert_feed_forward_length")?));
    config.set("n_shared_experts", some("expert_shared_count")?);
    config.set("routed_scaling_factor", stored.f32("expert_weights_scale")?.map_or(Json::Null, float));
    config.set("norm_topk_prob", Json::Bool(stored.bool("expert_weights_norm")?.unwrap_or(false)));
    let is_grouped = stored.u32("expert_group_count")?.is_some_and(|groups| groups > 1);
    config.set(
        "topk_method",
        text(match config.get("model_type").and_then(Json::as_str) {
            Some("deepseek_v3") => "noaux_tc",
            _ if is_grouped => "group_limited_greedy",
            _ => "greedy",
        }),
    );
    if let Some(multiplier) = stored.f32("rope.scaling.yarn_log_multiplier")? {
        let mut scaling = Object::default();
        for (name, value) in [("type", text("yarn")), ("rope_type", text("yarn"))] {
            scaling.set(name, value);
        }
        for (name, key) in [
            ("factor", "rope.scaling.factor"),
            ("beta_fast", "rope.scaling.yarn_beta_fast"),
            ("beta_slow", "rope.scaling.yarn_beta_slow"),
        ] {
            if let Some(value) = stored.f32(key)? {
                scaling.set(name, float(value));
            }
        }
        if let Some(len) = stored.u32("rope.scaling.original_context_length")? {
            scaling.set("original_max_position_embeddings", int(len));
        }
        let scale = (f64::from(multiplier) / 0.1) as f32;
        scaling.set("mscale", float(scale));
        scaling.set("mscale_all_dim", float(scale));
        config.set("rope_scaling", Json::Object(scaling));
    }
    Ok(())
}

/// The matrix that decompresses keys and values is one.
fn restored_tensors(
    stored: &Stored<'_>,
    name: &str,
    shape: &[u64],
) -> Result<Option<Vec<FolderTensor>>, Error> {
    let Some((layer, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else {
        return Ok(None);
    };
    Ok(match (part, shape) {
        ("attn_k_b.weight", [heads, ranks, keys]) => {
            let values = stored.need_u32("attention.value_length_mla")?;
            let rows = heads.saturating_mul(keys.saturating_add(values.into()));
            Some(vec![(format!("model.layers.{layer}.self_attn.kv_b_proj.weight"), vec![rows, *ranks])])
        }
        ("attn_v_b.weight", _) => Some(Vec::new()),
        ("exp_probs_b.bias", _) => {
            let name = format!("model.layers.{layer}.mlp.gate.e_score_correction_bias");
            Some(vec![(name, shape.to_vec())])
        }
        _ => None,
    })
}

/// The matrix that decompresses keys and values becomes two, `[heads, ranks, keys]` and `[heads, values, ranks]`.
fn split_keys_and_values(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    if !name.ends_with("kv_b_proj.weight") {
        return builder.add(&name, view);
    }
    let need = |name: &str| builder.config.need_u32(&[name]).map(u64::from);
    let heads = need("num_key_value_heads")?;
    let (values, keys) = (need("v_head_dim")?, need("qk_nope_head_dim")?);
    let parts = view.clone().split(0, &[heads, keys + values]).and_then(|view| {
        let k = view.clone().slice(1, 0, keys)?.swap(1, 2)?;
        Some((k, view.slice(1, keys, keys + values)?))
    });
    let Some((k, v)) = parts else {
        let expected = format!("{heads} heads of {} rows", keys + values);
        return Err(builder.shape_error(&view, expected));
    };
    for (part, view) in [("k_b_proj", k), ("v_b_proj", v)] {
        let name = name.replace("kv_b_proj", part);
        builder.add_views(&name, view.shape(), vec![view], Change::Nothing)?;
    }
    Ok(())
}
