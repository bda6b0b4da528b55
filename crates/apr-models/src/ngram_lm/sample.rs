//! Sampling of words.

use alloc::vec::Vec;

use crate::ngram_lm::{END, FIRST_WORD, NgramLm, START, Smoothing, UNKNOWN, suffixes};
use crate::rng::Rng;

pub(crate) fn sample(model: &NgramLm, mut context: Vec<u32>, max_tokens: usize, seed: u64) -> Vec<&str> {
    let mut rng = Rng::new(seed);
    let mut words = Vec::new();
    while words.len() < max_tokens {
        let token = draw(model, &context, &mut rng);
        if token == END {
            break;
        }
        words.push(model.word(token));
        if !context.is_empty() {
            context.rotate_left(1);
            if let Some(last) = context.last_mut() {
                *last = token;
            }
        }
    }
    words
}

/// Draws one token: first the order of the distribution, then a token from it.
fn draw(model: &NgramLm, context: &[u32], rng: &mut Rng) -> u32 {
    match model.smoothing {
        Smoothing::AddK(k) => {
            if let Some(table) = model.tables.last() {
                let span = table.span(context);
                let all = table.total(&span) as f64;
                let place = rng.unit() * (all + k * model.n_outcomes());
                if place < all {
                    let before = table.sum_before(span.start);
                    let token = first(&span, |end| (table.sum_before(end) - before) as f64 > place);
                    return table.last_token(token).unwrap_or(UNKNOWN);
                }
            }
        }
        Smoothing::AbsoluteDiscount(discount) => {
            for (table, context) in model.tables.iter().zip(suffixes(context)).rev() {
                let span = table.span(context);
                let place = rng.unit() * table.total(&span) as f64;
                let before = table.sum_before(span.start);
                // What the n-grams from the first of the context up to one keep of their counts.
                let kept = |end: usize| {
                    let n_seen = (end - span.start) as f64;
                    (table.sum_before(end) - before) as f64 - discount * n_seen
                };
                if place < kept(span.end) {
                    let token = first(&span, |end| kept(end) > place);
                    return table.last_token(token).unwrap_or(UNKNOWN);
                }
            }
        }
    }
    // Any token but the start, each equally likely.
    match rng.below(FIRST_WORD as usize - 1 + model.words.len()) as u32 {
        token if token < START => token,
        token => token + 1,
    }
}

/// The first index of the span for which `reached` holds of the next index; it holds for all later ones.
fn first(span: &core::ops::Range<usize>, reached: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (span.start, span.end.saturating_sub(1).max(span.start));
    while low < high {
        let middle = low + (high - low) / 2;
        match reached(middle + 1) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}
