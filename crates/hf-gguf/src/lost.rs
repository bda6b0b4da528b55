//! Parts of a model's computation that its GGUF file does not state.

use alloc::format;
use alloc::string::String;

use crate::config::Config;
use crate::keys::{Keys, Value};
use crate::parameters::LAYERS;
use crate::tensors::output::Output;

/// Classes with a sliding window that GGUF files of their architecture have no key for, and whether `use_sliding_window` has to be set.
const WINDOWS: &[(&str, bool)] = &[
    ("MistralForCausalLM", false),
    ("MixtralForCausalLM", false),
    ("Starcoder2ForCausalLM", false),
    ("Qwen2ForCausalLM", true),
    ("Qwen2Model", true),
    ("Qwen2MoeForCausalLM", true),
    ("Qwen3ForCausalLM", true),
    ("Qwen3Model", true),
    ("Qwen3MoeForCausalLM", true),
];
/// Endings of the names of classes with a head that predicts tokens.
const WITH_HEAD: [&str; 3] = ["ForCausalLM", "LMHeadModel", "ForConditionalGeneration"];
/// The number of layers before the first with a window, where a configuration does not say it.
const MAX_WINDOW_LAYERS: u32 = 28;

/// The sliding window of a model whose context is longer.
pub(crate) fn window(config: &Config, keys: &Keys, architecture: &str) -> Option<String> {
    let class = config.class().ok()?;
    let (_, by_flag) = WINDOWS.iter().find(|(own, _)| *own == class)?;
    let number = |names: &[&str]| config.u32(names).ok().flatten();
    if *by_flag {
        let is_used = config.bool(&["use_sliding_window"]).ok().flatten() == Some(true);
        let first = number(&["max_window_layers"]).unwrap_or(MAX_WINDOW_LAYERS);
        if !is_used || first >= number(LAYERS)? {
            return None;
        }
    }
    let window = number(&["sliding_window"])?;
    let context = keys.get(&format!("{architecture}.context_length")).and_then(Value::as_u32)?;
    (context > window).then(|| {
        format!(
            "the model sees the last {window} tokens (sliding_window), and GGUF files of this architecture have no key for that: in texts \
             beyond {window} tokens programs compute something else"
        )
    })
}

/// A head that contradicts `tie_word_embeddings`.
pub(crate) fn head(config: &Config, outputs: &[Output]) -> Option<&'static str> {
    let class = config.class().ok()?;
    let has = |name: &str| outputs.iter().any(|output| output.name == name);
    let is_tied = config.bool(&["tie_word_embeddings"]).ok().flatten()?;
    match (is_tied, has("output.weight")) {
        _ if !WITH_HEAD.iter().any(|end| class.ends_with(end)) || has("cls.output.weight") => None,
        (true, true) => Some(
            "tie_word_embeddings of config.json is true, and the folder has a head: it is kept, while transformers takes the embedding",
        ),
        (false, false) => Some(
            "tie_word_embeddings of config.json is false, and the folder has no head: programs take the embedding, which the model does not",
        ),
        _ => None,
    }
}
