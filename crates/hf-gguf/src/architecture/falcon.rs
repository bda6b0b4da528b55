//! Falcon, which stores queries, keys and values by groups of heads that share keys.

use super::{Architecture, FUSED, NORM, Name, OUTER};
use crate::config::Config;
use crate::error::Error;
use crate::json::Json;
use crate::parameters::{Entry, LAYERS};
use crate::restore::{Restore, int};
use crate::tensors::build::{Builder, Change, Incoming};

pub(super) const FALCON: Architecture = Architecture {
    name: "falcon",
    classes: &["FalconForCausalLM", "RWForCausalLM"],
    entries: &[
        Entry::Constant("context_length", || 2048_u32.into()),
        // The order of queries, keys and values, by the name of its author.
        Entry::Constant("tensor_data_layout", || "jploski".into()),
        Entry::U32("embedding_length", &["hidden_size"]),
        Entry::With(|parameters| parameters.set_multiple("feed_forward_length", 4, &["hidden_size"])),
        Entry::U32("block_count", LAYERS),
        Entry::U32("attention.head_count", HEADS),
        Entry::With(|parameters| {
            let heads = parameters.config.u32(KEY_HEADS)?;
            parameters.set("attention.head_count_kv", heads.unwrap_or(1));
            Ok(())
        }),
        Entry::F32("attention.layer_norm_epsilon", &["layer_norm_epsilon"]),
        Entry::FileType,
    ],
    prepare: count_key_heads,
    prefix: "transformer.",
    names: &[NAMES],
    needed: &[OUTER, NORM, FUSED],
    change: untangle,
    restore: Some(Restore {
        model: |_| Ok(("FalconForCausalLM", "falcon")),
        config: |stored, config| {
            let heads = stored.need_u32("attention.head_count")?;
            let key_heads = stored.u32("attention.head_count_kv")?.unwrap_or(1);
            let is_new = stored.layer_has("attn_norm_2.weight") || key_heads > 1 && key_heads != heads;
            config.set("num_kv_heads", int(key_heads));
            config.set("multi_query", Json::Bool(key_heads == 1));
            config.set("new_decoder_architecture", Json::Bool(is_new));
            config.set("parallel_attn", Json::Bool(true));
            config.set("alibi", Json::Bool(false));
            config.set("bias", Json::Bool(stored.layer_has("attn_qkv.bias")));
            Ok(())
        },
        tensors: |stored, name, shape| {
            let Some((layer, end)) = name.split_once(".attn_norm.") else { return Ok(None) };
            let layer = layer.strip_prefix("blk.").filter(|_| stored.layer_has("attn_norm_2.weight"));
            let own = layer.map(|layer| alloc::format!("transformer.h.{layer}.ln_mlp.{end}"));
            Ok(own.map(|own| alloc::vec![(own, shape.to_vec())]))
        },
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

const HEADS: &[&str] = &["num_attention_heads", "n_head"];
const KEY_HEADS: &[&str] = &["num_kv_heads", "n_head_kv"];

const NAMES: &[Name] = &[
    ("word_embeddings", "token_embd"),
    ("h.{}.input_layernorm", "blk.{}.attn_norm"),
    ("h.{}.ln_attn", "blk.{}.attn_norm_2"),
    ("h.{}.ln_mlp", "blk.{}.attn_norm"),
    ("h.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("h.{}.self_attention.dense", "blk.{}.attn_output"),
    ("h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
];

/// Where the number of heads of keys is missing, there is one for all heads (`multi_query`) or one for each. Transformers says
/// one for each in either case, and the reference implementation stops at the shape of the tensors.
fn count_key_heads(config: &mut Config) -> Result<Option<&'static str>, Error> {
    const NAME: &str = "num_kv_heads";
    if config.get("model_type").and_then(Json::as_str) != Some("falcon") || config.get(NAME).is_some() {
        return Ok(None);
    }
    let is_new = config.bool(&["new_decoder_architecture"])?.unwrap_or(false);
    if config.bool(&["multi_query"])?.unwrap_or(true) && !is_new {
        config.set(NAME, Json::from(1));
        return Ok(Some("config.json has no num_kv_heads, which is 1 for a model with multi_query"));
    }
    let heads = config.need_u32(HEADS)?;
    config.set(NAME, Json::from(i64::from(heads)));
    Ok(None)
}

/// All queries, then all keys, then all values.
fn untangle(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, view, .. } = incoming;
    if !name.contains("query_key_value") {
        return builder.add(&name, view);
    }
    let heads = u64::from(builder.config.need_u32(HEADS)?);
    let groups = u64::from(builder.config.u32(KEY_HEADS)?.unwrap_or(1));
    let shape = view.shape();
    let rows = shape.first().copied().unwrap_or(0);
    let queries = heads.checked_div(groups).unwrap_or(0);
    let len = rows.checked_div(groups.saturating_mul(queries + 2)).unwrap_or(0);
    let parts = view.clone().split(0, &[groups, queries + 2, len]).map(|view| {
        let part = |begin, end| view.clone().slice(1, begin, end);
        [part(0, queries), part(queries, queries + 1), part(queries + 1, queries + 2)]
    });
    match parts.and_then(|parts| parts.into_iter().collect()) {
        Some(views) if groups > 0 && heads == groups * queries => {
            builder.add_views(&name, shape, views, Change::Nothing)
        }
        _ => {
            let expected = alloc::format!("queries of {heads} heads, keys and values of {groups}");
            Err(builder.shape_error(&view, expected))
        }
    }
}
