//! A projection as payload (`docs/payloads.md`, section 4) and as tensors.

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::Error;
use crate::payload::fields::read;
use crate::pca::{Pca, PcaParts, PcaScaling};
use crate::tensors::Tensors;

const MEAN: &str = "mean";
const COMPONENTS: &str = "components";
const VARIANCE: &str = "explained_variance";
const RATIO: &str = "explained_variance_ratio";
const WHITEN: &str = "whiten";

stored_model! {
    Pca "Pca" [Pca] form 1 of 1
    n_features: |model| Some(model.components().n_cols());
}

impl Pca {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        let parts = self.parts();
        out.usize(parts.components.n_cols())?;
        out.usize(parts.components.n_rows())?;
        out.bool(parts.scaling == PcaScaling::Whiten)?;
        out.f32s(&parts.mean)?;
        out.f32s(parts.components.as_slice())?;
        out.f32s(&parts.explained_variance)?;
        out.f32s(&parts.explained_variance_ratio)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let parts = read(input, |fields| {
            let (n_features, n_components) = (fields.usize(), fields.usize());
            let scaling = scaling_of(fields.bool());
            let (mean, components) = (fields.f32s(), fields.f32s());
            PcaParts {
                mean,
                components: fields.matrix_of(n_components, n_features, components),
                explained_variance: fields.f32s(),
                explained_variance_ratio: fields.f32s(),
                scaling,
            }
        })?;
        Ok(Self::from_parts(parts)?)
    }

    /// The projection that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[MEAN, COMPONENTS, VARIANCE, RATIO, WHITEN])?;
        Self::from_parts(tensors.parts(|parts| PcaParts {
            mean: parts.vector(MEAN),
            components: parts.matrix(COMPONENTS),
            explained_variance: parts.vector(VARIANCE),
            explained_variance_ratio: parts.vector(RATIO),
            scaling: scaling_of(parts.integer(WHITEN) != 0),
        })?)
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let parts = self.parts();
        let (n_components, n_features) = parts.components.shape();
        tensors.push_f32(MEAN, &[n_features], &parts.mean)?;
        tensors.push_f32(COMPONENTS, &[n_components, n_features], parts.components.as_slice())?;
        tensors.push_f32(VARIANCE, &[n_components], &parts.explained_variance)?;
        tensors.push_f32(RATIO, &[n_components], &parts.explained_variance_ratio)?;
        tensors.push_integers(WHITEN, &[1], &[(parts.scaling == PcaScaling::Whiten).into()])
    }
}

const fn scaling_of(whiten: bool) -> PcaScaling {
    match whiten {
        true => PcaScaling::Whiten,
        false => PcaScaling::Keep,
    }
}
