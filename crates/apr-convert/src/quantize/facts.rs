//! Facts about a model that the mixtures depend on.

use gguf_core::{Header, Value};

/// `general.name` of a model without a name.
const UNNAMED: &str = "unknown";

/// Properties of a model besides its tensors. Without an architecture the generic rule applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// `<architecture>.block_count`.
    pub n_layers: Option<u64>,
    /// `<architecture>.expert_count`.
    pub n_experts: Option<u64>,
    /// `<architecture>.attention.head_count` of the first layer.
    pub n_heads: Option<u64>,
    /// `<architecture>.attention.head_count_kv` of the first layer.
    pub n_heads_kv: Option<u64>,
}

impl ModelFacts {
    /// Those of a GGUF file; none if its architecture is `unknown`.
    #[must_use]
    pub fn of_gguf(header: &Header<'_>) -> Self {
        let architecture = header.get("general.architecture").and_then(|value| value.as_str());
        let Some(architecture) = architecture.filter(|name| *name != UNNAMED) else {
            return Self::default();
        };
        let number =
            |key: &str| header.get(&format!("{architecture}.{key}")).and_then(|value| first_number(&value));
        Self {
            architecture: Some(architecture.to_owned()),
            n_layers: number("block_count"),
            n_experts: number("expert_count"),
            n_heads: number("attention.head_count"),
            n_heads_kv: number("attention.head_count_kv"),
        }
    }

    /// Query heads that share a key head.
    pub(super) fn heads_per_kv(&self) -> u64 {
        let n_heads = self.n_heads.unwrap_or(0);
        n_heads.checked_div(self.n_heads_kv.unwrap_or(n_heads)).unwrap_or(0)
    }

    pub(super) fn is(&self, architecture: &str) -> bool {
        self.architecture.as_deref() == Some(architecture)
    }

    /// The one size that the mixtures treat apart.
    pub(super) fn is_llama_70b(&self) -> bool {
        self.is("llama")
            && self.n_layers == Some(80)
            && self.n_heads_kv.is_some_and(|n_heads_kv| self.n_heads != Some(n_heads_kv))
    }
}

/// A number, or the first of an array: some models have one per layer.
fn first_number(value: &Value<'_>) -> Option<u64> {
    match value.as_array() {
        Some(array) => array.iter().next().and_then(|value| value.to_u64()),
        None => value.to_u64(),
    }
}
