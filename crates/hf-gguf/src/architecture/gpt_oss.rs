//! GPT-OSS, whose experts are stored in blocks of MXFP4.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::{Architecture, DECODER, Name};
use crate::config::MXFP4;
use crate::error::{Error, ErrorKind};
use crate::parameters::Entry;
use crate::tensors::build::{Builder, Change, Incoming};
use crate::tensors::view::View;

pub(super) const GPT_OSS: Architecture = Architecture {
    name: "gpt-oss",
    classes: &["GptOssForCausalLM"],
    entries: &[
        Entry::Common,
        Entry::U32("attention.sliding_window", &["sliding_window"]),
        Entry::U32("expert_feed_forward_length", &["intermediate_size"]),
    ],
    names: &[NAMES, DECODER],
    rename: |name| Some(if name.contains("sinks") { format!("{name}.weight") } else { name.into() }),
    change: split_experts,
    ..Architecture::PLAIN
};

const NAMES: &[Name] = &[
    ("layers.{}.self_attn.sinks", "blk.{}.attn_sinks"),
    ("layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("layers.{}.mlp.router", "blk.{}.ffn_gate_inp"),
    ("layers.{}.mlp.experts.gate_proj", "blk.{}.ffn_gate_exps"),
    ("layers.{}.mlp.experts.up_proj", "blk.{}.ffn_up_exps"),
    ("layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps"),
];

/// Kinds of tensors that are put together, as they are collected.
const BLOCKS: &str = "mlp.experts blocks";

/// Rows of gates and of what they gate alternate. Matrices are transposed; blocks and their scales become blocks of ggml.
fn split_experts(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { name, layer, view } = incoming;
    let Some((base, part)) = name.split_once(".mlp.experts.") else { return builder.add(&name, view) };
    let (matrix, kind) = match part.strip_prefix("down_proj") {
        Some(kind) => ("down_proj", kind),
        None => ("gate_up_proj", part.strip_prefix("gate_up_proj").ok_or(ErrorKind::UnknownTensor)?),
    };
    let has_blocks = builder.config.quantization_method() == Some(MXFP4);
    let new_name = |part: &str, end: &str| format!("{base}.mlp.experts.{part}.{end}");
    match kind {
        "_bias" => {
            for (part, view) in parts(matrix, 1, view.clone()).ok_or_else(|| pairs(builder, &view))? {
                builder.add_views(&new_name(part, "bias"), view.shape(), vec![view], Change::Nothing)?;
            }
            Ok(())
        }
        "" => {
            let transposed = view.clone().swap(1, 2).filter(|view| view.shape().len() == 3);
            let found =
                transposed.and_then(|view| parts(matrix, 1, view)).ok_or_else(|| pairs(builder, &view))?;
            for (part, view) in found {
                builder.add_views(&new_name(part, "weight"), view.shape(), vec![view], Change::Nothing)?;
            }
            Ok(())
        }
        "_blocks" | "_scales" if has_blocks => {
            // Whichever comes first waits.
            let Some(other) = builder.pair(layer, BLOCKS, matrix, view.clone())? else { return Ok(()) };
            let (blocks, scales) = if kind == "_blocks" { (view, other) } else { (other, view) };
            let scales = parts(matrix, 1, scales.clone()).ok_or_else(|| pairs(builder, &scales))?;
            let blocks = parts(matrix, 1, blocks.clone()).ok_or_else(|| pairs(builder, &blocks))?;
            for ((part, scales), (_, blocks)) in scales.into_iter().zip(blocks) {
                builder.add_blocks(&new_name(part, "weight"), blocks, scales)?;
            }
            Ok(())
        }
        _ => Err(ErrorKind::UnknownTensor.into()),
    }
}

/// The parts of a tensor by their names: even and odd rows of gates and ups.
fn parts(matrix: &str, axis: usize, view: View) -> Option<Vec<(&'static str, View)>> {
    if matrix == "down_proj" {
        return Some(vec![("down_proj", view)]);
    }
    let rows = view.shape().get(axis).copied().filter(|rows| rows.is_multiple_of(2))?;
    let pairs = view.split(axis, &[rows / 2, 2])?;
    let part = |idx| pairs.clone().slice(axis + 1, idx, idx + 1)?.without(axis + 1);
    Some(vec![("gate_proj", part(0)?), ("up_proj", part(1)?)])
}

fn pairs(builder: &Builder<'_>, view: &View) -> Error {
    builder.shape_error(view, "experts with pairs of rows".into())
}
