//! StableLM.

use super::{Architecture, DECODER, GATED, Name};
use crate::config::missing;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::parameters::{Entry, LAYERS};
use crate::restore::{Restore, Stored, text};
use crate::tensors::build::{Builder, Incoming};

pub(super) const STABLELM: Architecture = Architecture {
    name: "stablelm",
    classes: &["StableLmForCausalLM", "StableLMEpochForCausalLM"],
    entries: &[
        Entry::U32("context_length", &["max_position_embeddings"]),
        Entry::U32("embedding_length", &["hidden_size"]),
        Entry::U32("block_count", LAYERS),
        Entry::U32("feed_forward_length", &["intermediate_size"]),
        Entry::With(|parameters| {
            let share = parameters.rotated_share()?.ok_or_else(|| missing(&["partial_rotary_factor"]))?;
            parameters.set_rotated_of_head(share)
        }),
        Entry::U32("attention.head_count", HEADS),
        Entry::U32("attention.head_count_kv", KEY_HEADS),
        Entry::With(|parameters| {
            let is_parallel = parameters.config.bool(&["use_parallel_residual"])?;
            parameters.set("use_parallel_residual", is_parallel.unwrap_or(true));
            Ok(())
        }),
        Entry::F32("attention.layer_norm_epsilon", &["layer_norm_eps", "norm_eps"]),
        Entry::FileType,
    ],
    names: &[DECODER, GATED, NAMES],
    change: stack_norms,
    restore: Some(Restore {
        model: |_| Ok(("StableLmForCausalLM", "stablelm")),
        config: |stored, config| {
            let heads = stored.need_u32("attention.head_count")?.max(1);
            let len = stored.need_u32("embedding_length")? / heads;
            config.set("partial_rotary_factor", Stored::share(stored.need_u32("rope.dimension_count")?, len));
            let is_parallel = stored.bool("use_parallel_residual")?.unwrap_or(true);
            config.set("use_parallel_residual", Json::Bool(is_parallel));
            config.set("use_qkv_bias", Json::Bool(stored.layer_has("attn_q.bias")));
            config.set("qk_layernorm", Json::Bool(stored.layer_has("attn_q_norm.weight")));
            config.set("hidden_act", text("silu"));
            Ok(())
        },
        tensors: |_, name, shape| {
            const MAX_HEADS: u64 = 1 << 12;
            let own = STABLELM.folder_name(name).filter(|own| own.contains("_layernorm."));
            match (own.as_deref().and_then(|own| own.strip_suffix(".weight")), shape) {
                (Some(base), [heads, len]) if *heads <= MAX_HEADS => {
                    let norm = |number| (alloc::format!("{base}.norms.{number}.weight"), alloc::vec![*len]);
                    Ok(Some((0..*heads).map(norm).collect()))
                }
                _ => Ok(None),
            }
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const HEADS: &[&str] = &["num_attention_heads"];
const KEY_HEADS: &[&str] = &["num_key_value_heads"];

const NAMES: &[Name] = &[
    ("layers.{}.self_attn.q_layernorm", "blk.{}.attn_q_norm"),
    ("layers.{}.self_attn.k_layernorm", "blk.{}.attn_k_norm"),
];

/// Norms of heads become one tensor, `[heads, length]`.
fn stack_norms(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    const PARTS: [(&str, &str, &[&str]); 2] =
        [(".q_layernorm.norms.", "attn_q_norm", HEADS), (".k_layernorm.norms.", "attn_k_norm", KEY_HEADS)];
    for (infix, new_name, names) in PARTS {
        let Some((_, rest)) = incoming.name.split_once(infix) else { continue };
        let number = rest.strip_suffix(".weight").and_then(|number| number.parse().ok());
        let number = number.ok_or(ErrorKind::UnknownTensor)?;
        let heads = builder.config.need_u32(names)?;
        builder.note("the heads have norms of their own, which become one tensor");
        return builder.collect(new_name, incoming, number, heads.into());
    }
    builder.add(&incoming.name, incoming.view)
}
