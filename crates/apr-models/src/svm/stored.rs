//! A support vector machine as payload (`docs/payloads.md`, section 7) and as tensors.

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::payload::fields::{Fields, read};
use crate::payload::header;
use crate::svm::{KernelParts, LinearParts, Machine, Svm, SvmKernel};
use crate::tensors::Tensors;

const N_FORMS: u32 = 2;
const LINEAR: u32 = 1;
const KERNEL: u32 = 2;

const CLASSES: &str = "classes";
const WEIGHTS: &str = "weights";
const INTERCEPTS: &str = "intercepts";
const GAMMA: &str = "gamma";
const N_SUPPORT: &str = "n_support";
const SUPPORT_VECTORS: &str = "support_vectors";
const DUAL: &str = "dual";

stored_model! {
    Svm "Svm" [Svm]
    n_features: |model| Some(model.width());
}

impl Svm {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        match &self.machine {
            Machine::Linear(machine) => {
                header::write(out, LINEAR)?;
                self.classes.encode(out)?;
                out.usize(machine.weights.n_cols())?;
                out.f32s(machine.weights.as_slice())?;
                out.f32s(&machine.intercepts)
            }
            Machine::Kernel(machine) => {
                let parts = machine.parts();
                header::write(out, KERNEL)?;
                self.classes.encode(out)?;
                match parts.kernel {
                    SvmKernel::Linear => out.variant(0)?,
                    SvmKernel::Rbf { gamma } => {
                        out.variant(1)?;
                        out.f64(gamma)?;
                    }
                }
                out.usize(parts.support_vectors.n_cols())?;
                out.usizes(&parts.n_support)?;
                out.f32s(parts.support_vectors.as_slice())?;
                out.f64s(&parts.dual)?;
                out.f64s(&parts.intercepts)
            }
        }
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let form = header::read_form(input, N_FORMS)?;
        if form == LINEAR {
            let parts = read(input, |fields| {
                let (classes, n_features) = (fields.usizes(), fields.usize());
                LinearParts { classes, weights: table(n_features, fields), intercepts: fields.f32s() }
            })?;
            return Ok(Self::linear(parts)?);
        }
        let parts = read(input, |fields| {
            let classes = fields.usizes();
            let kernel = match fields.variant(2) {
                0 => SvmKernel::Linear,
                _ => SvmKernel::Rbf { gamma: fields.f64() },
            };
            let (n_features, n_support) = (fields.usize(), fields.usizes());
            let support_vectors = table(n_features, fields);
            let (dual, intercepts) = (fields.f64s(), fields.f64s());
            KernelParts { classes, kernel, n_support, support_vectors, dual, intercepts }
        })?;
        Ok(Self::kernel(parts)?)
    }

    /// The machine that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`linear`](Self::linear) and [`kernel`](Self::kernel).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        let classes = tensors.counts(CLASSES)?;
        if tensors.contains(WEIGHTS) {
            tensors.expect_parts(Self::NAME, &[CLASSES, WEIGHTS, INTERCEPTS])?;
            let (weights, intercepts) =
                tensors.parts(|parts| (parts.matrix(WEIGHTS), parts.vector(INTERCEPTS)))?;
            return Self::linear(LinearParts { classes, weights, intercepts });
        }
        tensors.expect_parts(Self::NAME, &[CLASSES, GAMMA, N_SUPPORT, SUPPORT_VECTORS, DUAL, INTERCEPTS])?;
        let kernel = match tensors.optional(GAMMA, Tensors::f64s)?.as_deref() {
            None => SvmKernel::Linear,
            Some(&[gamma]) => SvmKernel::Rbf { gamma },
            Some(_) => {
                return Err(ErrorKind::PartInvalid { part: GAMMA, problem: "must be one number" }.into());
            }
        };
        Self::kernel(tensors.parts(|parts| KernelParts {
            classes,
            kernel,
            n_support: parts.counts(N_SUPPORT),
            support_vectors: parts.matrix(SUPPORT_VECTORS),
            dual: parts.f64s(DUAL),
            intercepts: parts.f64s(INTERCEPTS),
        })?)
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_counts(CLASSES, self.classes())?;
        match &self.machine {
            Machine::Linear(machine) => {
                let shape = [machine.weights.n_rows(), machine.weights.n_cols()];
                tensors.push_f32(WEIGHTS, &shape, machine.weights.as_slice())?;
                tensors.push_f32(INTERCEPTS, &shape[..1], &machine.intercepts)?;
            }
            Machine::Kernel(machine) => {
                let parts = machine.parts();
                let (n_vectors, n_features) = parts.support_vectors.shape();
                if let SvmKernel::Rbf { gamma } = parts.kernel {
                    tensors.push_f64(GAMMA, &[1], &[gamma])?;
                }
                tensors.push_counts(N_SUPPORT, &parts.n_support)?;
                tensors.push_f32(
                    SUPPORT_VECTORS,
                    &[n_vectors, n_features],
                    parts.support_vectors.as_slice(),
                )?;
                tensors.push_f64(DUAL, &[self.classes.len() - 1, n_vectors], &parts.dual)?;
                tensors.push_f64(INTERCEPTS, &[parts.intercepts.len()], &parts.intercepts)?;
            }
        }
        Ok(())
    }
}

/// A table of that many columns.
fn table(n_cols: usize, fields: &mut Fields<'_, '_>) -> Matrix {
    let values = fields.f32s();
    // A rest, or no columns, is refused as a wrong length.
    let n_rows = values.len().checked_div(n_cols).unwrap_or(0);
    fields.matrix_of(n_rows, n_cols, values)
}
