//! T5, and its encoder alone.

use alloc::vec;
use alloc::vec::Vec;

use super::{Architecture, Name};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::parameters::{Entry, LAYERS};
use crate::restore::{FolderTensor, Restore, Stored, int, text};
use crate::tensors::build::{Builder, Incoming};

pub(super) const T5: Architecture = Architecture {
    name: "t5",
    classes: &[
        "T5ForConditionalGeneration",
        "T5WithLMHeadModel",
        "MT5ForConditionalGeneration",
        "UMT5ForConditionalGeneration",
        "UMT5Model",
    ],
    entries: &[
        Entry::All(BEGIN),
        Entry::SomeU32("decoder_block_count", &["num_decoder_layers"]),
        Entry::All(ATTENTION),
        Entry::U32("decoder_start_token_id", &["decoder_start_token_id"]),
        Entry::FileType,
    ],
    prepare: |config| {
        const WHY: &str = "the decoder has more layers than the encoder";
        let (encoder, decoder) = (config.need_u32(LAYERS)?, config.u32(&["num_decoder_layers"])?);
        Ok(decoder.is_some_and(|decoder| decoder > encoder).then_some(WHY))
    },
    prefix: "",
    names: &[OUTER, ENCODER, DECODER],
    needed: &[IN_ENCODER, IN_DECODER],
    change: keep_one_embedding,
    restore: Some(Restore {
        model: |stored| {
            // Every layer has its own bias of positions in one of the kinds.
            Ok(match stored.has("enc.blk.1.attn_rel_b.weight") {
                true => ("UMT5ForConditionalGeneration", "umt5"),
                false => ("T5ForConditionalGeneration", "t5"),
            })
        },
        config: restored_config,
        tensors: restored_tensors,
        ..Restore::PLAIN
    }),
    ..Architecture::PLAIN
};

pub(super) const T5_ENCODER: Architecture = Architecture {
    name: "t5encoder",
    classes: &["T5EncoderModel"],
    entries: &[Entry::All(BEGIN), Entry::All(ATTENTION), Entry::FileType],
    names: &[OUTER, ENCODER],
    needed: &[IN_ENCODER],
    restore: Some(Restore {
        model: |_| Ok(("T5EncoderModel", "t5")),
        config: restored_config,
        tensors: restored_tensors,
        ..Restore::PLAIN
    }),
    ..T5
};

const BEGIN: &[Entry] = &[
    Entry::With(|parameters| {
        let len = parameters.config.u32(&["n_positions"])?;
        parameters.set("context_length", len.unwrap_or(512));
        Ok(())
    }),
    Entry::U32("embedding_length", &["d_model"]),
    Entry::U32("feed_forward_length", &["d_ff"]),
    Entry::U32("block_count", LAYERS),
];

const ATTENTION: &[Entry] = &[
    Entry::U32("attention.head_count", &["num_heads"]),
    Entry::U32("attention.key_length", &["d_kv"]),
    Entry::U32("attention.value_length", &["d_kv"]),
    Entry::F32("attention.layer_norm_epsilon", &["layer_norm_epsilon"]),
    Entry::U32("attention.relative_buckets_count", &["relative_attention_num_buckets"]),
    Entry::F32("attention.layer_norm_rms_epsilon", &["layer_norm_epsilon"]),
];

const OUTER: &[Name] = &[("shared", "token_embd"), ("lm_head", "output")];

const ENCODER: &[Name] = &[
    ("encoder.block.{}.layer.0.layer_norm", "enc.blk.{}.attn_norm"),
    ("encoder.block.{}.layer.0.SelfAttention.q", "enc.blk.{}.attn_q"),
    ("encoder.block.{}.layer.0.SelfAttention.k", "enc.blk.{}.attn_k"),
    ("encoder.block.{}.layer.0.SelfAttention.v", "enc.blk.{}.attn_v"),
    ("encoder.block.{}.layer.0.SelfAttention.o", "enc.blk.{}.attn_o"),
    ("encoder.block.{}.layer.0.SelfAttention.relative_attention_bias", "enc.blk.{}.attn_rel_b"),
    ("encoder.block.{}.layer.1.layer_norm", "enc.blk.{}.ffn_norm"),
    ("encoder.block.{}.layer.1.DenseReluDense.wi", "enc.blk.{}.ffn_up"),
    ("encoder.block.{}.layer.1.DenseReluDense.wi_0", "enc.blk.{}.ffn_gate"),
    ("encoder.block.{}.layer.1.DenseReluDense.wi_1", "enc.blk.{}.ffn_up"),
    ("encoder.block.{}.layer.1.DenseReluDense.wo", "enc.blk.{}.ffn_down"),
    ("encoder.final_layer_norm", "enc.output_norm"),
];

const DECODER: &[Name] = &[
    ("decoder.block.{}.layer.0.layer_norm", "dec.blk.{}.attn_norm"),
    ("decoder.block.{}.layer.0.SelfAttention.q", "dec.blk.{}.attn_q"),
    ("decoder.block.{}.layer.0.SelfAttention.k", "dec.blk.{}.attn_k"),
    ("decoder.block.{}.layer.0.SelfAttention.v", "dec.blk.{}.attn_v"),
    ("decoder.block.{}.layer.0.SelfAttention.o", "dec.blk.{}.attn_o"),
    ("decoder.block.{}.layer.0.SelfAttention.relative_attention_bias", "dec.blk.{}.attn_rel_b"),
    ("decoder.block.{}.layer.1.layer_norm", "dec.blk.{}.cross_attn_norm"),
    ("decoder.block.{}.layer.1.EncDecAttention.q", "dec.blk.{}.cross_attn_q"),
    ("decoder.block.{}.layer.1.EncDecAttention.k", "dec.blk.{}.cross_attn_k"),
    ("decoder.block.{}.layer.1.EncDecAttention.v", "dec.blk.{}.cross_attn_v"),
    ("decoder.block.{}.layer.1.EncDecAttention.o", "dec.blk.{}.cross_attn_o"),
    ("decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias", "dec.blk.{}.cross_attn_rel_b"),
    ("decoder.block.{}.layer.2.layer_norm", "dec.blk.{}.ffn_norm"),
    ("decoder.block.{}.layer.2.DenseReluDense.wi", "dec.blk.{}.ffn_up"),
    ("decoder.block.{}.layer.2.DenseReluDense.wi_0", "dec.blk.{}.ffn_gate"),
    ("decoder.block.{}.layer.2.DenseReluDense.wi_1", "dec.blk.{}.ffn_up"),
    ("decoder.block.{}.layer.2.DenseReluDense.wo", "dec.blk.{}.ffn_down"),
    ("decoder.final_layer_norm", "dec.output_norm"),
];

const IN_ENCODER: &[&str] = &[
    "token_embd.weight",
    "enc.output_norm.weight",
    "enc.blk.{}.attn_norm.weight",
    "enc.blk.{}.attn_q.weight",
    "enc.blk.{}.attn_k.weight",
    "enc.blk.{}.attn_v.weight",
    "enc.blk.{}.attn_o.weight",
];

const IN_DECODER: &[&str] = &[
    "dec.output_norm.weight",
    "dec.blk.{}.attn_norm.weight",
    "dec.blk.{}.attn_q.weight",
    "dec.blk.{}.attn_k.weight",
    "dec.blk.{}.attn_v.weight",
    "dec.blk.{}.attn_o.weight",
    "dec.blk.{}.cross_attn_norm.weight",
    "dec.blk.{}.cross_attn_q.weight",
    "dec.blk.{}.cross_attn_k.weight",
    "dec.blk.{}.cross_attn_v.weight",
    "dec.blk.{}.cross_attn_o.weight",
];

/// Whether there are gates, and how many positions if it is not the usual number.
fn restored_config(stored: &Stored<'_>, config: &mut Object) -> Result<(), Error> {
    const USUAL: u32 = 512;
    let has_gates = stored.has("enc.blk.0.ffn_gate.weight");
    config.set("feed_forward_proj", text(if has_gates { "gated-gelu" } else { "relu" }));
    config.set("is_encoder_decoder", Json::Bool(stored.architecture() == "t5"));
    if let Some(len) = stored.u32("context_length")?.filter(|len| *len != USUAL) {
        config.set("n_positions", int(len));
    }
    Ok(())
}

/// The second matrix has another name where there are gates.
fn restored_tensors(
    stored: &Stored<'_>,
    name: &str,
    shape: &[u64],
) -> Result<Option<Vec<FolderTensor>>, Error> {
    let is_second = name.ends_with(".ffn_up.weight") && stored.has("enc.blk.0.ffn_gate.weight");
    let own = T5.folder_name(name).filter(|_| is_second);
    Ok(own.map(|own| vec![(own.replace(".wi.", ".wi_1."), shape.to_vec())]))
}

/// Encoder and decoder share their embeddings, of which files have one copy or several: the first counts.
fn keep_one_embedding(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    const COPIES: [&str; 3] = ["decoder.embed_tokens.weight", "encoder.embed_tokens.weight", "shared.weight"];
    let Incoming { name, view, .. } = incoming;
    if !COPIES.contains(&name.as_str()) {
        return builder.add(&name, view);
    }
    if builder.has("token_embd.weight") {
        return Ok(());
    }
    builder.add("shared.weight", view)
}
