//! A weighting vectorizer as payload (`docs/payloads.md`, section 11) and as tensors.

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::count_vectorizer::CountVectorizer;
use crate::error::Error;
use crate::payload::fields::read;
use crate::payload::variants;
use crate::tensors::Tensors;
use crate::tf_idf::{RowNorm, TermFrequency, TfIdf, TfIdfParts};

const SUBLINEAR: &str = "sublinear";
const NORM: &str = "norm";
const IDF: &str = "idf";

variants!(RowNorm: None L1 L2);

const fn frequency_of(sublinear: bool) -> TermFrequency {
    match sublinear {
        true => TermFrequency::Logarithm,
        false => TermFrequency::Count,
    }
}

stored_model! {
    TfIdf "TfIdf" [TfIdf] form 1 of 1
    // Samples are texts, so it has no number of features.
    n_features: |_| None;
}

impl TfIdf {
    pub(crate) fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.counts.encode_fields(out)?;
        out.bool(self.frequency == TermFrequency::Logarithm)?;
        out.variant(self.norm.variant())?;
        out.option(self.idf.is_some())?;
        self.idf.as_ref().map_or(Ok(()), |idf| out.f32s(idf))
    }

    pub(crate) fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let counts = CountVectorizer::decode_fields(input)?;
        let parts = read(input, |fields| TfIdfParts {
            frequency: frequency_of(fields.bool()),
            norm: RowNorm::of_variant(fields.variant(3).into()).unwrap_or_default(),
            idf: fields.optional_f32s(),
        })?;
        Ok(Self::from_parts(counts, parts)?)
    }

    pub(crate) fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.counts.push_tensors(tensors)?;
        tensors.push_integers(SUBLINEAR, &[1], &[(self.frequency == TermFrequency::Logarithm).into()])?;
        tensors.push_integers(NORM, &[1], &[self.norm.variant().into()])?;
        self.idf.as_ref().map_or(Ok(()), |idf| tensors.push_f32(IDF, &[idf.len()], idf))
    }

    pub(crate) fn take_from(tensors: &Tensors) -> Result<Self, Error> {
        let norm = RowNorm::of_variant(tensors.integer(NORM)?);
        checks::expect(NORM, norm.is_some(), "must be 0, 1 or 2")?;
        let parts = TfIdfParts {
            frequency: frequency_of(tensors.integer(SUBLINEAR)? != 0),
            norm: norm.unwrap_or_default(),
            idf: tensors.optional(IDF, Tensors::vector)?,
        };
        Self::from_parts(CountVectorizer::take_from(tensors)?, parts)
    }

    /// Whether a tensor of that name is part of a weighting vectorizer.
    pub(crate) fn is_part(name: &str) -> bool {
        [SUBLINEAR, NORM, IDF].contains(&name) || CountVectorizer::is_part(name)
    }

    /// The vectorizer that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors.expect_only(&Self::is_part)?;
        Self::take_from(tensors)
    }
}
