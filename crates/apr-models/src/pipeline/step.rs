//! Any step of a pipeline.

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::Error;
use crate::pipeline::columns::Columns;
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

/// Declares the steps: number in files, name in `docs/payloads.md`, section 21, variant and type.
macro_rules! steps {
    ($($(#[$doc:meta])* $number:literal $name:literal $variant:ident($step:ty);)*) => {
        /// A step of a pipeline, applied to each row.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Step {
            $($(#[$doc])* $variant($step),)*
        }

        impl Step {
            /// Its name in `docs/payloads.md`, section 21.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Values of a row after the step, if it fits rows of `width` before it.
            pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
                match self {
                    $(Self::$variant(step) => step.n_outputs(width),)*
                }
            }

            pub(crate) fn run(&self, rows: &mut Block<'_>) {
                if !self.takes_sparse() {
                    rows.make_dense();
                }
                match self {
                    $(Self::$variant(step) => step.run(rows),)*
                }
            }

            pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
                match self {
                    $(Self::$variant(step) => {
                        out.variant($number)?;
                        step.encode(out)
                    })*
                }
            }

            pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
                match input.variant([$($name),*].len() as u32)? {
                    $($number => <$step>::decode(input).map(Self::$variant),)*
                    _ => Err(input.invalid("a step of a pipeline that does not exist")),
                }
            }
        }
    };
}

steps! {
    /// `(x - shift) / divisor`.
    0 "shift and divide" ShiftDivide(ShiftDivide);
    /// `x * scale + add`.
    1 "scale and add" ScaleAdd(ScaleAdd);
    /// Sums of weighted columns.
    2 "linear" Linear(LinearStep);
    /// A function of each value.
    3 "activation" Activation(StepActivation);
    /// Sums of the values of decision trees.
    4 "trees" Trees(TreesStep);
    /// Decision function of support vectors.
    5 "kernel" Kernel(KernelStep);
    /// Predictions of the nearest stored samples.
    6 "neighbours" Neighbours(NeighboursStep);
    /// Euclidean distances from centroids.
    7 "centres" CentroidDistances(CentroidDistances);
    /// TF-IDF weights of terms.
    8 "weigh" TfIdfWeights(TfIdfWeights);
    /// Natural logarithms of weighted normal densities.
    9 "normals" GaussianLogDensity(GaussianLogDensity);
    /// Columns chosen, filled and compared.
    10 "columns" Columns(Columns);
}

impl Step {
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
            | Self::GaussianLogDensity(_)
            | Self::Columns(_) => false,
        }
    }

    /// Whether sparse rows stay sparse.
    pub(crate) fn stays_sparse(&self) -> bool {
        match self {
            Self::ShiftDivide(_) | Self::ScaleAdd(_) | Self::TfIdfWeights(_) => self.takes_sparse(),
            _ => false,
        }
    }
}
