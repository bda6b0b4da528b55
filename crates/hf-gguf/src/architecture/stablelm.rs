//! StableLM.

use super::{Architecture, DECODER, GATED, Name};
use crate::config::missing;
use crate::error::{Error, ErrorKind};
use crate::parameters::{Entry, LAYERS};
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
