//! Unigram models: T5 and XLM-RoBERTa.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};

use super::base::Base;
use super::file::{FILE, TokenizerFile};
use super::sentencepiece::{Algorithm, CONTROL, NORMAL, SentencePiece, UNKNOWN, USER_DEFINED};
use super::spm::Scored;
use super::{CHARSMAP, REMOVE_SPACES, SPACE_PREFIX, Sources, TYPE_COUNT, Tokenizer};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::keys::Keys;

/// The model of XLM-RoBERTa.
const XLM_ROBERTA: &str = "sentencepiece.bpe.model";

impl Sources<'_> {
    pub(super) fn t5(&self) -> Result<Tokenizer, Error> {
        let file = if self.has("tokenizer.model") { "tokenizer.model" } else { "spiece.model" };
        let model = self.sentencepiece_model(&[file])?;
        match model.algorithm {
            Algorithm::Unigram => {}
            Algorithm::Bpe if file == "tokenizer.model" => return self.sentencepiece(),
            _ => return Err(ErrorKind::unsupported(file, "a model that is neither Unigram nor BPE")),
        }
        let n_tokens =
            self.config.u32(&["vocab_size"])?.map_or(model.pieces.len(), |n_tokens| n_tokens as usize);
        if model.pieces.len() > n_tokens {
            return Err(ErrorKind::beyond(file, model.pieces.len() as u64 - 1, n_tokens as u64));
        }
        let mut tokens = Scored::unused(n_tokens)?;
        tokens.set_pieces(&model);
        tokens.set_added(self)?;
        let mut more = Keys::new();
        more.set(SPACE_PREFIX, model.adds_dummy_prefix);
        more.set(REMOVE_SPACES, model.removes_extra_spaces);
        more.set(CHARSMAP, model.charsmap);
        self.scored("t5", tokens, more)
    }

    pub(super) fn xlm_roberta(&self) -> Result<Tokenizer, Error> {
        let mut more = Keys::new();
        let (tokens, prefix, removes, charsmap) = match (self.has(XLM_ROBERTA), &self.file) {
            (true, _) => {
                let model = self.sentencepiece_model(&[XLM_ROBERTA])?;
                let tokens = self.realigned(&model)?;
                (tokens, model.adds_dummy_prefix, model.removes_extra_spaces, model.charsmap)
            }
            (false, Some(file)) => {
                let base = Base::new(self.texts, Some(file), self.config)?;
                let flag = |name| base.settings.bool(name).unwrap_or_default();
                let (prefix, removes) = (flag("add_prefix_space"), flag("clean_up_tokenization_spaces"));
                (self.unigram_tokens(&base)?, prefix, removes, charsmap(file)?)
            }
            (false, None) => return Err(Self::missing(FILE)),
        };
        more.set(SPACE_PREFIX, prefix);
        more.set(TYPE_COUNT, self.type_count()?);
        more.set(REMOVE_SPACES, removes);
        more.set(CHARSMAP, charsmap);
        self.scored("t5", tokens, more)
    }

    fn n_tokens(&self, n_own: usize) -> Result<usize, Error> {
        Ok(self.config.u32(&["vocab_size"])?.map_or(0, |n_tokens| n_tokens as usize).max(n_own))
    }

    /// Pieces with the ids that the library fairseq gave them: four special tokens, then all pieces from the third.
    fn realigned(&self, model: &SentencePiece) -> Result<Scored, Error> {
        if model.algorithm != Algorithm::Unigram {
            return Err(ErrorKind::unsupported(XLM_ROBERTA, "a model that is not Unigram"));
        }
        let mut all = Scored::unused(self.n_tokens(model.pieces.len())?)?;
        all.set_pieces(model);
        let end = all.texts.len().saturating_sub(1).max(3);
        let mut tokens = Scored::unused(0)?;
        for (token, kind) in [("<s>", CONTROL), ("<pad>", CONTROL), ("</s>", CONTROL), ("<unk>", UNKNOWN)] {
            tokens.texts.push(token.into());
            tokens.scores.push(0.0);
            tokens.types.push(kind);
        }
        tokens.texts.extend(all.texts.into_iter().take(end).skip(3));
        tokens.scores.extend(all.scores.into_iter().take(end).skip(3));
        tokens.types.extend(all.types.into_iter().take(end).skip(3));
        Ok(tokens)
    }

    /// The pieces of `tokenizer.json` with their scores.
    fn unigram_tokens(&self, base: &Base<'_>) -> Result<Scored, Error> {
        let vocabulary = &base.file.vocabulary;
        if base.file.model_type() != "Unigram" || vocabulary.scores.len() != vocabulary.strings.len() {
            return Err(ErrorKind::unsupported(FILE, "a model that is not Unigram"));
        }
        let unknown = base.file.model.get("unk_id").and_then(Json::as_i64).unwrap_or(3);
        let unknown = base
            .settings
            .config()
            .get("unk_token")
            .and_then(Json::as_str)
            .and_then(|token| base.added.id(token))
            .map_or(unknown, i64::from);
        let specials: BTreeSet<u32> = base.settings.specials().filter_map(|token| base.id(token)).collect();
        let added: BTreeSet<u32> = base.added.tokens().map(|(id, _, _)| id).collect();
        let mut tokens = Scored::unused(self.n_tokens(vocabulary.len())?)?;
        for (id, piece) in vocabulary.tokens() {
            let kind = match () {
                () if i64::from(id) == unknown => UNKNOWN,
                () if specials.contains(&id) => CONTROL,
                () if added.contains(&id) => USER_DEFINED,
                () => NORMAL,
            };
            let score = vocabulary.scores.get(id as usize).copied().unwrap_or_default();
            tokens.set(id.into(), piece, score, kind);
        }
        Ok(tokens)
    }
}

/// The map of characters of the normalizer, also of one in a sequence.
fn charsmap(file: &TokenizerFile) -> Result<Vec<u8>, Error> {
    let normalizer = file.member("normalizer");
    let in_sequence = normalizer.and_then(|json| json.get("normalizers")).and_then(Json::as_array);
    let mut all = normalizer.into_iter().chain(in_sequence.unwrap_or_default());
    let text = all.find_map(|json| json.get("precompiled_charsmap")).and_then(Json::as_str);
    let text = text.ok_or_else(|| ErrorKind::missing(FILE, "`normalizer.precompiled_charsmap`"))?;
    Base64::decode_vec(text).map_err(|_| {
        let expected = "a map of characters in Base64";
        ErrorKind::ConfigValue { file: FILE.into(), expected, found: "another string".into() }.into()
    })
}
