//! The architectures: which classes they are of, their keys, the names of their tensors, and the changes of tensors.

mod bert;
mod deepseek;
mod falcon;
mod gemma;
mod gpt2;
mod gpt_oss;
mod gptneox;
mod granite;
mod llama;
mod mpt;
mod olmo;
mod phi;
mod qwen;
pub(crate) mod rerank;
mod stablelm;
mod starcoder2;
mod t5;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::parameters::Entry;
use crate::restore::{Restore, Stored};
use crate::tensors::build::{Builder, Experts, Incoming};
use crate::tensors::view::View;

/// A name of a tensor in folders and in GGUF files; `{}` is the number of the layer.
pub(crate) type Name = (&'static str, &'static str);

/// What is particular to an architecture of GGUF files.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// Its name in GGUF files.
    pub(crate) name: &'static str,
    /// The classes of transformers that are converted to it.
    pub(crate) classes: &'static [&'static str],
    /// Its keys, in order.
    pub(crate) entries: &'static [Entry],
    /// Prefix of names of tensors that may be absent.
    pub(crate) prefix: &'static str,
    /// Names of its tensors, without the prefix and `.weight` or `.bias`. The first that fits applies.
    pub(crate) names: &'static [&'static [Name]],
    /// GGUF names of tensors without which no model is whole, those of feed-forward parts apart.
    pub(crate) needed: &'static [&'static [&'static str]],
    /// Tensors of experts that are stacked.
    pub(crate) experts: Option<Experts>,
    /// Changes the configuration before it is used; says why the reference implementation would stop, if it would.
    pub(crate) prepare: fn(&mut Config) -> Result<Option<&'static str>, Error>,
    /// The name of a tensor of the folder, before anything else sees it; `None` for tensors that are left out.
    pub(crate) rename: fn(&str) -> Option<String>,
    /// Whether a tensor is left out, by its name and layer: what the configuration says that the model does not use.
    pub(crate) is_left_out: fn(&Config, &str, Option<u64>) -> bool,
    /// Adds tensors that are not in the folder, before all others.
    pub(crate) generate: fn(&mut Builder<'_>) -> Result<(), Error>,
    /// Adds what a tensor becomes.
    pub(crate) change: fn(&mut Builder<'_>, Incoming) -> Result<(), Error>,
    /// How a folder is made of a GGUF file; `None` if that is not supported.
    pub(crate) restore: Option<Restore>,
}

impl Architecture {
    /// An architecture whose tensors are taken as they are.
    const PLAIN: Self = Self {
        name: "",
        classes: &[],
        entries: &[Entry::Common],
        prefix: "model.",
        names: &[],
        needed: &[OUTER, NORM, SEPARATE],
        experts: None,
        prepare: |_| Ok(None),
        rename: |name| Some(name.into()),
        is_left_out: |_, _, _| false,
        generate: |_| Ok(()),
        change: |builder, incoming| builder.add(&incoming.name, incoming.view),
        restore: None,
    };

    /// The architecture of a class.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownArchitecture`].
    pub(crate) fn of_class(class: &str) -> Result<&'static Self, Error> {
        let found = ALL.iter().copied().find(|architecture| architecture.classes.contains(&class));
        found.ok_or_else(|| ErrorKind::UnknownArchitecture { name: class.into() }.into())
    }

    /// The architecture of a GGUF file, with what makes a folder of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRestored`].
    pub(crate) fn of_stored(stored: &Stored<'_>) -> Result<(&'static Self, Restore), Error> {
        let own = ALL.iter().copied().filter(|architecture| architecture.name == stored.architecture());
        let mut found = own.filter_map(|architecture| Some((architecture, architecture.restore?)));
        let found = found.find(|(_, restore)| (restore.fits)(stored));
        found.ok_or_else(|| ErrorKind::NotRestored { name: stored.architecture().into() }.into())
    }

    /// The names in GGUF files of the architectures that folders are made of.
    pub(crate) fn restored() -> impl Iterator<Item = &'static str> {
        ALL.iter().filter(|own| own.restore.is_some()).map(|own| own.name)
    }

    /// Every class that is converted, with the architecture in GGUF files.
    pub(crate) fn classes() -> impl Iterator<Item = (&'static str, &'static str)> {
        ALL.iter().flat_map(|own| own.classes.iter().map(|class| (*class, own.name)))
    }

    /// The name in GGUF files of a tensor of the folder.
    pub(crate) fn gguf_name(&self, name: &str, n_layers: u64) -> Option<String> {
        let short = name.strip_prefix(self.prefix).unwrap_or(name);
        ["", ".weight", ".bias"].iter().find_map(|end| {
            let (pattern, layer) = pattern(short.strip_suffix(end)?);
            let names = self.names.iter().copied().flatten();
            let (_, new_name) = names.copied().find(|(own, _)| *own == pattern)?;
            match layer {
                Some(layer) if layer >= n_layers => None,
                Some(layer) => Some(new_name.replacen("{}", &layer.to_string(), 1) + end),
                None => Some(format!("{new_name}{end}")),
            }
        })
    }

    /// Whether its table has this name in GGUF files.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.iter().copied().flatten().any(|(_, own)| *own == name)
    }

    /// The name in the folder of a tensor of a GGUF file: the first that the table has for it.
    pub(crate) fn folder_name(&self, name: &str) -> Option<String> {
        [".weight", ".bias", ""].iter().find_map(|end| {
            let (pattern, layer) = pattern(name.strip_suffix(end)?);
            let mut names = self.names.iter().copied().flatten();
            let (own, _) = names.find(|(_, new_name)| *new_name == pattern)?;
            // The head is beside the model in its class, not in it.
            let prefix = if pattern == "output" { "" } else { self.prefix };
            let layer = layer.map_or_else(String::new, |layer| layer.to_string());
            Some(format!("{prefix}{}{end}", own.replacen("{}", &layer, 1)))
        })
    }
}

/// A name with `{}` for its first part that is a number, and the number.
fn pattern(name: &str) -> (String, Option<u64>) {
    let mut layer = None;
    let parts: Vec<&str> = name
        .split('.')
        .map(|part| match part.parse::<u64>() {
            // As the number is spelled in names that the reference knows: without zeros in front.
            Ok(number) if layer.is_none() && number.to_string() == part => {
                layer = Some(number);
                "{}"
            }
            _ => part,
        })
        .collect();
    (parts.join("."), layer)
}

/// Names that the reference implementation leaves out or changes whatever the architecture: parts of models that see or hear.
pub(crate) fn text_name(name: &str) -> Option<String> {
    const BEGINNINGS: &[&str] = &[
        "mlp",
        "vit.",
        "vpm.",
        "siglip2.",
        "conformer.",
        "merger.",
        "resampler.",
        "sound_encoder.",
        "sound_projection.",
        "speech_embeddings.",
    ];
    const PARTS: &[&str] = &[
        "visual.",
        "vision.",
        "audio.",
        "talker.",
        "vision_",
        "audio_",
        "token2wav.",
        "code2wav.",
        "projector.",
        "pre_mm_projector_norm",
        "image_newline",
        "view_seperator",
        "patch_embed",
        "patch_merger.",
        "patch_merge_mlp.",
        "model.connector.",
    ];
    if BEGINNINGS.iter().any(|begin| name.starts_with(begin)) || PARTS.iter().any(|part| name.contains(part))
    {
        return None;
    }
    let name = match name.ends_with("e_score_correction_bias") {
        true => name.replace("e_score_correction_bias", "e_score_correction.bias"),
        false => name.into(),
    };
    Some(name.replace("language_model.", ""))
}

/// Names of a decoder whose layers have a gate.
const DECODER: &[Name] = &[
    ("embed_tokens", "token_embd"),
    ("norm", "output_norm"),
    ("lm_head", "output"),
    ("layers.{}.input_layernorm", "blk.{}.attn_norm"),
    ("layers.{}.self_attn.q_proj", "blk.{}.attn_q"),
    ("layers.{}.self_attn.k_proj", "blk.{}.attn_k"),
    ("layers.{}.self_attn.v_proj", "blk.{}.attn_v"),
    ("layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
    ("layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
];
/// Names of a feed-forward part with a gate.
const GATED: &[Name] = &[
    ("layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"),
    ("layers.{}.mlp.up_proj", "blk.{}.ffn_up"),
    ("layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];
/// Names of the norms of queries and keys.
const HEAD_NORMS: &[Name] = &[
    ("layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"),
    ("layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"),
];

/// What models have outside of their layers.
const OUTER: &[&str] = &["token_embd.weight", "output_norm.weight"];
/// The norm in front of attention.
const NORM: &[&str] = &["blk.{}.attn_norm.weight"];
/// Attention with three matrices.
const SEPARATE: &[&str] =
    &["blk.{}.attn_q.weight", "blk.{}.attn_k.weight", "blk.{}.attn_v.weight", "blk.{}.attn_output.weight"];
/// Attention with one.
const FUSED: &[&str] = &["blk.{}.attn_qkv.weight", "blk.{}.attn_output.weight"];

/// Rows of queries or keys in the order that GGUF files have: the halves of each head interleaved.
pub(crate) fn permuted(view: View, n_heads: u32) -> Option<View> {
    let rows = view.shape().first().copied()?;
    let half = rows.checked_div(n_heads.into())? / 2;
    let halves = view.split(0, &[n_heads.into(), 2, half])?;
    halves.swap(1, 2)
}

/// Every architecture.
const ALL: &[&Architecture] = &[
    &llama::LLAMA,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &qwen::QWEN2_MOE,
    &qwen::QWEN3_MOE,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &phi::PHI3,
    &granite::GRANITE,
    &olmo::OLMO2,
    &starcoder2::STARCODER2,
    &gpt2::GPT2,
    &gptneox::GPT_NEOX,
    &falcon::FALCON,
    &stablelm::STABLELM,
    &deepseek::DEEPSEEK2,
    &bert::BERT,
    &bert::ROBERTA,
    &bert::DISTILBERT,
    &bert::NOMIC_BERT,
    &t5::T5,
    &t5::T5_ENCODER,
    &mpt::MPT,
    &gptneox::BLOOM,
    &olmo::OLMO,
    &olmo::OLMOE,
    &granite::GRANITE_MOE,
    &gpt_oss::GPT_OSS,
    &phi::PHI2,
];
