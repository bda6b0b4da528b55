//! Sorted n-grams with counts.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use crate::checks;
use crate::error::Error;
use crate::ngram_lm::{NgramCounts, START};

/// Where the sum of counts stops being an exact float.
const MAX_TOTAL: u64 = 1 << 53;

/// N-grams of one length, strictly increasing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    n: usize,
    tokens: Vec<u32>,
    /// For each n-gram the counts up to and including its own.
    sums: Vec<u64>,
}

impl Table {
    pub(crate) fn new(n: usize, n_tokens: usize, counts: NgramCounts) -> Result<Self, Error> {
        let NgramCounts { tokens, counts } = counts;
        checks::expect_table("tokens of n-grams", counts.len(), n, tokens.len())?;
        let known = tokens.iter().all(|&token| (token as usize) < n_tokens);
        checks::expect("tokens of n-grams", known, "must be tokens of the vocabulary")?;
        let predicted = tokens.chunks_exact(n).all(|ngram| ngram.last() != Some(&START));
        checks::expect("tokens of n-grams", predicted, "a start of a sentence comes after nothing")?;
        let sorted = tokens.chunks_exact(n).is_sorted_by(|a, b| a < b);
        checks::expect("tokens of n-grams", sorted, "n-grams must increase strictly")?;
        let mut sums = counts;
        let mut sum = 0_u64;
        for place in &mut sums {
            let grown = sum.checked_add(*place).filter(|&grown| *place > 0 && grown < MAX_TOTAL);
            checks::expect(
                "counts of n-grams",
                grown.is_some(),
                "must be above 0 and add up to less than 2^53",
            )?;
            sum = grown.unwrap_or_default();
            *place = sum;
        }
        Ok(Self { n, tokens, sums })
    }

    pub(crate) const fn len(&self) -> usize {
        self.sums.len()
    }

    pub(crate) const fn tokens(&self) -> &[u32] {
        self.tokens.as_slice()
    }

    pub(crate) fn counts(&self) -> impl ExactSizeIterator<Item = u64> {
        let mut before = 0;
        self.sums.iter().map(move |&sum| {
            let count = sum - before;
            before = sum;
            count
        })
    }

    pub(crate) fn to_counts(&self) -> NgramCounts {
        NgramCounts { tokens: self.tokens.clone(), counts: self.counts().collect() }
    }

    /// Places of the n-grams that begin with these tokens.
    pub(crate) fn span(&self, prefix: &[u32]) -> Range<usize> {
        let head = |ngram: &[u32]| ngram.get(..prefix.len()).unwrap_or_default().cmp(prefix);
        let start = self.search(0, |ngram| head(ngram).is_lt());
        start..self.search(start, |ngram| head(ngram).is_le())
    }

    /// How often the n-grams at these places were seen.
    pub(crate) fn total(&self, span: &Range<usize>) -> u64 {
        self.sum_before(span.end) - self.sum_before(span.start)
    }

    /// How often `token` was seen after `context`, which has one token less than the n-grams.
    pub(crate) fn count(&self, context: &[u32], token: u32) -> u64 {
        let order = |ngram: &[u32]| {
            let (last, before) = ngram.split_last()?;
            Some(before.cmp(context).then(last.cmp(&token)))
        };
        let place = self.search(0, |ngram| order(ngram).is_some_and(Ordering::is_lt));
        match self.ngram(place).and_then(order) {
            Some(Ordering::Equal) => self.total(&(place..place + 1)),
            _ => 0,
        }
    }

    /// The last token of the n-gram at a place.
    pub(crate) fn last_token(&self, place: usize) -> Option<u32> {
        self.ngram(place)?.last().copied()
    }

    /// Counts of the n-grams before a place.
    pub(crate) fn sum_before(&self, place: usize) -> u64 {
        place.checked_sub(1).and_then(|last| self.sums.get(last)).copied().unwrap_or(0)
    }

    fn ngram(&self, place: usize) -> Option<&[u32]> {
        let start = place.checked_mul(self.n)?;
        self.tokens.get(start..start.checked_add(self.n)?)
    }

    /// First place from `start` on whose n-gram is not `before`, which holds for the first ones and no later one.
    fn search(&self, start: usize, before: impl Fn(&[u32]) -> bool) -> usize {
        let (mut low, mut high) = (start, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ngram(middle).is_some_and(&before) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}
