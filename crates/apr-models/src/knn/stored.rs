//! Nearest neighbours as payload (`docs/payloads.md`, section 6) and as tensors.

use apr_container::{PayloadReader, PayloadWriter};

use crate::classes::Classes;
use crate::error::Error;
use crate::knn::neighbours::Neighbours;
use crate::knn::{KnnClassifier, KnnRegressor, KnnWeights};
use crate::payload::fields::read;
use crate::payload::variants;
use crate::tensors::Tensors;
use crate::vector::Vector;

const N_FORMS: u32 = 2;
const CLASSIFIER: u32 = 1;
const REGRESSOR: u32 = 2;

const K: &str = "k";
const WEIGHTS: &str = "weights";
const SAMPLES: &str = "samples";
const CLASSES: &str = "classes";
const TARGETS: &str = "targets";

variants!(KnnWeights: Uniform Distance);

impl Neighbours {
    fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.k)?;
        out.variant(self.weights.variant())?;
        out.usize(self.samples.n_cols())?;
        out.f32s(self.samples.as_slice())
    }

    fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let (k, weights, samples) = read(input, |fields| {
            let (k, weights) = (fields.usize(), KnnWeights::of_variant(fields.variant(2).into()));
            let (n_features, samples) = (fields.usize(), fields.f32s());
            // A rest, or no features, is refused as a wrong length.
            let n_rows = samples.len().checked_div(n_features).unwrap_or(0);
            (k, weights.unwrap_or_default(), fields.matrix_of(n_rows, n_features, samples))
        })?;
        Ok(Self::new(samples, k, weights)?)
    }

    fn push_to(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let (n_rows, n_features) = self.samples.shape();
        tensors.push_count(K, self.k)?;
        tensors.push_integers(WEIGHTS, &[1], &[self.weights.variant().into()])?;
        tensors.push_f32(SAMPLES, &[n_rows, n_features], self.samples.as_slice())
    }

    fn take_from(tensors: &Tensors) -> Result<Self, Error> {
        let (weights, samples, k) = tensors.parts(|parts| {
            let weights = parts.integer(WEIGHTS);
            parts.check(WEIGHTS, weights <= 1, "must be 0 (uniform) or 1 (by distance)");
            (KnnWeights::of_variant(weights).unwrap_or_default(), parts.matrix(SAMPLES), parts.count(K))
        })?;
        Self::new(samples, k, weights)
    }
}

stored_model! {
    KnnClassifier "KnnClassifier" [Knn] form CLASSIFIER of N_FORMS
    n_features: |model| Some(model.samples().n_cols());
}

impl KnnClassifier {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.neighbours.encode(out)?;
        self.classes.encode(out)?;
        out.u32s(&self.class_of)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let neighbours = Neighbours::decode(input)?;
        let classes = Classes::decode(input, 1)?;
        Ok(Self::from_parts(neighbours, classes, input.u32s()?)?)
    }

    /// The model that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`fit`](Self::fit).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[K, WEIGHTS, SAMPLES, CLASSES, TARGETS])?;
        let classes = Classes::from_labels(tensors.counts(CLASSES)?, 1)?;
        // A place beyond 32 bits is beyond the classes too.
        let class_of = tensors.parts(|parts| parts.places(TARGETS))?;
        Self::from_parts(Neighbours::take_from(tensors)?, classes, class_of)
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.neighbours.push_to(tensors)?;
        tensors.push_counts(CLASSES, self.classes.labels())?;
        let places: alloc::vec::Vec<u64> = self.class_of.iter().copied().map(u64::from).collect();
        tensors.push_integers(TARGETS, &[places.len()], &places)
    }
}

stored_model! {
    KnnRegressor "KnnRegressor" [Knn] form REGRESSOR of N_FORMS
    n_features: |model| Some(model.samples().n_cols());
}

impl KnnRegressor {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.neighbours.encode(out)?;
        out.f32s(self.targets.as_slice())
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let neighbours = Neighbours::decode(input)?;
        Ok(Self::from_parts(neighbours, Vector::from_vec(input.f32s()?))?)
    }

    /// The model that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`fit`](Self::fit).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[K, WEIGHTS, SAMPLES, TARGETS])?;
        Self::from_parts(Neighbours::take_from(tensors)?, Vector::from_vec(tensors.vector(TARGETS)?))
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.neighbours.push_to(tensors)?;
        tensors.push_f32(TARGETS, &[self.targets.len()], self.targets.as_slice())
    }
}
