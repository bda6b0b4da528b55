//! A vectorizer as payload (`docs/payloads.md`, section 10) and as tensors.

use apr_container::{PayloadReader, PayloadWriter};

use crate::count_vectorizer::CountVectorizer;
use crate::error::Error;
use crate::tensors::Tensors;
use crate::terms::{self, TextRules};
use crate::vocabulary::Vocabulary;

const VOCABULARY: &str = "vocabulary";
const VOCABULARY_ENDS: &str = "vocabulary_ends";

stored_model! {
    CountVectorizer "CountVectorizer" [CountVectorizer] form 1 of 1
    // Samples are texts, so it has no number of features.
    n_features: |_| None;
}

impl CountVectorizer {
    pub(crate) fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.rules.encode(out)?;
        self.vocabulary.encode(out)
    }

    pub(crate) fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let rules = TextRules::decode(input)?;
        Ok(Self::from_parts(Vocabulary::decode(input)?, rules)?)
    }

    pub(crate) fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.rules.push_to(tensors)?;
        self.vocabulary.push_to(tensors, VOCABULARY, VOCABULARY_ENDS)
    }

    pub(crate) fn take_from(tensors: &Tensors) -> Result<Self, Error> {
        let vocabulary = Vocabulary::take_from(tensors, VOCABULARY, VOCABULARY_ENDS)?;
        Self::from_parts(vocabulary, TextRules::take_from(tensors)?)
    }

    /// Whether a tensor of that name is part of a vectorizer.
    pub(crate) fn is_part(name: &str) -> bool {
        name == VOCABULARY || name == VOCABULARY_ENDS || terms::TENSORS.contains(&name)
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
