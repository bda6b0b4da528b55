//! Mixtures: tensors of a language model that get another type than most.
//!
//! The choices are those of llama-quantize (llama.cpp 0c1e57098), with the same counting: attention-value and feed-forward
//! tensors in the order of the output, quotients rounded down.

use tensor_dtype::Dtype;
use tensor_dtype::Dtype::{MXFP4, Q3_K, Q4_1, Q4_K, Q5_1, Q5_K, Q6_K, Q8_0};

use super::facts::ModelFacts;
use super::role::{Role, layer};
use super::target::{FileType, Target};

/// What has been decided so far, and what of the whole model matters for the rest.
#[derive(Debug)]
pub(super) struct Mixer<'a> {
    target: Target,
    facts: &'a ModelFacts,
    with_importance: bool,
    /// There is no output tensor: the token embeddings are used twice.
    is_tied: bool,
    n_values: u64,
    n_layers: u64,
    values_seen: u64,
    downs_seen: u64,
}

/// Whether a layer is one of those that get more bits: the first and the last eighth, and each third between them.
const fn gets_more(idx: u64, count: u64) -> bool {
    let eighth = count / 8;
    idx < eighth || idx >= 7 * count / 8 || (idx - eighth) % 3 == 2
}

impl<'a> Mixer<'a> {
    pub(super) fn new(
        target: Target,
        facts: &'a ModelFacts,
        with_importance: bool,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let named_layers = || names.clone().filter_map(layer).max().map_or(0, |last| last.saturating_add(1));
        Self {
            target,
            facts,
            with_importance,
            is_tied: names.clone().all(|name| Role::of(name) != Role::Output),
            n_values: names.clone().filter(|name| Role::of(name).holds_values()).count() as u64,
            // Bounded, so that products of it are.
            n_layers: facts.n_layers.unwrap_or_else(named_layers).min(1 << 32),
            values_seen: 0,
            downs_seen: 0,
        }
    }

    /// Whether the tensor is the output tensor, or is used as the output tensor.
    pub(super) fn is_output(&self, role: Role) -> bool {
        role == Role::Output || self.is_tied && role == Role::TokenEmbedding
    }

    /// The format for the next tensor, rows of any length.
    pub(super) fn choose(&mut self, name: &str, shape: &[u64], role: Role) -> Dtype {
        let base = self.target.base();
        let of_experts = self.target.file_type() == FileType::MXFP4_MOE;
        match role {
            _ if self.is_output(role) => self.output(shape),
            _ if of_experts => {
                let is_expert = shape.iter().rev().nth(2).is_some_and(|count| *count > 1);
                let has_role = matches!(role, Role::FfnUp | Role::FfnGate | Role::FfnDown);
                let is_expert = is_expert && (has_role || !self.facts.is("bailingmoe3"));
                if is_expert { MXFP4 } else { Q8_0 }
            }
            Role::TokenEmbedding => match self.target.file_type() {
                FileType::TQ1_0 | FileType::TQ2_0 | FileType::Q2_0 => Q4_K,
                _ => base,
            },
            _ if role.holds_values() => self.values(),
            Role::AttentionK if self.facts.n_experts == Some(8) => Q8_0,
            Role::FfnDown => self.down(name),
            Role::AttentionOutput => self.attention_output(),
            _ => base,
        }
    }

    fn output(&self, shape: &[u64]) -> Dtype {
        let base = self.target.base();
        let columns = shape.last().copied().unwrap_or(1);
        let fits = columns.is_multiple_of(base.block_len() as u64);
        if self.target.file_type() == FileType::MXFP4_MOE || self.facts.is("falcon") || !fits || base == Q8_0
        {
            Q8_0
        } else {
            Q6_K
        }
    }

    fn values(&mut self) -> Dtype {
        let (idx, base) = (self.values_seen, self.target.base());
        self.values_seen += 1;
        let shared = self.facts.heads_per_kv() >= 4;
        let chosen = match self.target.file_type() {
            FileType::Q2_K => {
                if shared {
                    Q4_K
                } else {
                    Q3_K
                }
            }
            FileType::Q2_K_S if shared => Q4_K,
            FileType::Q3_K_M => {
                if idx < 2 {
                    Q5_K
                } else {
                    Q4_K
                }
            }
            FileType::Q3_K_L => Q5_K,
            FileType::IQ4_NL | FileType::IQ4_XS if shared => Q5_K,
            FileType::Q4_K_M | FileType::Q5_K_M if gets_more(idx, self.n_values) => Q6_K,
            FileType::Q4_K_S if idx < 4 => Q5_K,
            _ => base,
        };
        match chosen {
            _ if self.facts.n_experts == Some(8) => Q8_0,
            Q3_K | Q4_K if self.facts.is_llama_70b() => Q5_K,
            chosen => chosen,
        }
    }

    fn down(&mut self, name: &str) -> Dtype {
        let seen = self.downs_seen;
        self.downs_seen += 1;
        // Experts are spread over the file, so the layer is taken from the name.
        let by_name = layer(name).filter(|_| self.facts.n_experts.is_some_and(|count| count > 1));
        let (idx, count, base) = (by_name.unwrap_or(seen), self.n_layers, self.target.base());
        let (falcon, first) = (self.facts.is("falcon"), idx < count / 8);
        match self.target.file_type() {
            FileType::Q2_K => Q3_K,
            FileType::Q2_K_S if first => Q4_K,
            FileType::Q3_K_M if idx < count / 16 => Q5_K,
            FileType::Q3_K_M if !falcon || gets_more(idx, count) => Q4_K,
            FileType::Q3_K_L => {
                if falcon {
                    Q4_K
                } else {
                    Q5_K
                }
            }
            FileType::Q4_K_M if falcon && idx < count / 16 => Q6_K,
            FileType::Q4_K_M if gets_more(idx, count) => {
                if falcon {
                    Q5_K
                } else {
                    Q6_K
                }
            }
            FileType::IQ4_NL | FileType::IQ4_XS if first && !self.with_importance => Q5_K,
            FileType::Q5_K_M if gets_more(idx, count) => Q6_K,
            FileType::Q4_K_S if first && !falcon => Q5_K,
            FileType::Q4_0 if first && self.with_importance => Q4_1,
            FileType::Q5_0 if first && self.with_importance => Q5_1,
            _ => base,
        }
    }

    fn attention_output(&self) -> Dtype {
        let base = self.target.base();
        let file_type = self.target.file_type();
        if self.facts.is("falcon") {
            return if file_type == FileType::Q3_K_L { Q4_K } else { base };
        }
        if self.facts.n_experts == Some(8) {
            return match file_type {
                FileType::Q2_K
                | FileType::Q3_K_S
                | FileType::Q3_K_M
                | FileType::IQ4_NL
                | FileType::Q4_K_S
                | FileType::Q4_K_M
                | FileType::IQ4_XS => Q5_K,
                _ => base,
            };
        }
        match file_type {
            FileType::Q2_K => Q3_K,
            FileType::Q3_K_M => Q4_K,
            FileType::Q3_K_L => Q5_K,
            _ => base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats of one role's tensors, layer by layer.
    fn row(target: &str, facts: &ModelFacts, role: &str, with_importance: bool) -> Vec<&'static str> {
        let count = facts.n_layers.unwrap();
        let mut names: Vec<String> = (0..count).map(|idx| format!("blk.{idx}.{role}.weight")).collect();
        names.push("output.weight".to_owned());
        let all = names.iter().map(String::as_str);
        let mut mixer = Mixer::new(Target::from_name(target).unwrap(), facts, with_importance, all);
        let chosen = names[..count as usize].iter();
        chosen.map(|name| mixer.choose(name, &[256, 256], Role::of(name)).name()).collect()
    }

    fn facts(architecture: &str, n_layers: u64) -> ModelFacts {
        let (n_heads, n_heads_kv) = (Some(32), Some(32));
        let architecture = Some(architecture.to_owned());
        ModelFacts { architecture, n_layers: Some(n_layers), n_experts: None, n_heads, n_heads_kv }
    }

    #[test]
    fn first_last_and_each_third_layer_get_more() {
        let more: Vec<u64> = (0..16).filter(|idx| gets_more(*idx, 16)).collect();
        assert_eq!(more, [0, 1, 4, 7, 10, 13, 14, 15]);
        assert!(gets_more(0, 1) && gets_more(0, 0));
    }

    #[test]
    fn rows_of_the_mixtures() {
        let llama = facts("llama", 8);
        let down = row("q4_k_m", &llama, "ffn_down", false);
        assert_eq!(down, ["Q6_K", "Q4_K", "Q4_K", "Q6_K", "Q4_K", "Q4_K", "Q6_K", "Q6_K"]);
        let values = row("q4_k_s", &llama, "attn_v", false);
        assert_eq!(values, ["Q5_K", "Q5_K", "Q5_K", "Q5_K", "Q4_K", "Q4_K", "Q4_K", "Q4_K"]);
        assert_eq!(row("q3_k_m", &llama, "attn_v", false)[..3], ["Q5_K", "Q5_K", "Q4_K"]);
        assert!(row("q3_k_m", &llama, "ffn_down", false).iter().all(|dtype| *dtype == "Q4_K"));
        assert!(row("q2_k", &llama, "attn_output", false).iter().all(|dtype| *dtype == "Q3_K"));
        assert_eq!(row("q4_0", &llama, "ffn_down", true)[..2], ["Q4_1", "Q4_0"]);
        assert_eq!(row("q4_0", &llama, "ffn_down", false)[..2], ["Q4_0", "Q4_0"]);
        assert_eq!(row("iq4_xs", &llama, "ffn_down", false)[..2], ["Q5_K", "IQ4_XS"]);
    }

    #[test]
    fn shared_heads_and_experts_change_them() {
        let mut many = facts("llama", 8);
        many.n_heads_kv = Some(8);
        assert!(row("q2_k", &many, "attn_v", false).iter().all(|dtype| *dtype == "Q4_K"));
        assert!(row("iq4_xs", &many, "attn_v", false).iter().all(|dtype| *dtype == "Q5_K"));
        many.n_layers = Some(80);
        assert!(!row("q4_k_m", &many, "attn_v", false).contains(&"Q4_K"));
        many.n_experts = Some(8);
        assert!(row("q4_k_m", &many, "attn_v", false).iter().all(|dtype| *dtype == "Q8_0"));
        assert!(row("q4_k_m", &many, "attn_k", false).iter().all(|dtype| *dtype == "Q8_0"));
        assert!(row("q4_k_m", &many, "attn_output", false).iter().all(|dtype| *dtype == "Q5_K"));
        let falcon = facts("falcon", 16);
        let down = row("q4_k_m", &falcon, "ffn_down", false);
        assert_eq!(down[..5], ["Q6_K", "Q5_K", "Q4_K", "Q4_K", "Q5_K"]);
    }

    #[test]
    fn of_experts_only_the_experts() {
        let facts = facts("qwen3moe", 2);
        let target = Target::from_name("mxfp4_moe").unwrap();
        let names = ["output.weight", "blk.0.ffn_up_exps.weight", "blk.0.attn_q.weight"];
        let mut mixer = Mixer::new(target, &facts, false, names.iter().copied());
        let mut choose = |name: &str, shape: &[u64]| mixer.choose(name, shape, Role::of(name));
        assert_eq!(choose(names[0], &[4, 64]), Q8_0);
        assert_eq!(choose(names[1], &[8, 4, 64]), MXFP4);
        assert_eq!(choose(names[1], &[1, 4, 64]), Q8_0);
        assert_eq!(choose(names[2], &[4, 64]), Q8_0);
    }
}
