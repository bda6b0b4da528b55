//! Special tokens, and what is put around a text: found by trying what models have.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::vocabulary::Added;
use super::{CONFIG, object};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::keys::{Keys, Value};
use crate::restore::{Stored, int, text};
use crate::texts::Texts;
use crate::tokenizer::file::{Merges, TokenizerFile, Vocabulary};
use crate::tokenizer::special::{ID_KEYS, KINDS, SpecialTokens};
use crate::tokenizer::strings::Strings;

/// Names of pre-tokenizers whose texts begin with a token unless the file says otherwise, as in llama.cpp.
const IMPLY_BEGIN: &[&str] = &["llama-bpe", "llama3", "llama-v3", "tekken", "chameleon"];

/// Which post-processors a tokenizer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those of letters that stand for bytes.
    Bytes,
    /// Those of pieces.
    Pieces,
    /// Those of encoders.
    Words,
}

/// Ids of special tokens and flags, in the order of the keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    pub(super) ids: Vec<(&'static str, u32)>,
    adds: Vec<(&'static str, bool)>,
    /// The tokens around a text where older files do not say so, because every program puts them there.
    implied: [Option<u32>; 2],
}

/// What is between two texts.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    /// The first token of the second text.
    Begin,
    Separator,
    TwoSeparators,
}

impl Ends {
    /// Those of a file.
    pub(super) fn of(stored: &Stored<'_>) -> Self {
        let mut ends = Self::of_keys(stored.keys());
        let id =
            |name: &str| stored.global(&format!("tokenizer.ggml.{name}_token_id")).and_then(Value::as_u32);
        let says = |kind: &str| ends.adds.iter().any(|(own, _)| *own == kind);
        let pre = stored.global("tokenizer.ggml.pre").and_then(Value::as_str).unwrap_or_default();
        let is_words = stored.tokenizer() == "bert";
        if !says("bos") && is_words {
            ends.implied[0] = ends.id("bos").or_else(|| id("cls"));
        } else if !says("bos") && IMPLY_BEGIN.contains(&pre) {
            ends.implied[0] = ends.id("bos");
        }
        if !says("eos") && is_words {
            ends.implied[1] = ends.id("eos").or_else(|| ends.id("sep"));
        }
        ends
    }

    fn of_keys(keys: &Keys) -> Self {
        let mut ends = Self::default();
        for key in keys.iter() {
            let found = ID_KEYS.iter().find(|(kind, name)| *name == key.name && KINDS.contains(kind));
            if let (Some((kind, _)), Value::U32(id)) = (found, &key.value) {
                ends.ids.push((kind, *id));
            }
            let kind =
                key.name.strip_prefix("tokenizer.ggml.add_").and_then(|rest| rest.strip_suffix("_token"));
            let kind = ["bos", "eos", "sep"].into_iter().find(|own| kind == Some(*own));
            if let (Some(kind), Value::Bool(adds)) = (kind, &key.value) {
                ends.adds.push((kind, *adds));
            }
        }
        ends
    }

    /// The id of a kind.
    pub(super) fn id(&self, kind: &str) -> Option<u32> {
        self.ids.iter().find(|(own, _)| *own == kind).map(|(_, id)| *id)
    }

    /// Whether a token is a special one with a name.
    pub(super) fn has(&self, id: u32) -> bool {
        self.ids.iter().any(|(_, own)| *own == id)
    }

    fn adds(&self, kind: &str) -> bool {
        self.adds.iter().any(|(own, adds)| *own == kind && *adds)
    }

    /// Sets special tokens and flags of the settings, and ids of the configuration; returns the post-processor. Of those that models of the
    /// kind have, it is the first with which the keys come out in the same order, else the first.
    pub(super) fn set(
        &self,
        settings: &mut Object,
        config: &mut Object,
        added: &[Added],
        (normalizer, kind): (&Json, Kind),
        n_tokens: usize,
    ) -> Result<Json, Error> {
        // Ids that the settings name come in the order of their kinds, then those of the configuration.
        let place = |kind: &str| KINDS.iter().position(|own| *own == kind).unwrap_or(KINDS.len());
        let n_named = (1..self.ids.len()).find(|&idx| place(self.ids[idx].0) < place(self.ids[idx - 1].0));
        let content = |id: u32| added.iter().find(|own| own.id == id).map(|own| own.content.as_str());
        let is_named = |(_, id): &&(&str, u32)| content(*id).is_some();
        let named = &self.ids[..n_named.unwrap_or(self.ids.len())];
        let n_named = named.iter().take_while(is_named).count();
        let mut own_settings = Object::default();
        let mut own_config = Object::default();
        for (idx, (name, id)) in self.ids.iter().enumerate() {
            if let Some(content) = content(*id).filter(|_| idx < n_named) {
                let name = match *name {
                    // The first and the last token of encoders: bos and eos are taken from them.
                    "bos" if kind == Kind::Words && self.id("sep").is_some() => "cls",
                    "eos" if kind == Kind::Words && self.id("sep") == Some(*id) => "sep",
                    name => name,
                };
                own_settings.set(&format!("{name}_token"), text(content));
            }
            if idx >= n_named || ["bos", "eos", "pad"].contains(name) {
                own_config.set(&format!("{name}_token_id"), int(*id));
            }
        }
        if let [Some(begin), _] = self.implied
            && let Some(content) = content(begin).filter(|_| kind == Kind::Words)
        {
            own_settings.set("cls_token", text(content));
        }
        for (name, adds) in &self.adds {
            own_settings.set(&format!("add_{name}_token"), Json::Bool(*adds));
        }
        let mut texts = Texts::new("");
        texts.insert(CONFIG, Json::Object(own_settings.clone()).to_text().into_bytes());
        texts.insert("config.json", Json::Object(own_config.clone()).to_text().into_bytes());
        let candidates = self.candidates(kind, &content);
        let mut found = None;
        // What is implied is no key yet, so that no candidate gives the same keys.
        let is_stated = self.implied == [None; 2];
        for post in candidates.iter().filter(|_| is_stated) {
            if self.is_given_by(post, normalizer, added, &texts, n_tokens)? {
                found = Some(post.clone());
                break;
            }
        }
        for (own, all) in [(own_settings, settings), (own_config, config)] {
            for (name, value) in own.iter() {
                all.set(name, value.clone());
            }
        }
        Ok(found.or_else(|| candidates.first().cloned()).unwrap_or(Json::Null))
    }

    /// Whether the keys come out in the same order with this post-processor.
    fn is_given_by(
        &self,
        post: &Json,
        normalizer: &Json,
        added: &[Added],
        texts: &Texts,
        n_tokens: usize,
    ) -> Result<bool, Error> {
        let tokens = added.iter().filter(|own| self.has(own.id)).map(|own| {
            let mut members = vec![("id", int(own.id))];
            members.extend(own.flags());
            object(&members)
        });
        let mut members = Object::default();
        members.set("added_tokens", Json::Array(tokens.collect()));
        members.set("normalizer", normalizer.clone());
        members.set("post_processor", post.clone());
        let vocabulary = Vocabulary::new("", Strings::default(), Vec::new(), Vec::new())?;
        let file = TokenizerFile { vocabulary, merges: Merges::default(), model: Object::default(), members };
        let mut keys = Keys::new();
        SpecialTokens::new(texts, Some(&file), KINDS, Some(n_tokens))?.set_keys(&mut keys);
        let found = Self::of_keys(&keys);
        Ok(found.ids == self.ids && found.adds == self.adds)
    }

    /// Post-processors that models of this kind have.
    fn candidates<'t>(&self, kind: Kind, content: &impl Fn(u32) -> Option<&'t str>) -> Vec<Json> {
        let byte_level = object(&[
            ("type", text("ByteLevel")),
            ("add_prefix_space", Json::Bool(true)),
            ("trim_offsets", Json::Bool(false)),
            ("use_regex", Json::Bool(true)),
        ]);
        let token = |id: u32| Some((content(id)?.to_owned(), id));
        let [implied_begin, implied_end] = self.implied;
        let begin = self.id("bos").filter(|_| self.adds("bos")).or(implied_begin).and_then(token);
        let end = self.id("eos").filter(|_| self.adds("eos")).or(implied_end).and_then(token);
        let separator = self.id("sep").and_then(token).or_else(|| end.clone());
        let templates = |order: [Between; 4]| {
            let template = |between| template(begin.as_ref(), end.as_ref(), separator.as_ref(), between);
            match begin.is_some() || end.is_some() {
                true => order.map(template).to_vec(),
                false => Vec::new(),
            }
        };
        use Between::{Begin, Nothing, Separator, TwoSeparators};
        match kind {
            Kind::Bytes => {
                let templates = templates([Begin, Nothing, Separator, TwoSeparators]);
                let after = |template: &Json| {
                    let processors = Json::Array(vec![byte_level.clone(), template.clone()]);
                    object(&[("type", text("Sequence")), ("processors", processors)])
                };
                let mut all: Vec<Json> = Vec::new();
                if let (true, Some((end, end_id)), Some((begin, begin_id))) = (self.adds("sep"), &end, &begin)
                {
                    let pair = |content: &str, id: u32| Json::Array(vec![text(content), int(id)]);
                    all.push(object(&[
                        ("type", text("RobertaProcessing")),
                        ("sep", pair(end, *end_id)),
                        ("cls", pair(begin, *begin_id)),
                        ("trim_offsets", Json::Bool(true)),
                        ("add_prefix_space", Json::Bool(false)),
                    ]));
                }
                all.extend(templates.iter().map(after));
                all.extend(templates);
                all.push(byte_level);
                all.push(Json::Null);
                all
            }
            Kind::Pieces => {
                let mut all = templates([Begin, Nothing, Separator, TwoSeparators]);
                all.push(Json::Null);
                all
            }
            Kind::Words => {
                let mut all = templates([Separator, TwoSeparators, Nothing, Begin]);
                all.push(Json::Null);
                all
            }
        }
    }
}

/// A template of one text and of two.
fn template(
    begin: Option<&(String, u32)>,
    end: Option<&(String, u32)>,
    separator: Option<&(String, u32)>,
    between: Between,
) -> Json {
    let special = |kind: i32, token: &(String, u32)| {
        object(&[("SpecialToken", object(&[("id", text(&token.0)), ("type_id", int(kind))]))])
    };
    let sequence =
        |kind: i32, id: &str| object(&[("Sequence", object(&[("id", text(id)), ("type_id", int(kind))]))]);
    let mut single: Vec<Json> = begin.map(|token| special(0, token)).into_iter().collect();
    single.push(sequence(0, "A"));
    let mut pair = single.clone();
    single.extend(end.map(|token| special(0, token)));
    let n_separators = match between {
        Between::Nothing | Between::Begin => 0,
        Between::Separator => 1,
        Between::TwoSeparators => 2,
    };
    if let Some(separator) = separator {
        pair.extend((0..n_separators).map(|_| special(0, separator)));
    }
    if matches!(between, Between::Begin) {
        pair.extend(begin.map(|token| special(1, token)));
    }
    pair.push(sequence(1, "B"));
    pair.extend(end.map(|token| special(1, token)));
    let tokens = [begin, end, separator.filter(|_| n_separators > 0)];
    let mut specials = Object::default();
    for (content, id) in tokens.into_iter().flatten() {
        specials.set(
            content,
            object(&[
                ("id", text(content)),
                ("ids", Json::Array(vec![int(*id)])),
                ("tokens", Json::Array(vec![text(content)])),
            ]),
        );
    }
    object(&[
        ("type", text("TemplateProcessing")),
        ("single", Json::Array(single)),
        ("pair", Json::Array(pair)),
        ("special_tokens", Json::Object(specials)),
    ])
}
