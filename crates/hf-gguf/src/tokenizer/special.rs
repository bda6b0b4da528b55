//! Keys of special tokens, of what is put around a text, of chat templates and of normalizers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::file::TokenizerFile;
use super::settings::{CONFIG, object};
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::Keys;
use crate::text::python_text;
use crate::texts::Texts;

/// Kinds of special tokens, in the order in which they are looked for.
pub(super) const KINDS: &[&str] = &["bos", "eos", "unk", "sep", "pad", "cls", "mask"];
/// Most templates of a model.
const MAX_TEMPLATES: usize = 1000;

/// Kinds that have a key for their id.
pub(super) const ID_KEYS: &[(&str, &str)] = &[
    ("bos", "tokenizer.ggml.bos_token_id"),
    ("eos", "tokenizer.ggml.eos_token_id"),
    ("unk", "tokenizer.ggml.unknown_token_id"),
    // So it is spelled.
    ("sep", "tokenizer.ggml.seperator_token_id"),
    ("pad", "tokenizer.ggml.padding_token_id"),
    ("mask", "tokenizer.ggml.mask_token_id"),
    ("eot", "tokenizer.ggml.eot_token_id"),
    ("eom", "tokenizer.ggml.eom_token_id"),
];

/// Special tokens of a folder.
#[derive(Clone, Debug, Default)]
pub(super) struct SpecialTokens {
    kinds: Vec<&'static str>,
    ids: Vec<(&'static str, u32)>,
    /// Whether a token of a kind is put around a text.
    adds: Vec<(&'static str, bool)>,
    pub(super) template: Template,
    lowercase: Option<bool>,
    strip_accents: Option<bool>,
}

/// Chat templates.
#[derive(Clone, Debug, Default)]
pub(super) enum Template {
    #[default]
    None,
    One(String),
    /// With their names.
    Many(Vec<(String, String)>),
}

/// What of the folder is looked at.
struct Sources {
    /// `tokenizer_config.json`, changed on the way.
    config: Option<Object>,
}

impl SpecialTokens {
    /// Reads `tokenizer_config.json`, the post-processor and the normalizer of `tokenizer.json`, templates and `config.json`. Ids of
    /// `n_tokens` and more are passed over.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`] and [`ErrorKind::NotUtf8`] for each file; [`ErrorKind::TokenId`] for an id of more than 32 bits.
    pub(super) fn new(
        texts: &Texts,
        file: Option<&TokenizerFile>,
        kinds: &[&'static str],
        n_tokens: Option<usize>,
    ) -> Result<Self, Error> {
        let mut special = Self { kinds: kinds.to_vec(), ..Self::default() };
        // An empty object counts as none, as in Python.
        let config = Some(object(texts, CONFIG)?).filter(|config| !config.is_empty());
        let mut sources = Sources { config };
        if let Some(file) = file {
            if let Some(normalizer) = file.member("normalizer") {
                special.read_normalizer(normalizer, 8);
            }
            special.read_post_processor(&mut sources, file);
        }
        if let Some(config) = &sources.config {
            special.template = template(texts, config)?;
            special.read_config(config, file, n_tokens)?;
        }
        special.read_model_config(texts, n_tokens)?;
        Ok(special)
    }

    /// Sets the id of a kind, unless it is set or not below `n_tokens`.
    pub(super) fn set_id(
        &mut self,
        kind: &'static str,
        id: i64,
        n_tokens: Option<usize>,
    ) -> Result<(), Error> {
        // Negative ids mean that there is no such token; the reference stops.
        let Ok(id) = u64::try_from(id) else { return Ok(()) };
        if n_tokens.is_some_and(|n_tokens| id >= n_tokens as u64)
            || self.ids.iter().any(|(own, _)| *own == kind)
        {
            return Ok(());
        }
        let id = u32::try_from(id).map_err(|_| ErrorKind::beyond("config.json", id, 1 << 32))?;
        self.ids.push((kind, id));
        Ok(())
    }

    /// Adds the keys, without merges.
    pub(super) fn set_keys(self, keys: &mut Keys) {
        for (kind, id) in self.ids {
            if let Some((_, key)) = ID_KEYS.iter().find(|(own, _)| *own == kind) {
                keys.set(*key, id);
            }
        }
        for (kind, adds) in self.adds {
            if ["bos", "eos", "sep"].contains(&kind) {
                keys.set(format!("tokenizer.ggml.add_{kind}_token"), adds);
            }
        }
        self.template.set_keys(keys);
        keys.set_some("tokenizer.ggml.normalizer.lowercase", self.lowercase);
        keys.set_some("tokenizer.ggml.normalizer.strip_accents", self.strip_accents);
    }

    fn set_adds(&mut self, kind: &'static str, adds: bool) {
        match self.adds.iter_mut().find(|(own, _)| *own == kind) {
            Some((_, own)) => *own = adds,
            None => self.adds.push((kind, adds)),
        }
    }

    fn adds(&self, kind: &str) -> Option<bool> {
        self.adds.iter().find(|(own, _)| *own == kind).map(|(_, adds)| *adds)
    }

    fn read_normalizer(&mut self, normalizer: &Json, levels: usize) {
        let flag = |name| normalizer.as_object().and_then(|object| object.get(name)).map(Json::as_bool);
        match normalizer.get("type").and_then(Json::as_str) {
            Some("Lowercase") => self.lowercase = Some(true),
            Some("StripAccents") => self.strip_accents = Some(true),
            Some("BertNormalizer") => {
                self.lowercase = flag("lowercase").unwrap_or(self.lowercase);
                self.strip_accents = flag("strip_accents").unwrap_or(self.strip_accents);
            }
            Some("Sequence") if levels > 0 => {
                let all = normalizer.get("normalizers").and_then(Json::as_array).unwrap_or_default();
                all.iter().for_each(|json| self.read_normalizer(json, levels - 1));
            }
            _ => {}
        }
    }

    /// What the post-processor puts around a text. Settings that lack a token take it from there.
    fn read_post_processor(&mut self, sources: &mut Sources, file: &TokenizerFile) {
        if sources.is_unset("bos") && !sources.is_unset("cls") {
            sources.copy("cls", "bos");
        }
        if sources.is_unset("eos") && !sources.is_unset("sep") {
            sources.copy("sep", "eos");
        }
        let mut ends = Ends {
            bos: sources.token("bos"),
            eos: sources.token("eos"),
            cls: sources.token("cls"),
            sep: sources.token("sep"),
        };
        let Some(post) = file.member("post_processor") else { return };
        let one = core::slice::from_ref(post);
        let all = post.get("processors").and_then(Json::as_array).unwrap_or(one);
        for processor in all {
            match processor.get("type").and_then(Json::as_str) {
                Some("ByteLevel") => {
                    for kind in ["bos", "eos"] {
                        if self.adds(kind).is_none() {
                            self.set_adds(kind, false);
                        }
                    }
                }
                Some("RobertaProcessing") => {
                    ["bos", "eos", "sep"].into_iter().for_each(|kind| self.set_adds(kind, true));
                    let first = |name: &str| {
                        processor.get(name).and_then(Json::as_array).and_then(<[Json]>::first).cloned()
                    };
                    if sources.config.is_some() && !is_true(ends.cls.as_ref()) {
                        ends.cls = first("cls").or_else(|| ends.bos.clone());
                        sources.set("cls", ends.cls.clone());
                    }
                    if sources.config.is_some() && !is_true(ends.sep.as_ref()) {
                        ends.sep = first("sep").or_else(|| ends.eos.clone());
                        sources.set("sep", ends.sep.clone());
                    }
                }
                Some("TemplateProcessing") => self.read_template(sources, &mut ends, processor),
                _ => {}
            }
        }
    }

    fn read_template(&mut self, sources: &mut Sources, ends: &mut Ends, processor: &Json) {
        let items = |name: &str| processor.get(name).and_then(Json::as_array).unwrap_or_default();
        let single = items("single");
        let has_config = sources.config.is_some();
        let (mut first, mut last) = (None, None);
        if single.len() > 1 {
            first = single.first().and_then(special_of);
            if let Some(first) = first {
                if !has_config {
                    ends.bos = Some(Json::String(first.into()));
                } else if !is(ends.bos.as_ref(), first) && !is(ends.cls.as_ref(), first) {
                    if !is_true(ends.bos.as_ref()) {
                        ends.bos = Some(Json::String(first.into()));
                        sources.set("bos", ends.bos.clone());
                    }
                    if !is_true(ends.cls.as_ref()) {
                        ends.cls = Some(Json::String(first.into()));
                        sources.set("cls", ends.cls.clone());
                    }
                }
                self.set_adds("bos", is(ends.bos.as_ref(), first) || is(ends.cls.as_ref(), first));
            }
            last = single.last().and_then(special_of);
            if let Some(last) = last {
                if has_config && !is(ends.eos.as_ref(), last) {
                    if let Some(kind) = ["eot", "eom"].into_iter().find(|kind| !self.kinds.contains(kind)) {
                        self.kinds.push(kind);
                        sources.set(kind, ends.eos.clone());
                    }
                    sources.set("eos", Some(Json::String(last.into())));
                }
                ends.eos = Some(Json::String(last.into()));
                self.set_adds("eos", true);
            }
        }
        let mut pair = items("pair");
        if first.is_some() && pair.first().and_then(special_of) == first {
            pair = pair.get(1..).unwrap_or_default();
        }
        if last.is_some() && pair.last().and_then(special_of) == last {
            pair = pair.get(..pair.len() - 1).unwrap_or_default();
        }
        let is_sequence = |item: Option<&Json>, id: &str| {
            let sequence = item.and_then(|item| item.get("Sequence"));
            is(sequence.and_then(|sequence| sequence.get("id")), id)
        };
        if !is_sequence(pair.first(), "A") || !is_sequence(pair.last(), "B") {
            return;
        }
        let between = pair.get(1..pair.len() - 1).unwrap_or_default();
        let ends_text = |token: &str| is(ends.sep.as_ref(), token) || is(ends.eos.as_ref(), token);
        if between.is_empty() {
            return;
        }
        let special = |idx: usize| between.get(idx).and_then(special_of);
        let mut adds = last.is_none() && special(0).is_some_and(ends_text);
        adds |= between.len() == 2 && special(1).is_some_and(ends_text);
        self.set_adds("sep", adds);
        if adds && !is_true(ends.sep.as_ref()) && has_config {
            sources.set("sep", ends.eos.clone());
        }
    }

    /// Flags and tokens of `tokenizer_config.json`; ids are those of the added tokens of `tokenizer.json`.
    fn read_config(
        &mut self,
        config: &Object,
        file: Option<&TokenizerFile>,
        n_tokens: Option<usize>,
    ) -> Result<(), Error> {
        let added =
            file.and_then(|file| file.member("added_tokens")).and_then(Json::as_array).unwrap_or_default();
        for kind in self.kinds.clone() {
            let adds = config.get(&format!("add_{kind}_token")).and_then(Json::as_bool);
            if let (Some(adds), None) = (adds, self.adds(kind)) {
                self.set_adds(kind, adds);
            }
            let content = match config.get(&format!("{kind}_token")) {
                Some(Json::String(content)) => &**content,
                Some(object) => match object.get("content").and_then(Json::as_str) {
                    Some(content) => content,
                    None => continue,
                },
                None => continue,
            };
            let token =
                added.iter().find(|token| token.get("content").and_then(Json::as_str) == Some(content));
            if let Some(id) = token.and_then(|token| token.get("id")).and_then(integer) {
                self.set_id(kind, id, n_tokens)?;
            }
        }
        Ok(())
    }

    /// Ids of `config.json`, for kinds that have none yet.
    fn read_model_config(&mut self, texts: &Texts, n_tokens: Option<usize>) -> Result<(), Error> {
        let config = object(texts, "config.json")?;
        for kind in self.kinds.clone() {
            let name = format!("{kind}_token_id");
            let own = config.get(&name).filter(|value| !value.is_null());
            let id = own.or_else(|| config.get("text_config")?.get(&name));
            if let Some(id) = id.and_then(integer) {
                self.set_id(kind, id, n_tokens)?;
            }
        }
        Ok(())
    }
}

/// The tokens at the ends of a text, as the settings have them: strings or objects.
struct Ends {
    bos: Option<Json>,
    eos: Option<Json>,
    cls: Option<Json>,
    sep: Option<Json>,
}

impl Sources {
    fn token(&self, kind: &str) -> Option<Json> {
        self.config.as_ref()?.get(&format!("{kind}_token")).cloned()
    }

    fn is_unset(&self, kind: &str) -> bool {
        !is_true(self.token(kind).as_ref())
    }

    fn set(&mut self, kind: &str, token: Option<Json>) {
        if let Some(config) = &mut self.config {
            config.set(&format!("{kind}_token"), token.unwrap_or(Json::Null));
        }
    }

    fn copy(&mut self, from: &str, to: &str) {
        let token = self.token(from);
        self.set(to, token);
    }
}

/// Whether Python takes the value for true.
fn is_true(value: Option<&Json>) -> bool {
    match value {
        None | Some(Json::Null | Json::Bool(false)) => false,
        Some(Json::String(text)) => !text.is_empty(),
        Some(Json::Object(object)) => !object.is_empty(),
        Some(Json::Array(items)) => !items.is_empty(),
        Some(Json::Bool(true) | Json::Number(_)) => true,
    }
}

/// Whether the value is this string.
fn is(value: Option<&Json>, text: &str) -> bool {
    value.and_then(Json::as_str) == Some(text)
}

/// The special token of an item of a template.
fn special_of(item: &Json) -> Option<&str> {
    item.get("SpecialToken")?.get("id")?.as_str().filter(|id| !id.is_empty())
}

/// An integer; a truth value is one in Python.
fn integer(json: &Json) -> Option<i64> {
    json.as_bool().map(i64::from).or_else(|| json.as_i64())
}

/// What is lost of the template of `tokenizer_config.json`, if it is none.
pub(crate) fn left_out(texts: &Texts) -> Option<&'static str> {
    let config = object(texts, CONFIG).ok()?;
    let is_none =
        matches!(config.get("chat_template"), Some(Json::Bool(_) | Json::Number(_) | Json::Object(_)));
    is_none.then_some(
        "chat_template of tokenizer_config.json is neither text nor a list of templates, and is left out",
    )
}

/// The templates of `tokenizer_config.json`, else of files of their own.
fn template(texts: &Texts, config: &Object) -> Result<Template, Error> {
    let jinja = "chat_template.jinja";
    let folder = "additional_chat_templates/";
    if let Some(own) = config.get("chat_template") {
        return Template::from_json(own);
    }
    if let Some(bytes) = texts.get(jinja) {
        let default: String = python_text(jinja, bytes)?.into();
        let mut all: Vec<(String, String)> = Vec::new();
        for (name, bytes) in texts.beginning_with(folder) {
            let Some(stem) = name.strip_prefix(folder).and_then(|name| name.strip_suffix(".jinja")) else {
                continue;
            };
            all.push((stem.into(), python_text(name, bytes)?.into()));
            if all.len() > MAX_TEMPLATES {
                return Err(ErrorKind::limit(folder, "templates", MAX_TEMPLATES));
            }
        }
        if all.is_empty() {
            return Ok(Template::One(default));
        }
        all.insert(0, ("default".into(), default));
        return Ok(Template::Many(all));
    }
    let json = object(texts, "chat_template.json")?;
    json.get("chat_template").map_or(Ok(Template::None), Template::from_json)
}

impl Template {
    fn from_json(json: &Json) -> Result<Self, Error> {
        let items = match json {
            Json::String(text) => return Ok(Self::One((**text).into())),
            Json::Array(items) => items,
            _ => return Ok(Self::None),
        };
        if items.len() > MAX_TEMPLATES {
            return Err(ErrorKind::limit(CONFIG, "templates", MAX_TEMPLATES));
        }
        let pair = |item: &Json| {
            let text = |name| item.get(name).and_then(Json::as_str).map(String::from);
            Some((text("name")?, text("template")?))
        };
        Ok(Self::Many(items.iter().filter_map(pair).collect()))
    }

    fn set_keys(self, keys: &mut Keys) {
        let all = match self {
            Self::None => return,
            Self::One(template) => return keys.set("tokenizer.chat_template", template),
            Self::Many(all) => all,
        };
        let mut names: Vec<String> = Vec::new();
        let mut default = None;
        for (name, template) in all {
            let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let name: String = name.chars().map(letter).collect();
            match &*name {
                "" => {}
                "default" => default = Some(template),
                _ => {
                    keys.set(format!("tokenizer.chat_template.{name}"), template);
                    names.push(name);
                }
            }
        }
        // In the reference implementation their order is random.
        names.sort();
        names.dedup();
        keys.set("tokenizer.chat_templates", names);
        keys.set_some("tokenizer.chat_template", default);
    }
}
