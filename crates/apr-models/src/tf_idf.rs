//! TF-IDF weights of terms in documents.

mod stored;

use alloc::vec::Vec;

use crate::checks;
use crate::count_vectorizer::{CountVectorizer, CountVectorizerOptions, Counts, fit};
use crate::error::Error;
use crate::sparse::SparseRows;
use crate::vocabulary::Vocabulary;

/// Term frequency times inverse document frequency (Manning, Raghavan and Schütze, *Introduction to Information
/// Retrieval*, 2008, section 6.2).
///
/// The value of a term is its count (or one plus its logarithm) times the term's factor; a row is then divided by its
/// norm. The weights are those of scikit-learn 1.9.1's `TfidfVectorizer`, computed in `f64` and rounded once. A
/// document without a known term is an empty row.
///
/// ```
/// use apr_models::{TfIdf, TfIdfOptions};
///
/// let documents = ["a red fox", "red wine", "red roses"];
/// let model = TfIdf::fit(&documents, &TfIdfOptions::default())?;
/// let rows = model.transform(["The red fox"]);
/// let row = rows.row(0).unwrap();
/// let find = |term| row.get(model.vocabulary().find(term).unwrap() as usize).unwrap();
/// assert!(find("fox") > find("red"), "the rarer term weighs more");
/// assert!((row.norm() - 1.0).abs() < 1e-6);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TfIdf {
    counts: CountVectorizer,
    frequency: TermFrequency,
    norm: RowNorm,
    idf: Option<Vec<f32>>,
}

/// What the count of a term is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TermFrequency {
    /// Itself.
    #[default]
    Count,
    /// One plus its natural logarithm.
    Logarithm,
}

/// What a row is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowNorm {
    /// Nothing.
    None,
    /// The sum of its absolute values.
    L1,
    /// Its Euclidean length.
    #[default]
    L2,
}

/// The factor of a term that is in `d` of `n` documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InverseFrequency {
    /// None.
    None,
    /// `ln(n / d) + 1`.
    Plain,
    /// `ln((n + 1) / (d + 1)) + 1`, as if one more document held every term.
    #[default]
    Smooth,
}

/// What a [`TfIdf`] is made of, beside the vectorizer that counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TfIdfParts {
    /// What the count of a term is worth.
    pub frequency: TermFrequency,
    /// What a row is divided by.
    pub norm: RowNorm,
    /// The factor of each term.
    pub idf: Option<Vec<f32>>,
}

/// How to train a [`TfIdf`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TfIdfOptions {
    /// Which terms are counted.
    pub counts: CountVectorizerOptions,
    /// What the count of a term is worth.
    pub frequency: TermFrequency,
    /// The factor of a term.
    pub inverse: InverseFrequency,
    /// What a row is divided by.
    pub norm: RowNorm,
}

impl TfIdf {
    /// Makes a model of its parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength) if there is not one factor for each term,
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn from_parts(counts: CountVectorizer, parts: TfIdfParts) -> Result<Self, Error> {
        let TfIdfParts { frequency, norm, idf } = parts;
        if let Some(idf) = &idf {
            checks::expect_len("idf", counts.vocabulary().len(), idf.len())?;
            checks::expect_finite("idf", idf)?;
        }
        Ok(Self { counts, frequency, norm, idf })
    }

    /// Fits the vocabulary and the inverse document frequencies to documents.
    ///
    /// # Errors
    ///
    /// As [`CountVectorizer::fit`].
    pub fn fit<S: AsRef<str>>(documents: &[S], options: &TfIdfOptions) -> Result<Self, Error> {
        let trained = fit::fit(documents, &options.counts)?;
        let more = match options.inverse {
            InverseFrequency::None => None,
            InverseFrequency::Plain => Some(0.0),
            InverseFrequency::Smooth => Some(1.0),
        };
        let idf = more.map(|more| {
            let all = documents.len() as f64 + more;
            let factor = |&with: &usize| (libm::log(all / (with as f64 + more)) + 1.0) as f32;
            trained.documents_with.iter().map(factor).collect()
        });
        let parts = TfIdfParts { frequency: options.frequency, norm: options.norm, idf };
        Self::from_parts(trained.vectorizer, parts)
    }

    /// The vectorizer that counts.
    #[must_use]
    pub const fn counts(&self) -> &CountVectorizer {
        &self.counts
    }

    /// The terms; a term's number is its column.
    #[must_use]
    pub const fn vocabulary(&self) -> &Vocabulary {
        self.counts.vocabulary()
    }

    /// The factor of each term.
    #[must_use]
    pub fn idf(&self) -> Option<&[f32]> {
        self.idf.as_deref()
    }

    /// What the count of a term is worth.
    #[must_use]
    pub const fn frequency(&self) -> TermFrequency {
        self.frequency
    }

    /// What a row is divided by.
    #[must_use]
    pub const fn norm(&self) -> RowNorm {
        self.norm
    }

    /// The weights of each document: `[n_documents, n_terms]`, sparse.
    #[must_use]
    pub fn transform<S: AsRef<str>>(&self, documents: impl IntoIterator<Item = S>) -> SparseRows {
        let mut rows = SparseRows::new(self.vocabulary().len());
        self.transform_into(documents, &mut rows);
        rows
    }

    /// As [`transform`](Self::transform) into rows whose memory is reused.
    pub fn transform_into<S: AsRef<str>>(
        &self,
        documents: impl IntoIterator<Item = S>,
        out: &mut SparseRows,
    ) {
        out.clear(self.vocabulary().len());
        let mut counts = Counts::default();
        let mut row: Vec<(u32, f64)> = Vec::new();
        for document in documents {
            self.weigh(self.counts.count(document.as_ref(), &mut counts), &mut row);
            out.extend_row(row.iter().map(|&(term, value)| (term, value as f32)));
        }
    }

    /// The weights of the terms of a document.
    fn weigh(&self, counts: &[(u32, usize)], row: &mut Vec<(u32, f64)>) {
        row.clear();
        row.extend(counts.iter().map(|&(term, count)| (term, self.weight(term, count))));
        // Only factors of 0 make a row of zeros; it stays one.
        let norm = self.norm.of(row.iter().map(|&(_, value)| value));
        row.iter_mut().for_each(|(_, value)| *value /= norm);
    }

    fn weight(&self, term: u32, count: usize) -> f64 {
        let frequency = self.frequency.of(count as f64);
        let factor = self.idf.as_ref().and_then(|idf| idf.get(term as usize));
        frequency * factor.map_or(1.0, |&factor| factor.into())
    }
}
