//! Gates: probabilities of the experts for a sample.

use alloc::vec::Vec;

use apr_container::{DecodePayload, EncodePayload, PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::payload::fields::read;
use crate::payload::values::skip_list;
use crate::tensors::Tensors;

/// Scores experts for a sample: the share of an expert is proportional to the exponential of its score.
pub trait GatingNetwork {
    /// Features of a sample.
    fn n_features(&self) -> usize;

    /// Experts.
    fn n_experts(&self) -> usize;

    /// Writes the score of each expert for a sample, which has [`n_features`](Self::n_features) values, into its place.
    fn scores_into(&self, row: &[f32], scores: &mut [f64]);

    /// The gate as named tensors.
    ///
    /// # Errors
    ///
    /// What [`Tensors`] refuses.
    fn to_tensors(&self) -> Result<Tensors, Error>;
}

/// Scores that are linear in the features, divided by a temperature: the lower it is, the less the experts share.
///
/// There is no intercept: a feature that is always 1 makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftmaxGating {
    n_features: usize,
    n_experts: usize,
    temperature: f32,
    /// Row by row: one row a feature, one column an expert.
    weights: Vec<f32>,
}

impl SoftmaxGating {
    /// A gate that is not trained, with small weights of a fixed pattern.
    #[must_use]
    pub fn new(n_features: usize, n_experts: usize) -> Self {
        let scale = libm::sqrt(2.0 / (n_features + n_experts).max(1) as f64);
        let weight =
            |(feature, expert): (usize, usize)| (scale * ((feature + expert) as f64 * 0.1 - 0.5)) as f32;
        let places = (0..n_features).flat_map(|feature| (0..n_experts).map(move |expert| (feature, expert)));
        Self { n_features, n_experts, temperature: 1.0, weights: places.map(weight).collect() }
    }

    /// A gate with these weights, row by row: one row a feature, one column an expert.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`], [`ErrorKind::PartNotFinite`], [`ErrorKind::PartInvalid`] for a temperature that is not
    /// a positive finite number.
    pub fn from_parts(
        n_features: usize,
        n_experts: usize,
        temperature: f32,
        weights: Vec<f32>,
    ) -> Result<Self, Error> {
        let expected = n_features.saturating_mul(n_experts);
        checks::expect_len(WEIGHTS, expected, weights.len())?;
        checks::expect_finite(WEIGHTS, &weights)?;
        if !(temperature.is_finite() && temperature > 0.0) {
            let problem = "a positive finite number is needed";
            return Err(ErrorKind::PartInvalid { part: TEMPERATURE, problem }.into());
        }
        Ok(Self { n_features, n_experts, temperature, weights })
    }

    /// The same gate with another temperature.
    #[must_use]
    pub const fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// What scores are divided by.
    #[must_use]
    pub const fn temperature(&self) -> f32 {
        self.temperature
    }

    /// The weights, row by row: one row a feature, one column an expert.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Reads the gate from named tensors: `weights` of one row a feature and one column an expert, and `temperature`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or malformed tensors, and all of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_only(&|name| [WEIGHTS, TEMPERATURE].contains(&name))?;
        let weights = tensors.matrix(WEIGHTS)?;
        let (n_features, n_experts) = weights.shape();
        Self::from_parts(n_features, n_experts, tensors.number(TEMPERATURE)?, weights.into_vec())
    }
}

const WEIGHTS: &str = "weights";
const TEMPERATURE: &str = "temperature";

impl GatingNetwork for SoftmaxGating {
    fn n_features(&self) -> usize {
        self.n_features
    }

    fn n_experts(&self) -> usize {
        self.n_experts
    }

    fn scores_into(&self, row: &[f32], scores: &mut [f64]) {
        scores.fill(0.0);
        for (&value, weights) in row.iter().zip(self.weights.chunks_exact(self.n_experts.max(1))) {
            for (score, &weight) in scores.iter_mut().zip(weights) {
                *score += f64::from(value) * f64::from(weight);
            }
        }
        scores.iter_mut().for_each(|score| *score /= f64::from(self.temperature));
    }

    fn to_tensors(&self) -> Result<Tensors, Error> {
        let mut tensors = Tensors::new();
        tensors.push_f32(WEIGHTS, &[self.n_features, self.n_experts], &self.weights)?;
        tensors.push_number(TEMPERATURE, self.temperature)?;
        Ok(tensors)
    }
}

/// Features, experts, temperature, list of weights.
impl EncodePayload for SoftmaxGating {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.n_features)?;
        out.usize(self.n_experts)?;
        out.f32(self.temperature)?;
        out.f32s(&self.weights)
    }
}

/// Values that are not finite are accepted.
impl DecodePayload for SoftmaxGating {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| {
            let (n_features, n_experts, temperature) = (fields.usize(), fields.usize(), fields.f32());
            let weights = fields.f32s();
            let fits = n_features.checked_mul(n_experts) == Some(weights.len());
            fields.check(fits, "a gate has a weight for each feature and expert");
            Self { n_features, n_experts, temperature, weights }
        })
    }

    fn skip_payload(input: &mut PayloadReader<'_>) -> Result<(), apr_container::Error> {
        input.skip(20)?;
        skip_list(input, 4)
    }
}
