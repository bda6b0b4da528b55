//! Mixtures of experts: models and a gate that selects among them.

use alloc::vec;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::path::Path;

use apr_container::ModelType;
#[cfg(feature = "std")]
use apr_container::{DecodePayload, EncodePayload, SaveOptions};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::linear_regression::LinearRegression;
use crate::model::{Model, Regressor, check_rows};
use crate::tensors::Tensors;

mod gating;
mod payload;
mod fit;

pub use self::fit::{MoeTraining, WeightedRegressor};
pub use self::gating::{GatingNetwork, SoftmaxGating};

/// Number of experts whose scores are kept on the stack.
const FEW: usize = 64;

/// Configuration of the experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeConfig {
    /// Experts that predict a sample: those of the largest scores. A number above `n_experts` means all.
    pub top_k: usize,
    /// Capacity of an expert as a multiple of an even distribution. Stored, not used here.
    pub capacity_factor: f32,
    /// Share of experts left out at random in training elsewhere. Stored, not used here.
    pub expert_dropout: f32,
    /// Weight of evenness in training elsewhere. Stored, not used here.
    pub load_balance_weight: f32,
}

/// One expert a sample.
impl Default for MoeConfig {
    fn default() -> Self {
        Self { top_k: 1, capacity_factor: 1.0, expert_dropout: 0.0, load_balance_weight: 0.01 }
    }
}

impl MoeConfig {
    /// Sets the number of experts per sample.
    #[must_use]
    pub const fn with_top_k(mut self, top_k: usize) -> Self {
        self.top_k = top_k;
        self
    }

    /// Sets the capacity factor.
    #[must_use]
    pub const fn with_capacity_factor(mut self, factor: f32) -> Self {
        self.capacity_factor = factor;
        self
    }

    /// With this share of experts left out in training elsewhere.
    #[must_use]
    pub const fn with_expert_dropout(mut self, dropout: f32) -> Self {
        self.expert_dropout = dropout;
        self
    }

    /// With this weight of evenness in training elsewhere.
    #[must_use]
    pub const fn with_load_balance_weight(mut self, weight: f32) -> Self {
        self.load_balance_weight = weight;
        self
    }
}

/// Mixture of experts (Jacobs, Jordan, Nowlan and Hinton, Neural Computation 3, 1991) with top-k gating (Shazeer et
/// al., ICLR 2017): the mean of the predictions of the `top_k` experts of the largest scores, the first ones in a
/// tie, weighted by the softmax of those scores.
///
/// ```
/// use apr_models::{LinearRegression, MixtureOfExperts, MoeConfig, Regressor, SoftmaxGating, Vector};
///
/// let expert = |slope: f32| LinearRegression::from_parts(Vector::from_vec(vec![slope, 0.0]), 0.0);
/// let moe = MixtureOfExperts::builder()
///     .gating(SoftmaxGating::from_parts(2, 2, 0.1, vec![1.0, -1.0, 0.0, 0.0])?)
///     .expert(expert(1.0)?)
///     .expert(expert(-1.0)?)
///     .config(MoeConfig::default().with_top_k(1))
///     .build()?;
///
/// // The first expert is selected where the first feature is positive: together they compute its absolute value.
/// let mut out = [0.0; 2];
/// moe.predict_into(&[3.0, 1.0, -4.0, 1.0], &mut out)?;
/// assert_eq!(out, [3.0, 4.0]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureOfExperts<E, G = SoftmaxGating> {
    experts: Vec<E>,
    gating: G,
    config: MoeConfig,
}

impl<E, G> MixtureOfExperts<E, G> {
    /// Starts to collect the parts.
    #[must_use]
    pub fn builder() -> MoeBuilder<E, G> {
        MoeBuilder { experts: Vec::new(), gating: None, config: MoeConfig::default() }
    }

    /// Number of experts.
    #[must_use]
    pub const fn n_experts(&self) -> usize {
        self.experts.len()
    }

    /// The experts.
    #[must_use]
    pub fn experts(&self) -> &[E] {
        &self.experts
    }

    /// The gate.
    #[must_use]
    pub const fn gating(&self) -> &G {
        &self.gating
    }

    /// Configuration of the experts.
    #[must_use]
    pub const fn config(&self) -> &MoeConfig {
        &self.config
    }
}

/// The parts of a [`MixtureOfExperts`] so far.
#[derive(Clone, Debug)]
pub struct MoeBuilder<E, G> {
    experts: Vec<E>,
    gating: Option<G>,
    config: MoeConfig,
}

impl<E: Model, G: GatingNetwork> MoeBuilder<E, G> {
    /// With this gate.
    #[must_use]
    pub fn gating(mut self, gating: G) -> Self {
        self.gating = Some(gating);
        self
    }

    /// With this expert after those given before.
    #[must_use]
    pub fn expert(mut self, expert: E) -> Self {
        self.experts.push(expert);
        self
    }

    /// Sets how experts are selected.
    #[must_use]
    pub fn config(mut self, config: MoeConfig) -> Self {
        self.config = config;
        self
    }

    /// The model, if its parts fit together.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] without a gate or an expert, for a `top_k` of 0, or if experts and gate disagree about
    /// the number of features; [`ErrorKind::PartLength`] if the gate is for another number of experts.
    pub fn build(self) -> Result<MixtureOfExperts<E, G>, Error> {
        let invalid = |part, problem| Error::from(ErrorKind::PartInvalid { part, problem });
        let gating = self.gating.ok_or_else(|| invalid("gating", "a gate is needed"))?;
        if self.experts.is_empty() {
            return Err(invalid(EXPERTS, "at least one is needed"));
        }
        if self.config.top_k == 0 {
            return Err(invalid("top_k", "at least 1 is needed"));
        }
        if self.experts.iter().filter_map(Model::n_features).any(|found| found != gating.n_features()) {
            return Err(invalid(EXPERTS, "the gate is for another number of features"));
        }
        let (expected, found) = (gating.n_experts(), self.experts.len());
        checks::expect_len(EXPERTS, expected, found)?;
        Ok(MixtureOfExperts { experts: self.experts, gating, config: self.config })
    }
}

impl<E: Regressor, G: GatingNetwork> MixtureOfExperts<E, G> {
    /// The softmax weights of all experts for a sample `row` (`[n_features]`): `[n_experts]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`].
    pub fn routing_weights(&self, row: &[f32]) -> Result<Vec<f32>, Error> {
        check_rows(row, 1, self.gating.n_features())?;
        let mut scores = vec![0.0; self.n_experts()];
        self.gating.scores_into(row, &mut scores);
        let greatest = scores.iter().fold(f64::NEG_INFINITY, |greatest, &score| greatest.max(score));
        scores.iter_mut().for_each(|score| *score = libm::exp(*score - greatest));
        let sum: f64 = scores.iter().sum();
        Ok(scores.iter().map(|weight| (weight / sum) as f32).collect())
    }

    /// Predicts with the experts of the largest scores; modifies the scores.
    fn ask(&self, row: &[f32], scores: &mut [f64]) -> Result<f32, Error> {
        self.gating.scores_into(row, scores);
        let (mut sum, mut total, mut greatest) = (0.0, 0.0, None);
        for _ in 0..self.config.top_k.min(self.experts.len()) {
            let mut best: Option<(usize, f64)> = None;
            for (idx, &score) in scores.iter().enumerate() {
                // Asked experts are marked by minus infinity; a score that is not a number is the least.
                if best.is_none_or(|(_, best)| score > best || best.is_nan() && !score.is_nan()) {
                    best = Some((idx, score));
                }
            }
            let Some((idx, score)) = best else { break };
            let greatest = *greatest.get_or_insert(score);
            scores[idx] = f64::NEG_INFINITY;
            // The first one asked has the weight 1, also if its score is infinite.
            let weight = if total == 0.0 { 1.0 } else { libm::exp(score - greatest) };
            let mut prediction = [0.0];
            self.experts[idx].predict_into(row, &mut prediction)?;
            // A weight of 0 must not make something of a prediction that is infinite.
            if weight != 0.0 {
                sum += weight * f64::from(prediction[0]);
                total += weight;
            }
        }
        Ok((sum / total) as f32)
    }
}

/// Only mixtures of more than 64 experts allocate, once for each call.
impl<E: Regressor, G: GatingNetwork> Regressor for MixtureOfExperts<E, G> {
    fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_features = self.gating.n_features();
        check_rows(rows, out.len(), n_features)?;
        let mut few = [0.0; FEW];
        let mut many = Vec::new();
        let scores = match few.get_mut(..self.n_experts()) {
            Some(scores) => scores,
            None => {
                many.resize(self.n_experts(), 0.0);
                &mut many
            }
        };
        for (idx, place) in out.iter_mut().enumerate() {
            let row = rows.get(idx * n_features..(idx + 1) * n_features).unwrap_or_default();
            *place = self.ask(row, scores)?;
        }
        Ok(())
    }
}

impl<E: Model, G: GatingNetwork> Model for MixtureOfExperts<E, G> {
    fn name(&self) -> &'static str {
        "MixtureOfExperts"
    }

    fn model_type(&self) -> ModelType {
        ModelType::MixtureOfExperts
    }

    fn n_features(&self) -> Option<usize> {
        Some(self.gating.n_features())
    }

    fn to_tensors(&self) -> Result<Tensors, Error> {
        Tensors::made(self.name(), &|tensors| {
            for (idx, expert) in self.experts.iter().enumerate() {
                tensors.append(&expert_prefix(idx), &expert.to_tensors()?)?;
            }
            tensors.append(GATING, &self.gating.to_tensors()?)?;
            tensors.push_count(TOP_K, self.config.top_k)?;
            tensors.push_number(CAPACITY_FACTOR, self.config.capacity_factor)?;
            tensors.push_number(EXPERT_DROPOUT, self.config.expert_dropout)?;
            tensors.push_number(LOAD_BALANCE_WEIGHT, self.config.load_balance_weight)?;
            Ok(())
        })
    }
}

impl MixtureOfExperts<LinearRegression> {
    /// Reads the model from named tensors: those of each linear regression after `expert_0.`, `expert_1.` and so on,
    /// `gating.weights`, `gating.temperature`, `top_k`, `capacity_factor`, `expert_dropout`, `load_balance_weight`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`MoeBuilder::build`].
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model("MixtureOfExperts")?;
        let mut builder = Self::builder().gating(SoftmaxGating::from_tensors(&tensors.part(GATING))?);
        for idx in 0.. {
            let expert = tensors.part(&expert_prefix(idx));
            if expert.is_empty() {
                break;
            }
            builder = builder.expert(LinearRegression::from_tensors(&expert)?);
        }
        let settings = [TOP_K, CAPACITY_FACTOR, EXPERT_DROPOUT, LOAD_BALANCE_WEIGHT];
        tensors.expect_only(&|name| {
            let expert = name.strip_prefix("expert_").and_then(|rest| rest.split_once('.'));
            let is_expert = expert.is_some_and(|(idx, _)| {
                idx.parse().is_ok_and(|idx: usize| {
                    idx < builder.experts.len() && name.starts_with(&expert_prefix(idx))
                })
            });
            is_expert || name.starts_with(GATING) || settings.contains(&name)
        })?;
        let config = tensors.parts(|parts| MoeConfig {
            top_k: parts.count(TOP_K),
            capacity_factor: parts.number(CAPACITY_FACTOR),
            expert_dropout: parts.number(EXPERT_DROPOUT),
            load_balance_weight: parts.number(LOAD_BALANCE_WEIGHT),
        })?;
        builder.config(config).build()
    }
}

#[cfg(feature = "std")]
impl<E, G> MixtureOfExperts<E, G>
where
    E: Model + EncodePayload + DecodePayload,
    G: GatingNetwork + EncodePayload + DecodePayload,
{
    /// Saves gate, experts and configuration as one `.apr` file; [`apr_container::save`] with more options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`].
    pub fn save_apr(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        Ok(apr_container::save(self, ModelType::MixtureOfExperts, path, SaveOptions::default())?)
    }

    /// Loads what [`save_apr`](Self::save_apr) saved.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(apr_container::load(path, ModelType::MixtureOfExperts)?)
    }
}

fn expert_prefix(idx: usize) -> alloc::string::String {
    alloc::format!("expert_{idx}.")
}

const EXPERTS: &str = "experts";
const GATING: &str = "gating.";
const TOP_K: &str = "top_k";
const CAPACITY_FACTOR: &str = "capacity_factor";
const EXPERT_DROPOUT: &str = "expert_dropout";
const LOAD_BALANCE_WEIGHT: &str = "load_balance_weight";
