//! T5, and its encoder alone.

use super::{Architecture, Name};
use crate::error::Error;
use crate::parameters::{Entry, LAYERS};
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
    change: keep_one_embedding,
    ..Architecture::PLAIN
};

pub(super) const T5_ENCODER: Architecture = Architecture {
    name: "t5encoder",
    classes: &["T5EncoderModel"],
    entries: &[Entry::All(BEGIN), Entry::All(ATTENTION), Entry::FileType],
    names: &[OUTER, ENCODER],
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
