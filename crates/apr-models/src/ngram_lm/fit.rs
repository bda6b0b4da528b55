//! Counting.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::ngram_lm::{END, MAX_ORDER, NgramCounts, NgramLm, NgramLmParts, START, Smoothing};
use crate::vocabulary::Vocabulary;

/// How to train an [`NgramLm`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NgramLmOptions {
    /// Tokens of the longest n-grams: 1 to 16. Default 3.
    pub order: usize,
    /// Smoothing: the probability of n-grams that were not seen. Default absolute discounting by 0.75.
    pub smoothing: Smoothing,
    /// Words seen less often count as unknown. Default 1: all are known, and unknown words have only the probability
    /// that smoothing gives them.
    pub min_count: usize,
}

impl Default for NgramLmOptions {
    fn default() -> Self {
        Self { order: 3, smoothing: Smoothing::AbsoluteDiscount(0.75), min_count: 1 }
    }
}

pub(crate) fn fit<T: AsRef<[S]>, S: AsRef<str>>(
    sentences: &[T],
    options: &NgramLmOptions,
) -> Result<NgramLm, Error> {
    let order = options.order;
    checks::expect("order", (1..=MAX_ORDER).contains(&order), "must be 1 to 16")?;
    options.smoothing.check()?;
    if sentences.is_empty() {
        return Err(ErrorKind::TooFewSamples { needed: 1, given: 0 }.into());
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for word in sentences.iter().flat_map(AsRef::as_ref) {
        *seen.entry(word.as_ref()).or_default() += 1;
    }
    checks::expect("tokens", !seen.contains_key(""), "one is empty")?;
    seen.retain(|_, &mut count| count >= options.min_count);
    let words = Vocabulary::from_sorted(seen.keys())?;

    let mut model = NgramLm { smoothing: options.smoothing, words, tables: Vec::new() };
    // Each sentence follows as many start tokens as a context has; `ends` are the indices after the predicted tokens.
    let (mut tokens, mut ends) = (Vec::new(), Vec::new());
    for sentence in sentences {
        tokens.extend(core::iter::repeat_n(START, order - 1));
        for word in sentence.as_ref() {
            tokens.push(model.token(word.as_ref()));
            ends.push(tokens.len());
        }
        tokens.push(END);
        ends.push(tokens.len());
    }
    let tables = (1..=order).map(|n| count(&tokens, &mut ends, n)).collect();
    model = NgramLm::from_parts(NgramLmParts { smoothing: model.smoothing, words: model.words, tables })?;
    Ok(model)
}

/// The different n-grams that end at these places, sorted.
fn count(tokens: &[u32], ends: &mut [usize], n: usize) -> NgramCounts {
    let ngram = |end: usize| tokens.get(end - n..end).unwrap_or_default();
    ends.sort_unstable_by(|&a, &b| ngram(a).cmp(ngram(b)));
    let mut counted = NgramCounts { tokens: vec![], counts: vec![] };
    for same in ends.chunk_by(|&a, &b| ngram(a) == ngram(b)) {
        if let Some(&end) = same.first() {
            counted.tokens.extend_from_slice(ngram(end));
            counted.counts.push(same.len() as u64);
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    const SENTENCES: [&[&str]; 4] = [&["a", "b", "a", "b"], &["b"], &[], &["a", "c"]];

    fn train(order: usize, smoothing: Smoothing, min_count: usize) -> NgramLm {
        NgramLm::fit(&SENTENCES, &NgramLmOptions { order, smoothing, min_count }).unwrap()
    }

    #[test]
    fn counts_are_those_of_the_sentences() {
        let parts = train(2, Smoothing::AddK(1.0), 1).to_parts();
        assert_eq!(parts.words.iter().collect::<Vec<_>>(), ["a", "b", "c"]);
        let (a, b, c) = (3, 4, 5);
        assert_eq!(parts.tables[0], NgramCounts { tokens: vec![END, a, b, c], counts: vec![4, 3, 3, 1] });
        let pairs = [[START, END], [START, a], [START, b], [a, b], [a, c], [b, END], [b, a], [c, END]];
        assert_eq!(parts.tables[1].tokens, pairs.concat());
        assert_eq!(parts.tables[1].counts, [1, 2, 1, 2, 1, 2, 1, 1]);
        assert_eq!(NgramLm::from_parts(parts.clone()).unwrap().to_parts(), parts);
    }

    #[test]
    fn probabilities_add_up_to_one_after_every_context() {
        let contexts: [&[&str]; 6] =
            [&[], &["a"], &["b", "a"], &["zzz"], &["c", "b", "a", "zzz", "a"], &["a", "b"]];
        for order in 1..=4 {
            for smoothing in [Smoothing::AddK(0.3), Smoothing::AbsoluteDiscount(0.4)] {
                for min_count in [1, 2] {
                    let model = train(order, smoothing, min_count);
                    for context in contexts {
                        let words = model.words().iter().chain(["never seen"]);
                        let sum: f64 = words.map(|word| model.probability(context, word)).sum();
                        let sum = sum + model.end_probability(context);
                        assert!((sum - 1.0).abs() < 1e-12, "{order} {smoothing:?} {context:?}: {sum}");
                    }
                }
            }
        }
    }

    #[test]
    fn smoothing_is_as_defined() {
        let model = train(2, Smoothing::AddK(0.5), 1);
        // After "a": twice "b", once "c"; five outcomes.
        assert_eq!(model.probability(&["a"], "b"), 2.5 / 5.5);
        assert_eq!(model.probability(&["a"], "a"), 0.5 / 5.5);
        assert_eq!(model.probability(&["zzz"], "b"), 0.2);
        let model = train(2, Smoothing::AbsoluteDiscount(0.5), 1);
        let b = (3.0 - 0.5 + 0.5 * 4.0 * 0.2) / 11.0;
        assert!((model.probability(&["a"], "b") - (2.0 - 0.5 + 0.5 * 2.0 * b) / 3.0).abs() < 1e-15);
        assert!((model.probability(&["zzz"], "b") - b).abs() < 1e-15);
        let sentence = model.probability::<&str>(&[], "a")
            * model.probability(&["a"], "c")
            * model.end_probability(&["a", "c"]);
        assert!((model.log_probability(&["a", "c"]) - libm::log(sentence)).abs() < 1e-12);
        let perplexity = model.perplexity(&[["a", "c"]]).unwrap();
        assert!((perplexity - libm::pow(sentence, -1.0 / 3.0)).abs() < 1e-12);
        assert!(model.perplexity::<[&str; 1], &str>(&[]).is_err());
    }

    #[test]
    fn rare_words_are_unknown() {
        let model = train(1, Smoothing::AddK(1.0), 2);
        assert_eq!(model.words().iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(model.probability::<&str>(&[], "c"), 2.0 / 15.0);
        assert_eq!(model.probability::<&str>(&[], "c"), model.probability::<&str>(&[], NgramLm::UNKNOWN));
    }

    #[test]
    fn unusable_options_are_refused() {
        let train = |options: &NgramLmOptions| NgramLm::fit(&SENTENCES, options).unwrap_err();
        let options = NgramLmOptions::default();
        for order in [0, 17] {
            assert_eq!(train(&NgramLmOptions { order, ..options }).code(), "am-part");
        }
        for number in [0.0, -1.0, f64::NAN, f64::INFINITY, 1.0] {
            let smoothing = Smoothing::AbsoluteDiscount(number);
            assert_eq!(train(&NgramLmOptions { smoothing, ..options }).code(), "am-part");
            if number != 1.0 {
                let smoothing = Smoothing::AddK(number);
                assert_eq!(train(&NgramLmOptions { smoothing, ..options }).code(), "am-part");
            }
        }
        let none: [[String; 1]; 0] = [];
        assert_eq!(NgramLm::fit(&none, &options).unwrap_err().code(), "am-too-few-samples");
        assert_eq!(NgramLm::fit(&[["a", ""]], &options).unwrap_err().code(), "am-part");
    }

    #[test]
    fn unsound_counts_are_refused() {
        let sound = train(2, Smoothing::AddK(1.0), 1).to_parts();
        type Change = fn(&mut NgramLmParts);
        let changes: [Change; 9] = [
            |parts| parts.tables.clear(),
            |parts| parts.tables = vec![parts.tables[0].clone(); 17],
            |parts| parts.tables[0].tokens[3] = 6,
            |parts| parts.tables[0].tokens.swap(0, 1),
            |parts| parts.tables[0].tokens[0] = START,
            |parts| parts.tables[1].tokens.truncate(15),
            |parts| parts.tables[0].counts[0] = 0,
            |parts| parts.tables[0].counts[0] = u64::MAX,
            |parts| parts.tables[0] = NgramCounts::default(),
        ];
        for (idx, change) in changes.into_iter().enumerate() {
            let mut parts = sound.clone();
            change(&mut parts);
            assert!(NgramLm::from_parts(parts).is_err(), "change {idx}");
        }
    }
}
