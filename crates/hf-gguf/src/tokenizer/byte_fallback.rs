//! BPE whose missing characters are bytes, with `tokenizer.json` alone: what llama.cpp takes for a SentencePiece model.

use alloc::collections::BTreeSet;

use super::base::Base;
use super::file::{FILE, TokenizerFile};
use super::sentencepiece::{BYTE, CONTROL, NORMAL, USER_DEFINED};
use super::spm::{ADDED_SCORE, Scored};
use super::{Sources, Tokenizer};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::keys::Keys;

/// Whether the file is of this kind.
pub(super) fn is(file: &TokenizerFile) -> bool {
    let decoder = file.member("decoder").and_then(|decoder| decoder.get("type")).and_then(Json::as_str);
    file.model_str("type") == Some("BPE")
        && file.model_bool("byte_fallback") == Some(true)
        && decoder == Some("Sequence")
}

impl Sources<'_> {
    /// The vocabulary in the order of the ids, then the tokens that were added to it.
    pub(super) fn byte_fallback(&self, file: &TokenizerFile) -> Result<Tokenizer, Error> {
        let base = Base::new(self.texts, Some(file), self.config)?;
        super::encode::check_model(&base.file)?;
        let n_base = base.file.vocabulary.len() as u32;
        let specials: BTreeSet<u32> = base.settings.specials().filter_map(|token| base.id(token)).collect();
        let new = base.added.tokens().filter(|(id, _, _)| *id >= n_base);
        let mut tokens = Scored::unused(n_base as usize)?;
        for (id, token) in base.file.vocabulary.tokens() {
            let kind = match () {
                () if is_byte(token) => BYTE,
                () if specials.contains(&id) => CONTROL,
                () => NORMAL,
            };
            // Ids have no gaps: as many as tokens, none twice, none beyond.
            if !tokens.set(id.into(), token, ADDED_SCORE, kind) {
                return Err(ErrorKind::beyond(FILE, id.into(), n_base.into()));
            }
        }
        for (id, token, _) in new {
            tokens.texts.push(token.into());
            tokens.scores.push(ADDED_SCORE);
            tokens.types.push(if specials.contains(&id) { CONTROL } else { USER_DEFINED });
        }
        self.scored("llama", tokens, Keys::new())
    }
}

/// Whether a token is a byte: `<0x0A>`.
fn is_byte(token: &str) -> bool {
    let digits = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
