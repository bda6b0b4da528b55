//! Starcoder 2.

use super::{Architecture, DECODER, Name};
use crate::json::Json;
use crate::restore::{Restore, text};

pub(super) const STARCODER2: Architecture = Architecture {
    name: "starcoder2",
    classes: &["Starcoder2ForCausalLM"],
    names: &[DECODER, NAMES],
    restore: Some(Restore {
        model: |_| Ok(("Starcoder2ForCausalLM", "starcoder2")),
        config: |stored, config| {
            config.set("hidden_act", text("gelu_pytorch_tanh"));
            config.set("use_bias", Json::Bool(stored.layer_has("attn_q.bias")));
            config.set("sliding_window", Json::Null);
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const NAMES: &[Name] =
    &[("layers.{}.mlp.c_fc", "blk.{}.ffn_up"), ("layers.{}.mlp.c_proj", "blk.{}.ffn_down")];
