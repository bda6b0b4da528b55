//! Words of texts, runs of words, and what counts of them are worth.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::tf_idf::{RowNorm, TermFrequency};

/// Where a word begins and ends.
pub(crate) type Word = (usize, usize);

/// The text of a word.
pub(crate) fn slice(text: &str, (start, end): Word) -> &str {
    text.get(start..end).unwrap_or_default()
}

/// Finds the words: maximal sequences of at least `least` characters that belong to words, unless the character before or after one is
/// an edge that forbids it.
pub(crate) fn find_words(
    text: &str,
    belongs: impl Fn(char) -> bool,
    least: usize,
    is_edge: impl Fn(char) -> bool,
    words: &mut Vec<Word>,
) {
    words.clear();
    // Start of the sequence, the character before it, and its length.
    let (mut start, mut before, mut length) = (0, None, 0);
    let mut last = None;
    for (at, character) in text.char_indices() {
        if belongs(character) {
            if length == 0 {
                (start, before) = (at, last);
            }
            length += 1;
        } else {
            if length >= least && !before.is_some_and(&is_edge) && !is_edge(character) {
                words.push((start, at));
            }
            length = 0;
        }
        last = Some(character);
    }
    if length >= least && !before.is_some_and(is_edge) {
        words.push((start, text.len()));
    }
}

/// Gives `each` every run of so many words, joined by spaces, in the memory of `run`.
pub(crate) fn for_each_run(
    text: &str,
    words: &[Word],
    lengths: RangeInclusive<usize>,
    run: &mut String,
    each: &mut dyn FnMut(&str),
) {
    for n in lengths {
        for words in words.windows(n) {
            if let &[word] = words {
                each(slice(text, word));
                continue;
            }
            run.clear();
            for &word in words {
                if !run.is_empty() {
                    run.push(' ');
                }
                run.push_str(slice(text, word));
            }
            each(run);
        }
    }
}

impl TermFrequency {
    /// What a count, which is not 0, is worth.
    pub(crate) fn of(self, count: f64) -> f64 {
        match self {
            Self::Count => count,
            Self::Logarithm => 1.0 + libm::log(count),
        }
    }
}

impl RowNorm {
    /// What the values of a row are divided by: 1 for a row of zeros.
    pub(crate) fn of(self, values: impl Iterator<Item = f64>) -> f64 {
        let norm = match self {
            Self::None => 1.0,
            Self::L1 => values.map(f64::abs).sum(),
            Self::L2 => libm::sqrt(values.map(|value| value * value).sum()),
        };
        if norm == 0.0 { 1.0 } else { norm }
    }
}
