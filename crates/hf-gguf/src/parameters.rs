//! Parameters of an architecture as keys.

use alloc::format;
use alloc::vec::Vec;

use crate::config::{Config, FINITE, FINITE_F32, NUMBER, missing};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::keys::{Keys, Value};
use crate::rope::Rope;
use crate::texts::Texts;

/// Names of the number of layers.
pub(crate) const LAYERS: &[&str] = &["n_layers", "num_hidden_layers", "n_layer", "num_layers"];
/// Names of the number of experts.
pub(crate) const EXPERTS: &[&str] = &["num_local_experts", "num_experts", "n_routed_experts"];
const CONTEXT: &[&str] = &[
    "max_position_embeddings",
    "n_ctx",
    "n_positions",
    "max_length",
    "max_sequence_length",
    "model_max_length",
];
/// Names of the number of rows of a feed-forward part.
pub(crate) const FEED_FORWARD: &[&str] = &[
    "prefix_dense_intermediate_size",
    "dense_intermediate_size",
    "intermediate_size",
    "n_inner",
    "hidden_dim",
];
const EXPERTS_USED: &[&str] = &["num_experts_per_tok", "num_experts_per_token", "top_k_experts"];
/// Names of the function that chooses experts.
pub(crate) const SCORES: &[&str] = &[
    "score_function",
    "scoring_func",
    "score_func",
    "moe_router_activation",
    "moe_router_activation_func",
    "expert_selection_fn",
];
/// The functions that choose experts, with their numbers in GGUF files.
pub(crate) const SCORE_FUNCTIONS: &[(&str, u32)] = &[("softmax", 1), ("sigmoid", 2), ("sqrtsoftplus", 4)];
/// Most elements of a list in a configuration that becomes a key.
const MAX_LIST: usize = 1 << 16;

/// The keys that most architectures have.
pub(crate) const COMMON: &[Entry] = &[
    Entry::U32("block_count", LAYERS),
    Entry::SomeU32("context_length", CONTEXT),
    Entry::SomeU32("embedding_length", &["hidden_size", "n_embd", "dim"]),
    Entry::SomeU32("feed_forward_length", FEED_FORWARD),
    Entry::SomeU32("attention.head_count", &["num_attention_heads", "n_head", "n_heads"]),
    Entry::SomeU32("attention.head_count_kv", &["num_key_value_heads", "n_kv_heads"]),
    Entry::With(|parameters| {
        if parameters.config.get("is_causal").and_then(Json::as_bool) == Some(false) {
            parameters.set("attention.causal", false);
        }
        Ok(())
    }),
    Entry::With(rope),
    Entry::SomeF32("attention.layer_norm_rms_epsilon", &["rms_norm_eps", "norm_eps"]),
    Entry::SomeF32("attention.layer_norm_epsilon", &["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"]),
    Entry::SomeU32("expert_count", EXPERTS),
    Entry::SomeU32("expert_used_count", EXPERTS_USED),
    Entry::SomeU32("expert_group_count", &["n_group"]),
    Entry::SomeU32("expert_group_used_count", &["topk_group"]),
    Entry::With(|parameters| {
        let config = parameters.config;
        let Some(name) = config.str(SCORES)? else { return Ok(()) };
        let function = SCORE_FUNCTIONS.iter().find(|(own, _)| *own == name);
        let (_, number) =
            function.ok_or_else(|| config.unexpected(SCORES, "softmax, sigmoid or sqrtsoftplus"))?;
        parameters.set("expert_gating_func", *number);
        Ok(())
    }),
    Entry::SomeU32("attention.key_length", &["head_dim"]),
    Entry::SomeU32("attention.value_length", &["head_dim"]),
    Entry::FileType,
];

/// A key of an architecture: its name without the architecture's, and the names of the value in configurations, of which the
/// first that is present counts.
#[derive(Debug)]
pub(crate) enum Entry {
    /// The keys that most architectures have.
    Common,
    /// `general.file_type`.
    FileType,
    /// A number that has to be there.
    U32(&'static str, &'static [&'static str]),
    /// A number that may be absent.
    SomeU32(&'static str, &'static [&'static str]),
    /// A number that is written unless it is zero.
    NonZeroU32(&'static str, &'static [&'static str]),
    /// A float that has to be there.
    F32(&'static str, &'static [&'static str]),
    /// A float that may be absent.
    SomeF32(&'static str, &'static [&'static str]),
    /// A float that is written unless it is zero.
    NonZeroF32(&'static str, &'static [&'static str]),
    /// A number that all models of the architecture share.
    Constant(&'static str, fn() -> Value),
    /// These keys.
    All(&'static [Entry]),
    /// Whatever else.
    With(fn(&mut Parameters<'_>) -> Result<(), Error>),
}

/// The keys of a model's architecture, while they are collected.
pub(crate) struct Parameters<'m> {
    pub(crate) config: &'m Config,
    pub(crate) rope: &'m Rope,
    pub(crate) texts: &'m Texts,
    architecture: &'static str,
    file_type: u32,
    keys: Keys,
}

impl<'m> Parameters<'m> {
    /// All keys of the architecture.
    ///
    /// # Errors
    ///
    /// If the configuration lacks a value, or has one of a wrong type.
    pub(crate) fn collect(
        config: &'m Config,
        rope: &'m Rope,
        texts: &'m Texts,
        architecture: &'static str,
        file_type: u32,
        entries: &[Entry],
    ) -> Result<Keys, Error> {
        let mut parameters = Self { config, rope, texts, architecture, file_type, keys: Keys::new() };
        entries.iter().try_for_each(|entry| parameters.add(entry))?;
        Ok(parameters.keys)
    }

    fn add(&mut self, entry: &Entry) -> Result<(), Error> {
        let config = self.config;
        match *entry {
            Entry::Common => return COMMON.iter().try_for_each(|entry| self.add(entry)),
            Entry::FileType => self.keys.set("general.file_type", self.file_type),
            Entry::U32(key, names) => self.set(key, config.need_u32(names)?),
            Entry::SomeU32(key, names) => self.set_some(key, config.u32(names)?),
            Entry::NonZeroU32(key, names) => {
                self.set_some(key, config.u32(names)?.filter(|value| *value != 0));
            }
            Entry::F32(key, names) => self.set(key, config.need_f32(names)?),
            Entry::SomeF32(key, names) => self.set_some(key, config.f32(names)?),
            Entry::NonZeroF32(key, names) => {
                self.set_some(key, config.f32(names)?.filter(|value| *value != 0.0));
            }
            Entry::Constant(key, value) => self.set(key, value()),
            Entry::All(entries) => return entries.iter().try_for_each(|entry| self.add(entry)),
            Entry::With(add) => return add(self),
        }
        Ok(())
    }

    /// Sets a key of the architecture.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.keys.set(format!("{}.{key}", self.architecture), value);
    }

    /// Sets a key of the architecture if there is a value.
    pub(crate) fn set_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Sets any key.
    pub(crate) fn set_global(&mut self, key: &str, value: impl Into<Value>) {
        self.keys.set(key, value);
    }

    fn add_rope(&mut self) -> Result<(), Error> {
        let rope = self.rope;
        let factor = self.rope_f32("factor")?;
        match (rope.kind(), factor) {
            ("linear", Some(factor)) => {
                self.set("rope.scaling.type", "linear");
                self.set("rope.scaling.factor", factor);
            }
            ("yarn", Some(factor)) => {
                const ORIGINAL: &str = "original_max_position_embeddings";
                self.set("rope.scaling.type", "yarn");
                self.set("rope.scaling.factor", factor);
                let original = rope.full(ORIGINAL).ok_or_else(|| missing(&[ORIGINAL]))?;
                self.set("rope.scaling.original_context_length", number_u32(original, ORIGINAL)?);
                let factors = rope.full_first(&["attention_factor", "attn_factor"]);
                let factors = factors.map(|value| number_f32(value, "attention_factor")).transpose()?;
                let keys = [
                    ("rope.scaling.yarn_ext_factor", self.rope_f32("extrapolation_factor")?),
                    ("rope.scaling.yarn_attn_factor", factors),
                    ("rope.scaling.yarn_beta_fast", self.rope_f32("beta_fast")?),
                    ("rope.scaling.yarn_beta_slow", self.rope_f32("beta_slow")?),
                ];
                keys.into_iter().for_each(|(key, value)| self.set_some(key, value));
            }
            ("su" | "longrope", _) => self.set("rope.scaling.type", "longrope"),
            _ => {}
        }
        if let Some(Json::Array(sections)) = rope.get("mrope_section") {
            let numbers = sections.iter().map(|section| number_u32(section, "mrope_section"));
            let mut numbers: Vec<i32> =
                numbers.map(|number| number.map(|n| n as i32)).collect::<Result<_, _>>()?;
            numbers.resize(4, 0);
            self.set("rope.dimension_sections", numbers);
        }
        self.set_some("rope.freq_base", self.rope_f32("rope_theta")?);
        let sliding = rope.sliding("rope_theta").map(|value| number_f32(value, "rope_theta")).transpose()?;
        self.set_some("rope.freq_base_swa", sliding);
        Ok(())
    }

    /// A number of the rotary embeddings with full attention.
    pub(crate) fn rope_f32(&self, name: &str) -> Result<Option<f32>, Error> {
        self.rope.full(name).map(|value| number_f32(value, name)).transpose()
    }

    /// Sets a key to a multiple of a number.
    pub(crate) fn set_multiple(&mut self, key: &str, factor: u32, names: &[&str]) -> Result<(), Error> {
        let product = self.config.need_u32(names)?.checked_mul(factor);
        let product =
            product.ok_or_else(|| self.config.unexpected(names, "a number that is not as large"))?;
        self.set(key, product);
        Ok(())
    }

    /// Sets the number of dimensions that are rotated, as a share of a head without its fraction.
    pub(crate) fn set_rotated_of_head(&mut self, share: f64) -> Result<(), Error> {
        let heads = self.config.need_u32(&["num_attention_heads"])?;
        let len = self.config.need_u32(&["hidden_size"])?.checked_div(heads);
        let len =
            len.ok_or_else(|| self.config.unexpected(&["num_attention_heads"], "a number above zero"))?;
        self.set("rope.dimension_count", (share * f64::from(len)) as u32);
        Ok(())
    }

    /// The share of a head that is rotated, which is the same for all layers.
    pub(crate) fn rotated_share(&self) -> Result<Option<f64>, Error> {
        const NAME: &str = "partial_rotary_factor";
        self.rope.get(NAME).map(|value| number_f64(value, NAME)).transpose()
    }

    /// One truth value per layer: whether it has a sliding window, by `layer_types`.
    pub(crate) fn sliding_layers(&self) -> Result<Option<Vec<bool>>, Error> {
        let Some(Json::Array(types)) = self.config.get("layer_types") else { return Ok(None) };
        if types.len() > MAX_LIST {
            return Err(self.config.unexpected(&["layer_types"], "a list of at most 65,536 elements"));
        }
        Ok(Some(types.iter().map(|kind| kind.as_str() == Some("sliding_attention")).collect()))
    }
}

/// The keys of rotary embeddings.
fn rope(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    parameters.add_rope()
}

/// A float of 64 bits.
pub(crate) fn number_f64(value: &Json, name: &str) -> Result<f64, Error> {
    let number = value.as_f64().ok_or_else(|| unexpected(value, name, NUMBER))?;
    if number.is_finite() { Ok(number) } else { Err(unexpected(value, name, FINITE)) }
}

/// A number, rounded to the nearest float of 32 bits.
pub(crate) fn number_f32(value: &Json, name: &str) -> Result<f32, Error> {
    let number = number_f64(value, name)? as f32;
    if number.is_finite() { Ok(number) } else { Err(unexpected(value, name, FINITE_F32)) }
}

/// A number of 32 bits.
pub(crate) fn number_u32(value: &Json, name: &str) -> Result<u32, Error> {
    let number = value.as_i64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| unexpected(value, name, "an integer from 0 to 2^32 - 1"))
}

/// Of a value of a wrong type within another.
pub(crate) fn unexpected(value: &Json, name: &str, expected: &'static str) -> Error {
    ErrorKind::value("config.json", name, expected, value)
}
