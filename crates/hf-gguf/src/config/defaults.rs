//! What the configuration classes of transformers 4.57.6 add to a `config.json`.
//!
//! Only values that the keys of a GGUF file depend on are here. A model whose `model_type` transformers does not know has none.

use crate::json::{Json, Object};

/// The configuration classes: `model_type`, the values of a configuration that lacks them, and other names that a value may have.
const CLASSES: &[Class] = &[
    Class {
        model_type: "llama",
        defaults: r#"{"vocab_size":32000,"max_position_embeddings":2048,"hidden_size":4096,"intermediate_size":11008,
            "num_hidden_layers":32,"num_attention_heads":32,"rms_norm_eps":1e-06,"rope_theta":10000.0}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys, Rule::HeadDimIfNone],
    },
    Class {
        model_type: "mistral",
        defaults: r#"{"vocab_size":32000,"max_position_embeddings":131072,"hidden_size":4096,"intermediate_size":14336,
            "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"rms_norm_eps":1e-06,"rope_theta":10000.0}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class {
        model_type: "mixtral",
        defaults: r#"{"vocab_size":32000,"max_position_embeddings":131072,"hidden_size":4096,"intermediate_size":14336,
            "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_theta":1000000.0,
            "num_experts_per_tok":2,"num_local_experts":8}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class {
        model_type: "qwen2",
        defaults: r#"{"vocab_size":151936,"max_position_embeddings":32768,"hidden_size":4096,"intermediate_size":22016,
            "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"rms_norm_eps":1e-06,"rope_theta":10000.0}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class {
        model_type: "qwen2_moe",
        defaults: r#"{"vocab_size":151936,"max_position_embeddings":32768,"hidden_size":2048,"intermediate_size":5632,
            "num_hidden_layers":24,"num_attention_heads":16,"num_key_value_heads":16,"rms_norm_eps":1e-06,"rope_theta":10000.0,
            "moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts_per_tok":4,"num_experts":60}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "qwen3",
        defaults: r#"{"vocab_size":151936,"max_position_embeddings":32768,"hidden_size":4096,"intermediate_size":22016,
            "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"head_dim":128,"rms_norm_eps":1e-06,
            "rope_theta":10000.0,"tie_word_embeddings":false}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class {
        model_type: "qwen3_moe",
        defaults: r#"{"vocab_size":151936,"max_position_embeddings":32768,"hidden_size":2048,"intermediate_size":6144,
            "num_hidden_layers":24,"num_attention_heads":32,"num_key_value_heads":4,"rms_norm_eps":1e-06,"rope_theta":10000.0,
            "moe_intermediate_size":768,"num_experts_per_tok":8,"num_experts":128}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "gemma",
        defaults: r#"{"vocab_size":256000,"max_position_embeddings":8192,"hidden_size":3072,"intermediate_size":24576,
            "num_hidden_layers":28,"num_attention_heads":16,"head_dim":256,"num_key_value_heads":16,"rms_norm_eps":1e-06,
            "rope_theta":10000.0}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "gemma2",
        defaults: r#"{"vocab_size":256000,"max_position_embeddings":8192,"hidden_size":2304,"intermediate_size":9216,
            "num_hidden_layers":26,"num_attention_heads":8,"head_dim":256,"num_key_value_heads":4,"rms_norm_eps":1e-06,
            "rope_theta":10000.0,"sliding_window":4096,"final_logit_softcapping":30.0,"attn_logit_softcapping":50.0}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "gemma3_text",
        defaults: r#"{"vocab_size":262208,"max_position_embeddings":131072,"hidden_size":2304,"intermediate_size":9216,
            "num_hidden_layers":26,"num_attention_heads":8,"head_dim":256,"num_key_value_heads":4,"rms_norm_eps":1e-06,
            "rope_theta":1000000.0,"rope_local_base_freq":10000.0,"sliding_window":4096,"final_logit_softcapping":null,
            "attn_logit_softcapping":null}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "phi",
        defaults: r#"{"vocab_size":51200,"max_position_embeddings":2048,"hidden_size":2048,"num_hidden_layers":24,
            "num_attention_heads":32,"layer_norm_eps":1e-05,"rope_theta":10000.0,"partial_rotary_factor":0.5}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "phi3",
        defaults: r#"{"vocab_size":32064,"max_position_embeddings":4096,"original_max_position_embeddings":4096,
            "hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":32,"num_attention_heads":32,"rms_norm_eps":1e-05,
            "rope_theta":10000.0,"partial_rotary_factor":1.0,"sliding_window":null}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys, Rule::LongRope],
    },
    Class {
        model_type: "starcoder2",
        defaults: r#"{"vocab_size":49152,"max_position_embeddings":4096,"hidden_size":3072,"intermediate_size":12288,
            "num_hidden_layers":30,"num_attention_heads":24,"num_key_value_heads":2,"norm_epsilon":1e-05,"rope_theta":10000.0}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "gpt2",
        defaults: r#"{"vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12,"layer_norm_epsilon":1e-05}"#,
        names: GPT2_NAMES,
        rules: &[],
    },
    Class {
        model_type: "gpt_neox",
        defaults: r#"{"vocab_size":50432,"max_position_embeddings":2048,"hidden_size":6144,"num_hidden_layers":44,
            "num_attention_heads":64,"intermediate_size":24576,"rotary_pct":0.25,"layer_norm_eps":1e-05,
            "use_parallel_residual":true}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "bloom",
        defaults: r#"{"vocab_size":250880,"hidden_size":64,"n_layer":2,"n_head":8,"layer_norm_epsilon":1e-05}"#,
        names: &[
            ("num_hidden_layers", "n_layer"),
            ("num_attention_heads", "n_head"),
            ("n_embed", "hidden_size"),
        ],
        rules: &[],
    },
    Class {
        model_type: "falcon",
        defaults: r#"{"vocab_size":65024,"hidden_size":4544,"num_hidden_layers":32,"num_attention_heads":71,
            "layer_norm_epsilon":1e-05}"#,
        names: &[("n_embed", "hidden_size")],
        rules: &[],
    },
    Class {
        model_type: "mpt",
        defaults: r#"{"vocab_size":50368,"d_model":2048,"n_heads":16,"n_layers":24,"max_seq_len":2048}"#,
        names: &[
            ("num_attention_heads", "n_heads"),
            ("hidden_size", "d_model"),
            ("num_hidden_layers", "n_layers"),
        ],
        rules: &[Rule::AttentionOfMpt],
    },
    Class {
        model_type: "stablelm",
        defaults: r#"{"vocab_size":50304,"max_position_embeddings":4096,"hidden_size":2560,"intermediate_size":6912,
            "num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"layer_norm_eps":1e-05,"rope_theta":10000,
            "use_parallel_residual":false,"partial_rotary_factor":0.25}"#,
        names: &[],
        rules: &[],
    },
    Class {
        model_type: "olmo",
        defaults: r#"{"vocab_size":50304,"max_position_embeddings":2048,"hidden_size":4096,"intermediate_size":11008,
            "num_hidden_layers":32,"num_attention_heads":32,"rope_theta":10000.0}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class {
        model_type: "olmo2",
        defaults: r#"{"vocab_size":50304,"max_position_embeddings":2048,"hidden_size":4096,"intermediate_size":11008,
            "num_hidden_layers":32,"num_attention_heads":32,"rms_norm_eps":1e-05,"rope_theta":10000.0}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class {
        model_type: "olmo3",
        defaults: r#"{"vocab_size":50304,"max_position_embeddings":2048,"hidden_size":4096,"intermediate_size":11008,
            "num_hidden_layers":32,"num_attention_heads":32,"rms_norm_eps":1e-05,"rope_theta":10000.0,"sliding_window":4096}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class {
        model_type: "olmoe",
        defaults: r#"{"vocab_size":50304,"max_position_embeddings":4096,"hidden_size":2048,"intermediate_size":2048,
            "num_hidden_layers":16,"num_attention_heads":16,"rms_norm_eps":1e-05,"rope_theta":10000.0,"num_experts_per_tok":8,
            "num_experts":64}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys],
    },
    Class { model_type: "granite", defaults: GRANITE, names: &[], rules: &[Rule::HeadsOfKeys] },
    Class {
        model_type: "granitemoe",
        defaults: GRANITE,
        names: &[],
        rules: &[Rule::HeadsOfKeys, Rule::ExpertsOfGranite],
    },
    Class {
        model_type: "granitemoeshared",
        defaults: GRANITE,
        names: &[],
        rules: &[Rule::HeadsOfKeys, Rule::ExpertsOfGranite],
    },
    Class {
        model_type: "gpt_oss",
        defaults: r#"{"vocab_size":201088,"max_position_embeddings":131072,"hidden_size":2880,"intermediate_size":2880,
            "num_hidden_layers":36,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"rms_norm_eps":1e-05,
            "rope_theta":150000.0,"rope_scaling":{"rope_type":"yarn","factor":32.0,"beta_fast":32.0,"beta_slow":1.0,
            "original_max_position_embeddings":4096},"sliding_window":128,"num_local_experts":128,"num_experts_per_tok":4}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys, Rule::HeadDimIfNone],
    },
    Class {
        model_type: "deepseek_v2",
        defaults: r#"{"vocab_size":32000,"max_position_embeddings":2048,"hidden_size":4096,"intermediate_size":11008,
            "num_hidden_layers":32,"num_attention_heads":32,"rms_norm_eps":1e-06,"rope_theta":10000.0,"first_k_dense_replace":0,
            "kv_lora_rank":512,"q_lora_rank":1536,"n_group":null,"n_routed_experts":64,"n_shared_experts":2,
            "qk_nope_head_dim":128,"qk_rope_head_dim":64,"routed_scaling_factor":1.0,"topk_group":null,"v_head_dim":128,
            "num_experts_per_tok":null,"norm_topk_prob":false,"moe_intermediate_size":1407,"tie_word_embeddings":false}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys, Rule::HeadDimOfRope],
    },
    Class {
        model_type: "deepseek_v3",
        defaults: r#"{"vocab_size":129280,"max_position_embeddings":4096,"hidden_size":7168,"intermediate_size":18432,
            "num_hidden_layers":61,"num_attention_heads":128,"num_key_value_heads":128,"rms_norm_eps":1e-06,
            "rope_theta":10000.0,"first_k_dense_replace":3,"kv_lora_rank":512,"q_lora_rank":1536,"n_group":8,
            "n_routed_experts":256,"n_shared_experts":1,"qk_nope_head_dim":128,"qk_rope_head_dim":64,
            "routed_scaling_factor":2.5,"topk_group":4,"v_head_dim":128,"num_experts_per_tok":8,"norm_topk_prob":true,
            "moe_intermediate_size":2048,"tie_word_embeddings":false}"#,
        names: &[],
        rules: &[Rule::HeadsOfKeys, Rule::HeadDimOfRope],
    },
    Class { model_type: "bert", defaults: BERT, names: &[], rules: &[] },
    Class { model_type: "camembert", defaults: BERT_PADDED, names: &[], rules: &[] },
    Class { model_type: "xlm-roberta", defaults: BERT_PADDED, names: &[], rules: &[] },
    Class { model_type: "roberta", defaults: ROBERTA, names: &[], rules: &[] },
    Class {
        model_type: "distilbert",
        defaults: r#"{"vocab_size":30522,"max_position_embeddings":512,"n_layers":6,"n_heads":12,"dim":768,"hidden_dim":3072,
            "pad_token_id":0}"#,
        names: &[
            ("hidden_size", "dim"),
            ("num_attention_heads", "n_heads"),
            ("num_hidden_layers", "n_layers"),
        ],
        rules: &[],
    },
    Class { model_type: "t5", defaults: T5, names: T5_NAMES, rules: &[Rule::LayersOfDecoder] },
    Class { model_type: "mt5", defaults: MT5, names: T5_NAMES, rules: &[Rule::LayersOfDecoder] },
    Class { model_type: "umt5", defaults: MT5, names: T5_NAMES, rules: &[Rule::LayersOfDecoder] },
];

const GRANITE: &str = r#"{"vocab_size":32000,"max_position_embeddings":2048,"hidden_size":4096,"intermediate_size":11008,
    "num_hidden_layers":32,"num_attention_heads":32,"rms_norm_eps":1e-06,"rope_theta":10000.0,"embedding_multiplier":1.0,
    "logits_scaling":1.0,"residual_multiplier":1.0,"attention_multiplier":1.0}"#;

const BERT: &str = r#"{"vocab_size":30522,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,
    "intermediate_size":3072,"max_position_embeddings":512,"type_vocab_size":2,"layer_norm_eps":1e-12,"pad_token_id":0}"#;

const BERT_PADDED: &str = r#"{"vocab_size":30522,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,
    "intermediate_size":3072,"max_position_embeddings":512,"type_vocab_size":2,"layer_norm_eps":1e-12,"pad_token_id":1}"#;

const ROBERTA: &str = r#"{"vocab_size":50265,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,
    "intermediate_size":3072,"max_position_embeddings":512,"type_vocab_size":2,"layer_norm_eps":1e-12,"pad_token_id":1}"#;

const T5: &str = r#"{"vocab_size":32128,"d_model":512,"d_kv":64,"d_ff":2048,"num_layers":6,"num_heads":8,
    "relative_attention_num_buckets":32,"layer_norm_epsilon":1e-06}"#;

const MT5: &str = r#"{"vocab_size":250112,"d_model":512,"d_kv":64,"d_ff":1024,"num_layers":8,"num_heads":6,
    "relative_attention_num_buckets":32,"layer_norm_epsilon":1e-06,"decoder_start_token_id":0}"#;

const GPT2_NAMES: &[(&str, &str)] = &[
    ("hidden_size", "n_embd"),
    ("max_position_embeddings", "n_positions"),
    ("num_attention_heads", "n_head"),
    ("num_hidden_layers", "n_layer"),
];

const T5_NAMES: &[(&str, &str)] = &[
    ("hidden_size", "d_model"),
    ("num_attention_heads", "num_heads"),
    ("num_hidden_layers", "num_layers"),
    ("head_dim", "d_kv"),
];

struct Class {
    model_type: &'static str,
    /// A JSON object.
    defaults: &'static str,
    /// Names in a file and the name that the class gives the value.
    names: &'static [(&'static str, &'static str)],
    rules: &'static [Rule],
}

/// Values that a class computes from others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// `num_key_value_heads` is `num_attention_heads` where it is null or absent.
    HeadsOfKeys,
    /// `head_dim` is `hidden_size` / `num_attention_heads` where it is null or absent.
    HeadDimIfNone,
    /// `head_dim` is always `qk_rope_head_dim`.
    HeadDimOfRope,
    /// `su` and `yarn` are names of `longrope`.
    LongRope,
    /// The inner configuration has defaults of its own.
    AttentionOfMpt,
    /// 8 experts, of which 2 are used.
    ExpertsOfGranite,
    /// As many layers in the decoder as in the encoder.
    LayersOfDecoder,
}

/// The defaults of a `model_type`; none for an unknown one.
pub(crate) fn of(model_type: &str) -> Object {
    let class = CLASSES.iter().find(|class| class.model_type == model_type);
    class.map_or_else(Object::default, |class| object(class.defaults))
}

/// The configuration as its class has it. Unknown classes leave it as it is.
pub(super) fn complete(values: &mut Object) {
    let model_type = values.get("model_type").and_then(Json::as_str).unwrap_or_default();
    let Some(class) = CLASSES.iter().find(|class| class.model_type == model_type) else { return };
    for (alias, name) in class.names {
        if let Some(value) = values.remove(alias) {
            values.set(name, value);
        }
    }
    for (name, value) in object(class.defaults).iter() {
        if values.get(name).is_none() {
            values.set(name, value.clone());
        }
    }
    for rule in class.rules {
        rule.apply(values);
    }
    rename_rope_type(values);
}

impl Rule {
    fn apply(self, values: &mut Object) {
        let is_none = |values: &Object, name| values.get(name).is_none_or(Json::is_null);
        match self {
            Self::HeadsOfKeys => default_to(values, "num_key_value_heads", "num_attention_heads"),
            Self::LayersOfDecoder => default_to(values, "num_decoder_layers", "num_layers"),
            Self::HeadDimOfRope => {
                if let Some(value) = values.get("qk_rope_head_dim").cloned() {
                    values.set("head_dim", value);
                }
            }
            Self::HeadDimIfNone => {
                let number = |name| values.get(name).and_then(Json::as_i64);
                let (hidden, heads) = (number("hidden_size"), number("num_attention_heads"));
                let len = hidden.zip(heads).and_then(|(hidden, heads)| hidden.checked_div(heads));
                if let Some(len) = len.filter(|_| is_none(values, "head_dim")) {
                    values.set("head_dim", Json::from(len));
                }
            }
            Self::LongRope => {
                if let Some(Json::Object(rope)) = values.get_mut("rope_scaling")
                    && let Some("su" | "yarn") = rope.get("type").and_then(Json::as_str)
                {
                    rope.set("type", Json::from("longrope"));
                }
            }
            Self::AttentionOfMpt => {
                let mut attention = object(r#"{"clip_qkv":null,"alibi":true,"alibi_bias_max":8}"#);
                let own = values.get("attn_config").and_then(Json::as_object);
                for (name, value) in own.into_iter().flat_map(Object::iter) {
                    attention.set(name, value.clone());
                }
                values.set("attn_config", Json::Object(attention));
            }
            Self::ExpertsOfGranite => {
                for (name, value) in [("num_local_experts", 8), ("num_experts_per_tok", 2)] {
                    if values.get(name).is_none() {
                        values.set(name, Json::from(value));
                    }
                }
            }
        }
    }
}

/// `type` of a scaling is its `rope_type`, whatever that was.
fn rename_rope_type(values: &mut Object) {
    if let Some(Json::Object(rope)) = values.get_mut("rope_scaling")
        && let Some(value) = rope.get("type").cloned()
    {
        rope.set("rope_type", value);
    }
}

/// Where `name` is null or absent, it is the value of `other`.
fn default_to(values: &mut Object, name: &str, other: &str) {
    if values.get(name).is_none_or(Json::is_null)
        && let Some(value) = values.get(other).cloned()
    {
        values.set(name, value);
    }
}

fn object(text: &str) -> Object {
    match Json::from_bytes("", text.as_bytes()) {
        Ok(Json::Object(object)) => object,
        _ => Object::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_defaults_is_an_object() {
        for class in CLASSES {
            assert!(!object(class.defaults).is_empty(), "{}", class.model_type);
        }
    }
}
