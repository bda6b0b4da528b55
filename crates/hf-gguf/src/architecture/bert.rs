//! BERT, RoBERTa, XLM-RoBERTa, DistilBERT and Nomic BERT.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Architecture, FUSED, Name, SEPARATE};
use crate::config::{Config, missing};
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::Value;
use crate::parameters::{Entry, Parameters};
use crate::restore::{Restore, Stored, float, int, text};
use crate::tensors::build::{Builder, Incoming};

pub(super) const BERT: Architecture = Architecture {
    name: "bert",
    classes: &["BertModel", "BertForMaskedLM", "BertForSequenceClassification", "CamembertModel"],
    entries: BERT_ENTRIES,
    prefix: "",
    names: &[NAMES],
    needed: &[OUTER, &["position_embd.weight"], SEPARATE, NORMS],
    rename: without_heads,
    change: name_classifier,
    restore: Some(Restore {
        fits: |stored| stored.tokenizer() == "bert" && stored.has("token_types.weight"),
        model: |stored| {
            Ok(match stored.has("cls.weight") || stored.has("cls.output.weight") {
                true => ("BertForSequenceClassification", "bert"),
                false => ("BertModel", "bert"),
            })
        },
        config: |stored, config| {
            config.set("hidden_act", text("gelu"));
            restored_classes(stored, config)
        },
        tensors: |_, name, shape| {
            let end = name.strip_prefix("cls.output.").map(|end| format!("classifier.{end}"));
            Ok(end.map(|name| alloc::vec![(name, shape.to_vec())]))
        },
    }),
    ..Architecture::PLAIN
};

/// BERT whose first positions are those of padding.
pub(super) const ROBERTA: Architecture = Architecture {
    classes: &[
        "RobertaModel",
        "RobertaForSequenceClassification",
        "XLMRobertaModel",
        "XLMRobertaForSequenceClassification",
    ],
    prepare: |config| {
        if config.get("lora_adaptations").is_some() {
            return Err(ErrorKind::UnknownArchitecture { name: "Jina embeddings 3".into() }.into());
        }
        shorten_context(config)?;
        Ok(None)
    },
    rename: |name| without_heads(name.strip_prefix("roberta.").unwrap_or(name)),
    change: cut_positions,
    restore: Some(Restore {
        fits: |stored| matches!(stored.tokenizer(), "gpt2" | "t5"),
        model: |stored| {
            let has_classifier = stored.has("cls.weight") || stored.has("cls.output.weight");
            Ok(match (stored.tokenizer(), has_classifier) {
                ("t5", false) => ("XLMRobertaModel", "xlm-roberta"),
                ("t5", true) => ("XLMRobertaForSequenceClassification", "xlm-roberta"),
                (_, false) => ("RobertaModel", "roberta"),
                (_, true) => ("RobertaForSequenceClassification", "roberta"),
            })
        },
        config: |stored, config| {
            let count = restored_padding(stored).saturating_add(1);
            let len = stored.need_u32("context_length")?.saturating_add(count);
            config.set("max_position_embeddings", int(len));
            config.set("pad_token_id", int(count - 1));
            config.set("hidden_act", text("gelu"));
            restored_classes(stored, config)
        },
        tensors: |stored, name, shape| {
            Ok(match shape {
                [rows, columns] if name == "position_embd.weight" => {
                    let rows = rows.saturating_add(u64::from(restored_padding(stored)) + 1);
                    let name = "embeddings.position_embeddings.weight".into();
                    Some(alloc::vec![(name, alloc::vec![rows, *columns])])
                }
                _ => None,
            })
        },
    }),
    ..BERT
};

pub(super) const DISTILBERT: Architecture = Architecture {
    classes: &["DistilBertModel", "DistilBertForMaskedLM", "DistilBertForSequenceClassification"],
    entries: &[
        Entry::Constant("attention.layer_norm_epsilon", || 1e-12_f32.into()),
        Entry::All(BERT_ENTRIES),
    ],
    rename: |name| {
        let name = name.strip_prefix("distilbert.").unwrap_or(name);
        if name.starts_with("vocab_") { None } else { without_heads(name) }
    },
    names: &[DISTILBERT_NAMES, NAMES],
    restore: Some(Restore {
        fits: |stored| stored.tokenizer() == "bert" && !stored.has("token_types.weight"),
        model: |_| Ok(("DistilBertModel", "distilbert")),
        config: |_, config| {
            config.set("activation", text("gelu"));
            Ok(())
        },
        ..Restore::PLAIN
    }),
    ..BERT
};

pub(super) const NOMIC_BERT: Architecture = Architecture {
    name: "nomic-bert",
    classes: &["NomicBertModel"],
    names: &[NOMIC_NAMES, NAMES],
    needed: &[OUTER, FUSED, NORMS],
    prepare: |config| {
        check_nomic(config)?;
        Ok(None)
    },
    restore: Some(Restore {
        model: |_| Ok(("NomicBertModel", "nomic_bert")),
        config: restored_nomic,
        ..Restore::PLAIN
    }),
    ..BERT
};

const BERT_ENTRIES: &[Entry] = &[
    Entry::Common,
    Entry::Constant("attention.causal", || false.into()),
    Entry::With(pooling),
    Entry::With(|parameters| {
        parameters.set_some("classifier.output_labels", labels(parameters.config));
        Ok(())
    }),
];

const NAMES: &[Name] = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.position_embeddings", "position_embd"),
    ("embeddings.LayerNorm", "token_embd_norm"),
    ("encoder.layer.{}.attention.self.query", "blk.{}.attn_q"),
    ("encoder.layer.{}.attention.self.key", "blk.{}.attn_k"),
    ("encoder.layer.{}.attention.self.value", "blk.{}.attn_v"),
    ("encoder.layer.{}.attention.output.dense", "blk.{}.attn_output"),
    ("encoder.layer.{}.attention.output.LayerNorm", "blk.{}.attn_output_norm"),
    ("encoder.layer.{}.intermediate.dense", "blk.{}.ffn_up"),
    ("encoder.layer.{}.output.dense", "blk.{}.ffn_down"),
    ("encoder.layer.{}.output.LayerNorm", "blk.{}.layer_output_norm"),
    ("classifier", "cls"),
    ("classifier.dense", "cls"),
    ("pre_classifier", "cls"),
    ("classifier.out_proj", "cls.output"),
];

const OUTER: &[&str] = &["token_embd.weight", "token_embd_norm.weight"];

const NORMS: &[&str] = &["blk.{}.attn_output_norm.weight", "blk.{}.layer_output_norm.weight"];

const DISTILBERT_NAMES: &[Name] = &[
    ("transformer.layer.{}.attention.q_lin", "blk.{}.attn_q"),
    ("transformer.layer.{}.attention.k_lin", "blk.{}.attn_k"),
    ("transformer.layer.{}.attention.v_lin", "blk.{}.attn_v"),
    ("transformer.layer.{}.attention.out_lin", "blk.{}.attn_output"),
    ("transformer.layer.{}.sa_layer_norm", "blk.{}.attn_output_norm"),
    ("transformer.layer.{}.ffn.lin1", "blk.{}.ffn_up"),
    ("transformer.layer.{}.ffn.lin2", "blk.{}.ffn_down"),
    ("transformer.layer.{}.output_layer_norm", "blk.{}.layer_output_norm"),
];

const NOMIC_NAMES: &[Name] = &[
    ("emb_ln", "token_embd_norm"),
    ("encoder.layers.{}.attn.Wqkv", "blk.{}.attn_qkv"),
    ("encoder.layers.{}.attn.out_proj", "blk.{}.attn_output"),
    ("encoder.layers.{}.norm1", "blk.{}.attn_output_norm"),
    ("encoder.layers.{}.mlp.fc11", "blk.{}.ffn_up"),
    ("encoder.layers.{}.mlp.fc12", "blk.{}.ffn_gate"),
    ("encoder.layers.{}.mlp.fc2", "blk.{}.ffn_down"),
    ("encoder.layers.{}.norm2", "blk.{}.layer_output_norm"),
];

/// The number of the token of padding, before which positions are not used.
fn restored_padding(stored: &Stored<'_>) -> u32 {
    stored.global("tokenizer.ggml.padding_token_id").and_then(Value::as_u32).unwrap_or(1)
}

/// The labels of a classifier, and how many kinds of text there are.
fn restored_classes(stored: &Stored<'_>, config: &mut Object) -> Result<(), Error> {
    if let Some([kinds, _]) = stored.shape("token_types.weight") {
        config.set("type_vocab_size", int(i64::try_from(*kinds).unwrap_or(i64::MAX)));
    }
    if let Some(labels) = stored.labels() {
        let mut by_id = Object::default();
        let mut by_label = Object::default();
        for (number, label) in (0_i64..).zip(labels) {
            by_id.set(&number.to_string(), text(label));
            by_label.set(label, int(number));
        }
        config.set("id2label", Json::Object(by_id));
        config.set("label2id", Json::Object(by_label));
    }
    Ok(())
}

/// The configuration of the class, which transformers does not have.
fn restored_nomic(stored: &Stored<'_>, config: &mut Object) -> Result<(), Error> {
    let need = |key: &str| stored.need_u32(key).map(int);
    let positions = match stored.need_u32("context_length")? {
        512 => 2048,
        _ => 8192,
    };
    for (name, value) in [
        ("n_positions", int(positions)),
        ("max_trained_positions", int(2048)),
        ("n_embd", need("embedding_length")?),
        ("n_head", need("attention.head_count")?),
        ("n_inner", need("feed_forward_length")?),
        ("n_layer", need("block_count")?),
        ("activation_function", text("swiglu")),
        ("causal", Json::Bool(false)),
        ("qkv_proj_bias", Json::Bool(false)),
        ("mlp_fc1_bias", Json::Bool(false)),
        ("mlp_fc2_bias", Json::Bool(false)),
        ("prenorm", Json::Bool(false)),
        ("rotary_emb_fraction", float(1.0)),
        ("rotary_emb_interleaved", Json::Bool(false)),
        ("rotary_emb_scale_base", Json::Null),
        ("rotary_scaling_factor", Json::Null),
    ] {
        config.set(name, value);
    }
    if let Some(base) = stored.f32("rope.freq_base")? {
        config.set("rotary_emb_base", float(base));
    }
    if let Some(epsilon) = stored.f32("attention.layer_norm_epsilon")? {
        config.set("layer_norm_epsilon", float(epsilon));
    }
    restored_classes(stored, config)
}

/// What turns vectors into predictions of tokens and sentences is left out; norms of old files have names of their own.
fn without_heads(name: &str) -> Option<String> {
    let name = name.strip_prefix("bert.").unwrap_or(name);
    let name = match (name.strip_suffix(".gamma"), name.strip_suffix(".beta")) {
        (Some(base), _) => format!("{base}.weight"),
        (_, Some(base)) => format!("{base}.bias"),
        _ => name.into(),
    };
    let is_head =
        matches!(name.as_str(), "embeddings.position_ids" | "pooler.dense.weight" | "pooler.dense.bias")
            || name.starts_with("cls.predictions")
            || name.starts_with("cls.seq_relationship");
    (!is_head).then_some(name)
}

/// The labels of a classifier, in the order of their numbers; `None` for the two that every configuration has.
fn labels(config: &Config) -> Option<Vec<String>> {
    let mut labels: Vec<(i64, String)> = match config.get("id2label").and_then(Json::as_object) {
        Some(labels) => labels
            .iter()
            .filter_map(|(number, label)| Some((number.parse().ok()?, label.as_str()?.to_string())))
            .collect(),
        None => return None,
    };
    labels.sort_by_key(|(number, _)| *number);
    let is_default =
        labels.len() == 2 && labels.first().is_some_and(|(number, label)| *number == 0 && label == "LABEL_0");
    (!is_default).then(|| labels.into_iter().map(|(_, label)| label).collect())
}

/// The projection of a classifier without a hidden layer has another name than that of one with it.
fn name_classifier(builder: &mut Builder<'_>, incoming: Incoming) -> Result<(), Error> {
    let Incoming { mut name, view, .. } = incoming;
    if let Some(end) = name.strip_prefix("classifier.").filter(|end| matches!(*end, "weight" | "bias"))
        && labels(builder.config).is_some()
    {
        name = format!("classifier.out_proj.{end}");
    }
    builder.add(&name, view)
}

/// Positions before the first token: those up to the number of padding.
fn n_padding_positions(config: &Config) -> Result<Option<u32>, Error> {
    Ok(config.u32(&["pad_token_id"])?.map(|number| number.saturating_add(1)))
}

fn shorten_context(config: &mut Config) -> Result<(), Error> {
    const NAME: &str = "max_position_embeddings";
    if let (Some(count), Some(len)) = (n_padding_positions(config)?, config.u32(&[NAME])?) {
        let shorter = len.checked_sub(count);
        let shorter =
            shorter.ok_or_else(|| config.unexpected(&[NAME], "more positions than those of padding"))?;
        config.set(NAME, Json::from(i64::from(shorter)));
    }
    Ok(())
}

fn cut_positions(builder: &mut Builder<'_>, mut incoming: Incoming) -> Result<(), Error> {
    if incoming.name == "embeddings.position_embeddings.weight"
        && let Some(count) = n_padding_positions(builder.config)?
    {
        let rows = incoming.view.shape().first().copied().unwrap_or(0);
        let view = incoming.view.clone().slice(0, u64::from(count).min(rows), rows);
        incoming.view = view.unwrap_or(incoming.view);
    }
    name_classifier(builder, incoming)
}

/// How vectors of tokens become one, by the modules of Sentence Transformers.
pub(super) fn pooling(parameters: &mut Parameters<'_>) -> Result<(), Error> {
    const FILE: &str = "modules.json";
    const FLAGS: [(&str, u32); 3] =
        [("pooling_mode_mean_tokens", 1), ("pooling_mode_cls_token", 2), ("pooling_mode_lasttoken", 3)];
    const MODES: [(&str, u32); 3] = [("mean", 1), ("cls", 2), ("lasttoken", 3)];
    let Some(bytes) = parameters.texts.get(FILE) else { return Ok(()) };
    let modules = Json::from_bytes(FILE, bytes)?;
    let mut modules = modules.as_array().unwrap_or_default().iter();
    let is_pooling = |module: &&Json| {
        module.get("type").and_then(Json::as_str).is_some_and(|kind| kind.ends_with("Pooling"))
    };
    let Some(module) = modules.find(is_pooling) else { return Ok(()) };
    let folder = module.get("path").and_then(Json::as_str).unwrap_or_default();
    let file = format!("{folder}/config.json");
    let missing_file = || ErrorKind::MissingFile { file: file.as_str().into() };
    let settings = Json::from_bytes(&file, parameters.texts.get(&file).ok_or_else(missing_file)?)?;
    let is_set = |name: &str| settings.get(name).and_then(Json::as_bool) == Some(true);
    let by_flag = FLAGS.iter().find(|(name, _)| is_set(name));
    let mode = settings.get("pooling_mode").and_then(Json::as_str);
    let found = by_flag.or_else(|| MODES.iter().find(|(name, _)| mode == Some(name)));
    let (_, number) = found.ok_or(ErrorKind::Pooling)?;
    parameters.set("pooling_type", *number);
    Ok(())
}

/// What the models of this class share, and GGUF files cannot say otherwise.
fn check_nomic(config: &mut Config) -> Result<(), Error> {
    if config.get("moe_every_n_layers").and_then(Json::as_i64).unwrap_or(0) != 0 {
        return Err(ErrorKind::UnknownArchitecture { name: "Nomic BERT with experts".into() }.into());
    }
    const CONSTANT: [(&str, Json); 8] = [
        ("causal", Json::Bool(false)),
        ("qkv_proj_bias", Json::Bool(false)),
        ("mlp_fc1_bias", Json::Bool(false)),
        ("mlp_fc2_bias", Json::Bool(false)),
        ("prenorm", Json::Bool(false)),
        ("rotary_emb_interleaved", Json::Bool(false)),
        ("rotary_emb_scale_base", Json::Null),
        ("moe_every_n_layers", Json::Null),
    ];
    for (name, value) in CONSTANT {
        let found = config.get(name);
        if found.is_some_and(|found| *found != value) || found.is_none() && value != Json::Null {
            return Err(config.unexpected(&[name], "the value that every Nomic BERT has"));
        }
    }
    if config.f64(&["rotary_emb_fraction"])? != Some(1.0) {
        return Err(config.unexpected(&["rotary_emb_fraction"], "1"));
    }
    if config.str(&["activation_function"])? != Some("swiglu") {
        return Err(config.unexpected(&["activation_function"], "swiglu"));
    }
    // Models are trained with fewer positions than they declare.
    let trained = config.u32(&["max_trained_positions"])?.unwrap_or(2048);
    let len = match (config.u32(&["n_positions"])?, trained) {
        (Some(8192), 2048) => 2048,
        (Some(2048), 2048) => 512,
        (None, _) => return Err(missing(&["n_positions"])),
        _ => return Err(config.unexpected(&["n_positions"], "8192, or 2048")),
    };
    config.set("n_positions", Json::from(len));
    Ok(())
}
