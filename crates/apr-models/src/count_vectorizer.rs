//! Documents to counts of terms.

mod stored;
pub(crate) mod train;

use alloc::vec::Vec;

use crate::error::Error;
use crate::part;
use crate::sparse::SparseRows;
use crate::terms::{TermCount, TextRules, Work};
use crate::vocabulary::Vocabulary;

/// Counts how often each term of a vocabulary is in a document.
///
/// Terms, their order and the counts are those of scikit-learn's `CountVectorizer`.
///
/// ```
/// use apr_models::{CountVectorizer, CountVectorizerOptions};
///
/// let documents = ["A red fox.", "Red, red wine!"];
/// let model = CountVectorizer::train(&documents, &CountVectorizerOptions::default())?;
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
    /// That share of all: 0 to 1.
    Share(f64),
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
            max_documents: DocumentCount::Share(1.0),
            max_terms: None,
        }
    }
}

impl CountVectorizer {
    /// Takes a vocabulary that exists already.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for an impossible number of tokens of a term, or a
    /// vocabulary without terms.
    pub fn from_parts(vocabulary: Vocabulary, rules: TextRules) -> Result<Self, Error> {
        rules.check()?;
        part::expect("vocabulary", !vocabulary.is_empty(), "has no terms")?;
        Ok(Self { rules, vocabulary })
    }

    /// Collects the terms of documents.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for an impossible number of tokens of a term, a share
    /// that is not one, or if no term is left.
    pub fn train<S: AsRef<str>>(documents: &[S], options: &CountVectorizerOptions) -> Result<Self, Error> {
        Ok(train::train(documents, options)?.vectorizer)
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

    /// The counts of each document: a row for each, a column for each term.
    #[must_use]
    pub fn transform<S: AsRef<str>>(&self, documents: impl IntoIterator<Item = S>) -> SparseRows {
        let mut rows = SparseRows::new(self.vocabulary.len());
        self.transform_into(documents, &mut rows);
        rows
    }

    /// As [`transform`](Self::transform) into rows whose memory is used again.
    pub fn transform_into<S: AsRef<str>>(
        &self,
        documents: impl IntoIterator<Item = S>,
        out: &mut SparseRows,
    ) {
        out.clear(self.vocabulary.len());
        self.for_each_count(documents, |counts| {
            out.extend_row(counts.map(|(term, count)| (term, count as f32)));
        });
    }

    /// Gives `each` the numbers and counts of every document's terms, by rising numbers.
    pub(crate) fn for_each_count<S: AsRef<str>>(
        &self,
        documents: impl IntoIterator<Item = S>,
        mut each: impl FnMut(&mut dyn Iterator<Item = (u32, usize)>),
    ) {
        let mut work = Work::default();
        let mut found: Vec<u32> = Vec::new();
        for document in documents {
            found.clear();
            self.rules.for_each_term(document.as_ref(), &mut work, |term| {
                found.extend(self.vocabulary.find(term));
            });
            found.sort_unstable();
            let runs = found.chunk_by(|a, b| a == b);
            each(&mut runs.filter_map(|run| {
                let count = if self.rules.counts == TermCount::Once { 1 } else { run.len() };
                Some((*run.first()?, count))
            }));
        }
    }
}
