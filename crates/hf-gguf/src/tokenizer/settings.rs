//! What transformers makes of the files of a tokenizer before it is used: defaults of its class, added tokens, named special tokens.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::added::AddedToken;
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::texts::Texts;

/// Names of special tokens, in the order in which they are added.
const NAMES: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
/// Special tokens without a name.
const ADDITIONAL: &str = "additional_special_tokens";
pub(super) const CONFIG: &str = "tokenizer_config.json";
pub(super) const SPECIAL_MAP: &str = "special_tokens_map.json";
pub(super) const ADDED: &str = "added_tokens.json";

/// A class of tokenizers in transformers 4.57.6.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// Without `Fast` at its end.
    name: &'static str,
    /// The special tokens that it has unless the settings say otherwise, by index in [`NAMES`].
    defaults: [&'static str; 7],
    ends: Ends,
    /// Whether special tokens that are plain strings in the settings are added again, never looked for in the normalized text.
    wraps: bool,
}

/// Which tokens the class puts around a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// Those of the post-processor in the file.
    File,
    /// The first token and the last one, if settings ask for them; whether the first is wanted if they say nothing.
    Own { begins: bool },
}

const NO_DEFAULTS: [&str; 7] = [""; 7];
const GPT2: [&str; 7] = ["<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "", "", "", ""];
const LLAMA: [&str; 7] = ["<s>", "</s>", "<unk>", "", "", "", ""];
const BERT: [&str; 7] = ["", "", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"];
const ROBERTA: [&str; 7] = ["<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"];

const fn class(name: &'static str, defaults: [&'static str; 7], ends: Ends) -> Class {
    Class { name, defaults, ends, wraps: false }
}

/// Classes of the tokenizers of the models that are converted.
const CLASSES: &[Class] = &[
    class("PreTrainedTokenizer", NO_DEFAULTS, Ends::File),
    // How later versions write the class before, and a file without slow classes.
    class("TokenizersBackend", NO_DEFAULTS, Ends::File),
    class("LlamaTokenizer", LLAMA, Ends::Own { begins: true }),
    Class {
        wraps: true,
        ..class(
            "Qwen2Tokenizer",
            ["", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>", "", ""],
            Ends::File,
        )
    },
    class("GPT2Tokenizer", GPT2, Ends::File),
    class("CodeGenTokenizer", GPT2, Ends::File),
    class("WhisperTokenizer", GPT2, Ends::File),
    class("GPTNeoXTokenizer", GPT2, Ends::Own { begins: false }),
    class("BloomTokenizer", ["<s>", "</s>", "<unk>", "", "<pad>", "", ""], Ends::File),
    class("GemmaTokenizer", ["<bos>", "<eos>", "<unk>", "", "<pad>", "", ""], Ends::Own { begins: true }),
    class(
        "CohereTokenizer",
        ["<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", "", "", "", ""],
        Ends::Own { begins: true },
    ),
    class("BertTokenizer", BERT, Ends::File),
    class("DistilBertTokenizer", BERT, Ends::File),
    class("RobertaTokenizer", ROBERTA, Ends::File),
    class("XLMRobertaTokenizer", ROBERTA, Ends::File),
    class("T5Tokenizer", ["", "</s>", "<unk>", "", "<pad>", "", ""], Ends::File),
];

/// The class where no file names it, by `model_type`.
const BY_MODEL: &[(&[&str], &str)] = &[
    (&["llama", "mistral", "mixtral", "phi3", "deepseek_v2", "deepseek_v3"], "LlamaTokenizer"),
    (&["qwen2", "qwen2_moe", "qwen3", "qwen3_moe"], "Qwen2Tokenizer"),
    (&["gemma", "gemma2", "gemma3", "gemma3_text"], "GemmaTokenizer"),
    (&["phi"], "CodeGenTokenizer"),
    (&["starcoder2", "gpt2", "olmo3", "granite", "granitemoe"], "GPT2Tokenizer"),
    (&["gpt_neox", "mpt", "stablelm", "olmo", "olmo2", "olmoe"], "GPTNeoXTokenizer"),
    (&["bloom"], "BloomTokenizer"),
    (&["bert"], "BertTokenizer"),
    (&["distilbert"], "DistilBertTokenizer"),
    (&["roberta"], "RobertaTokenizer"),
    (&["xlm-roberta"], "XLMRobertaTokenizer"),
    (&["t5", "mt5", "umt5"], "T5Tokenizer"),
];

/// A special token, as the settings have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Special {
    /// A string.
    Text(Box<str>),
    /// An object with flags.
    Token(AddedToken),
}

/// The settings of a tokenizer.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    class: &'static Class,
    config: Object,
    /// Special tokens in the order in which they are added, with their names.
    specials: Vec<(&'static str, Special)>,
    /// Tokens that are added before them, by id.
    added: Vec<AddedToken>,
}

impl Special {
    pub(super) fn content(&self) -> &str {
        match self {
            Self::Text(content) => content,
            Self::Token(token) => &token.content,
        }
    }

    /// A value of a file; `None` for null and for what is no token.
    fn from_json(json: &Json) -> Option<Self> {
        match json {
            Json::String(content) => Some(Self::Text(content.clone())),
            other => AddedToken::from_json(other).map(Self::Token),
        }
    }
}

/// A file that holds an object; empty if there is none.
pub(super) fn object(texts: &Texts, file: &str) -> Result<Object, Error> {
    let Some(bytes) = texts.get(file) else { return Ok(Object::default()) };
    match Json::from_bytes(file, bytes)? {
        Json::Object(object) => Ok(object),
        other => Err(ErrorKind::value(file, "", "an object", &other)),
    }
}

impl Settings {
    /// Reads `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`. `in_file` are the added tokens of
    /// `tokenizer.json`, `model_type` is that of the model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`] and [`ErrorKind::NotUtf8`] for each file; [`ErrorKind::TokenizerKind`] for a class that is not known;
    /// [`ErrorKind::ConfigValue`] for tokens of a wrong form.
    pub(super) fn new(
        texts: &Texts,
        in_file: &[(i64, AddedToken)],
        model_type: Option<&str>,
    ) -> Result<Self, Error> {
        let config = object(texts, CONFIG)?;
        let class = find_class(texts, &config, model_type)?;
        let mut values: [Option<Special>; NAMES.len()] = [const { None }; NAMES.len()];
        let mut is_set = [false; NAMES.len()];
        let mut read = |file: &str, object: &Object, as_special: bool| {
            for ((name, value), is_set) in NAMES.iter().zip(&mut values).zip(&mut is_set) {
                if let Some(json) = object.get(name) {
                    *value = named(file, name, json)?
                        .map(|special| if as_special { special.into_special() } else { special });
                    *is_set = true;
                }
            }
            Ok::<_, Error>(())
        };
        read(CONFIG, &config, false)?;
        let mut additional = list(CONFIG, config.get(ADDITIONAL))?;
        let mut by_id: BTreeMap<i64, AddedToken> = BTreeMap::new();
        let mut by_content: BTreeMap<Box<str>, AddedToken> = BTreeMap::new();
        if let Some(json) = config.get("added_tokens_decoder") {
            for (id, token) in decoder_of(json)? {
                by_content.insert(token.content.clone(), token.clone());
                by_id.insert(id, token);
            }
        } else {
            // Older files: names are those of the map, and tokens those of the files of both kinds of tokenizers.
            let map = object(texts, SPECIAL_MAP)?;
            read(SPECIAL_MAP, &map, true)?;
            let mut known: BTreeSet<Special> = additional.iter().cloned().collect();
            for token in list(SPECIAL_MAP, map.get(ADDITIONAL))? {
                let token = token.into_special();
                if known.insert(token.clone()) {
                    additional.push(token);
                }
            }
            let specials = values.iter().flatten().chain(&additional).map(Special::content);
            let specials: BTreeSet<&str> = specials.collect();
            for (content, id) in object(texts, ADDED)?.iter() {
                let id = id.as_i64().ok_or_else(|| ErrorKind::value(ADDED, content, "an id", id))?;
                by_id.insert(id, AddedToken::of(content, specials.contains(content)));
            }
            for (id, token) in in_file {
                by_content.insert(token.content.clone(), token.clone());
                by_id.insert(*id, token.clone());
            }
        }
        let mut specials: Vec<(&'static str, Special)> = Vec::new();
        for (((name, value), is_set), default) in NAMES.iter().zip(values).zip(is_set).zip(class.defaults) {
            let value = if is_set { value } else { Some(Special::Text(default.into())) };
            let Some(value) = value.filter(|value| !value.content().is_empty()) else { continue };
            // One of the settings that is listed among the added tokens is the same.
            let listed = by_content.get(value.content()).filter(|_| is_set);
            let value = match (listed, value) {
                (Some(token), _) => Special::Token(token.clone()),
                (None, Special::Text(text)) if class.wraps => Special::Token(AddedToken::of(&text, true)),
                (None, value) => value,
            };
            specials.push((name, value));
        }
        match config.get("extra_special_tokens") {
            Some(Json::Object(extra)) => {
                for (name, json) in extra.iter() {
                    let special = Special::from_json(json);
                    additional.push(special.ok_or_else(|| ErrorKind::value(CONFIG, name, "a token", json))?);
                }
            }
            other => additional.extend(list(CONFIG, other)?),
        }
        specials.extend(additional.into_iter().map(|special| (ADDITIONAL, special)));
        Ok(Self { class, config, specials, added: by_id.into_values().collect() })
    }

    /// The tokens that are added to those of `tokenizer.json`, in order. `has` says which tokens are among those already.
    pub(super) fn to_add(&self, has: impl Fn(&str) -> bool) -> Vec<AddedToken> {
        let mut all = self.added.clone();
        let listed: BTreeSet<&str> = self.added.iter().map(|token| &*token.content).collect();
        let mut equal: BTreeSet<&AddedToken> = self.added.iter().collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (_, special) in &self.specials {
            let content = special.content();
            if !seen.insert(content) {
                continue;
            }
            match special {
                Special::Text(_) if has(content) || listed.contains(content) => {}
                Special::Text(_) => all.push(AddedToken::of(content, true)),
                Special::Token(token) if equal.insert(token) => all.push(token.clone()),
                Special::Token(_) => {}
            }
        }
        for token in &mut all {
            token.flags.special |= seen.contains(&*token.content);
        }
        all
    }

    /// The special tokens, with and without names.
    pub(super) fn specials(&self) -> impl Iterator<Item = &str> {
        self.specials.iter().map(|(_, special)| special.content())
    }

    /// The special token of a name.
    pub(super) fn special(&self, name: &str) -> Option<&str> {
        self.specials.iter().find(|(own, _)| *own == name).map(|(_, special)| special.content())
    }

    /// A truth value of `tokenizer_config.json`.
    pub(super) fn bool(&self, name: &str) -> Option<bool> {
        self.config.get(name).and_then(Json::as_bool)
    }

    /// `tokenizer_config.json`.
    pub(super) const fn config(&self) -> &Object {
        &self.config
    }

    /// Whether the class has this name, apart from `Fast`.
    pub(super) fn is_class(&self, name: &str) -> bool {
        self.class.name == name
    }

    /// Whether the class puts its own tokens around a text: whether it begins, and whether it ends with one.
    pub(super) fn own_ends(&self) -> Option<(bool, bool)> {
        let Ends::Own { begins } = self.class.ends else { return None };
        Some((self.bool("add_bos_token").unwrap_or(begins), self.bool("add_eos_token").unwrap_or(false)))
    }
}

impl Special {
    /// As `special_tokens_map.json` means it.
    fn into_special(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text),
            Self::Token(mut token) => {
                token.flags.special = true;
                Self::Token(token)
            }
        }
    }
}

/// The class, by the first file that names it.
fn find_class(texts: &Texts, config: &Object, model_type: Option<&str>) -> Result<&'static Class, Error> {
    let own = config.get("tokenizer_class").and_then(Json::as_str).map(String::from);
    let name = match own {
        Some(name) => Some(name),
        None => object(texts, "config.json")?.get("tokenizer_class").and_then(Json::as_str).map(String::from),
    };
    let by_model =
        |model: &str| BY_MODEL.iter().find(|(models, _)| models.contains(&model)).map(|(_, name)| *name);
    let name = match &name {
        Some(name) => name.strip_suffix("Fast").unwrap_or(name),
        None => model_type.and_then(by_model).unwrap_or("PreTrainedTokenizer"),
    };
    let class = CLASSES.iter().find(|class| class.name == name);
    class.ok_or_else(|| ErrorKind::unsupported(CONFIG, name))
}

/// A named special token.
fn named(file: &str, name: &str, json: &Json) -> Result<Option<Special>, Error> {
    if json.is_null() {
        return Ok(None);
    }
    let special = Special::from_json(json);
    special.map(Some).ok_or_else(|| ErrorKind::value(file, name, "a token", json))
}

/// A list of special tokens.
fn list(file: &str, json: Option<&Json>) -> Result<Vec<Special>, Error> {
    let items = match json {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Array(items)) => items,
        Some(other) => return Err(ErrorKind::value(file, ADDITIONAL, "a list of tokens", other)),
    };
    let special = |json: &Json| {
        Special::from_json(json).ok_or_else(|| ErrorKind::value(file, ADDITIONAL, "a token", json))
    };
    items.iter().map(special).collect()
}

/// `added_tokens_decoder`: tokens by id, as strings.
fn decoder_of(json: &Json) -> Result<Vec<(i64, AddedToken)>, Error> {
    let name = "added_tokens_decoder";
    let object = json.as_object().ok_or_else(|| ErrorKind::value(CONFIG, name, "an object", json))?;
    let mut decoder = Vec::with_capacity(object.len());
    for (id, json) in object.iter() {
        let token = AddedToken::from_json(json);
        let token = token.ok_or_else(|| ErrorKind::value(CONFIG, name, "tokens with their content", json))?;
        let id = id
            .trim()
            .parse()
            .map_err(|_| ErrorKind::value(CONFIG, name, "ids as names of its members", json))?;
        decoder.push((id, token));
    }
    Ok(decoder)
}
