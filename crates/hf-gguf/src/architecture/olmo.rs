//! OLMo 1 to 3, and with experts.

use super::llama::permute;
use super::qwen::{EXPERTS, ROUTER};
use super::{Architecture, DECODER, GATED, HEAD_NORMS, Name, OUTER, SEPARATE};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::keys::Value;
use crate::parameters::{Entry, LAYERS, Parameters};
use crate::restore::{Restore, Stored, int, text};

pub(super) const OLMO: Architecture = Architecture {
    name: "olmo",
    classes: &["OlmoForCausalLM", "OLMoForCausalLM"],
    entries: &[
        Entry::Common,
        Entry::Constant("attention.layer_norm_epsilon", || 1e-5_f32.into()),
        Entry::SomeF32("attention.clamp_kqv", &["clip_qkv"]),
    ],
    names: &[DECODER, GATED],
    // Norms have no weights.
    needed: &[&["token_embd.weight"], SEPARATE],
    change: permute,
    restore: Some(Restore {
        model: |_| Ok(("OlmoForCausalLM", "olmo")),
        config: activation,
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const OLMO2: Architecture = Architecture {
    name: "olmo2",
    classes: &["Olmo2ForCausalLM", "Olmo3ForCausalLM"],
    entries: &[Entry::Common, Entry::With(window)],
    names: &[NORMS_AFTER, DECODER, GATED, HEAD_NORMS],
    needed: &[OUTER, SEPARATE],
    restore: Some(Restore {
        model: |stored| {
            Ok(match stored.key("attention.sliding_window") {
                Some(_) => ("Olmo3ForCausalLM", "olmo3"),
                None => ("Olmo2ForCausalLM", "olmo2"),
            })
        },
        config: |stored, config| {
            if let Some(len) = stored.u32("attention.sliding_window")? {
                config.set("sliding_window", int(len));
            }
            if let Some(Value::Bools(layers)) = stored.key("attention.sliding_window_pattern") {
                let kind = |is_sliding: &bool| {
                    text(if *is_sliding { "sliding_attention" } else { "full_attention" })
                };
                config.set("layer_types", Json::Array(layers.iter().map(kind).collect()));
            }
            activation(stored, config)
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const OLMOE: Architecture = Architecture {
    name: "olmoe",
    classes: &["OlmoeForCausalLM"],
    entries: &[Entry::Common, Entry::Constant("attention.layer_norm_rms_epsilon", || 1e-5_f32.into())],
    names: &[DECODER, HEAD_NORMS, ROUTER],
    experts: Some(EXPERTS),
    restore: Some(Restore {
        model: |_| Ok(("OlmoeForCausalLM", "olmoe")),
        config: activation,
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

#[expect(clippy::unnecessary_wraps, reason = "one of the functions of the table")]
fn activation(_: &Stored<'_>, config: &mut Object) -> Result<(), Error> {
    config.set("hidden_act", text("silu"));
    Ok(())
}

const NORMS_AFTER: &[Name] = &[
    ("layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

/// The sliding window, and which layers have it: by default all but every fourth.
fn window(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    let config = parameters.config;
    if !config.has("sliding_window") {
        return Ok(());
    }
    parameters.set("attention.sliding_window", config.need_u32(&["sliding_window"])?);
    let layers = match parameters.sliding_layers()? {
        Some(layers) => layers,
        // Compared with the number of tensors before.
        None => (1..=config.need_u32(LAYERS)?).map(|number| number % 4 != 0).collect(),
    };
    parameters.set("attention.sliding_window_pattern", layers);
    Ok(())
}
