//! `config.json` from the keys of an architecture, by the table that makes keys of it.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::{Restore, Stored};
use crate::architecture::Architecture;
use crate::config::defaults;
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::Value;
use crate::parameters::{COMMON, Entry, SCORE_FUNCTIONS};
use crate::rope;
use crate::texts::Texts;

/// A float as JSON: the shortest number that is rounded to it.
pub(crate) fn float(value: f32) -> Json {
    Json::Number(match value {
        f32::INFINITY => "Infinity".into(),
        f32::NEG_INFINITY => "-Infinity".into(),
        // `NaN` is spelled as in Python.
        _ => format!("{value:?}").into(),
    })
}

/// An integer as JSON.
pub(crate) fn int(value: impl Into<i64>) -> Json {
    Json::from(value.into())
}

/// A string as JSON.
pub(crate) fn text(value: &str) -> Json {
    Json::from(value)
}

/// The configuration, without the special tokens and the type of the tensors.
pub(super) fn config(
    stored: &Stored<'_>,
    architecture: &'static Architecture,
    restore: Restore,
) -> Result<Object, Error> {
    let (class, model_type) = (restore.model)(stored)?;
    let mut config = Object::default();
    config.set("architectures", Json::Array(vec![text(class)]));
    config.set("model_type", text(model_type));
    (restore.config)(stored, &mut config)?;
    let defaults = defaults::of(model_type);
    let constants = architecture.entries.iter().filter_map(|entry| match entry {
        Entry::Constant(key, _) => Some(*key),
        _ => None,
    });
    let mut inverse = Inverse { stored, config, defaults, constants: constants.collect() };
    inverse.add_all(architecture.entries)?;
    let Inverse { mut config, .. } = inverse;
    config.set("vocab_size", int(stored.n_tokens()?));
    let has_head = ["ForCausalLM", "LMHeadModel", "ForConditionalGeneration"];
    if has_head.iter().any(|end| class.ends_with(end)) {
        config.set("tie_word_embeddings", Json::Bool(!stored.has("output.weight")));
    }
    Ok(config)
}

/// Reads entries from keys to values.
struct Inverse<'s> {
    stored: &'s Stored<'s>,
    config: Object,
    defaults: Object,
    /// Keys whose values the architecture gives, at places of their own.
    constants: Vec<&'static str>,
}

impl Inverse<'_> {
    fn add_all(&mut self, entries: &[Entry]) -> Result<(), Error> {
        entries.iter().try_for_each(|entry| self.add(entry))
    }

    fn add(&mut self, entry: &Entry) -> Result<(), Error> {
        let stored = self.stored;
        if let Entry::SomeU32(key, _) | Entry::SomeF32(key, _) = entry
            && self.constants.contains(key)
        {
            return Ok(());
        }
        let integer = |key| Ok::<_, Error>(stored.u32(key)?.map(int));
        let number = |key| Ok::<_, Error>(stored.f32(key)?.map(float));
        match *entry {
            Entry::Common => {
                self.add_all(COMMON)?;
                rope::restore(stored, &mut self.config, &self.defaults)?;
                // Encoders write it elsewhere, whatever the configuration says.
                let is_encoder = stored.architecture().ends_with("bert");
                if stored.bool("attention.causal")? == Some(false) && !is_encoder {
                    self.config.set("is_causal", Json::Bool(false));
                }
                if let Some(number) = stored.u32("expert_gating_func")? {
                    let function = SCORE_FUNCTIONS.iter().find(|(_, own)| *own == number);
                    if let Some((name, _)) = function {
                        self.config.set("scoring_func", text(name));
                    }
                }
            }
            // Files of 2023 do not have it.
            Entry::U32("vocab_size", names) => self.set(names, Some(int(stored.n_tokens()?))),
            Entry::U32(key, names) => {
                let value = integer(key)?;
                self.set(names, Some(value.ok_or_else(|| stored.missing(key))?));
            }
            Entry::F32(key, names) => {
                let value = number(key)?;
                self.set(names, Some(value.ok_or_else(|| stored.missing(key))?));
            }
            Entry::SomeU32(key, names) => self.set(names, integer(key)?),
            Entry::SomeF32(key, names) => self.set(names, number(key)?),
            Entry::NonZeroU32(key, names) => self.set_some(names, integer(key)?),
            Entry::NonZeroF32(key, names) => self.set_some(names, number(key)?),
            Entry::All(entries) => return self.add_all(entries),
            // What functions write, the architecture reads.
            Entry::FileType | Entry::Constant(..) | Entry::With(_) => {}
        }
        Ok(())
    }

    /// The name under which the class keeps a value.
    fn name(&self, names: &[&'static str]) -> &'static str {
        let is_own = |name: &&&str| self.config.get(name).is_some() || self.defaults.get(name).is_some();
        names.iter().find(is_own).or(names.first()).copied().unwrap_or_default()
    }

    /// Sets a value. One that there is not is null where the class has a default.
    fn set(&mut self, names: &[&'static str], value: Option<Json>) {
        let name = self.name(names);
        let value = value
            .or_else(|| self.defaults.get(name).filter(|default| !default.is_null()).map(|_| Json::Null));
        if let Some(value) = value.filter(|_| self.config.get(name).is_none()) {
            self.config.set(name, value);
        }
    }

    fn set_some(&mut self, names: &[&'static str], value: Option<Json>) {
        if value.is_some() {
            self.set(names, value);
        }
    }
}

/// How vectors of tokens become one: the modules of Sentence Transformers.
pub(super) fn pooling(stored: &Stored<'_>, texts: &mut Texts) -> Result<(), Error> {
    const MODES: [(u32, &str); 3] =
        [(1, "pooling_mode_mean_tokens"), (2, "pooling_mode_cls_token"), (3, "pooling_mode_lasttoken")];
    let Some(number) = stored.u32("pooling_type")? else { return Ok(()) };
    let Some((_, mode)) = MODES.iter().find(|(own, _)| *own == number) else { return Ok(()) };
    let mut modules: Vec<Json> = Vec::new();
    for (idx, (path, kind)) in [("", "Transformer"), ("1_Pooling", "Pooling")].into_iter().enumerate() {
        let mut module = Object::default();
        module.set("idx", int(idx as i32));
        module.set("name", text(&format!("{idx}")));
        module.set("path", text(path));
        module.set("type", text(&format!("sentence_transformers.models.{kind}")));
        modules.push(Json::Object(module));
    }
    let mut settings = Object::default();
    settings.set("word_embedding_dimension", int(stored.need_u32("embedding_length")?));
    for (_, own) in MODES {
        settings.set(own, Json::Bool(own == *mode));
    }
    texts.insert("modules.json", Json::Array(modules).to_text().into_bytes());
    texts.insert("1_Pooling/config.json", Json::Object(settings).to_text().into_bytes());
    Ok(())
}

impl Stored<'_> {
    /// The number of tokens: as the key says, else those of the tokenizer.
    fn n_tokens(&self) -> Result<i64, Error> {
        let n_tokens = self.u32("vocab_size")?.map(i64::from);
        Ok(n_tokens.unwrap_or_else(|| i64::try_from(self.tokens().len()).unwrap_or(i64::MAX)))
    }

    /// Whether the first layer has a tensor of this name.
    pub(crate) fn layer_has(&self, name: &str) -> bool {
        self.has(&format!("blk.0.{name}"))
    }

    /// The length of a head: that of keys, or the share of the hidden size.
    pub(crate) fn head_len(&self) -> Result<u32, Error> {
        if let Some(len) = self.u32("attention.key_length")? {
            return Ok(len);
        }
        let heads = self.need_u32("attention.head_count")?;
        let len = self.need_u32("embedding_length")?.checked_div(heads);
        len.ok_or_else(|| ErrorKind::KeyValue { expected: "a number of heads above zero" }.into())
    }

    /// A share that is `rotated` of `all` without its fraction.
    pub(crate) fn share(rotated: u32, all: u32) -> Json {
        let (rotated, all) = (f64::from(rotated), f64::from(all.max(1)));
        let share = rotated / all;
        let is_exact = (share * all) as u32 == rotated as u32;
        Json::Number(format!("{:?}", if is_exact { share } else { (rotated + 0.5) / all }).into())
    }

    /// The labels of a classifier.
    pub(crate) fn labels(&self) -> Option<&[alloc::string::String]> {
        match self.key("classifier.output_labels") {
            Some(Value::Strings(labels)) => Some(labels),
            _ => None,
        }
    }
}
