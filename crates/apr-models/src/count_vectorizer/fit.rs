//! Fits the vocabulary.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::checks;
use crate::count_vectorizer::{CountVectorizer, CountVectorizerOptions, DocumentCount};
use crate::error::Error;
use crate::terms::{TermCount, Work};
use crate::vocabulary::Vocabulary;

/// A vectorizer and the counts from its fit.
pub(crate) struct Trained {
    pub(crate) vectorizer: CountVectorizer,
    /// Documents that each term is in.
    pub(crate) documents_with: Vec<usize>,
}

#[derive(Default)]
struct Seen {
    documents: usize,
    times: usize,
    /// One more than the last document's number.
    last: usize,
}

pub(crate) fn fit<S: AsRef<str>>(
    documents: &[S],
    options: &CountVectorizerOptions,
) -> Result<Trained, Error> {
    let rules = &options.rules;
    rules.check()?;
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    let mut work = Work::default();
    for (number, document) in documents.iter().enumerate() {
        rules.for_each_term(document.as_ref(), &mut work, &mut |term| {
            let entry = match seen.get_mut(term) {
                Some(entry) => entry,
                None => seen.entry(term.into()).or_default(),
            };
            let is_new = entry.last != number + 1;
            entry.last = number + 1;
            entry.documents += usize::from(is_new);
            entry.times += usize::from(is_new || rules.counts == TermCount::Every);
        });
    }

    let least = options.min_documents.of(documents.len())?;
    let most = options.max_documents.of(documents.len())?;
    seen.retain(|_, seen| (least..=most).contains(&(seen.documents as f64)));
    if let Some(max_terms) = options.max_terms.filter(|&max_terms| max_terms < seen.len()) {
        let mut by_times: Vec<(Reverse<usize>, &str)> =
            seen.iter().map(|(term, seen)| (Reverse(seen.times), term.as_str())).collect();
        by_times.sort_unstable();
        let dropped: Vec<String> = by_times.iter().skip(max_terms).map(|&(_, term)| term.into()).collect();
        for term in &dropped {
            seen.remove(term);
        }
    }
    let problem =
        "no term is left: they have no words, or only stop words and ones that are too rare or too frequent";
    checks::expect("documents", !seen.is_empty(), problem)?;
    let vocabulary = Vocabulary::from_sorted(seen.keys())?;
    let documents_with = seen.values().map(|seen| seen.documents).collect();
    Ok(Trained { vectorizer: CountVectorizer::from_parts(vocabulary, rules.clone())?, documents_with })
}

impl DocumentCount {
    fn of(self, n_documents: usize) -> Result<f64, Error> {
        match self {
            Self::Number(number) => Ok(number as f64),
            Self::Fraction(share) => {
                checks::expect("share of documents", (0.0..=1.0).contains(&share), "must be from 0 to 1")?;
                Ok(share * n_documents as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::TextRules;

    const DOCUMENTS: [&str; 4] = ["bb aa aa", "aa cc", "aa bb dd dd dd", "ee"];

    fn terms(options: &CountVectorizerOptions) -> Vec<String> {
        let trained = fit(&DOCUMENTS, options).unwrap();
        assert_eq!(trained.documents_with.len(), trained.vectorizer.vocabulary().len());
        trained.vectorizer.vocabulary().iter().map(String::from).collect()
    }

    #[test]
    fn bounds_keep_the_terms_between_them() {
        let of = |min_documents, max_documents, max_terms| {
            terms(&CountVectorizerOptions { min_documents, max_documents, max_terms, ..Default::default() })
        };
        use DocumentCount::{Fraction, Number};
        assert_eq!(of(Number(1), Fraction(1.0), None), ["aa", "bb", "cc", "dd", "ee"]);
        assert_eq!(of(Number(2), Fraction(1.0), None), ["aa", "bb"]);
        assert_eq!(of(Number(1), Fraction(0.5), None), ["bb", "cc", "dd", "ee"]);
        assert_eq!(of(Fraction(0.3), Number(2), None), ["bb"]);
        assert_eq!(of(Number(1), Fraction(1.0), Some(2)), ["aa", "dd"]);
        // Of the terms that are there once or twice the first ones.
        assert_eq!(of(Number(1), Fraction(1.0), Some(4)), ["aa", "bb", "cc", "dd"]);
        assert_eq!(of(Number(1), Fraction(1.0), Some(9)).len(), 5);
    }

    #[test]
    fn once_counts_documents() {
        let rules = TextRules { counts: TermCount::Once, ..TextRules::default() };
        let options = CountVectorizerOptions { rules, max_terms: Some(2), ..Default::default() };
        assert_eq!(terms(&options), ["aa", "bb"]);
        let rows = CountVectorizer::fit(&DOCUMENTS, &options).unwrap().transform(["aa aa bb bb bb"]);
        assert_eq!(rows.values(), [1.0, 1.0]);
    }

    #[test]
    fn nothing_left_is_an_error() {
        let options = CountVectorizerOptions::default();
        assert_eq!(CountVectorizer::fit(&["", "a b"], &options).unwrap_err().code(), "am-part");
        assert!(CountVectorizer::fit::<&str>(&[], &options).is_err());
        assert!(
            CountVectorizer::fit(
                &DOCUMENTS,
                &CountVectorizerOptions { max_terms: Some(0), ..options.clone() }
            )
            .is_err()
        );
        for share in [-0.1, 1.1, f64::NAN] {
            let min_documents = DocumentCount::Fraction(share);
            assert!(
                CountVectorizer::fit(
                    &DOCUMENTS,
                    &CountVectorizerOptions { min_documents, ..options.clone() }
                )
                .is_err()
            );
        }
    }
}
