//! The vocabulary as transformers loads it: tokens of the model and added ones, with the settings of the class.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::added::{AddedToken, AddedTokens};
use super::encode::{Bert, Changes, Decoder, Halt, Steps, check_model, clean_up};
use super::file::{FILE, MAX_TOKENS, Merges, TokenizerFile, Vocabulary};
use super::pre::Subject;
use super::sentencepiece::{CONTROL, NORMAL, UNUSED, USER_DEFINED};
use super::settings::{CONFIG, Settings};
use super::strings::Strings;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::regex::Budget;
use crate::text::python_text;
use crate::texts::Texts;

/// The steps of a tokenizer that has `vocab.json` and `merges.txt`.
const GPT2_STEPS: &str = r#"{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}}"#;
const QWEN2_STEPS: &str = r#"{"normalizer": {"type": "NFC"}, "decoder": {"type": "ByteLevel"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "behavior": "Isolated", "pattern": {"Regex":
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}}"#;
/// The steps of a tokenizer that has `vocab.txt`.
const BERT_STEPS: &str = r###"{"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
    "decoder": {"type": "WordPiece", "prefix": "##"}}"###;

/// A tokenizer that is loaded.
#[derive(Debug)]
pub(super) struct Base<'t> {
    pub(super) file: Cow<'t, TokenizerFile>,
    pub(super) added: AddedTokens,
    pub(super) settings: Settings,
    changes: Changes,
}

/// Tokens with their types.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) texts: Vec<String>,
    pub(super) types: Vec<i32>,
}

impl<'t> Base<'t> {
    /// Loads `tokenizer.json`, which the caller has read, or else the files that came before it.
    pub(super) fn new(
        texts: &Texts,
        file: Option<&'t TokenizerFile>,
        config: &Config,
    ) -> Result<Self, Error> {
        let model_type = config.get("model_type").and_then(Json::as_str);
        let in_file = file.map(listed_tokens).transpose()?.unwrap_or_default();
        let settings = Settings::new(texts, &in_file, model_type)?;
        let is_in_file = file.is_some();
        let file = match file {
            Some(file) => Cow::Borrowed(file),
            None => Cow::Owned(older_files(texts, &settings)?),
        };
        let mut added = AddedTokens::default();
        let tokens: Vec<AddedToken> = in_file.into_iter().map(|(_, token)| token).collect();
        added.add(FILE, &tokens, &file.vocabulary)?;
        let more = settings.to_add(|content| added.id(content).is_some());
        added.add(CONFIG, &more, &file.vocabulary)?;
        let mut base = Self { file, added, settings, changes: Changes::default() };
        base.changes = base.find_changes(is_in_file)?;
        Ok(base)
    }

    /// What the class changes.
    fn find_changes(&self, is_in_file: bool) -> Result<Changes, Error> {
        let settings = &self.settings;
        let has_null = matches!(settings.config().get("add_prefix_space"), Some(Json::Null));
        let prefix_space = settings.bool("add_prefix_space").unwrap_or(false);
        let is_llama = settings.is_class("LlamaTokenizer");
        let mut changes = Changes {
            prefix_space: (!has_null && (!is_llama || settings.bool("add_prefix_space").is_some()))
                .then_some(prefix_space),
            inner_prefix_space: prefix_space
                && (settings.is_class("BloomTokenizer") || settings.is_class("CohereTokenizer")),
            bert: self.bert_settings(),
            splits_special: settings.bool("split_special_tokens").unwrap_or_default(),
            post: None,
        };
        let id = |name: &str| {
            let token =
                settings.special(name).ok_or_else(|| ErrorKind::missing(CONFIG, &format!("`{name}`")))?;
            self.id(token).ok_or_else(|| ErrorKind::unknown(CONFIG, "a setting", token))
        };
        if let Some((begins, ends)) = settings.own_ends() {
            let before = if begins { alloc::vec![id("bos_token")?] } else { Vec::new() };
            let after = if ends { alloc::vec![id("eos_token")?] } else { Vec::new() };
            changes.post = Some((before, after));
        } else if !is_in_file {
            let is = |name| settings.is_class(name);
            let begins = (is("GPT2Tokenizer") || is("CodeGenTokenizer"))
                && settings.bool("add_bos_token") == Some(true);
            if begins {
                changes.post = Some((alloc::vec![id("bos_token")?], Vec::new()));
            } else if is("RobertaTokenizer") || is("BertTokenizer") || is("DistilBertTokenizer") {
                changes.post = Some((alloc::vec![id("cls_token")?], alloc::vec![id("sep_token")?]));
            }
        }
        Ok(changes)
    }

    /// The settings of a class like BERT's for the normalizer, if one of them differs from the file.
    fn bert_settings(&self) -> Option<Bert> {
        let settings = &self.settings;
        if !settings.is_class("BertTokenizer") && !settings.is_class("DistilBertTokenizer") {
            return None;
        }
        let own = Bert {
            lowercase: settings.bool("do_lower_case").unwrap_or(true),
            strip_accents: settings.bool("strip_accents"),
            chinese: settings.bool("tokenize_chinese_chars").unwrap_or(true),
        };
        let normalizer = self.file.member("normalizer").and_then(Json::as_object)?;
        let value = |name, default: Option<bool>| normalizer.get(name).map_or(default, Json::as_bool);
        let differs = value("lowercase", Some(own.lowercase)) != Some(own.lowercase)
            || value("strip_accents", own.strip_accents) != own.strip_accents
            || value("handle_chinese_chars", Some(own.chinese)) != Some(own.chinese);
        differs.then_some(own)
    }

    /// The id of a token of the model or of an added one.
    pub(super) fn id(&self, token: &str) -> Option<u32> {
        self.added.id(token).or_else(|| self.file.vocabulary.id(token))
    }

    /// The token of an id.
    fn token(&self, id: u32) -> Option<&str> {
        self.added.token(id).or_else(|| self.file.vocabulary.token(id))
    }

    /// Number of tokens, with added ones.
    pub(super) fn len(&self) -> usize {
        let is_new = |(id, _, _): &(u32, &str, _)| self.file.vocabulary.token(*id).is_none();
        self.file.vocabulary.len() + self.added.tokens().filter(is_new).count()
    }

    /// The name of the pre-tokenizer: the given one, or the one whose hash is that of this tokenizer.
    pub(super) fn pre(&self, given: Option<&str>) -> Result<String, Error> {
        match self.file.model_type() {
            "BPE" | "WordPiece" => {}
            other => return Err(ErrorKind::unsupported(FILE, &format!("a model of the type {other}"))),
        }
        match given {
            Some(name) => check_model(&self.file).map(|()| name.into()),
            None => self.subject().name().map(String::from),
        }
    }

    /// The tokenizer as far as the name of its pre-tokenizer depends on it.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject { file: &self.file, added: &self.added, changes: &self.changes }
    }

    /// The tokens of models with merges or words: `config.json` says how many there are, unused ones are named `[PAD7]`.
    pub(super) fn tokens(&self, config: &Config) -> Result<Tokens, Error> {
        let n_tokens = config.u32(&["vocab_size"])?.map_or_else(|| self.len(), |n_tokens| n_tokens as usize);
        if n_tokens > MAX_TOKENS {
            return Err(ErrorKind::limit("config.json", "tokens", MAX_TOKENS));
        }
        let mut texts: Vec<Option<String>> = alloc::vec![None; n_tokens];
        let mut types = alloc::vec![UNUSED; n_tokens];
        let undecoded = |halt| match halt {
            Halt::Error(error) => error,
            Halt::Missing(what) => ErrorKind::unsupported(FILE, &what),
        };
        let is_decoded = self.added.tokens().any(|(_, _, flags)| !flags.normalized);
        let decoder = self.file.member("decoder").filter(|_| is_decoded);
        let decoder = decoder.map(Decoder::new).transpose().map_err(undecoded)?;
        let raw = self.added.raw();
        let is_raw = |token: &str| !self.changes.splits_special && raw.contains(token);
        let needs_encoder = self.added.tokens().any(|(_, token, flags)| !flags.normalized && !is_raw(token));
        let steps =
            needs_encoder.then(|| Steps::new(&self.file, &self.changes)).transpose().map_err(undecoded)?;
        let mut budget = Budget::for_tokens();
        let encoder = steps
            .as_ref()
            .map(|steps| steps.with(&self.added, &mut budget))
            .transpose()
            .map_err(undecoded)?;
        let beyond = |id: u32, token: &str| ErrorKind::beyond_of(token, FILE, id.into(), n_tokens as u64);
        for (id, token) in self.file.vocabulary.tokens() {
            let slot = texts.get_mut(id as usize).ok_or_else(|| beyond(id, token))?;
            *slot = Some(token.into());
            types[id as usize] = NORMAL;
        }
        for (id, content, flags) in self.added.tokens() {
            let slot = texts.get_mut(id as usize).ok_or_else(|| beyond(id, content))?;
            let mut token: String = content.into();
            if !flags.normalized {
                // It is written as it is decoded again.
                let parts = match &encoder {
                    Some(encoder) if !is_raw(content) => {
                        let ids = encoder.encode(content, false, &mut budget).map_err(undecoded)?;
                        ids.into_iter().filter_map(|id| self.token(id)).map(String::from).collect()
                    }
                    _ => alloc::vec![token],
                };
                token = Decoder::text(decoder.as_ref(), parts, &mut budget).map_err(undecoded)?;
                if self.settings.bool("clean_up_tokenization_spaces") == Some(true) {
                    token = clean_up(&token, false);
                }
            }
            if flags.special || looks_special(&token) {
                types[id as usize] = CONTROL;
            } else {
                token = token.replace('▁', " ");
                types[id as usize] = USER_DEFINED;
            }
            *slot = Some(token);
        }
        let padded = |(id, text): (usize, Option<String>)| text.unwrap_or_else(|| format!("[PAD{id}]"));
        Ok(Tokens { texts: texts.into_iter().enumerate().map(padded).collect(), types })
    }

    /// The merges as GGUF has them: those of `tokenizer.json`, else of `merges.txt`.
    pub(super) fn merges(texts: &Texts, file: Option<&TokenizerFile>) -> Result<Vec<String>, Error> {
        let lines = file.map(|file| file.merges.lines()).unwrap_or_default();
        let Some(bytes) = texts.get(MERGES).filter(|_| lines.is_empty()) else { return Ok(lines) };
        let text = python_text(MERGES, bytes)?;
        let first = text.lines().next().unwrap_or_default().trim();
        let skipped = usize::from(first.starts_with('#'));
        let pair = |line: &str| {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some(first), Some(second), None) => Some(format!("{first} {second}")),
                _ => None,
            }
        };
        Ok(text.split('\n').skip(skipped).filter_map(pair).collect())
    }
}

/// Whether a token is one that controls the model although it is not marked so.
pub(super) fn looks_special(token: &str) -> bool {
    let is_between = |begin, end| token.starts_with(begin) && token.ends_with(end);
    ["<pad>", "<mask>", "<2mass>", "[@BOS@]"].contains(&token)
        || is_between("<|", "|>")
        || is_between("<｜", "｜>")
        || is_between("<unused", ">")
}

/// `added_tokens` of `tokenizer.json`, with their ids.
fn listed_tokens(file: &TokenizerFile) -> Result<Vec<(i64, AddedToken)>, Error> {
    let Some(json) = file.member("added_tokens") else { return Ok(Vec::new()) };
    let items =
        json.as_array().ok_or_else(|| ErrorKind::value(FILE, "added_tokens", "a list of tokens", json))?;
    let token = |json: &Json| {
        let id = json.get("id").and_then(Json::as_i64);
        let token = id.zip(AddedToken::from_json(json));
        token.ok_or_else(|| ErrorKind::value(FILE, "added_tokens", "a token with its id", json))
    };
    items.iter().map(token).collect()
}

const MERGES: &str = "merges.txt";
const VOCABULARY: &str = "vocab.json";
const WORDS: &str = "vocab.txt";

/// The tokenizer of `vocab.json` and `merges.txt`, or of `vocab.txt`.
fn older_files(texts: &Texts, settings: &Settings) -> Result<TokenizerFile, Error> {
    let is = |name| settings.is_class(name);
    let missing = |file: &str| Error::from(ErrorKind::MissingFile { file: Box::from(file) });
    let parsed = |text: &str| match Json::from_bytes(FILE, text.as_bytes()) {
        Ok(Json::Object(members)) => members,
        _ => Object::default(),
    };
    if is("BertTokenizer") || is("DistilBertTokenizer") {
        let bytes = texts.get(WORDS).ok_or_else(|| missing("tokenizer.json or vocab.txt"))?;
        let text = python_text(WORDS, bytes)?;
        let strings: Strings = text.strip_suffix('\n').unwrap_or(&text).split('\n').collect();
        if strings.len() > MAX_TOKENS {
            return Err(ErrorKind::limit(WORDS, "tokens", MAX_TOKENS));
        }
        let ids = (0..strings.len() as u32).collect();
        let mut model = parsed(r#"{"type": "WordPiece"}"#);
        model.set("unk_token", Json::String(settings.special("unk_token").unwrap_or("[UNK]").into()));
        let vocabulary = Vocabulary::new(WORDS, strings, ids, Vec::new())?;
        return Ok(TokenizerFile {
            vocabulary,
            merges: Merges::default(),
            model,
            members: parsed(BERT_STEPS),
        });
    }
    let has_converter =
        is("GPT2Tokenizer") || is("CodeGenTokenizer") || is("RobertaTokenizer") || is("Qwen2Tokenizer");
    let files = texts.get(VOCABULARY).zip(texts.get(MERGES)).filter(|_| has_converter);
    let (vocabulary, merges) = files.ok_or_else(|| missing(FILE))?;
    let text = python_text(MERGES, merges)?;
    // The first line is a comment, and what follows the last line feed no merge.
    let mut lines: Vec<&str> = text.split('\n').skip(1).collect();
    lines.pop();
    let mut strings = Strings::default();
    for line in lines {
        let mut words = line.split_whitespace();
        let pair = words.next().zip(words.next()).filter(|_| words.next().is_none());
        let (first, second) = pair.ok_or_else(|| {
            let expected = "two strings with a space between them in each line";
            ErrorKind::ConfigValue { file: MERGES.into(), expected, found: "another line".into() }
        })?;
        strings.push_with(|text| *text += &format!("{first} {second}"));
    }
    Ok(TokenizerFile {
        vocabulary: Vocabulary::from_json(VOCABULARY, vocabulary)?,
        merges: Merges::of_lines(strings),
        model: parsed(r#"{"type": "BPE"}"#),
        members: parsed(if is("Qwen2Tokenizer") { QWEN2_STEPS } else { GPT2_STEPS }),
    })
}
