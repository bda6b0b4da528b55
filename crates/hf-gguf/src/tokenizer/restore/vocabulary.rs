//! The tokens of a file, and what forms they have in a folder.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use located_error::Subject;

use super::ends::Ends;
use super::protobuf::Message;
use super::{is_added, is_special};
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::keys::Value;
use crate::restore::{Stored, text};
use crate::tokenizer::file::MAX_TOKENS;
use crate::tokenizer::sentencepiece::{BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED};
use crate::tokenizer::spm::ADDED_SCORE;
use crate::tokenizer::strings::{Index, Strings};
use crate::tokenizer::{SCORES, TOKENS, TYPES};

/// Longest piece whose halves are looked for, in bytes.
const MAX_PIECE: usize = 512;
/// Most merges.
const MAX_MERGES: usize = 1 << 22;

/// Tokens without those at the end that only fill the rows of the embedding.
#[derive(Debug)]
pub(super) struct Vocabulary<'s> {
    pub(super) texts: &'s [String],
    types: Vec<i32>,
    scores: &'s [f32],
}

/// An added token.
#[derive(Clone, Debug)]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) content: String,
    pub(super) special: bool,
    /// Whether it is looked for in the normalized text.
    pub(super) normalized: bool,
}

impl Added {
    /// How it is looked for, as members of an object.
    pub(super) fn flags(&self) -> Vec<(&'static str, Json)> {
        vec![
            ("content", text(&self.content)),
            ("single_word", Json::Bool(false)),
            ("lstrip", Json::Bool(false)),
            ("rstrip", Json::Bool(false)),
            ("normalized", Json::Bool(self.normalized)),
            ("special", Json::Bool(self.special)),
        ]
    }
}

impl<'s> Vocabulary<'s> {
    pub(super) fn new(stored: &'s Stored<'s>) -> Result<Self, Error> {
        let texts = stored.tokens();
        let wrong = |key, expected| Error::from(ErrorKind::KeyValue { expected }).of(Subject::key(key));
        if texts.is_empty() {
            return Err(Error::from(ErrorKind::KeyMissing).of(Subject::key(TOKENS)));
        }
        if texts.len() > MAX_TOKENS {
            return Err(ErrorKind::limit(TOKENS, "tokens", MAX_TOKENS));
        }
        let types = match stored.global(TYPES) {
            None => vec![NORMAL; texts.len()],
            Some(Value::I32s(types)) if types.len() == texts.len() => types.clone(),
            Some(_) => return Err(wrong(TYPES, "a signed integer for each token")),
        };
        let scores: &[f32] = match stored.global(SCORES) {
            None => &[],
            Some(Value::F32s(scores)) if scores.len() == texts.len() => scores,
            Some(_) => return Err(wrong(SCORES, "a float for each token")),
        };
        let is_filler = |id: usize, token: &str| {
            let token = token.strip_prefix('▁').unwrap_or(token);
            types[id] == UNUSED && token == format!("[PAD{id}]")
        };
        let n_own = texts.iter().enumerate().rposition(|(id, token)| !is_filler(id, token));
        let texts = &texts[..n_own.map_or(0, |last| last + 1)];
        Ok(Self { texts, types, scores })
    }

    /// Ids, tokens and types.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &'s String, i32)> {
        let all = self.texts.iter().zip(&self.types);
        all.enumerate().map(|(id, (token, kind))| (id as u32, token, *kind))
    }

    /// The score of a token.
    pub(super) fn score(&self, id: u32) -> f32 {
        self.scores.get(id as usize).copied().unwrap_or_default()
    }

    /// Added tokens. `normalizes` says whether those that do not control the model are looked for in the normalized text: the others
    /// are written as they are decoded again, where letters stand for bytes.
    pub(super) fn added(&self, normalizes: bool) -> Vec<Added> {
        let all = self.iter().filter(|(_, _, kind)| is_added(*kind));
        all.map(|(id, token, kind)| {
            let special = is_special(kind);
            Added { id, content: token.clone(), special, normalized: normalizes && !special }
        })
        .collect()
    }

    /// Whether a token was added after the pieces were scored.
    pub(super) fn is_later(&self, id: u32) -> bool {
        self.score(id) == ADDED_SCORE && self.types.get(id as usize) != Some(&UNKNOWN)
    }

    /// Whether any piece has a score of its own.
    pub(super) fn has_scores(&self) -> bool {
        let mut trained = self.iter().filter(|(_, _, kind)| !is_added(*kind));
        trained.any(|(id, _, _)| !self.is_later(id))
    }

    /// The end of the ids of the vocabulary that was trained. What was added after it is no part of it if it has the ids that come
    /// next, without gaps.
    pub(super) fn n_trained(&self, added: &[Added]) -> u32 {
        let all = self.texts.len() as u32;
        let mut end = all;
        for own in added.iter().rev() {
            if own.id + 1 != end {
                break;
            }
            end = own.id;
        }
        // A gap below would shift the ids of what comes after.
        let has_gap =
            self.iter().any(|(id, token, kind)| id < end && kind == UNUSED && *token == format!("[PAD{id}]"));
        if has_gap { all } else { end }
    }

    /// The token for what has no other.
    pub(super) fn unknown(&self, ends: &Ends) -> Option<u32> {
        let by_type = || self.iter().find(|(_, _, kind)| *kind == UNKNOWN).map(|(id, _, _)| id);
        let by_text = || self.iter().find(|(_, token, _)| *token == "<unk>").map(|(id, _, _)| id);
        ends.id("unk").or_else(by_type).or_else(by_text)
    }

    /// The pieces as a model of SentencePiece.
    pub(super) fn sentencepiece(
        &self,
        unknown: Option<u32>,
        ends: &Ends,
        algorithm: u64,
        adds_prefix: bool,
        removes_spaces: bool,
        charsmap: &[u8],
    ) -> Vec<u8> {
        // Tokens at the end that were added later are no pieces.
        let is_piece = |(id, _, kind): &(u32, &String, i32)| {
            Some(*id) == unknown || !is_added(*kind) || !self.is_later(*id)
        };
        let end = self.iter().filter(is_piece).last().map_or(0, |(id, _, _)| id + 1);
        let mut model = Message::default();
        let mut has_bytes = false;
        for (id, token, kind) in self.iter().filter(|(id, _, _)| *id < end) {
            let is_later = is_added(kind) && self.is_later(id);
            has_bytes |= kind == BYTE;
            let kind = match kind {
                _ if Some(id) == unknown => UNKNOWN,
                UNKNOWN => CONTROL,
                NORMAL | CONTROL | USER_DEFINED | UNUSED | BYTE => kind,
                _ => NORMAL,
            };
            let mut piece = Message::default();
            piece.bytes(1, token.as_bytes());
            piece.float(2, if is_later { 0.0 } else { self.score(id) });
            piece.varint(3, kind as u64);
            model.message(1, &piece);
        }
        let mut trainer = Message::default();
        trainer.varint(3, algorithm);
        trainer.varint(4, end.into());
        trainer.varint(35, has_bytes.into());
        for (number, id) in [(40, unknown), (41, ends.id("bos")), (42, ends.id("eos")), (43, ends.id("pad"))]
        {
            // What there is not has the number minus one.
            trainer.varint(number, id.map_or(u64::MAX, u64::from));
        }
        for (number, id) in [(45, unknown), (46, ends.id("bos")), (47, ends.id("eos")), (48, ends.id("pad"))]
        {
            if let Some(token) = id.and_then(|id| self.texts.get(id as usize)) {
                trainer.bytes(number, token.as_bytes());
            }
        }
        let mut normalizer = Message::default();
        normalizer.bytes(1, if charsmap.is_empty() { b"identity" } else { b"nmt_nfkc" });
        normalizer.bytes(2, charsmap);
        normalizer.varint(3, adds_prefix.into());
        normalizer.varint(4, removes_spaces.into());
        normalizer.varint(5, 1);
        model.message(2, &trainer);
        model.message(3, &normalizer);
        model.finish()
    }

    /// The merges that give the pieces below an id: of each, every pair of pieces that it is made of. Those of pieces with higher scores come
    /// first; without scores, those of pieces with lower ids, the order in which they were trained. `None` if there are too many.
    ///
    /// As `generate_merges` of transformers 4.57.6 does it.
    pub(super) fn merges(&self, end: u32, has_scores: bool) -> Option<Vec<(&'s str, &'s str)>> {
        let strings: Strings =
            self.iter().filter(|(id, _, _)| *id < end).map(|(_, token, _)| token.as_str()).collect();
        let index = Index::new(&strings);
        let mut merges: Vec<(f32, [usize; 2], (&str, &str))> = Vec::new();
        let trained =
            self.iter().filter(|(id, token, kind)| *id < end && *kind == NORMAL && token.len() <= MAX_PIECE);
        for (id, token, _) in trained {
            let rank = if has_scores { self.score(id) } else { -(id as f32) };
            let halves = token.char_indices().skip(1).filter_map(|(at, _)| {
                let (first, second) = token.split_at(at);
                Some((index.find(&strings, first)?, index.find(&strings, second)?, (first, second)))
            });
            let mut own: Vec<_> = halves.collect();
            own.sort_by_key(|(first, second, _)| (*first, *second));
            if merges.len() + own.len() > MAX_MERGES {
                return None;
            }
            let count = |half: &str| half.chars().count();
            merges.extend(
                own.into_iter()
                    .map(|(_, _, (first, second))| (rank, [count(first), count(second)], (first, second))),
            );
        }
        merges.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
        Some(merges.into_iter().map(|(_, _, halves)| halves).collect())
    }
}
