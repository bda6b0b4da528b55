//! Qwen 2 and 3, with and without experts.

use super::{Architecture, DECODER, GATED, HEAD_NORMS, Name, rerank};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::parameters::Entry;
use crate::restore::{Restore, Stored, int, text};
use crate::tensors::build::{Builder, Change, Experts, Incoming};

pub(super) const QWEN2: Architecture = Architecture {
    name: "qwen2",
    classes: &["Qwen2ForCausalLM", "Qwen2Model"],
    entries: &[Entry::Common, Entry::With(super::bert::pooling)],
    names: &[DECODER, GATED],
    restore: Some(Restore {
        model: |_| Ok(("Qwen2ForCausalLM", "qwen2")),
        config: |_, config| {
            config.set("hidden_act", text("silu"));
            config.set("use_sliding_window", Json::Bool(false));
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const QWEN3: Architecture = Architecture {
    name: "qwen3",
    classes: &["Qwen3ForCausalLM", "Qwen3Model"],
    entries: &[Entry::Common, Entry::With(super::bert::pooling), Entry::With(rerank::keys)],
    names: &[DECODER, GATED, HEAD_NORMS],
    change: rerank::change,
    restore: Some(Restore {
        model: |_| Ok(("Qwen3ForCausalLM", "qwen3")),
        config: |stored, config| {
            config.set("hidden_act", text("silu"));
            config.set("attention_bias", Json::Bool(stored.layer_has("attn_q.bias")));
            config.set("use_sliding_window", Json::Bool(false));
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..QWEN2
};

pub(super) const QWEN2_MOE: Architecture = Architecture {
    name: "qwen2moe",
    classes: &["Qwen2MoeForCausalLM"],
    entries: &[
        Entry::Common,
        Entry::SomeU32("expert_feed_forward_length", &["moe_intermediate_size"]),
        Entry::SomeU32("expert_shared_feed_forward_length", &["shared_expert_intermediate_size"]),
    ],
    names: &[DECODER, ROUTER, SHARED_EXPERT, STACKS],
    experts: Some(EXPERTS),
    change: split_gate_and_up,
    restore: Some(Restore {
        model: |_| Ok(("Qwen2MoeForCausalLM", "qwen2_moe")),
        // llama.cpp does not norm the shares of these experts.
        config: |stored, config| experts_of_all_layers(stored, config, false),
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

/// Every layer has experts; the files do not say whether their shares are made to add up to one, the programs do.
fn experts_of_all_layers(stored: &Stored<'_>, config: &mut Object, is_normed: bool) -> Result<(), Error> {
    config.set("hidden_act", text("silu"));
    config.set("decoder_sparse_step", int(1));
    config.set("mlp_only_layers", Json::Array(alloc::vec::Vec::new()));
    config.set("norm_topk_prob", Json::Bool(is_normed));
    config.set("use_sliding_window", Json::Bool(false));
    if stored.architecture() == "qwen3moe" {
        config.set("attention_bias", Json::Bool(stored.layer_has("attn_q.bias")));
    }
    Ok(())
}

pub(super) const QWEN3_MOE: Architecture = Architecture {
    name: "qwen3moe",
    classes: &["Qwen3MoeForCausalLM"],
    names: &[DECODER, HEAD_NORMS, ROUTER, STACKS],
    restore: Some(Restore {
        model: |_| Ok(("Qwen3MoeForCausalLM", "qwen3_moe")),
        config: |stored, config| experts_of_all_layers(stored, config, true),
        ..Restore::PLAIN
    }),
    ..QWEN2_MOE
};

pub(super) const ROUTER: &[Name] = &[("layers.{}.mlp.gate", "blk.{}.ffn_gate_inp")];

const SHARED_EXPERT: &[Name] = &[
    ("layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
    ("layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp"),
];

/// All experts in one tensor, as transformers 5 writes them.
const STACKS: &[Name] = &[
    ("layers.{}.mlp.experts.gate_proj", "blk.{}.ffn_gate_exps"),
    ("layers.{}.mlp.experts.up_proj", "blk.{}.ffn_up_exps"),
    ("layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps"),
];

pub(super) const EXPERTS: Experts = Experts {
    infix: ".mlp.experts.",
    parts: &[("down_proj", "ffn_down_exps"), ("gate_proj", "ffn_gate_exps"), ("up_proj", "ffn_up_exps")],
    count: &["num_local_experts", "num_experts", "n_routed_experts"],
};

/// Cuts stacks of gates and what they gate, `[experts, 2 rows, columns]`, in halves.
fn split_gate_and_up(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    let base = name.strip_suffix(".weight").unwrap_or(&name);
    if base.ends_with(".mlp.experts.down_proj") {
        return builder.add(&alloc::format!("{base}.weight"), view);
    }
    let Some(base) = base.strip_suffix(".gate_up_proj").filter(|base| base.ends_with(".mlp.experts")) else {
        return builder.add(&name, view);
    };
    let &[_, rows, _] = &view.shape()[..] else {
        return Err(builder.shape_error(&view, "[experts, 2 rows, columns]".into()));
    };
    for (idx, part) in ["gate_proj", "up_proj"].into_iter().enumerate() {
        let begin = rows / 2 * idx as u64;
        let half = view.clone().slice(1, begin, begin + rows / 2).filter(|_| rows.is_multiple_of(2));
        let half = half.ok_or_else(|| builder.shape_error(&view, "an even number of rows".into()))?;
        let shape = half.shape();
        builder.add_views(
            &alloc::format!("{base}.{part}.weight"),
            shape,
            alloc::vec![half],
            Change::Nothing,
        )?;
    }
    Ok(())
}
