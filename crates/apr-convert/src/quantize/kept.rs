//! Tensors that keep their type.

use core::fmt;

use tensor_dtype::Dtype;

/// Why a tensor keeps its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kept {
    /// It has one dimension: biases, scales of norms.
    OneDimension,
    /// Its elements are integers.
    NoFloats,
    /// Its elements are of a type that is not decoded.
    NotDecoded,
    /// Its name does not end in `weight`.
    Name,
    /// It is a norm.
    Norm,
    /// It selects experts, or is too small or too sensitive: recognized by a part of its name.
    Sensitive {
        /// Part of the name.
        part: &'static str,
    },
    /// It is the output tensor, which an option excludes.
    Output,
    /// It has no elements.
    Empty,
    /// It was named as one without which the model would be another: see [`Options::exact`](super::Options::exact).
    Exact,
}

impl Kept {
    /// Identifier in reports.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::OneDimension => "kept-1d",
            Self::NoFloats | Self::NotDecoded => "kept-no-floats",
            Self::Name => "kept-name",
            Self::Norm => "kept-norm",
            Self::Sensitive { .. } => "kept-sensitive",
            Self::Output => "kept-output",
            Self::Empty => "kept-empty",
            Self::Exact => "kept-exact",
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneDimension => f.write_str("kept: 1-D"),
            Self::NoFloats => f.write_str("kept: integers"),
            Self::NotDecoded => f.write_str("kept: its type is not converted"),
            Self::Name => f.write_str("kept: not a weight by its name"),
            Self::Norm => f.write_str("kept: norm"),
            Self::Sensitive { part } => write!(f, "kept: `{part}` is small or sensitive"),
            Self::Output => f.write_str("kept: output tensor"),
            Self::Empty => f.write_str("kept: no elements"),
            Self::Exact => f.write_str("kept: not a weight matrix"),
        }
    }
}

/// Parts of names of tensors that llama-quantize leaves alone: gates, routing tables, convolutions, positions,
/// relative biases, what RWKV mixes over time, patches and codebooks of vision and sound.
const SENSITIVE: &[&str] = &[
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
];

/// Whole names of the same kind.
const SENSITIVE_NAMES: &[&str] = &["position_embd.weight", "token_types.weight"];

/// Why a tensor of this shape and type keeps its type in any model.
pub(super) fn by_shape(shape: &[u64], dtype: Option<Dtype>) -> Option<Kept> {
    match dtype {
        None => return Some(Kept::NotDecoded),
        Some(Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64) => return Some(Kept::NoFloats),
        Some(_) => {}
    }
    if shape.contains(&0) {
        return Some(Kept::Empty);
    }
    // As ggml counts them: ones in front do not make a vector a matrix.
    let rank = shape.iter().skip_while(|dim| **dim == 1).count();
    (rank < 2).then_some(Kept::OneDimension)
}

/// Whether llama-quantize leaves a tensor of this name alone.
pub(super) fn by_name(name: &str) -> Option<Kept> {
    if !name.ends_with("weight") {
        return Some(Kept::Name);
    }
    if name.contains("_norm.weight") {
        return Some(Kept::Norm);
    }
    let whole = SENSITIVE_NAMES.iter().find(|known| **known == name);
    let part = whole.or_else(|| SENSITIVE.iter().find(|part| name.contains(**part)));
    part.map(|part| Kept::Sensitive { part })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_in_front_make_no_matrix() {
        let kept = |shape: &[u64]| by_shape(shape, Some(Dtype::F32));
        assert_eq!(kept(&[64]), Some(Kept::OneDimension));
        assert_eq!(kept(&[1, 64]), Some(Kept::OneDimension));
        assert_eq!(kept(&[]), Some(Kept::OneDimension));
        assert_eq!(kept(&[1, 1, 2, 64]), None);
        // One column: a matrix by the reference's count, too.
        assert_eq!(kept(&[64, 1]), None);
        assert_eq!(kept(&[64, 0]), Some(Kept::Empty));
        assert_eq!(by_shape(&[4, 4], Some(Dtype::I32)), Some(Kept::NoFloats));
        assert_eq!(by_shape(&[4, 4], None), Some(Kept::NotDecoded));
        assert_eq!(by_shape(&[4, 32], Some(Dtype::Q8_0)), None);
    }

    #[test]
    fn names_that_llama_quantize_leaves_alone() {
        assert_eq!(by_name("blk.0.attn_q.weight"), None);
        assert_eq!(by_name("blk.0.attn_q.bias"), Some(Kept::Name));
        assert_eq!(by_name("blk.0.attn_q_norm.weight"), Some(Kept::Norm));
        assert_eq!(by_name("position_embd.weight"), Some(Kept::Sensitive { part: "position_embd.weight" }));
        assert_eq!(by_name("v.position_embd.weight"), Some(Kept::Sensitive { part: ".position_embd" }));
        assert_eq!(
            by_name("blk.1.ffn_gate_inp.weight"),
            Some(Kept::Sensitive { part: "ffn_gate_inp.weight" })
        );
    }
}
