//! Counts of terms in documents.

mod stored;
pub(crate) mod fit;

use alloc::vec::Vec;

use crate::checks;
use crate::error::Error;
use crate::sparse::SparseRows;
use crate::terms::{TermCount, TextRules, Work};
use crate::vocabulary::Vocabulary;

/// Term counts: `[n_documents, n_terms]`, sparse.
///
/// Terms, their order and the counts are those of scikit-learn 1.9.1's `CountVectorizer`.
///
/// ```
/// use apr_models::{CountVectorizer, CountVectorizerOptions};
///
/// let documents = ["A red fox.", "Red, red wine!"];
/// let model = CountVectorizer::fit(&documents, &CountVectorizerOptions::default())?;
/// assert_eq!(model.vocabulary().iter().collect::<Vec<_>>(), ["fox", "red", "wine"]);
///
/// let rows = model.transform(["red fox and red roses"]);
/// assert_eq!(rows.to_matrix()?.as_slice(), [1.0, 2.0, 0.0]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CountVectorizer {
    rules: TextRules,
    vocabulary: Vocabulary,
}

/// A number of documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DocumentCount {
    /// That many.
    Number(usize),
    /// This fraction of all documents, 0 to 1.
    Fraction(f64),
}

/// How to train a [`CountVectorizer`].
#[derive(Clone, Debug, PartialEq)]
pub struct CountVectorizerOptions {
    /// How a document becomes terms.
    pub rules: TextRules,
    /// Terms in fewer documents are left out. Default 1.
    pub min_documents: DocumentCount,
    /// Terms in more documents are left out. Default all of them.
    pub max_documents: DocumentCount,
    /// Terms to keep at most: those that are there most often in all documents, of equal ones those first in the
    /// order of the vocabulary. Default all.
    pub max_terms: Option<usize>,
}

impl Default for CountVectorizerOptions {
    fn default() -> Self {
        Self {
            rules: TextRules::default(),
            min_documents: DocumentCount::Number(1),
            max_documents: DocumentCount::Fraction(1.0),
            max_terms: None,
        }
    }
}

/// Buffers that are reused for each document.
#[derive(Default)]
pub(crate) struct Counts {
    work: Work,
    /// The number of each term that was found, as often as it was.
    found: Vec<u32>,
    counted: Vec<(u32, usize)>,
}

impl CountVectorizer {
    /// Makes a vectorizer of a vocabulary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for an impossible number of tokens of a term, or a
    /// vocabulary without terms.
    pub fn from_parts(vocabulary: Vocabulary, rules: TextRules) -> Result<Self, Error> {
        rules.check()?;
        checks::expect("vocabulary", !vocabulary.is_empty(), "has no terms")?;
        Ok(Self { rules, vocabulary })
    }

    /// Fits the vocabulary to documents.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for an impossible number of tokens of a term, a share
    /// that is not one, or if no term is left.
    pub fn fit<S: AsRef<str>>(documents: &[S], options: &CountVectorizerOptions) -> Result<Self, Error> {
        Ok(fit::fit(documents, options)?.vectorizer)
    }

    /// The terms; a term's number is its column.
    #[must_use]
    pub const fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// How a document becomes terms.
    #[must_use]
    pub const fn rules(&self) -> &TextRules {
        &self.rules
    }

    /// The counts of each document: `[n_documents, n_terms]`, sparse.
    #[must_use]
    pub fn transform<S: AsRef<str>>(&self, documents: impl IntoIterator<Item = S>) -> SparseRows {
        let mut rows = SparseRows::new(self.vocabulary.len());
        self.transform_into(documents, &mut rows);
        rows
    }

    /// As [`transform`](Self::transform) into rows whose memory is reused.
    pub fn transform_into<S: AsRef<str>>(
        &self,
        documents: impl IntoIterator<Item = S>,
        out: &mut SparseRows,
    ) {
        out.clear(self.vocabulary.len());
        let mut counts = Counts::default();
        for document in documents {
            let counts = self.count(document.as_ref(), &mut counts);
            out.extend_row(counts.iter().map(|&(term, count)| (term, count as f32)));
        }
    }

    /// The numbers and counts of a document's terms, by rising numbers.
    pub(crate) fn count<'c>(&self, document: &str, counts: &'c mut Counts) -> &'c [(u32, usize)] {
        let Counts { work, found, counted } = counts;
        found.clear();
        self.rules.for_each_term(document, work, &mut |term| {
            if let Some(number) = self.vocabulary.find(term) {
                found.push(number);
            }
        });
        found.sort_unstable();
        counted.clear();
        for &term in found.iter() {
            match counted.last_mut() {
                Some((last, count)) if *last == term => {
                    *count += usize::from(self.rules.counts == TermCount::Every);
                }
                _ => counted.push((term, 1)),
            }
        }
        counted
    }
}
