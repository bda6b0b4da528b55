//! Encodes a text as the library `tokenizers` does: added tokens, normalizer, pre-tokenizer, model, post-processor.
//!
//! It is written for one text, the one that identifies pre-tokenizers. What that text does not need is not implemented, and said so:
//! a wrong hash would be a wrong name.

mod decode;
mod model;
mod normalize;
mod post;
mod split;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use located_error::cut;

use self::model::Model;
use self::normalize::Normalizer;
use self::post::Post;
use self::split::PreTokenizer;
use super::added::{AddedTokens, Patterns};
use super::file::TokenizerFile;
use crate::error::Error;
use crate::json::Json;
use crate::regex::{Budget, Missing, Regex};

pub(super) use self::decode::{Decoder, clean_up};

/// Longest text between two steps, in characters.
const MAX_TEXT: usize = 1 << 16;
/// Steps of a normalizer or a pre-tokenizer, and levels of them.
const MAX_STEPS: usize = 64;
const MAX_LEVELS: usize = 8;

/// Why a text is not encoded.
#[derive(Debug)]
pub(super) enum Halt {
    /// A step is not implemented, by its name.
    Missing(Box<str>),
    /// The tokenizer contradicts itself.
    Error(Error),
}

impl Halt {
    fn missing(what: &str) -> Self {
        Self::Missing(cut(what, 256).into())
    }
}

impl From<Missing> for Halt {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing.0)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Budget {
    /// Takes one unit for each character of a text, which must not be too long.
    fn take_text(&mut self, text: &[char]) -> Result<(), Halt> {
        if text.len() > MAX_TEXT {
            return Err(Halt::missing("a normalizer that makes the text so long"));
        }
        Ok(self.take(text.len() as u64 + 1)?)
    }
}

/// A part of the text.
#[derive(Clone, Debug)]
enum Part {
    Text(Piece),
    /// An added token.
    Token(u32),
}

/// Characters that are still to be encoded.
#[derive(Clone, Debug)]
struct Piece {
    text: Vec<char>,
    /// Characters at its beginning that stand for the first one of the whole text; 0 if it begins after that.
    n_first: usize,
}

/// The steps of a tokenizer.
#[derive(Debug)]
pub(super) struct Steps<'f> {
    normalizer: Option<Normalizer>,
    /// That of the file, by which added tokens are written: the class changes the other one after they are added.
    token_normalizer: Option<Normalizer>,
    pre_tokenizer: Option<PreTokenizer>,
    model: Model<'f>,
    post: Option<Post>,
    splits_special: bool,
}

/// Steps with the added tokens that are looked for before them.
#[derive(Debug)]
pub(super) struct Encoder<'s> {
    steps: &'s Steps<'s>,
    raw: Patterns,
    normalized: Patterns,
}

/// What a class of tokenizers changes in the steps of its file.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// `add_prefix_space` of an outermost `ByteLevel`.
    pub(super) prefix_space: Option<bool>,
    /// `add_prefix_space` of every `ByteLevel`, if set.
    pub(super) inner_prefix_space: bool,
    /// Fields of a `BertNormalizer`.
    pub(super) bert: Option<Bert>,
    /// Whether special tokens in a text are text.
    pub(super) splits_special: bool,
    /// Tokens before and after the text instead of the post-processor.
    pub(super) post: Option<(Vec<u32>, Vec<u32>)>,
}

/// Settings of a `BertNormalizer`, which the class has as arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bert {
    pub(super) lowercase: bool,
    pub(super) strip_accents: Option<bool>,
    pub(super) chinese: bool,
}

impl<'f> Steps<'f> {
    /// The steps of a file.
    pub(super) fn new(file: &'f TokenizerFile, changes: &Changes) -> Result<Self, Halt> {
        let mut n_steps = MAX_STEPS;
        let normalizer = || {
            let mut n_steps = MAX_STEPS;
            file.member("normalizer").map(|json| Normalizer::new(json, &mut n_steps, MAX_LEVELS)).transpose()
        };
        let pre_tokenizer =
            file.member("pre_tokenizer").map(|json| PreTokenizer::new(json, &mut n_steps, MAX_LEVELS));
        let post = file.member("post_processor").map(|json| Post::new(json, MAX_LEVELS));
        let mut steps = Self {
            normalizer: normalizer()?,
            token_normalizer: normalizer()?,
            pre_tokenizer: pre_tokenizer.transpose()?,
            model: Model::new(file)?,
            post: post.transpose()?,
            splits_special: changes.splits_special,
        };
        steps.change(changes);
        Ok(steps)
    }

    /// An encoder that looks for these added tokens.
    pub(super) fn with(&self, added: &AddedTokens, budget: &mut Budget) -> Result<Encoder<'_>, Halt> {
        let passes = self.splits_special;
        let raw = added.patterns(false, passes, |content| Ok::<_, Halt>(content.into()))?;
        let normalized = added.patterns(true, passes, |content| self.normalized(content, budget))?;
        Ok(Encoder { steps: self, raw, normalized })
    }

    /// The text for which an added token is looked for.
    fn normalized(&self, content: &str, budget: &mut Budget) -> Result<String, Halt> {
        let Some(normalizer) = &self.token_normalizer else { return Ok(content.into()) };
        let mut piece = Piece { text: content.chars().collect(), n_first: 1 };
        normalizer.apply_to_token(&mut piece, budget)?;
        Ok(piece.text.into_iter().collect())
    }

    fn change(&mut self, changes: &Changes) {
        if let Some(pre_tokenizer) = &mut self.pre_tokenizer {
            if let Some(prefix_space) = changes.prefix_space {
                pre_tokenizer.set_prefix_space(prefix_space);
            }
            if changes.inner_prefix_space {
                pre_tokenizer.set_inner_prefix_space();
            }
        }
        if let (Some(normalizer), Some(bert)) = (&mut self.normalizer, changes.bert) {
            normalizer.set_bert(bert);
        }
        if let Some((before, after)) = &changes.post {
            self.post = Some(Post::around(before.clone(), after.clone()));
        }
    }
}

impl Encoder<'_> {
    /// The ids of a text, with the tokens that the post-processor adds, if `specials` are wanted.
    pub(super) fn encode(&self, text: &str, specials: bool, budget: &mut Budget) -> Result<Vec<u32>, Halt> {
        let steps = self.steps;
        let whole = Piece { text: text.chars().collect(), n_first: 1 };
        let mut parts = each(alloc::vec![Part::Text(whole)], |piece| self.raw.split(piece, budget))?;
        parts = each(parts, |mut piece| {
            if let Some(normalizer) = &steps.normalizer {
                normalizer.apply(&mut piece, budget)?;
            }
            self.normalized.split(piece, budget)
        })?;
        if let Some(pre_tokenizer) = &steps.pre_tokenizer {
            parts = pre_tokenizer.apply(parts, budget)?;
        }
        let mut ids = Vec::new();
        for part in parts {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(piece) => steps.model.encode(&piece.text, &mut ids, budget)?,
            }
        }
        match &steps.post {
            Some(post) if specials => post.apply(ids),
            _ => Ok(ids),
        }
    }
}

/// Refuses a model that contradicts itself.
pub(super) fn check_model(file: &TokenizerFile) -> Result<(), Error> {
    match Model::new(file) {
        Err(Halt::Error(error)) => Err(error),
        Ok(_) | Err(Halt::Missing(_)) => Ok(()),
    }
}

/// Splits each text; tokens stay.
fn each(
    parts: Vec<Part>,
    mut split: impl FnMut(Piece) -> Result<Vec<Part>, Halt>,
) -> Result<Vec<Part>, Halt> {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Token(id) => all.push(Part::Token(id)),
            Part::Text(piece) => {
                let is_empty = |part: &Part| matches!(part, Part::Text(piece) if piece.text.is_empty());
                all.extend(split(piece)?.into_iter().filter(|part| !is_empty(part)));
            }
        }
    }
    Ok(all)
}

/// A string of a step.
fn str_of<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    json.get(name).and_then(Json::as_str)
}

/// A truth value of a step.
fn bool_of(json: &Json, name: &str) -> Option<bool> {
    json.get(name).and_then(Json::as_bool)
}

/// `{"String": ...}` or `{"Regex": ...}`.
fn pattern_of(json: &Json) -> Result<Regex, Halt> {
    let pattern = json.get("pattern").ok_or_else(|| Halt::missing("a step without its pattern"))?;
    match (str_of(pattern, "String"), str_of(pattern, "Regex")) {
        (Some(text), _) => Ok(Regex::literal(text)?),
        (_, Some(regex)) => Ok(Regex::new(regex)?),
        _ => Err(Halt::missing("a step with a pattern of this form")),
    }
}
