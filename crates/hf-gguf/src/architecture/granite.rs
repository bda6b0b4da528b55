//! Granite, with and without experts.

use super::llama::{permute, rope_factors, rotated_dimensions};
use super::{Architecture, DECODER, GATED, Name};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::parameters::Entry;
use crate::restore::{Restore, text};
use crate::tensors::build::{Builder, Change, Incoming};

pub(super) const GRANITE: Architecture = Architecture {
    name: "granite",
    classes: &["GraniteForCausalLM"],
    entries: GRANITE_ENTRIES,
    names: &[DECODER, GATED],
    // The architecture has no length of heads of its own.
    prepare: |config| {
        config.remove("head_dim");
        Ok(None)
    },
    generate: rope_factors,
    change: permute,
    restore: Some(Restore {
        model: |_| Ok(("GraniteForCausalLM", "granite")),
        config: |stored, config| {
            config.set("hidden_act", text("silu"));
            config.set("attention_bias", Json::Bool(stored.layer_has("attn_q.bias")));
            config.set("mlp_bias", Json::Bool(stored.layer_has("ffn_up.bias")));
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const GRANITE_MOE: Architecture = Architecture {
    name: "granitemoe",
    classes: &["GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"],
    entries: &[
        Entry::All(GRANITE_ENTRIES),
        Entry::NonZeroU32("expert_shared_feed_forward_length", &["shared_intermediate_size"]),
    ],
    names: &[DECODER, EXPERT_NAMES],
    change: split_experts,
    restore: Some(Restore {
        model: |stored| {
            Ok(match stored.key("expert_shared_feed_forward_length") {
                Some(_) => ("GraniteMoeSharedForCausalLM", "granitemoeshared"),
                None => ("GraniteMoeForCausalLM", "granitemoe"),
            })
        },
        config: |stored, config| {
            config.set("hidden_act", text("silu"));
            config.set("attention_bias", Json::Bool(stored.layer_has("attn_q.bias")));
            Ok(())
        },
        tensors: |_, name, shape| {
            let Some((layer, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else {
                return Ok(None);
            };
            let module = match part {
                "ffn_gate_exps.weight" => "block_sparse_moe",
                "ffn_gate_shexp.weight" => "shared_mlp",
                // With the gate.
                "ffn_up_exps.weight" | "ffn_up_shexp.weight" => return Ok(Some(alloc::vec::Vec::new())),
                _ => return Ok(None),
            };
            let mut shape = shape.to_vec();
            let Some(rows) = shape.iter_mut().nth_back(1) else { return Ok(None) };
            *rows = rows.saturating_mul(2);
            Ok(Some(alloc::vec![(
                alloc::format!("model.layers.{layer}.{module}.input_linear.weight"),
                shape
            )]))
        },
        ..Restore::PLAIN
    }),
    ..GRANITE
};

const GRANITE_ENTRIES: &[Entry] = &[
    Entry::Common,
    Entry::U32("vocab_size", &["vocab_size"]),
    Entry::With(rotated_dimensions),
    Entry::NonZeroF32("attention.scale", &["attention_multiplier"]),
    Entry::NonZeroF32("embedding_scale", &["embedding_multiplier"]),
    Entry::NonZeroF32("residual_scale", &["residual_multiplier"]),
    Entry::NonZeroF32("logit_scale", &["logits_scaling"]),
];

const EXPERT_NAMES: &[Name] = &[
    ("layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"),
    ("layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps"),
    ("layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp"),
];

/// Gates and what they gate are one tensor, of experts and of what is shared.
fn split_experts(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, layer, view } = incoming;
    let has_experts = builder.config.u32(&["num_local_experts"])?.unwrap_or(0) > 0;
    let end = |end: &str| name.ends_with(end);
    let (parts, names): (_, &[&str]) = match has_experts {
        _ if end("block_sparse_moe.input_linear.weight") => {
            (["ffn_gate_exps", "ffn_up_exps"], &["intermediate_size"])
        }
        true if end("shared_mlp.input_linear.weight") => {
            (["ffn_gate_shexp", "ffn_up_shexp"], &["shared_intermediate_size"])
        }
        false if end("shared_mlp.input_linear.weight") => {
            (["ffn_gate", "ffn_up"], &["shared_intermediate_size"])
        }
        false if end("shared_mlp.output_linear.weight") => {
            let layer = layer.ok_or(ErrorKind::UnknownTensor)?;
            let shape = view.shape();
            let new_name = alloc::format!("blk.{layer}.ffn_down.weight");
            return builder.add_named(new_name, shape, alloc::vec![view], Change::Nothing);
        }
        _ => return permute(builder, Incoming { name, layer, view }),
    };
    let rows = u64::from(builder.config.need_u32(names)?);
    let axis = view.shape().len().saturating_sub(2);
    let fits = view.shape().get(axis).is_some_and(|len| *len == rows.saturating_mul(2));
    let layer = layer.ok_or(ErrorKind::UnknownTensor)?;
    for (idx, part) in parts.into_iter().enumerate() {
        let begin = rows.saturating_mul(idx as u64);
        let half = view.clone().slice(axis, begin, begin.saturating_add(rows)).filter(|_| fits);
        let half = half.ok_or_else(|| builder.shape_error(&view, alloc::format!("twice {rows} rows")))?;
        let new_name = alloc::format!("blk.{layer}.{part}.weight");
        builder.add_named(new_name, half.shape(), alloc::vec![half], Change::Nothing)?;
    }
    Ok(())
}
