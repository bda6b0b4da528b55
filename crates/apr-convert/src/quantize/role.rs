//! The role of a tensor in a language model, by its GGUF name.

/// The role of a tensor in a language model. All other tensors are treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// From tokens to vectors.
    TokenEmbedding,
    /// From vectors to scores of tokens.
    Output,
    /// Queries, keys and values in one matrix.
    AttentionQkv,
    /// Keys and values, compressed.
    AttentionKvB,
    /// Queries.
    AttentionQ,
    /// Keys.
    AttentionK,
    /// Values.
    AttentionV,
    /// Back from attention.
    AttentionOutput,
    /// Into the feed-forward part.
    FfnUp,
    /// The gate of it.
    FfnGate,
    /// Out of it.
    FfnDown,
    /// Anything else.
    Other,
}

/// Parts of names, of which the first match applies.
const PARTS: &[(&str, Role)] = &[
    ("attn_qkv.weight", Role::AttentionQkv),
    ("attn_kv_b.weight", Role::AttentionKvB),
    ("attn_v.weight", Role::AttentionV),
    ("attn_k.weight", Role::AttentionK),
    ("attn_q.weight", Role::AttentionQ),
    ("attn_output.weight", Role::AttentionOutput),
    ("ffn_up", Role::FfnUp),
    ("ffn_gate", Role::FfnGate),
    ("ffn_down", Role::FfnDown),
];

impl Role {
    /// The role of a tensor of this name.
    ///
    /// ```
    /// use apr_convert::quantize::Role;
    ///
    /// assert_eq!(Role::of("blk.3.ffn_down_exps.weight"), Role::FfnDown);
    /// assert_eq!(Role::of("encoder.layer.0.output.dense.weight"), Role::Other);
    /// ```
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "output.weight" => Self::Output,
            "token_embd.weight" | "per_layer_token_embd.weight" => Self::TokenEmbedding,
            _ => PARTS.iter().find(|(part, _)| name.contains(part)).map_or(Self::Other, |(_, role)| *role),
        }
    }

    /// Whether it holds values, which suffer most from few bits.
    pub(super) const fn holds_values(self) -> bool {
        matches!(self, Self::AttentionV | Self::AttentionQkv | Self::AttentionKvB)
    }
}

/// The layer that a name begins with: 3 of `blk.3.ffn_up.weight`.
pub(super) fn layer(name: &str) -> Option<u64> {
    let (number, _) = name.strip_prefix("blk.")?.split_once('.')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_numbers_at_the_beginning() {
        assert_eq!(layer("blk.12.attn_q.weight"), Some(12));
        assert_eq!(layer("v.blk.1.ffn_up.weight"), None);
        assert_eq!(layer("blk.x.ffn_up.weight"), None);
        assert_eq!(layer("blk.99999999999999999999.w"), None);
    }

    #[test]
    fn the_first_part_that_fits_decides() {
        assert_eq!(Role::of("blk.0.attn_qkv.weight"), Role::AttentionQkv);
        assert_eq!(Role::of("blk.0.attn_v.bias"), Role::Other);
        assert_eq!(Role::of("blk.0.ffn_gate_inp.weight"), Role::FfnGate);
        assert_eq!(Role::of("dec.output.weight"), Role::Other);
    }
}
