//! Any step of a pipeline.

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::Error;
use crate::pipeline::gaussian::GaussianLogDensity;
use crate::pipeline::kernel::KernelStep;
use crate::pipeline::linear::LinearStep;
use crate::pipeline::neighbours::NeighboursStep;
use crate::pipeline::rows::Block;
use crate::pipeline::simple::{CentroidDistances, ScaleAdd, ShiftDivide, StepActivation};
use crate::pipeline::tf_idf_weights::TfIdfWeights;
use crate::pipeline::trees::TreesStep;

/// Shortest step: its number and two absent lists.
pub(crate) const STEP_LEN: u64 = 6;

/// A step of a pipeline, applied to each row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// `(x - shift) / divisor`.
    ShiftDivide(ShiftDivide),
    /// `x * scale + add`.
    ScaleAdd(ScaleAdd),
    /// Sums of weighted columns.
    Linear(LinearStep),
    /// A function of each value.
    Activation(StepActivation),
    /// Sums of the values of decision trees.
    Trees(TreesStep),
    /// Decision function of support vectors.
    Kernel(KernelStep),
    /// Predictions of the nearest stored samples.
    Neighbours(NeighboursStep),
    /// Euclidean distances from centroids.
    CentroidDistances(CentroidDistances),
    /// TF-IDF weights of terms.
    TfIdfWeights(TfIdfWeights),
    /// Natural logarithms of weighted normal densities.
    GaussianLogDensity(GaussianLogDensity),
}

impl Step {
    /// Its name in `docs/payloads.md`, section 21.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ShiftDivide(_) => "shift and divide",
            Self::ScaleAdd(_) => "scale and add",
            Self::Linear(_) => "linear",
            Self::Activation(_) => "activation",
            Self::Trees(_) => "trees",
            Self::Kernel(_) => "kernel",
            Self::Neighbours(_) => "neighbours",
            Self::CentroidDistances(_) => "centres",
            Self::TfIdfWeights(_) => "weigh",
            Self::GaussianLogDensity(_) => "normals",
        }
    }

    /// Values of a row after the step, if it fits rows of `width` before it.
    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        match self {
            Self::ShiftDivide(step) => step.n_outputs(width),
            Self::ScaleAdd(step) => step.n_outputs(width),
            Self::Linear(step) => step.n_outputs(width),
            Self::Activation(_) => Ok(width),
            Self::Trees(step) => step.n_outputs(width),
            Self::Kernel(step) => step.n_outputs(width),
            Self::Neighbours(step) => step.n_outputs(width),
            Self::CentroidDistances(step) => step.n_outputs(width),
            Self::TfIdfWeights(step) => step.n_outputs(width),
            Self::GaussianLogDensity(step) => step.n_outputs(width),
        }
    }

    /// Whether it works on sparse rows as they are; other steps get them dense.
    fn takes_sparse(&self) -> bool {
        match self {
            Self::ShiftDivide(step) => step.keeps_zeros(),
            Self::ScaleAdd(step) => step.keeps_zeros(),
            Self::Linear(_) | Self::TfIdfWeights(_) => true,
            Self::Kernel(step) => step.takes_sparse(),
            Self::Neighbours(step) => step.takes_sparse(),
            Self::Activation(_)
            | Self::Trees(_)
            | Self::CentroidDistances(_)
            | Self::GaussianLogDensity(_) => false,
        }
    }

    /// Whether sparse rows stay sparse.
    pub(crate) fn stays_sparse(&self) -> bool {
        match self {
            Self::ShiftDivide(_) | Self::ScaleAdd(_) | Self::TfIdfWeights(_) => self.takes_sparse(),
            _ => false,
        }
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        if !self.takes_sparse() {
            rows.make_dense();
        }
        match self {
            Self::ShiftDivide(step) => step.run(rows),
            Self::ScaleAdd(step) => step.run(rows),
            Self::Linear(step) => step.run(rows),
            Self::Activation(step) => step.run(rows),
            Self::Trees(step) => step.run(rows),
            Self::Kernel(step) => step.run(rows),
            Self::Neighbours(step) => step.run(rows),
            Self::CentroidDistances(step) => step.run(rows),
            Self::TfIdfWeights(step) => step.run(rows),
            Self::GaussianLogDensity(step) => step.run(rows),
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.variant(self.number())?;
        match self {
            Self::ShiftDivide(step) => step.encode(out),
            Self::ScaleAdd(step) => step.encode(out),
            Self::Linear(step) => step.encode(out),
            Self::Activation(step) => step.encode(out),
            Self::Trees(step) => step.encode(out),
            Self::Kernel(step) => step.encode(out),
            Self::Neighbours(step) => step.encode(out),
            Self::CentroidDistances(step) => step.encode(out),
            Self::TfIdfWeights(step) => step.encode(out),
            Self::GaussianLogDensity(step) => step.encode(out),
        }
    }

    /// Its number in files (`docs/payloads.md`, section 21).
    const fn number(&self) -> u32 {
        match self {
            Self::ShiftDivide(_) => 0,
            Self::ScaleAdd(_) => 1,
            Self::Linear(_) => 2,
            Self::Activation(_) => 3,
            Self::Trees(_) => 4,
            Self::Kernel(_) => 5,
            Self::Neighbours(_) => 6,
            Self::CentroidDistances(_) => 7,
            Self::TfIdfWeights(_) => 8,
            Self::GaussianLogDensity(_) => 9,
        }
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        Ok(match input.variant(10)? {
            0 => Self::ShiftDivide(ShiftDivide::decode(input)?),
            1 => Self::ScaleAdd(ScaleAdd::decode(input)?),
            2 => Self::Linear(LinearStep::decode(input)?),
            3 => Self::Activation(StepActivation::decode(input)?),
            4 => Self::Trees(TreesStep::decode(input)?),
            5 => Self::Kernel(KernelStep::decode(input)?),
            6 => Self::Neighbours(NeighboursStep::decode(input)?),
            7 => Self::CentroidDistances(CentroidDistances::decode(input)?),
            8 => Self::TfIdfWeights(TfIdfWeights::decode(input)?),
            _ => Self::GaussianLogDensity(GaussianLogDensity::decode(input)?),
        })
    }
}
