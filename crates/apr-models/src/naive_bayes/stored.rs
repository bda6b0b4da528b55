//! A Gaussian naive Bayes as payload (`docs/payloads.md`, section 5) and as tensors.

use apr_container::{DecodePayload, EncodePayload, ModelType, PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::model::Model;
use crate::naive_bayes::{NaiveBayes, NaiveBayesParts};
use crate::payload::fields::read;
use crate::payload::header;
use crate::tensors::Tensors;

const N_FORMS: u32 = 1;

const NAME: &str = "NaiveBayes";
const CLASSES: &str = "classes";
const PRIOR: &str = "prior";
const MEAN: &str = "mean";
const VARIANCE: &str = "variance";

impl EncodePayload for NaiveBayes {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::NaiveBayes);

    fn model_name(&self) -> Option<&str> {
        Some(NAME)
    }

    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        header::write(out, 1)?;
        self.classes.encode(out)?;
        out.usize(self.n_features)?;
        out.f64s(&self.prior)?;
        out.f64s(&self.mean)?;
        out.f64s(&self.variance)
    }
}

impl DecodePayload for NaiveBayes {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::NaiveBayes);

    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        header::expect_form(input, 1, N_FORMS)?;
        Self::decode_fields(input)
    }
}

impl NaiveBayes {
    /// Reads what follows the head.
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
        tensors.expect_parts(NAME, &[CLASSES, PRIOR, MEAN, VARIANCE])?;
        Self::from_parts(tensors.parts(|parts| NaiveBayesParts {
            classes: parts.counts(CLASSES),
            prior: parts.f64s(PRIOR),
            mean: parts.f64s(MEAN),
            variance: parts.f64s(VARIANCE),
        })?)
    }
}

impl Model for NaiveBayes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn model_type(&self) -> ModelType {
        ModelType::NaiveBayes
    }

    fn n_features(&self) -> Option<usize> {
        Some(self.n_features)
    }

    fn to_tensors(&self) -> Result<Tensors, Error> {
        let shape = [self.classes.len(), self.n_features];
        Tensors::made(NAME, &|tensors| {
            tensors.push_counts(CLASSES, self.classes.labels())?;
            tensors.push_f64(PRIOR, &shape[..1], &self.prior)?;
            tensors.push_f64(MEAN, &shape, &self.mean)?;
            tensors.push_f64(VARIANCE, &shape, &self.variance)?;
            Ok(())
        })
    }
}
