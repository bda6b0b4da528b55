//! Encodes a text as the library `tokenizers` does: added tokens, normalizer, pre-tokenizer, model, post-processor.
//!
//! It is written for one text, the one that identifies pre-tokenizers. What that text does not need is not implemented, and said so:
//! a wrong hash would be a wrong name.

mod decode;
mod normalize;
mod split;

use alloc::boxed::Box;
use alloc::vec::Vec;

use located_error::cut;

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

/// Settings of a `BertNormalizer`, which the class has as arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bert {
    pub(super) lowercase: bool,
    pub(super) strip_accents: Option<bool>,
    pub(super) chinese: bool,
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
