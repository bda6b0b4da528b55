//! The tokenizer of a model: tokens, types, special tokens, templates.

mod added;
mod base;
mod byte_fallback;
mod encode;
mod file;
mod pre;
mod protobuf;
mod restore;
mod scan;
mod sentencepiece;
mod settings;
mod special;
mod spm;
mod strings;
mod tekken;
mod unigram;

use alloc::string::String;
use alloc::vec::Vec;

use self::base::{Base, Tokens};
use self::file::TokenizerFile;
pub(crate) use self::restore::restore;
use self::settings::{CONFIG, object};
pub(crate) use self::special::left_out;
use self::special::{KINDS, SpecialTokens};
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::keys::Keys;
use crate::texts::Texts;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const SCORES: &str = "tokenizer.ggml.scores";
const TYPES: &str = "tokenizer.ggml.token_type";
const TYPE_COUNT: &str = "tokenizer.ggml.token_type_count";
const MERGES: &str = "tokenizer.ggml.merges";
const SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
const REMOVE_SPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";

/// The tokenizer of a folder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tokenizer {
    /// Its keys, in order.
    pub keys: Keys,
    /// Tokens that the tokenizer itself has, without those that only fill the vocabulary up to the size of the embedding; of
    /// SentencePiece models, with them.
    pub n_tokens: usize,
    /// Remarks on tokens that are left out.
    pub remarks: Vec<String>,
}

/// Which files make the tokenizer of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// SentencePiece, else BPE with bytes, else byte-level BPE.
    Llama,
    /// SentencePiece, else byte-level BPE.
    Either,
    Gemma,
    Gemma2,
    Gemma3,
    Phi3,
    Bert,
    Roberta,
    XlmRoberta,
    T5,
    ByteLevel,
}

impl Kind {
    fn of(architecture: &str, class: &str) -> Self {
        match architecture {
            "llama" | "granite" | "granitemoe" => Self::Llama,
            "qwen2" | "qwen3" => Self::Either,
            "gemma" => Self::Gemma,
            "gemma2" => Self::Gemma2,
            "gemma3" => Self::Gemma3,
            "phi3" => Self::Phi3,
            "bert" if class.starts_with("XLMRoberta") => Self::XlmRoberta,
            "bert" if class.starts_with("Roberta") => Self::Roberta,
            "bert" | "nomic-bert" => Self::Bert,
            "t5" | "t5encoder" => Self::T5,
            _ => Self::ByteLevel,
        }
    }
}

/// What all kinds look at.
struct Sources<'s> {
    texts: &'s Texts,
    config: &'s Config,
    architecture: &'s str,
    /// `tokenizer.json`.
    file: Option<TokenizerFile>,
    /// The name of the pre-tokenizer that the caller gives.
    pre: Option<&'s str>,
}

impl Tokenizer {
    /// Reads the tokenizer of a folder: the keys that llama.cpp's converter writes for a model of this GGUF architecture and this class
    /// of transformers. `pre` is the name of the pre-tokenizer, for a tokenizer whose hash is not known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MissingFile`] if no file of a tokenizer is there; [`ErrorKind::UnknownPre`] and [`ErrorKind::PreNotComputed`] if
    /// the name of the pre-tokenizer has to be given; [`ErrorKind::TokenizerKind`] for tokenizers that are not converted; for each of
    /// the files, [`ErrorKind::NotUtf8`], [`ErrorKind::Json`], [`ErrorKind::Protobuf`], [`ErrorKind::Limit`],
    /// [`ErrorKind::ConfigValue`], [`ErrorKind::ConfigMissing`], [`ErrorKind::TokenId`], [`ErrorKind::TokenTwice`],
    /// [`ErrorKind::TokenUnknown`].
    pub fn from_texts(
        texts: &Texts,
        config: &Config,
        architecture: &str,
        pre: Option<&str>,
    ) -> Result<Self, Error> {
        let class = config.class()?;
        let file = texts.get(file::FILE).map(TokenizerFile::from_bytes).transpose()?;
        let sources = Sources { texts, config, architecture, file, pre };
        match Kind::of(architecture, class) {
            Kind::Llama => sources.llama(),
            Kind::Either if sources.has("tokenizer.model") => sources.sentencepiece(),
            Kind::Either | Kind::ByteLevel => sources.byte_level(),
            Kind::Gemma => sources.gemma(),
            Kind::Gemma3 if !sources.has("tokenizer.model") => sources.byte_level(),
            Kind::Gemma2 | Kind::Gemma3 => {
                let mut tokenizer = sources.sentencepiece()?;
                tokenizer.keys.set(SPACE_PREFIX, false);
                Ok(tokenizer)
            }
            Kind::Phi3 => sources.phi3(),
            Kind::Bert => sources.word_piece(),
            Kind::Roberta => sources.roberta(),
            Kind::XlmRoberta => sources.xlm_roberta(),
            Kind::T5 => sources.t5(),
        }
    }
}

/// The id of a token of a tokenizer with merges, if it has one.
///
/// # Errors
///
/// Those of [`Tokenizer::from_texts`].
pub(crate) fn token_id(texts: &Texts, config: &Config, token: &str) -> Result<Option<u32>, Error> {
    let file = texts.get(file::FILE).map(TokenizerFile::from_bytes).transpose()?;
    Ok(Base::new(texts, file.as_ref(), config)?.id(token))
}

impl Sources<'_> {
    fn has(&self, file: &str) -> bool {
        self.texts.get(file).is_some()
    }

    fn missing(file: &str) -> Error {
        ErrorKind::MissingFile { file: file.into() }.into()
    }

    fn specials(&self, kinds: &[&'static str], n_tokens: Option<usize>) -> Result<SpecialTokens, Error> {
        SpecialTokens::new(self.texts, self.file.as_ref(), kinds, n_tokens)
    }

    fn llama(&self) -> Result<Tokenizer, Error> {
        if self.has(tekken::FILE) && self.file.is_none() {
            return self.tekken();
        }
        let mut keys = Keys::new();
        keys.set_some(
            SPACE_PREFIX,
            object(self.texts, CONFIG)?.get("add_prefix_space").and_then(Json::as_bool),
        );
        let mut own = if self.has("tokenizer.model") {
            self.sentencepiece()?
        } else if let Some(file) = self.file.as_ref().filter(|file| byte_fallback::is(file)) {
            self.byte_fallback(file)?
        } else {
            self.byte_level()?
        };
        keys.append(core::mem::take(&mut own.keys));
        match self.config.u32(&["vocab_size"])? {
            // Code Llama.
            Some(32_016) => {
                let kinds = ["prefix", "suffix", "middle", "eot"];
                self.more_ids(&kinds, &[32_007, 32_008, 32_009, 32_010])?.set_keys(&mut keys);
            }
            // Small Granite models.
            Some(49_152) => keys.set(ADD_BOS, false),
            _ => {}
        }
        Ok(Tokenizer { keys, ..own })
    }

    fn gemma(&self) -> Result<Tokenizer, Error> {
        let mut tokenizer = self.sentencepiece()?;
        // Those of CodeGemma, for every model.
        let mut more =
            self.more_ids(&["prefix", "suffix", "middle", "fsep", "eot"], &[67, 69, 68, 70, 107])?;
        more.template = special::Template::None;
        more.set_keys(&mut tokenizer.keys);
        tokenizer.keys.set(SPACE_PREFIX, false);
        Ok(tokenizer)
    }

    /// Special tokens of further kinds, with ids for those that no file names.
    fn more_ids(&self, kinds: &[&'static str], ids: &[i64]) -> Result<SpecialTokens, Error> {
        let mut more = self.specials(kinds, None)?;
        for (kind, id) in kinds.iter().zip(ids) {
            more.set_id(kind, *id, None)?;
        }
        Ok(more)
    }

    /// BPE over letters that stand for bytes.
    fn byte_level(&self) -> Result<Tokenizer, Error> {
        let base = Base::new(self.texts, self.file.as_ref(), self.config)?;
        let Tokens { texts, types } = base.tokens(self.config)?;
        let pre = base.pre(self.pre)?;
        let n_tokens = base.len();
        let mut keys = Keys::new();
        keys.set(MODEL, "gpt2");
        keys.set(PRE, pre);
        keys.set(TOKENS, texts);
        keys.set(TYPES, types);
        keys.set(MERGES, Base::merges(self.texts, self.file.as_ref())?);
        self.specials(KINDS, None)?.set_keys(&mut keys);
        Ok(Tokenizer { keys, n_tokens, remarks: Vec::new() })
    }

    fn roberta(&self) -> Result<Tokenizer, Error> {
        if self.file.is_none() {
            return Err(Self::missing(file::FILE));
        }
        let mut tokenizer = self.byte_level()?;
        tokenizer.keys.set(TYPE_COUNT, self.type_count()?);
        Ok(tokenizer)
    }

    fn word_piece(&self) -> Result<Tokenizer, Error> {
        let base = Base::new(self.texts, self.file.as_ref(), self.config)?;
        let Tokens { texts, types } = base.tokens(self.config)?;
        let pre = base.pre(self.pre)?;
        // Words have the character for a space in front instead of their other parts a sign.
        let rewritten = |(text, kind): (String, &i32)| match text.strip_prefix("##") {
            _ if *kind == sentencepiece::CONTROL => text,
            Some(rest) => rest.into(),
            None => alloc::format!("▁{text}"),
        };
        let n_tokens = texts.len();
        let mut keys = Keys::new();
        keys.set(TYPE_COUNT, self.type_count()?);
        keys.set(MODEL, "bert");
        keys.set(PRE, pre);
        keys.set(TOKENS, texts.into_iter().zip(&types).map(rewritten).collect::<Vec<_>>());
        keys.set(TYPES, types);
        self.specials(KINDS, Some(n_tokens))?.set_keys(&mut keys);
        Ok(Tokenizer { keys, n_tokens: base.len(), remarks: Vec::new() })
    }

    fn type_count(&self) -> Result<u32, Error> {
        Ok(self.config.u32(&["type_vocab_size"])?.unwrap_or(1))
    }
}
