//! Gemma 1 to 3.

use super::{Architecture, DECODER, GATED, HEAD_NORMS, Name};
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::parameters::{Entry, LAYERS, Parameters};
use crate::restore::{Restore, Stored, float, int, text};
use crate::tensors::build::{Builder, Change, Incoming};

pub(super) const GEMMA: Architecture = Architecture {
    name: "gemma",
    classes: &["GemmaForCausalLM"],
    entries: GEMMA_ENTRIES,
    names: &[DECODER, GATED],
    rename: without_head,
    change: shift_norms,
    restore: Some(Restore {
        model: |_| Ok(("GemmaForCausalLM", "gemma")),
        config: |_, config| {
            set_activation(config);
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const GEMMA2: Architecture = Architecture {
    name: "gemma2",
    classes: &["Gemma2ForCausalLM"],
    entries: &[
        Entry::All(GEMMA_ENTRIES),
        Entry::F32("attn_logit_softcapping", &["attn_logit_softcapping"]),
        Entry::F32("final_logit_softcapping", &["final_logit_softcapping"]),
        Entry::U32("attention.sliding_window", &["sliding_window"]),
    ],
    names: &[FOUR_NORMS, DECODER, GATED],
    restore: Some(Restore {
        model: |_| Ok(("Gemma2ForCausalLM", "gemma2")),
        config: |stored, config| {
            set_activation(config);
            // As in llama.cpp: the largest model has the share of the hidden size.
            set_scale(stored, config, 46)
        },
        ..Restore::PLAIN
    }),
    ..GEMMA
};

pub(super) const GEMMA3: Architecture = Architecture {
    name: "gemma3",
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    entries: &[Entry::Common, Entry::With(gemma3_keys)],
    names: &[FOUR_NORMS, DECODER, GATED, HEAD_NORMS],
    change: shift_norms_and_cut_rows,
    restore: Some(Restore {
        model: |_| Ok(("Gemma3ForCausalLM", "gemma3_text")),
        config: |stored, config| {
            set_activation(config);
            config.set("attn_logit_softcapping", Json::Null);
            config.set(
                "final_logit_softcapping",
                stored.f32("final_logit_softcapping")?.map_or(Json::Null, float),
            );
            match stored.u32("attention.sliding_window")? {
                Some(len) => config.set("sliding_window", int(len)),
                None => config.set("sliding_window_pattern", int(1)),
            }
            set_scale(stored, config, 62)
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const GEMMA_ENTRIES: &[Entry] = &[
    Entry::U32("context_length", &["max_position_embeddings"]),
    Entry::U32("embedding_length", &["hidden_size"]),
    Entry::U32("block_count", LAYERS),
    Entry::U32("feed_forward_length", &["intermediate_size"]),
    Entry::U32("attention.head_count", &["num_attention_heads"]),
    Entry::U32("attention.head_count_kv", &["num_key_value_heads", "num_attention_heads"]),
    Entry::F32("attention.layer_norm_rms_epsilon", &["rms_norm_eps"]),
    Entry::U32("attention.key_length", &["head_dim"]),
    Entry::U32("attention.value_length", &["head_dim"]),
    Entry::FileType,
];

/// Old and new name of the function.
fn set_activation(config: &mut Object) {
    for name in ["hidden_act", "hidden_activation"] {
        config.set(name, text("gelu_pytorch_tanh"));
    }
}

/// What queries are divided by the root of: the length of a head, or of the model with so many layers the share of the hidden size.
fn set_scale(stored: &Stored<'_>, config: &mut Object, layers: u32) -> Result<(), Error> {
    let len = match stored.u32("block_count")? {
        Some(own) if own == layers => {
            let heads = stored.need_u32("attention.head_count")?.max(1);
            stored.need_u32("embedding_length")? / heads
        }
        _ => stored.head_len()?,
    };
    config.set("query_pre_attn_scalar", int(len));
    Ok(())
}

/// Norms before and after each part of a layer.
const FOUR_NORMS: &[Name] = &[
    ("layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"),
    ("layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

/// The head is the embedding, also where a copy of it is stored.
fn without_head(name: &str) -> Option<alloc::string::String> {
    (name != "lm_head.weight").then(|| name.into())
}

fn gemma3_keys(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    let config = parameters.config;
    let number = |name: &str, default| Ok::<u32, Error>(config.u32(&[name])?.unwrap_or(default));
    parameters.set("context_length", number("max_position_embeddings", 131_072)?);
    parameters.set("attention.head_count", number("num_attention_heads", 8)?);
    parameters.set("attention.layer_norm_rms_epsilon", config.f32(&["rms_norm_eps"])?.unwrap_or(1e-6));
    parameters.set("attention.key_length", number("head_dim", 256)?);
    parameters.set("attention.value_length", number("head_dim", 256)?);
    let base = parameters.rope_f32("rope_theta")?.unwrap_or(1_000_000.0);
    parameters.set("rope.freq_base", base);
    if config.get("attn_logit_softcapping").is_some() {
        return Err(config.unexpected(&["attn_logit_softcapping"], "null, which Gemma 3 always has"));
    }
    let cap = config.f32(&["final_logit_softcapping"])?.filter(|cap| *cap != 0.0);
    parameters.set_some("final_logit_softcapping", cap);
    if config.get("sliding_window_pattern").and_then(Json::as_i64) != Some(1) {
        parameters.set("attention.sliding_window", config.need_u32(&["sliding_window"])?);
    }
    parameters.set("attention.head_count_kv", number("num_key_value_heads", 4)?);
    Ok(())
}

/// Norms are stored as the difference from one.
fn shift_norms(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    let change = if name.ends_with("norm.weight") { Change::PlusOne } else { Change::Nothing };
    builder.add_views(&name, view.shape(), alloc::vec![view], change)
}

/// Embeddings beyond the tokens are left out.
fn shift_norms_and_cut_rows(builder: &mut Builder<'_>, mut incoming: Incoming) -> Result<(), Error> {
    if incoming.name.contains("embed_tokens.weight")
        // Changes of an embedding have its rows as columns, and are not cut.
        && !builder.is_change(&incoming.view)
        && let Some(&rows) = incoming.view.shape().first()
    {
        let view = incoming.view.clone().slice(0, 0, rows.min(n_tokens(builder)?));
        incoming.view = view.unwrap_or(incoming.view);
    }
    shift_norms(builder, incoming)
}

/// As many as the configuration says with a model of SentencePiece, which is filled up to that number, else as many as the
/// tokenizer has.
fn n_tokens(builder: &Builder<'_>) -> Result<u64, Error> {
    const FILE: &str = "tokenizer.json";
    if builder.texts.get("tokenizer.model").is_some() {
        return Ok(builder.config.need_u32(&["vocab_size"])?.into());
    }
    let bytes = builder.texts.get(FILE).ok_or_else(|| ErrorKind::MissingFile { file: FILE.into() })?;
    let tokenizer = Json::from_bytes(FILE, bytes)?;
    let vocabulary = tokenizer.get("model").and_then(|model| model.get("vocab"));
    let n_vocabulary = match vocabulary {
        Some(Json::Object(tokens)) => tokens.len(),
        Some(Json::Array(tokens)) => tokens.len(),
        _ => 0,
    };
    let n_added = tokenizer.get("added_tokens").and_then(Json::as_array).map_or(0, <[Json]>::len);
    Ok((n_vocabulary + n_added) as u64)
}
