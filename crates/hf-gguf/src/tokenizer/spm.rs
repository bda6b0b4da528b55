//! Vocabularies of SentencePiece models.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use json_scan::Quoted;
use located_error::cut;

use super::base::looks_special;
use super::file::MAX_TOKENS;
use super::sentencepiece::{CONTROL, NORMAL, SentencePiece, UNUSED, USER_DEFINED};
use super::settings::{ADDED, CONFIG, object};
use super::special::KINDS;
use super::{MODEL, PRE, SCORES, Sources, TOKENS, TYPES, Tokenizer, file};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::keys::Keys;

/// The score of tokens that no model has scored.
pub(super) const ADDED_SCORE: f32 = -1000.0;
/// The score of tokens that only fill the vocabulary.
const UNUSED_SCORE: f32 = -10_000.0;
/// Bytes that remarks keep of a token.
const MAX_SHOWN: usize = 32;

/// Tokens with scores and types, one for each row of the embedding.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) texts: Vec<String>,
    pub(super) scores: Vec<f32>,
    pub(super) types: Vec<i32>,
    /// Tokens by ids that the model does not have.
    beyond: BTreeMap<i64, String>,
}

impl Scored {
    /// `n_tokens` that nothing is known of.
    pub(super) fn unused(n_tokens: usize) -> Result<Self, Error> {
        if n_tokens > MAX_TOKENS {
            return Err(ErrorKind::limit("config.json", "tokens", MAX_TOKENS));
        }
        let texts = (0..n_tokens).map(|id| format!("[PAD{id}]")).collect();
        let (scores, types) = (alloc::vec![UNUSED_SCORE; n_tokens], alloc::vec![UNUSED; n_tokens]);
        Ok(Self { texts, scores, types, beyond: BTreeMap::new() })
    }

    /// Sets the token of an id; whether there is one of this id.
    pub(super) fn set(&mut self, id: i64, text: &str, score: f32, kind: i32) -> bool {
        let slot = usize::try_from(id).ok().filter(|id| *id < self.texts.len());
        if let Some(slot) = slot {
            self.texts[slot] = text.into();
            self.scores[slot] = score;
            self.types[slot] = kind;
        }
        slot.is_some()
    }

    /// Sets the token of an id, or keeps it for the remark on those that are left out.
    fn set_or_keep(&mut self, id: i64, text: &str, score: f32, kind: i32) {
        if !self.set(id, text, score, kind) {
            self.beyond.insert(id, cut(text, MAX_SHOWN).into());
        }
    }

    /// Which tokens have ids that the model does not have.
    fn remark(&self) -> Option<String> {
        const MAX: usize = 3;
        let (n_tokens, count) = (self.texts.len(), self.beyond.len());
        let shown = self.beyond.iter().take(MAX).map(|(id, text)| format!("{} ({id})", Quoted(text)));
        let shown = shown.reduce(|all, next| all + ", " + &next)?;
        let (tokens, are) = if count == 1 { ("token", "is") } else { ("tokens", "are") };
        let more = if count > MAX { format!(" and {} more", count - MAX) } else { String::new() };
        Some(format!(
            "{count} {tokens} beyond the {n_tokens} of the model {are} left out: {shown}{more}; tokens that were added need \
             `model.resize_token_embeddings(len(tokenizer))` before the model is saved"
        ))
    }

    /// Sets the pieces of a model. Those that users defined are normal ones, as the reference has them.
    pub(super) fn set_pieces(&mut self, model: &SentencePiece) {
        for (id, piece) in model.pieces.iter().enumerate() {
            let kind = if piece.kind == USER_DEFINED { NORMAL } else { piece.kind };
            self.set_or_keep(id as i64, &piece.text, piece.score, kind);
        }
    }

    /// Sets the tokens of `added_tokens.json`; those with ids beyond the last are left out.
    pub(super) fn set_added(&mut self, sources: &Sources<'_>) -> Result<(), Error> {
        for (text, id) in object(sources.texts, ADDED)?.iter() {
            let id = id
                .as_i64()
                .filter(|id| *id >= 0)
                .ok_or_else(|| ErrorKind::value(ADDED, text, "an id", id))?;
            self.set_or_keep(id, text, ADDED_SCORE, USER_DEFINED);
        }
        Ok(())
    }

    /// Adds the keys of the tokens.
    pub(super) fn set_keys(self, keys: &mut Keys) {
        keys.set(TOKENS, self.texts);
        keys.set(SCORES, self.scores);
        keys.set(TYPES, self.types);
    }
}

impl Sources<'_> {
    /// The model in one of these files.
    pub(super) fn sentencepiece_model(&self, files: &[&'static str]) -> Result<SentencePiece, Error> {
        let found = files.iter().find_map(|file| Some((file, self.texts.get(file)?)));
        let (file, bytes) = found.ok_or_else(|| Self::missing(files[0]))?;
        SentencePiece::from_bytes(file, bytes)
    }

    /// `tokenizer.model`, with added tokens.
    pub(super) fn sentencepiece(&self) -> Result<Tokenizer, Error> {
        let model = self.sentencepiece_model(&["tokenizer.model"])?;
        let names = ["vocab_size_per_layer_input", "vocab_size"];
        let n_tokens = self.config.u32(&names)?.filter(|n_tokens| *n_tokens > 0);
        let mut tokens = Scored::unused(n_tokens.map_or(model.pieces.len(), |n_tokens| n_tokens as usize))?;
        tokens.set_pieces(&model);
        tokens.set_added(self)?;
        for (id, text, is_special) in self.decoder()? {
            if is_special || looks_special(text.as_str()) {
                tokens.set_or_keep(id, &text, ADDED_SCORE, CONTROL);
            } else {
                tokens.set_or_keep(id, &text.replace('▁', " "), ADDED_SCORE, USER_DEFINED);
            }
        }
        self.scored("llama", tokens, Keys::new())
    }

    /// Phi-3: with the added tokens of `tokenizer.json`, which count last. Phi-4 has byte-level BPE.
    pub(super) fn phi3(&self) -> Result<Tokenizer, Error> {
        let config = object(self.texts, CONFIG)?;
        if config.get("tokenizer_class").and_then(Json::as_str) == Some("GPT2Tokenizer") {
            return self.byte_level();
        }
        let model = self.sentencepiece_model(&["tokenizer.model"])?;
        let n_tokens =
            self.config.u32(&["vocab_size"])?.map_or(model.pieces.len(), |n_tokens| n_tokens as usize);
        if model.pieces.len() > n_tokens {
            return Err(ErrorKind::beyond("tokenizer.model", model.pieces.len() as u64 - 1, n_tokens as u64));
        }
        let mut tokens = Scored::unused(n_tokens)?;
        tokens.set_pieces(&model);
        tokens.set_added(self)?;
        let listed = self.file.as_ref().and_then(|file| file.member("added_tokens")).and_then(Json::as_array);
        let mut more = self.decoder()?;
        for json in listed.unwrap_or_default() {
            more.push(added_token(file::FILE, json.get("id").and_then(Json::as_i64), json)?);
        }
        for (id, text, is_special) in more {
            if !tokens.set(id, &text, ADDED_SCORE, if is_special { CONTROL } else { USER_DEFINED }) {
                return Err(ErrorKind::beyond(
                    CONFIG,
                    u64::try_from(id).unwrap_or_default(),
                    n_tokens as u64,
                ));
            }
        }
        self.scored("llama", tokens, Keys::new())
    }

    /// The keys of a vocabulary with scores; `more` come after the tokens.
    pub(super) fn scored(&self, model: &str, tokens: Scored, more: Keys) -> Result<Tokenizer, Error> {
        let n_tokens = tokens.texts.len();
        let remarks = tokens.remark().into_iter().collect();
        let mut keys = Keys::new();
        keys.set(MODEL, model);
        keys.set(PRE, "default");
        tokens.set_keys(&mut keys);
        keys.append(more);
        self.specials(KINDS, Some(n_tokens))?.set_keys(&mut keys);
        Ok(Tokenizer { keys, n_tokens, remarks })
    }

    /// `added_tokens_decoder` of `tokenizer_config.json`: ids, texts, and whether they are special.
    fn decoder(&self) -> Result<Vec<(i64, String, bool)>, Error> {
        let config = object(self.texts, CONFIG)?;
        let name = "added_tokens_decoder";
        let Some(json) = config.get(name) else { return Ok(Vec::new()) };
        let object = json.as_object().ok_or_else(|| ErrorKind::value(CONFIG, name, "an object", json))?;
        object.iter().map(|(id, json)| added_token(CONFIG, id.trim().parse().ok(), json)).collect()
    }
}

/// An added token: its id, its text, and whether it is special.
fn added_token(file: &str, id: Option<i64>, json: &Json) -> Result<(i64, String, bool), Error> {
    let content = json.get("content").and_then(Json::as_str);
    let found = id.filter(|id| *id >= 0).zip(content);
    let (id, content) =
        found.ok_or_else(|| ErrorKind::value(file, "added tokens", "a token with its id", json))?;
    Ok((id, content.into(), json.get("special").and_then(Json::as_bool).unwrap_or_default()))
}
