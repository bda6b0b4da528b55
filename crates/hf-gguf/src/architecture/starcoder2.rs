//! Starcoder 2.

use super::{Architecture, DECODER, Name};

pub(super) const STARCODER2: Architecture = Architecture {
    name: "starcoder2",
    classes: &["Starcoder2ForCausalLM"],
    names: &[DECODER, NAMES],
    ..Architecture::PLAIN
};

const NAMES: &[Name] =
    &[("layers.{}.mlp.c_fc", "blk.{}.ffn_up"), ("layers.{}.mlp.c_proj", "blk.{}.ffn_down")];
