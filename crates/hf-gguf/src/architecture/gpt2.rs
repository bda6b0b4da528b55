//! GPT-2, whose matrices are stored transposed.

use super::{Architecture, FUSED, NORM, Name, OUTER};
use crate::error::Error;
use crate::parameters::{Entry, LAYERS};
use crate::restore::{Restore, int, text};
use crate::tensors::build::{Builder, Incoming};

pub(super) const GPT2: Architecture = Architecture {
    name: "gpt2",
    classes: &["GPT2LMHeadModel"],
    entries: &[
        Entry::U32("block_count", LAYERS),
        // The reference implementation knows only the first name, which transformers 4 and 5 do not write.
        Entry::U32("context_length", &["n_ctx", "n_positions"]),
        Entry::U32("embedding_length", &["n_embd"]),
        Entry::With(|parameters| parameters.set_multiple("feed_forward_length", 4, &["n_embd"])),
        Entry::U32("attention.head_count", &["n_head"]),
        Entry::F32("attention.layer_norm_epsilon", &["layer_norm_epsilon"]),
        Entry::FileType,
    ],
    prepare: |config| {
        const WHY: &str = "config.json has no n_ctx, and n_positions is taken as the length of the context";
        Ok((!config.has("n_ctx")).then_some(WHY))
    },
    prefix: "transformer.",
    names: &[NAMES],
    needed: &[OUTER, &["position_embd.weight"], NORM, FUSED],
    change: transpose,
    restore: Some(Restore {
        model: |_| Ok(("GPT2LMHeadModel", "gpt2")),
        config: |stored, config| {
            let len = stored.need_u32("context_length")?;
            config.set("n_ctx", int(len));
            config.set("n_positions", int(len));
            config.set("activation_function", text("gelu_new"));
            Ok(())
        },
        tensors: |_, name, shape| {
            let is_transposed = ["attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight"]
                .iter()
                .any(|end| name.ends_with(end));
            let own = GPT2.folder_name(name).filter(|_| is_transposed);
            Ok(own.map(|own| alloc::vec![(own, shape.iter().rev().copied().collect())]))
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const NAMES: &[Name] = &[
    ("wte", "token_embd"),
    ("wpe", "position_embd"),
    ("h.{}.ln_1", "blk.{}.attn_norm"),
    ("h.{}.attn.c_attn", "blk.{}.attn_qkv"),
    ("h.{}.attn.c_proj", "blk.{}.attn_output"),
    ("h.{}.ln_2", "blk.{}.ffn_norm"),
    ("h.{}.mlp.c_fc", "blk.{}.ffn_up"),
    ("h.{}.mlp.c_proj", "blk.{}.ffn_down"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
];

fn transpose(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    // The causal mask of published files.
    if name.ends_with(".attn.bias") && view.shape().len() == 4 || name.ends_with(".attn.masked_bias") {
        builder.note("the files have the causal mask, which is left out");
        return Ok(());
    }
    if ![".c_attn.weight", ".c_proj.weight", ".c_fc.weight"].iter().any(|end| name.ends_with(end)) {
        return builder.add(&name, view);
    }
    let transposed = view.clone().swap(0, 1).filter(|view| view.shape().len() == 2);
    let transposed = transposed.ok_or_else(|| builder.shape_error(&view, "two dimensions".into()))?;
    builder.add(&name, transposed)
}
