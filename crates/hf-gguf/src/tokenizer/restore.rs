//! The way back: files of a tokenizer that give the same keys.

mod ends;
mod protobuf;
mod vocabulary;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};
use json_scan::{Escape, Writer};

use self::ends::Ends;
use self::vocabulary::{Added, Vocabulary};
use super::file::FILE;
use super::pre;
use super::sentencepiece::{BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED};
use super::settings::CONFIG;
use super::{CHARSMAP, REMOVE_SPACES, SPACE_PREFIX};
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::Value;
use crate::restore::{Stored, float, int, text};
use crate::texts::Texts;

const TEMPLATE: &str = "tokenizer.chat_template";
/// Names of pre-tokenizers whose tokenizers compose characters first.
const COMPOSED: &[&str] =
    &["qwen2", "qwen35", "stablelm2", "olmo", "mpt", "deepseek-r1-qwen", "kormo", "megrez", "a.x-4.0"];

/// What `tokenizer.json` has besides vocabulary and added tokens.
struct Steps {
    normalizer: Json,
    pre_tokenizer: Json,
    decoder: Json,
    /// Whether pieces or letters of bytes.
    kind: ends::Kind,
}

/// Writes the files of the tokenizer, and the ids of special tokens to the configuration; adds notes on what is not as it was.
///
/// # Errors
///
/// [`ErrorKind::TokenizerKind`] for kinds that are not written; [`ErrorKind::KeyMissing`], [`ErrorKind::KeyValue`],
/// [`ErrorKind::Limit`] for vocabularies that contradict themselves.
pub(crate) fn restore(
    stored: &Stored<'_>,
    config: &mut Object,
    texts: &mut Texts,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let vocabulary = Vocabulary::new(stored)?;
    let restorer = Restorer { stored, vocabulary, ends: Ends::of(stored) };
    match stored.tokenizer() {
        "gpt2" => restorer.byte_level(config, texts, notes),
        "llama" => restorer.pieces(config, texts),
        "bert" => restorer.words(config, texts),
        "t5" if stored.architecture() == "bert" => restorer.xlm_roberta(config, texts),
        "t5" => restorer.t5(config, texts),
        other => Err(ErrorKind::unsupported("tokenizer.ggml.model", other)),
    }
}

struct Restorer<'s> {
    stored: &'s Stored<'s>,
    vocabulary: Vocabulary<'s>,
    ends: Ends,
}

impl Restorer<'_> {
    /// BPE over letters that stand for bytes.
    fn byte_level(
        &self,
        config: &mut Object,
        texts: &mut Texts,
        notes: &mut Vec<String>,
    ) -> Result<(), Error> {
        let name = self.stored.global("tokenizer.ggml.pre").and_then(Value::as_str).unwrap_or("default");
        let known = pre::steps(name);
        if known.is_none() {
            notes.push(format!(
                "the pre-tokenizer {name} has no known form: tokenizer.json has that of GPT-2, which splits text in other places"
            ));
        }
        let pre_tokenizer = known.or_else(|| pre::steps("gpt-2")).unwrap_or(Json::Null);
        let byte_level = || object(&[("type", text("ByteLevel")), ("add_prefix_space", Json::Bool(false))]);
        let (mut decoder, composed) = (byte_level(), object(&[("type", text("NFC"))]));
        if let Json::Object(decoder) = &mut decoder {
            decoder.set("trim_offsets", Json::Bool(true));
            decoder.set("use_regex", Json::Bool(true));
        }
        let steps = Steps {
            normalizer: if COMPOSED.contains(&name) { composed } else { Json::Null },
            pre_tokenizer,
            decoder,
            kind: ends::Kind::Bytes,
        };
        let added = self.vocabulary.added(true);
        let mut settings = self.settings("PreTrainedTokenizerFast", &added);
        if self.stored.architecture() == "phi3" {
            // The class by which Phi-4 is told from Phi-3; it has tokens of its own unless these are null.
            settings.set("tokenizer_class", text("GPT2Tokenizer"));
            for name in ["bos_token", "eos_token", "unk_token"] {
                settings.set(name, Json::Null);
            }
        }
        let post = self.set_ends(&mut settings, config, &added, &steps)?;
        let n_vocabulary = self.vocabulary.n_trained(&added);
        let file = Self::file(&added, &steps, &post, |out| {
            out.key("type").string("BPE");
            for name in ["dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"] {
                out.key(name).null();
            }
            out.key("fuse_unk").plain(false);
            out.key("byte_fallback").plain(false);
            out.key("ignore_merges").plain(pre::ignores_merges(name));
            self.write_vocabulary(out, n_vocabulary);
            out.key("merges").begin_array();
            if let Some(Value::Strings(merges)) = self.stored.global("tokenizer.ggml.merges") {
                for merge in merges {
                    out.string(merge);
                }
            }
            out.end_array();
        });
        texts.insert(FILE, file.into_bytes());
        texts.insert(CONFIG, Json::Object(settings).to_text().into_bytes());
        Ok(())
    }

    /// SentencePiece's BPE: its model, unless the scores are lost, and `tokenizer.json`.
    fn pieces(&self, config: &mut Object, texts: &mut Texts) -> Result<(), Error> {
        let is_gemma = self.stored.architecture().starts_with("gemma");
        let prefix = match self.stored.global(SPACE_PREFIX) {
            Some(Value::Bool(prefix)) => Some(*prefix),
            _ => None,
        };
        let has_prefix = !is_gemma && prefix.unwrap_or(true);
        let has_scores = self.vocabulary.has_scores();
        let unknown = self.vocabulary.unknown(&self.ends);
        if has_scores {
            let model = self.vocabulary.sentencepiece(unknown, &self.ends, 2, has_prefix, false, &[]);
            texts.insert("tokenizer.model", model);
        }
        let replace = |from: &str, to: &str| {
            object(&[
                ("type", text("Replace")),
                ("pattern", object(&[("String", text(from))])),
                ("content", text(to)),
            ])
        };
        let (mut normalizers, mut decoders) = (Vec::new(), vec![replace("▁", " ")]);
        if has_prefix {
            normalizers.push(object(&[("type", text("Prepend")), ("prepend", text("▁"))]));
        }
        normalizers.push(replace(" ", "▁"));
        decoders.extend(["ByteFallback", "Fuse"].map(|kind| object(&[("type", text(kind))])));
        if has_prefix {
            decoders.push(object(&[
                ("type", text("Strip")),
                ("content", text(" ")),
                ("start", int(1)),
                ("stop", int(0)),
            ]));
        }
        let split = object(&[
            ("type", text("Split")),
            ("pattern", object(&[("String", text(" "))])),
            ("behavior", text("MergedWithPrevious")),
            ("invert", Json::Bool(false)),
        ]);
        let steps = Steps {
            normalizer: object(&[("type", text("Sequence")), ("normalizers", Json::Array(normalizers))]),
            pre_tokenizer: if is_gemma { split } else { Json::Null },
            decoder: object(&[("type", text("Sequence")), ("decoders", Json::Array(decoders))]),
            kind: ends::Kind::Pieces,
        };
        // Only tokens that were added later are listed in the settings: they lose their scores.
        let all = self.vocabulary.added(false);
        let later: Vec<Added> = all.iter().filter(|own| self.vocabulary.is_later(own.id)).cloned().collect();
        // Those of Phi-3 count as added later, wherever they are listed.
        let listed = if self.stored.architecture() == "phi3" { &later } else { &all };
        let class = if is_gemma { "GemmaTokenizer" } else { "LlamaTokenizer" };
        let mut settings = self.settings(class, &later);
        if !is_gemma && let Some(prefix) = prefix {
            settings.set("add_prefix_space", Json::Bool(prefix));
        }
        if !has_scores {
            let is_named = |own: &&Added| own.special && !self.ends.has(own.id);
            let names = later.iter().filter(is_named).map(|own| text(&own.content));
            settings.set("additional_special_tokens", Json::Array(names.collect()));
        }
        let post = self.set_ends(&mut settings, config, listed, &steps)?;
        let n_vocabulary = self.vocabulary.n_trained(listed);
        if let Some(merges) = self.vocabulary.merges(n_vocabulary, has_scores) {
            let unknown = unknown.and_then(|id| self.vocabulary.texts.get(id as usize));
            let file = Self::file(listed, &steps, &post, |out| {
                out.key("type").string("BPE");
                out.key("dropout").null();
                match unknown {
                    Some(unknown) => out.key("unk_token").string(unknown),
                    None => out.key("unk_token").null(),
                };
                for name in ["continuing_subword_prefix", "end_of_word_suffix"] {
                    out.key(name).null();
                }
                out.key("fuse_unk").plain(true);
                out.key("byte_fallback").plain(true);
                out.key("ignore_merges").plain(false);
                self.write_vocabulary(out, n_vocabulary);
                out.key("merges").begin_array();
                for (first, second) in merges {
                    out.begin_array();
                    out.string(first).string(second);
                    out.end_array();
                }
                out.end_array();
            });
            texts.insert(FILE, file.into_bytes());
        }
        texts.insert(CONFIG, Json::Object(settings).to_text().into_bytes());
        Ok(())
    }

    /// WordPiece.
    fn words(&self, config: &mut Object, texts: &mut Texts) -> Result<(), Error> {
        let flag = |name: &str| match self.stored.global(&format!("tokenizer.ggml.normalizer.{name}")) {
            Some(Value::Bool(flag)) => Some(*flag),
            _ => None,
        };
        // As llama.cpp does for files that do not say so.
        let lowercase = Json::Bool(flag("lowercase").unwrap_or(true));
        let accents = flag("strip_accents").map_or(Json::Null, Json::Bool);
        let normalizer = object(&[
            ("type", text("BertNormalizer")),
            ("clean_text", Json::Bool(true)),
            ("handle_chinese_chars", Json::Bool(true)),
            ("strip_accents", accents.clone()),
            ("lowercase", lowercase.clone()),
        ]);
        let steps = Steps {
            normalizer,
            pre_tokenizer: object(&[("type", text("BertPreTokenizer"))]),
            decoder: object(&[
                ("type", text("WordPiece")),
                ("prefix", text("##")),
                ("cleanup", Json::Bool(true)),
            ]),
            kind: ends::Kind::Words,
        };
        let added = self.vocabulary.added(false);
        let mut settings = self.settings("BertTokenizer", &added);
        settings.set("do_lower_case", lowercase);
        settings.set("strip_accents", accents);
        settings.set("tokenize_chinese_chars", Json::Bool(true));
        settings.set("clean_up_tokenization_spaces", Json::Bool(true));
        // The class has tokens of its own unless these are null.
        for name in ["unk_token", "sep_token", "pad_token", "cls_token", "mask_token"] {
            settings.set(name, Json::Null);
        }
        let post = self.set_ends(&mut settings, config, &added, &steps)?;
        let unknown = settings.get("unk_token").and_then(Json::as_str).unwrap_or("[UNK]");
        let file = Self::file(&added, &steps, &post, |out| {
            out.key("type").string("WordPiece");
            out.key("unk_token").string(unknown);
            out.key("continuing_subword_prefix").string("##");
            out.key("max_input_chars_per_word").plain(100);
            out.key("vocab").begin_object();
            for (id, token, kind) in self.vocabulary.iter() {
                match token.strip_prefix('▁') {
                    _ if kind == CONTROL => out.key(token),
                    Some(word) => out.key(word),
                    None => out.key(&format!("##{token}")),
                }
                .plain(id);
            }
            out.end_object();
        });
        texts.insert(FILE, file.into_bytes());
        texts.insert(CONFIG, Json::Object(settings).to_text().into_bytes());
        Ok(())
    }

    /// Unigram in `tokenizer.json`.
    fn xlm_roberta(&self, config: &mut Object, texts: &mut Texts) -> Result<(), Error> {
        let flag = |name: &str| matches!(self.stored.global(name), Some(Value::Bool(true)));
        let metaspace = object(&[
            ("type", text("Metaspace")),
            ("replacement", text("▁")),
            ("prepend_scheme", text("always")),
            ("split", Json::Bool(true)),
        ]);
        let splits = vec![object(&[("type", text("WhitespaceSplit"))]), metaspace.clone()];
        let steps = Steps {
            normalizer: object(&[
                ("type", text("Precompiled")),
                ("precompiled_charsmap", text(&Base64::encode_string(self.charsmap()))),
            ]),
            pre_tokenizer: object(&[("type", text("Sequence")), ("pretokenizers", Json::Array(splits))]),
            decoder: metaspace,
            kind: ends::Kind::Words,
        };
        let added = self.vocabulary.added(false);
        let mut settings = self.settings("XLMRobertaTokenizer", &added);
        settings.set("add_prefix_space", Json::Bool(flag(SPACE_PREFIX)));
        settings.set("clean_up_tokenization_spaces", Json::Bool(flag(REMOVE_SPACES)));
        let post = self.set_ends(&mut settings, config, &added, &steps)?;
        let unknown = self.vocabulary.unknown(&self.ends);
        let file = Self::file(&added, &steps, &post, |out| {
            out.key("type").string("Unigram");
            match unknown {
                Some(unknown) => out.key("unk_id").plain(unknown),
                None => out.key("unk_id").null(),
            };
            out.key("byte_fallback").plain(false);
            out.key("vocab").begin_array();
            for (id, token, _) in self.vocabulary.iter() {
                out.begin_array();
                out.string(token);
                float(self.vocabulary.score(id)).write_to(out);
                out.end_array();
            }
            out.end_array();
        });
        texts.insert(FILE, file.into_bytes());
        texts.insert(CONFIG, Json::Object(settings).to_text().into_bytes());
        Ok(())
    }

    /// Unigram in a model of SentencePiece.
    fn t5(&self, config: &mut Object, texts: &mut Texts) -> Result<(), Error> {
        let flag = |name: &str| matches!(self.stored.global(name), Some(Value::Bool(true)));
        let unknown = self.vocabulary.unknown(&self.ends);
        let (prefix, removes) = (flag(SPACE_PREFIX), flag(REMOVE_SPACES));
        let model = self.vocabulary.sentencepiece(unknown, &self.ends, 1, prefix, removes, self.charsmap());
        texts.insert("spiece.model", model);
        let mut settings = self.settings("T5Tokenizer", &[]);
        settings.remove("added_tokens_decoder");
        // Tokens that mark what is left out have rows beyond the pieces.
        let n_beyond = self.stored.tokens().len() - self.vocabulary.texts.len();
        settings.set("extra_ids", int(if n_beyond >= 100 { 100 } else { 0 }));
        let content = |id: Option<u32>| {
            let content = id.and_then(|id| self.vocabulary.texts.get(id as usize));
            content.map_or(Json::Null, |content| text(content))
        };
        settings.set("unk_token", content(unknown));
        for (kind, id) in &self.ends.ids {
            settings.set(&format!("{kind}_token"), content(Some(*id)));
            config.set(&format!("{kind}_token_id"), int(*id));
        }
        texts.insert(CONFIG, Json::Object(settings).to_text().into_bytes());
        Ok(())
    }

    fn charsmap(&self) -> &[u8] {
        match self.stored.global(CHARSMAP) {
            Some(Value::U8s(map)) => map,
            _ => &[],
        }
    }

    /// `tokenizer_config.json`, without special tokens.
    fn settings(&self, class: &str, added: &[Added]) -> Object {
        let mut settings = Object::default();
        let mut decoder: Vec<(alloc::boxed::Box<str>, Json)> = Vec::new();
        for own in added {
            decoder.push((format!("{}", own.id).into(), object(&own.flags())));
        }
        settings.set("added_tokens_decoder", Json::Object(decoder.into()));
        settings.set("clean_up_tokenization_spaces", Json::Bool(false));
        if let Ok(Some(len)) = self.stored.u32("context_length") {
            settings.set("model_max_length", int(len));
        }
        settings.set("tokenizer_class", text(class));
        let template = self.stored.global(TEMPLATE).and_then(Value::as_str);
        match self.stored.global("tokenizer.chat_templates") {
            Some(Value::Strings(names)) => {
                let own = names.iter().filter_map(|name| {
                    let own = self.stored.global(&format!("{TEMPLATE}.{name}")).and_then(Value::as_str);
                    Some((name.as_str(), own?))
                });
                let all = template.map(|own| ("default", own)).into_iter().chain(own);
                let all = all.map(|(name, own)| object(&[("name", text(name)), ("template", text(own))]));
                settings.set("chat_template", Json::Array(all.collect()));
            }
            _ => {
                if let Some(template) = template {
                    settings.set("chat_template", text(template));
                }
            }
        }
        settings
    }

    /// Sets special tokens and flags, as the keys have them in their order; returns the post-processor.
    fn set_ends(
        &self,
        settings: &mut Object,
        config: &mut Object,
        added: &[Added],
        steps: &Steps,
    ) -> Result<Json, Error> {
        let n_tokens = self.stored.tokens().len();
        self.ends.set(settings, config, added, (&steps.normalizer, steps.kind), n_tokens)
    }

    /// `tokenizer.json`; `model` writes the members of the model.
    fn file(added: &[Added], steps: &Steps, post: &Json, model: impl FnOnce(&mut Writer)) -> String {
        let mut out = Writer::indented(Escape::Minimal);
        out.begin_object();
        out.key("version").string("1.0");
        out.key("truncation").null();
        out.key("padding").null();
        out.key("added_tokens").begin_array();
        for own in added {
            let mut members = vec![("id", int(own.id))];
            members.extend(own.flags());
            object(&members).write_to(&mut out);
        }
        out.end_array();
        for (name, value) in [
            ("normalizer", &steps.normalizer),
            ("pre_tokenizer", &steps.pre_tokenizer),
            ("post_processor", post),
            ("decoder", &steps.decoder),
        ] {
            out.key(name);
            value.write_to(&mut out);
        }
        out.key("model").begin_object();
        model(&mut out);
        out.end_object();
        out.end_object();
        out.finish()
    }

    /// The tokens below an id, but for those that only fill gaps.
    fn write_vocabulary(&self, out: &mut Writer, end: u32) {
        out.key("vocab").begin_object();
        for (id, token, kind) in self.vocabulary.iter().filter(|(id, _, _)| *id < end) {
            if kind != UNUSED || *token != format!("[PAD{id}]") {
                out.key(token).plain(id);
            }
        }
        out.end_object();
    }
}

/// An object with these members.
fn object(members: &[(&str, Json)]) -> Json {
    let members: Vec<(alloc::boxed::Box<str>, Json)> =
        members.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
    Json::Object(members.into())
}

/// Whether a token of this type is one that was added: it is looked for before a text is split.
const fn is_added(kind: i32) -> bool {
    !matches!(kind, NORMAL | UNUSED | BYTE)
}

/// Whether such a token controls the model.
const fn is_special(kind: i32) -> bool {
    matches!(kind, UNKNOWN | CONTROL)
}
