//! A projection as payload (`docs/payloads.md`, section 4) and as tensors.

use apr_container::{DecodePayload, EncodePayload, ModelType, PayloadReader, PayloadWriter};

use crate::error::Error;
use crate::model::Model;
use crate::payload::fields::read;
use crate::payload::header;
use crate::pca::{Pca, PcaParts, PcaScaling};
use crate::tensors::Tensors;

const N_FORMS: u32 = 1;

const NAME: &str = "Pca";
const MEAN: &str = "mean";
const COMPONENTS: &str = "components";
const VARIANCE: &str = "explained_variance";
const RATIO: &str = "explained_variance_ratio";
const WHITEN: &str = "whiten";

impl EncodePayload for Pca {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::Pca);

    fn model_name(&self) -> Option<&str> {
        Some(NAME)
    }

    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        let parts = self.parts();
        header::write(out, 1)?;
        out.usize(parts.components.n_cols())?;
        out.usize(parts.components.n_rows())?;
        out.bool(parts.scaling == PcaScaling::Whiten)?;
        out.f32s(&parts.mean)?;
        out.f32s(parts.components.as_slice())?;
        out.f32s(&parts.explained_variance)?;
        out.f32s(&parts.explained_variance_ratio)
    }
}

impl DecodePayload for Pca {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::Pca);

    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        header::expect_form(input, 1, N_FORMS)?;
        Self::decode_fields(input)
    }
}

impl Pca {
    /// Reads what follows the head.
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
        tensors.expect_parts(NAME, &[MEAN, COMPONENTS, VARIANCE, RATIO, WHITEN])?;
        Self::from_parts(tensors.parts(|parts| PcaParts {
            mean: parts.vector(MEAN),
            components: parts.matrix(COMPONENTS),
            explained_variance: parts.vector(VARIANCE),
            explained_variance_ratio: parts.vector(RATIO),
            scaling: scaling_of(parts.integer(WHITEN) != 0),
        })?)
    }
}

impl Model for Pca {
    fn name(&self) -> &'static str {
        NAME
    }

    fn model_type(&self) -> ModelType {
        ModelType::Pca
    }

    fn n_features(&self) -> Option<usize> {
        Some(self.components().n_cols())
    }

    fn to_tensors(&self) -> Result<Tensors, Error> {
        let parts = self.parts();
        let (n_components, n_features) = parts.components.shape();
        Tensors::made(NAME, &|tensors| {
            tensors.push_f32(MEAN, &[n_features], &parts.mean)?;
            tensors.push_f32(COMPONENTS, &[n_components, n_features], parts.components.as_slice())?;
            tensors.push_f32(VARIANCE, &[n_components], &parts.explained_variance)?;
            tensors.push_f32(RATIO, &[n_components], &parts.explained_variance_ratio)?;
            tensors.push_integers(WHITEN, &[1], &[(parts.scaling == PcaScaling::Whiten).into()])?;
            Ok(())
        })
    }
}

const fn scaling_of(whiten: bool) -> PcaScaling {
    match whiten {
        true => PcaScaling::Whiten,
        false => PcaScaling::Keep,
    }
}
