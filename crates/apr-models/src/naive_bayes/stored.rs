//! A Gaussian naive Bayes as payload (`docs/payloads.md`, section 5) and as tensors.

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::naive_bayes::{NaiveBayes, NaiveBayesParts};
use crate::payload::fields::read;
use crate::tensors::Tensors;

const CLASSES: &str = "classes";
const PRIOR: &str = "prior";
const MEAN: &str = "mean";
const VARIANCE: &str = "variance";

stored_model! {
    NaiveBayes "NaiveBayes" [NaiveBayes] form 1 of 1
    n_features: |model| Some(model.n_features);
}

impl NaiveBayes {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.classes.encode(out)?;
        out.usize(self.n_features)?;
        out.f64s(&self.prior)?;
        out.f64s(&self.mean)?;
        out.f64s(&self.variance)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let (n_features, parts) = read(input, |fields| {
            let (classes, n_features) = (fields.usizes(), fields.usize());
            let (prior, mean, variance) = (fields.f64s(), fields.f64s(), fields.f64s());
            (n_features, NaiveBayesParts { classes, prior, mean, variance })
        })?;
        let model = Self::from_parts(parts)?;
        checks::expect_len("mean", n_features, model.n_features)?;
        Ok(model)
    }

    /// The model that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[CLASSES, PRIOR, MEAN, VARIANCE])?;
        Self::from_parts(tensors.parts(|parts| NaiveBayesParts {
            classes: parts.counts(CLASSES),
            prior: parts.f64s(PRIOR),
            mean: parts.f64s(MEAN),
            variance: parts.f64s(VARIANCE),
        })?)
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let shape = [self.classes.len(), self.n_features];
        tensors.push_counts(CLASSES, self.classes.labels())?;
        tensors.push_f64(PRIOR, &shape[..1], &self.prior)?;
        tensors.push_f64(MEAN, &shape, &self.mean)?;
        tensors.push_f64(VARIANCE, &shape, &self.variance)
    }
}
