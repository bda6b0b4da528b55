//! Keys with a meaning in every file: their types, and values that contradict the tensors.
//!
//! Source: `gguf-py/gguf/constants.py` and the types that `src/llama-model-loader.cpp` requires (llama.cpp 0c1e57098). llama.cpp refuses a
//! file whose key has another type than it asks for, numbers of another width included.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::header::Header;
use crate::value::{Value, ValueType};

/// Type of the value of a known key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// A value of this type.
    One(ValueType),
    /// An array of values of this type.
    Array(ValueType),
    /// A value of this type, or an array of integers or booleans with one for each layer.
    OneOrPerLayer(ValueType),
}

impl KeyType {
    /// The type of a key; `None` if it is not known. The keys of an architecture are known by what follows its name.
    ///
    /// ```
    /// use gguf_core::{KeyType, ValueType};
    ///
    /// let bool = Some(KeyType::One(ValueType::Bool));
    /// assert_eq!(KeyType::of("tokenizer.ggml.add_bos_token"), bool);
    /// assert_eq!(KeyType::of("qwen2.context_length"), Some(KeyType::One(ValueType::U32)));
    /// assert_eq!(KeyType::of("my.key"), None);
    /// ```
    #[must_use]
    pub fn of(key: &str) -> Option<Self> {
        if let Some(name) = key.strip_prefix("general.") {
            return general(name);
        }
        if let Some(name) = key.strip_prefix("tokenizer.") {
            return tokenizer(name);
        }
        find(OTHERS, key).or_else(|| find(OF_ARCHITECTURES, key.split_once('.')?.1))
    }

    /// Type of the value or of its elements.
    #[must_use]
    pub const fn value_type(self) -> ValueType {
        match self {
            Self::One(value_type) | Self::Array(value_type) | Self::OneOrPerLayer(value_type) => value_type,
        }
    }

    /// Whether a value has this type.
    #[must_use]
    pub fn fits(self, value: &Value<'_>) -> bool {
        let is_integer = |kind: ValueType| {
            use ValueType::{Bool, I8, I16, I32, I64, U8, U16, U32, U64};
            matches!(kind, Bool | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
        };
        match (self, value.as_array()) {
            (Self::One(expected) | Self::OneOrPerLayer(expected), None) => value.value_type() == expected,
            // Of the bytes of a table and of token types, writers disagree about the sign.
            (Self::Array(expected), Some(array)) => {
                array.is_empty()
                    || array.element_type() == expected
                    || is_integer(expected) && is_integer(array.element_type())
            }
            (Self::OneOrPerLayer(_), Some(array)) => is_integer(array.element_type()),
            _ => false,
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(value_type) => value_type.fmt(f),
            Self::Array(value_type) => write!(f, "{value_type}[]"),
            Self::OneOrPerLayer(value_type) => write!(f, "{value_type}, or an array with one for each layer"),
        }
    }
}

type Table = &'static [(KeyType, &'static [&'static str])];

fn find(table: Table, name: &str) -> Option<KeyType> {
    table.iter().find(|(_, names)| names.contains(&name)).map(|(key_type, _)| *key_type)
}

fn general(name: &str) -> Option<KeyType> {
    let numbered = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?.strip_prefix('.')?;
        rest.split_once('.').filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_of_source = numbered("base_model").or_else(|| numbered("dataset")).is_some();
    let text = Some(KeyType::One(ValueType::Text));
    find(GENERAL, name).or_else(|| text.filter(|_| is_of_source || name.starts_with("source.")))
}

fn tokenizer(name: &str) -> Option<KeyType> {
    let text = Some(KeyType::One(ValueType::Text));
    let Some(name) = name.strip_prefix("ggml.") else {
        let is_template = name.starts_with("chat_template.");
        return find(TOKENIZER, name).or_else(|| text.filter(|_| is_template));
    };
    match name.ends_with("_token_id") {
        true => Some(KeyType::One(ValueType::U32)),
        false => find(TOKENIZER_GGML, name),
    }
}

const GENERAL: Table = &[
    (
        KeyType::One(ValueType::Text),
        &[
            "architecture",
            "type",
            "name",
            "author",
            "version",
            "organization",
            "finetune",
            "basename",
            "description",
            "quantized_by",
            "size_label",
            "license",
            "license.name",
            "license.link",
            "url",
            "doi",
            "uuid",
            "repo_url",
        ],
    ),
    (
        KeyType::One(ValueType::U32),
        &["alignment", "quantization_version", "file_type", "base_model.count", "dataset.count"],
    ),
    (KeyType::Array(ValueType::Text), &["tags", "languages", "datasets"]),
];

const TOKENIZER: Table = &[
    (KeyType::One(ValueType::Text), &["chat_template", "huggingface.json", "rwkv.world"]),
    (KeyType::Array(ValueType::Text), &["chat_templates"]),
];

const TOKENIZER_GGML: Table = &[
    (KeyType::One(ValueType::Text), &["model", "pre"]),
    (KeyType::Array(ValueType::Text), &["tokens", "merges"]),
    (KeyType::Array(ValueType::F32), &["scores"]),
    (KeyType::Array(ValueType::I32), &["token_type"]),
    (KeyType::Array(ValueType::U8), &["precompiled_charsmap"]),
    (KeyType::One(ValueType::U32), &["token_type_count"]),
    (
        KeyType::One(ValueType::Bool),
        &[
            "add_bos_token",
            "add_eos_token",
            "add_sep_token",
            "add_space_prefix",
            "remove_extra_whitespaces",
            "escape_whitespaces",
            "treat_whitespace_as_suffix",
        ],
    ),
];

const OTHERS: Table = &[
    (KeyType::One(ValueType::U16), &["split.no", "split.count"]),
    (KeyType::One(ValueType::I32), &["split.tensors.count"]),
    (KeyType::One(ValueType::Text), &["adapter.type", "quantize.imatrix.file", "quantize.imatrix.dataset"]),
    (KeyType::One(ValueType::F32), &["adapter.lora.alpha"]),
];

/// Keys that begin with the name of an architecture, without it.
const OF_ARCHITECTURES: Table = &[
    (
        KeyType::One(ValueType::U32),
        &[
            "vocab_size",
            "context_length",
            "embedding_length",
            "block_count",
            "leading_dense_block_count",
            "expert_feed_forward_length",
            "expert_shared_feed_forward_length",
            "expert_count",
            "expert_used_count",
            "expert_shared_count",
            "expert_group_count",
            "expert_group_used_count",
            "expert_gating_func",
            "moe_every_n_layers",
            "nextn_predict_layers",
            "interleave_moe_layer_step",
            "pooling_type",
            "decoder_start_token_id",
            "decoder_block_count",
            "features_length",
            "embedding_length_per_layer_input",
            "attention.key_length",
            "attention.value_length",
            "attention.key_length_mla",
            "attention.value_length_mla",
            "attention.q_lora_rank",
            "attention.kv_lora_rank",
            "attention.group_norm_groups",
            "attention.relative_buckets_count",
            "attention.sliding_window",
            "attention.shared_kv_layers",
            "rope.dimension_count",
            "rope.scaling.original_context_length",
            "ssm.conv_kernel",
            "ssm.inner_size",
            "ssm.state_size",
            "ssm.time_step_rank",
            "ssm.group_count",
            "wkv.head_size",
        ],
    ),
    (
        KeyType::OneOrPerLayer(ValueType::U32),
        &["feed_forward_length", "attention.head_count", "attention.head_count_kv"],
    ),
    (
        KeyType::One(ValueType::F32),
        &[
            "expert_weights_scale",
            "attn_logit_softcapping",
            "router_logit_softcapping",
            "final_logit_softcapping",
            "logit_scale",
            "residual_scale",
            "embedding_scale",
            "attention.layer_norm_epsilon",
            "attention.layer_norm_rms_epsilon",
            "attention.group_norm_epsilon",
            "attention.max_alibi_bias",
            "attention.clamp_kqv",
            "attention.scale",
            "rope.freq_base",
            "rope.freq_base_swa",
            "rope.scaling.factor",
            "rope.scaling.attn_factor",
            "rope.scaling.yarn_log_multiplier",
        ],
    ),
    (
        KeyType::One(ValueType::Bool),
        &[
            "use_parallel_residual",
            "expert_weights_norm",
            "swin_norm",
            "attention.causal",
            "rope.scaling.finetuned",
            "ssm.dt_b_c_rms",
        ],
    ),
    (KeyType::One(ValueType::Text), &["rope.scaling.type", "tensor_data_layout"]),
    (KeyType::Array(ValueType::I32), &["rope.dimension_sections"]),
    (KeyType::Array(ValueType::Text), &["classifier.output_labels"]),
];

/// A key that programs refuse or misread, although the file is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyProblem {
    /// The value does not have the type of the key.
    Type {
        /// The key.
        key: String,
        /// The type that it must have.
        expected: KeyType,
        /// Its type.
        found: String,
    },
    /// The key names a token that is not there.
    TokenId {
        /// The key.
        key: String,
        /// Its value.
        id: u64,
        /// Number of tokens.
        n_tokens: u64,
    },
    /// The token embeddings have another number of rows than there are tokens.
    Rows {
        /// Number of tokens.
        n_tokens: u64,
        /// Number of rows.
        rows: u64,
    },
}

impl fmt::Display for KeyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { key, expected, found } => {
                write!(f, "key `{key}` has type {found}; programs that know it expect {expected}")
            }
            Self::TokenId { key, id, n_tokens } => {
                write!(
                    f,
                    "key `{key}` is {id}, and the last of {n_tokens} tokens is {}",
                    n_tokens.saturating_sub(1)
                )
            }
            Self::Rows { n_tokens, rows } => {
                write!(f, "`tokenizer.ggml.tokens` has {n_tokens} tokens, and `{EMBEDDINGS}` {rows} rows")
            }
        }
    }
}

/// Tensor with a row for each token.
const EMBEDDINGS: &str = "token_embd.weight";

impl Header<'_> {
    /// Known keys whose type or value programs refuse, in the order of the file.
    ///
    /// ```
    /// use gguf_core::{Gguf, GgufBuilder};
    ///
    /// let mut builder = GgufBuilder::new();
    /// builder.set("tokenizer.ggml.add_bos_token", "false")?;
    /// let file = builder.layout()?.to_vec(&[])?;
    /// let problems = Gguf::from_bytes(&file)?.header().key_problems();
    /// assert_eq!(
    ///     problems[0].to_string(),
    ///     "key `tokenizer.ggml.add_bos_token` has type string; programs that know it expect bool"
    /// );
    /// # Ok::<(), gguf_core::Error>(())
    /// ```
    #[must_use]
    pub fn key_problems(&self) -> Vec<KeyProblem> {
        let architecture =
            self.get("general.architecture").and_then(|value| value.as_str()).unwrap_or_default();
        let is_shared = |key: &str| find(OTHERS, key).is_some();
        let is_known = |key: &&str| {
            let (first, _) = key.split_once('.').unwrap_or_default();
            first == "general" || first == "tokenizer" || first == architecture || is_shared(key)
        };
        let tokens = self.get("tokenizer.ggml.tokens").and_then(|value| value.as_array());
        let n_tokens = tokens.map(|tokens| tokens.len() as u64).filter(|n_tokens| *n_tokens > 0);
        let mut problems = Vec::new();
        for entry in self.entries() {
            let (key, value) = (entry.key(), entry.value());
            let Some(key) = key.to_str().ok().filter(is_known) else { continue };
            let Some(expected) = KeyType::of(key) else { continue };
            if !expected.fits(&value) {
                let found = match value.as_array() {
                    Some(array) => format!("{}[]", array.element_type()),
                    None => value.value_type().name().into(),
                };
                problems.push(KeyProblem::Type { key: key.into(), expected, found });
            } else if key.starts_with("tokenizer.ggml.")
                && key.ends_with("_token_id")
                && let (Some(id), Some(n_tokens)) = (value.to_u64(), n_tokens)
                && id >= n_tokens
            {
                problems.push(KeyProblem::TokenId { key: key.into(), id, n_tokens });
            }
        }
        let rows = self.tensor(EMBEDDINGS).ok().and_then(|info| info.dims().nth(1));
        if let (Some(rows), Some(n_tokens)) = (rows, n_tokens)
            && rows != n_tokens
        {
            problems.push(KeyProblem::Rows { n_tokens, rows });
        }
        problems
    }
}
