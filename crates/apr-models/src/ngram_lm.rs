//! n-gram language models.

mod sample;
mod stored;
mod table;
mod fit;

use alloc::vec::Vec;

pub use self::fit::NgramLmOptions;
use self::table::Table;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::vocabulary::Vocabulary;

/// Longest n-grams.
const MAX_ORDER: usize = 16;

/// Most that every n-gram can count more than it was seen: no sum overflows.
const MAX_K: f64 = (1_u64 << 53) as f64;

/// Any word that is not in the vocabulary.
const UNKNOWN: u32 = 0;
/// The token before the first word of a sentence.
const START: u32 = 1;
/// The token after the last word of a sentence.
const END: u32 = 2;
/// The first word of the vocabulary.
const FIRST_WORD: u32 = 3;

/// n-gram language model: the probability of a token after the tokens before it, from counts.
///
/// A sentence is a list of tokens; tokenization is the caller's choice. The model sees the last `order - 1` tokens, the start
/// of the sentence included, and predicts a word, the end of the sentence, or a word it does not know
/// ([`UNKNOWN`](Self::UNKNOWN)). Whatever came before, the probabilities of all these add up to 1.
///
/// ```
/// use apr_models::{NgramLm, NgramLmOptions};
///
/// let sentences = [["the", "cat", "sat"], ["the", "dog", "sat"], ["the", "cat", "ran"]];
/// let model = NgramLm::fit(&sentences, &NgramLmOptions { order: 2, ..NgramLmOptions::default() })?;
///
/// assert!(model.probability(&["the"], "cat") > model.probability(&["the"], "dog"));
/// assert!(model.log_probability(&["the", "dog", "ran"]) < 0.0);
/// assert_eq!(model.sample(&["the"], 20, 7), model.sample(&["the"], 20, 7));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NgramLm {
    smoothing: Smoothing,
    words: Vocabulary,
    /// N-grams of 1, 2, ... tokens.
    tables: Vec<Table>,
}

/// Smoothing: the probability of n-grams that were not seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smoothing {
    /// Every n-gram counts that much more than it was seen: `(count + k) / (all after the same context + k * outcomes)`.
    /// Add-k smoothing of n-grams of full length. Above 0 and at most 2^53; 1 is Laplace smoothing.
    AddK(f64),
    /// Absolute discounting: the count of every observed n-gram is reduced by this; the remainder goes to the distribution with
    /// one token less of context of context, which is built in the same way, the shortest one from equal probabilities
    /// (interpolated absolute discounting: Ney, Essen and Kneser, Computer Speech and Language 8, 1994). A context never seen
    /// backs off altogether. Above 0 and below 1.
    AbsoluteDiscount(f64),
}

/// N-grams of one length and how often each was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NgramCounts {
    /// The tokens of one n-gram after the other, n-grams strictly increasing. Token 0 is an unknown word, 1 the start
    /// of a sentence, 2 its end, 3 the first word of the vocabulary, and so on.
    pub tokens: Vec<u32>,
    /// For each n-gram how often it was seen, at least once.
    pub counts: Vec<u64>,
}

/// What an [`NgramLm`] is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct NgramLmParts {
    /// Smoothing: the probability of n-grams that were not seen.
    pub smoothing: Smoothing,
    /// The words that are known.
    pub words: Vocabulary,
    /// Counts of n-grams of 1, 2, ... tokens: at most 16.
    pub tables: Vec<NgramCounts>,
}

impl NgramLm {
    /// The token of words that are not in the vocabulary.
    pub const UNKNOWN: &'static str = "<unk>";

    /// Makes a model of counts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for no tables or more than 16, n-grams that do not increase strictly, tokens that are
    /// no words, a start of a sentence as the last token, counts that are 0 or add up to 2^53 and more, or a smoothing
    /// outside its range; [`ErrorKind::PartLength`].
    pub fn from_parts(parts: NgramLmParts) -> Result<Self, Error> {
        let NgramLmParts { smoothing, words, tables } = parts;
        smoothing.check()?;
        checks::expect("order", (1..=MAX_ORDER).contains(&tables.len()), "must be 1 to 16")?;
        let n_tokens = FIRST_WORD as usize + words.len();
        let tables =
            tables.into_iter().enumerate().map(|(idx, counts)| Table::new(idx + 1, n_tokens, counts));
        Ok(Self { smoothing, tables: checks::all(tables)?, words })
    }

    /// Fits the model to sentences: counts their n-grams.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooFewSamples`] without sentences; [`ErrorKind::PartInvalid`] for an order that is not 1 to 16, an
    /// empty token, or a smoothing outside its range.
    pub fn fit<T: AsRef<[S]>, S: AsRef<str>>(
        sentences: &[T],
        options: &NgramLmOptions,
    ) -> Result<Self, Error> {
        fit::fit(sentences, options)
    }

    /// Returns the parts.
    #[must_use]
    pub fn to_parts(&self) -> NgramLmParts {
        NgramLmParts {
            smoothing: self.smoothing,
            words: self.words.clone(),
            tables: self.tables.iter().map(Table::to_counts).collect(),
        }
    }

    /// Tokens of the longest n-grams.
    #[must_use]
    pub const fn order(&self) -> usize {
        self.tables.len()
    }

    /// The words that are known.
    #[must_use]
    pub const fn words(&self) -> &Vocabulary {
        &self.words
    }

    /// Smoothing: the probability of n-grams that were not seen.
    #[must_use]
    pub const fn smoothing(&self) -> Smoothing {
        self.smoothing
    }

    /// How likely `word` is after `context`, the tokens since the start of the sentence. A word that is not known has
    /// the probability of all words that are not known.
    #[must_use]
    pub fn probability<S: AsRef<str>>(&self, context: &[S], word: &str) -> f64 {
        self.after(&self.context(context), self.token(word))
    }

    /// How likely it is that the sentence ends after `context`, the tokens since its start.
    #[must_use]
    pub fn end_probability<S: AsRef<str>>(&self, context: &[S]) -> f64 {
        self.after(&self.context(context), END)
    }

    /// The natural logarithm of the probability of the sentence, its end included.
    #[must_use]
    pub fn log_probability<S: AsRef<str>>(&self, sentence: &[S]) -> f64 {
        let mut tokens = self.context::<&str>(&[]);
        let context_len = tokens.len();
        tokens.extend(sentence.iter().map(|word| self.token(word.as_ref())));
        tokens.push(END);
        let spans = tokens.windows(context_len + 1);
        spans
            .filter_map(|span| span.split_last())
            .map(|(&token, context)| libm::log(self.after(context, token)))
            .sum()
    }

    /// How many equally likely outcomes a token of the sentences is like, on average, their ends included: the
    /// exponential of the mean negative logarithm of the probabilities.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooFewSamples`] without sentences.
    pub fn perplexity<T: AsRef<[S]>, S: AsRef<str>>(&self, sentences: &[T]) -> Result<f64, Error> {
        if sentences.is_empty() {
            return Err(ErrorKind::TooFewSamples { needed: 1, given: 0 }.into());
        }
        let sum: f64 = sentences.iter().map(|sentence| self.log_probability(sentence.as_ref())).sum();
        let n_tokens: usize = sentences.iter().map(|sentence| sentence.as_ref().len() + 1).sum();
        Ok(libm::exp(-sum / n_tokens as f64))
    }

    /// Draws the rest of a sentence that begins with `context`: at most `max_tokens` words, fewer if the end of the
    /// sentence is drawn. The same seed draws the same words. A word that is not known is drawn as
    /// [`UNKNOWN`](Self::UNKNOWN).
    #[must_use]
    pub fn sample<S: AsRef<str>>(&self, context: &[S], max_tokens: usize, seed: u64) -> Vec<&str> {
        sample::sample(self, self.context(context), max_tokens, seed)
    }

    fn token(&self, word: &str) -> u32 {
        self.words.find(word).map_or(UNKNOWN, |number| FIRST_WORD + number)
    }

    fn word(&self, token: u32) -> &str {
        let number = token.checked_sub(FIRST_WORD);
        number.and_then(|number| self.words.get(number as usize)).unwrap_or(Self::UNKNOWN)
    }

    /// The last `order - 1` tokens of a sentence that begins with these words.
    fn context<S: AsRef<str>>(&self, words: &[S]) -> Vec<u32> {
        let len = self.order() - 1;
        let known = words.get(words.len().saturating_sub(len)..).unwrap_or_default();
        let mut tokens = alloc::vec![START; len - known.len()];
        known.iter().for_each(|word| tokens.push(self.token(word.as_ref())));
        tokens
    }

    /// Tokens that can follow: all but the start of a sentence.
    fn n_outcomes(&self) -> f64 {
        (FIRST_WORD as usize - 1 + self.words.len()) as f64
    }

    /// How likely `token` is after the last `order - 1` tokens.
    fn after(&self, context: &[u32], token: u32) -> f64 {
        let uniform = 1.0 / self.n_outcomes();
        match self.smoothing {
            Smoothing::AddK(k) => {
                let Some(table) = self.tables.last() else { return uniform };
                let (all, count) = (table.total(&table.span(context)), table.count(context, token));
                (count as f64 + k) / (all as f64 + k * self.n_outcomes())
            }
            Smoothing::AbsoluteDiscount(discount) => {
                let mut probability = uniform;
                for (table, context) in self.tables.iter().zip(suffixes(context)) {
                    let span = table.span(context);
                    if span.is_empty() {
                        // Of a context that was never seen no longer one was.
                        continue;
                    }
                    let (all, count) = (table.total(&span) as f64, table.count(context, token) as f64);
                    let kept = (count - discount).max(0.0);
                    probability = (kept + discount * span.len() as f64 * probability) / all;
                }
                probability
            }
        }
    }
}

/// The last 0, 1, 2, ... tokens.
fn suffixes(context: &[u32]) -> impl DoubleEndedIterator<Item = &[u32]> + ExactSizeIterator {
    (0..context.len() + 1).map(|len| context.get(context.len() - len..).unwrap_or_default())
}

impl Smoothing {
    fn check(self) -> Result<(), Error> {
        match self {
            Self::AddK(k) => checks::expect("k", k > 0.0 && k <= MAX_K, "must be above 0 and at most 2^53"),
            Self::AbsoluteDiscount(discount) => {
                checks::expect("discount", discount > 0.0 && discount < 1.0, "must be above 0 and below 1")
            }
        }
    }
}
