//! Splits strings into terms: tokens and n-grams.

use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::kernels::terms::{Word, find_words, for_each_run, slice};
use crate::lowercase::lowercase;
use crate::payload::fields::read;
use crate::payload::variants;
use crate::tensors::Tensors;
use crate::vocabulary::Vocabulary;

/// Most tokens of one term.
const MAX_TOKENS: usize = 64;

/// What becomes of capital letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetterCase {
    /// They are made small before anything else, by the rules of Unicode.
    #[default]
    Lower,
    /// They stay.
    Keep,
}

/// What a token is. Word characters are letters (Unicode's property Alphabetic) and digits of any script, and `_`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenRule {
    /// A run of at least two word characters: scikit-learn's `\w\w+`.
    #[default]
    LongWords,
    /// A run of word characters.
    Words,
    /// What stands between white space.
    Whitespace,
}

/// How often a term counts that is in a document more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TermCount {
    /// Each time.
    #[default]
    Every,
    /// Once.
    Once,
}

/// How a document becomes terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRules {
    /// What becomes of capital letters.
    pub case: LetterCase,
    /// What a token is.
    pub tokens: TokenRule,
    /// Tokens of the shortest term: at least 1.
    pub ngram_min: usize,
    /// Tokens of the longest term: at most 64. The tokens of a term are joined by a space.
    pub ngram_max: usize,
    /// How often a term counts that is in a document more than once.
    pub counts: TermCount,
    /// Tokens that are dropped before terms are formed; compared after letters are made small.
    pub stop_words: Vocabulary,
}

/// Single words of at least two characters, in small letters.
impl Default for TextRules {
    fn default() -> Self {
        Self {
            case: LetterCase::Lower,
            tokens: TokenRule::LongWords,
            ngram_min: 1,
            ngram_max: 1,
            counts: TermCount::Every,
            stop_words: Vocabulary::default(),
        }
    }
}

/// Buffers that are reused for each document.
#[derive(Debug, Default)]
pub(crate) struct Work {
    tokens: Vec<Word>,
    term: String,
}

impl TextRules {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let possible =
            1 <= self.ngram_min && self.ngram_min <= self.ngram_max && self.ngram_max <= MAX_TOKENS;
        checks::expect(
            "tokens of a term",
            possible,
            "must be at least 1 and at most 64, the least not above the most",
        )
    }

    /// Gives `each` every term of the document, in some fixed order, as often as it is there.
    pub(crate) fn for_each_term(&self, document: &str, work: &mut Work, each: &mut dyn FnMut(&str)) {
        let lowered;
        let text = match self.case {
            LetterCase::Keep => document,
            LetterCase::Lower => {
                lowered = lowercase(document);
                &lowered
            }
        };
        let Work { tokens, term } = work;
        let least = if self.tokens == TokenRule::LongWords { 2 } else { 1 };
        find_words(text, |c| self.tokens.belongs(c), least, |_| false, tokens);
        tokens.retain(|&token| self.stop_words.find(slice(text, token)).is_none());
        for_each_run(text, tokens, self.ngram_min..=self.ngram_max, term, each);
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.bool(self.case == LetterCase::Lower)?;
        out.variant(self.tokens.variant())?;
        out.usize(self.ngram_min)?;
        out.usize(self.ngram_max)?;
        out.bool(self.counts == TermCount::Once)?;
        self.stop_words.encode(out)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let rules = read(input, |fields| Self {
            case: case_of(fields.bool()),
            tokens: TokenRule::of_variant(fields.variant(3).into()).unwrap_or_default(),
            ngram_min: fields.usize(),
            ngram_max: fields.usize(),
            counts: counts_of(fields.bool()),
            stop_words: fields.take(Vocabulary::decode),
        })?;
        rules.check()?;
        Ok(rules)
    }

    pub(crate) fn push_to(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_integers(LOWERCASE, &[1], &[(self.case == LetterCase::Lower).into()])?;
        tensors.push_integers(TOKENS, &[1], &[self.tokens.variant().into()])?;
        tensors.push_counts(NGRAM_RANGE, &[self.ngram_min, self.ngram_max])?;
        tensors.push_integers(BINARY, &[1], &[(self.counts == TermCount::Once).into()])?;
        self.stop_words.push_to(tensors, STOP_WORDS, STOP_WORD_ENDS)
    }

    pub(crate) fn take_from(tensors: &Tensors) -> Result<Self, Error> {
        let range = tensors.counts(NGRAM_RANGE)?;
        checks::expect_len(NGRAM_RANGE, 2, range.len())?;
        let rules = tensors.parts(|parts| {
            let tokens = TokenRule::of_variant(parts.integer(TOKENS));
            parts.check(TOKENS, tokens.is_some(), "must be 0, 1 or 2");
            Self {
                case: case_of(parts.integer(LOWERCASE) != 0),
                tokens: tokens.unwrap_or_default(),
                ngram_min: range.first().copied().unwrap_or_default(),
                ngram_max: range.last().copied().unwrap_or_default(),
                counts: counts_of(parts.integer(BINARY) != 0),
                stop_words: parts.take(|tensors| Vocabulary::take_from(tensors, STOP_WORDS, STOP_WORD_ENDS)),
            }
        })?;
        rules.check()?;
        Ok(rules)
    }
}

const LOWERCASE: &str = "lowercase";
const TOKENS: &str = "tokens";
const NGRAM_RANGE: &str = "ngram_range";
const BINARY: &str = "binary";
const STOP_WORDS: &str = "stop_words";
const STOP_WORD_ENDS: &str = "stop_word_ends";

/// Names of the tensors of [`TextRules`].
pub(crate) const TENSORS: [&str; 6] = [LOWERCASE, TOKENS, NGRAM_RANGE, BINARY, STOP_WORDS, STOP_WORD_ENDS];

const fn case_of(lowercase: bool) -> LetterCase {
    match lowercase {
        true => LetterCase::Lower,
        false => LetterCase::Keep,
    }
}

const fn counts_of(binary: bool) -> TermCount {
    match binary {
        true => TermCount::Once,
        false => TermCount::Every,
    }
}

variants!(TokenRule: LongWords Words Whitespace);

impl TokenRule {
    fn belongs(self, c: char) -> bool {
        match self {
            Self::LongWords | Self::Words => c.is_alphanumeric() || c == '_',
            Self::Whitespace => !c.is_whitespace(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(rules: &TextRules, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        rules.for_each_term(text, &mut Work::default(), &mut |term| found.push(term.into()));
        found
    }

    #[test]
    fn words_are_runs_of_word_characters() {
        let text = "It's 2 PM, snake_case ÄÖ! x\u{a0}Ω٣ —日本";
        assert_eq!(terms(&TextRules::default(), text), ["it", "pm", "snake_case", "äö", "ω٣", "日本"]);
        let words = TextRules { tokens: TokenRule::Words, case: LetterCase::Keep, ..TextRules::default() };
        let all = ["It", "s", "2", "PM", "snake_case", "ÄÖ", "x", "Ω٣", "日本"];
        assert_eq!(terms(&words, text), all);
        let spaced = TextRules { tokens: TokenRule::Whitespace, ..TextRules::default() };
        assert_eq!(terms(&spaced, " a  b,c\n"), ["a", "b,c"]);
        for empty in ["", " ", "a ! b"] {
            assert!(terms(&TextRules::default(), empty).is_empty());
        }
    }

    #[test]
    fn runs_are_formed_after_stop_words_went() {
        let stop_words = Vocabulary::from_texts(["the"]).unwrap();
        let rules = TextRules { ngram_max: 3, stop_words, ..TextRules::default() };
        assert_eq!(
            terms(&rules, "The cat the SAT up"),
            ["cat", "sat", "up", "cat sat", "sat up", "cat sat up"]
        );
        let pairs = TextRules { ngram_min: 2, ngram_max: 2, ..TextRules::default() };
        assert_eq!(terms(&pairs, "one"), [""; 0]);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for (ngram_min, ngram_max) in [(0, 1), (2, 1), (1, 65), (0, 0)] {
            assert!(TextRules { ngram_min, ngram_max, ..TextRules::default() }.check().is_err());
        }
    }
}
