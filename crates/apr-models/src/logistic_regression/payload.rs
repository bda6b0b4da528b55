//! Logistic regressions in payloads: optional list of coefficients, intercept, step, steps allowed, tolerance; since
//! layout 0.72 also class weights (alternatives uniform, balanced, manual with a list), penalty, and the way through
//! the samples (alternatives batch, stochastic, mini-batch with a size).
//!
//! A layout that lacks them is read as uniform, 0 and batch.

use apr_container::{Error, PayloadLayout, PayloadReader, PayloadWriter, ViewPayload};

use super::{FitMode, LogisticRegression, LogisticRegressionView};
use crate::linear::{Plane, PlaneView};
use crate::payload::fields::read;
use crate::payload::values::skip_list;
use crate::weighting::ClassWeight;

fn has_training(layout: PayloadLayout) -> bool {
    layout >= PayloadLayout::V0_72
}

stored_model! {
    /// Values that are not finite, and unfitted models, are accepted.
    LogisticRegression "LogisticRegression" [LogisticRegression]
    n_features: |model| model.plane.n_features();
    is_fitted: |model| model.is_fitted();
}

impl LogisticRegression {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        self.plane.encode(out)?;
        out.f32(self.learning_rate)?;
        out.usize(self.max_iter)?;
        out.f32(self.tol)?;
        if !has_training(out.layout()) {
            return Ok(());
        }
        match &self.class_weight {
            ClassWeight::Uniform => out.variant(0)?,
            ClassWeight::Balanced => out.variant(1)?,
            ClassWeight::Manual(weights) => {
                out.variant(2)?;
                out.f32s(weights)?;
            }
        }
        out.f32(self.l2_penalty)?;
        match self.fit_mode {
            FitMode::Batch => out.variant(0),
            FitMode::Stochastic => out.variant(1),
            FitMode::MiniBatch(size) => {
                out.variant(2)?;
                out.usize(size)
            }
        }
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let has_training = has_training(input.layout());
        read(input, |fields| {
            let mut model = Self {
                plane: Plane::decode(fields),
                learning_rate: fields.f32(),
                max_iter: fields.usize(),
                tol: fields.f32(),
                ..Self::new()
            };
            if has_training {
                model.class_weight = match fields.variant(3) {
                    0 => ClassWeight::Uniform,
                    1 => ClassWeight::Balanced,
                    _ => ClassWeight::Manual(fields.f32s()),
                };
                model.l2_penalty = fields.f32();
                model.fit_mode = match fields.variant(3) {
                    0 => FitMode::Batch,
                    1 => FitMode::Stochastic,
                    _ => FitMode::MiniBatch(fields.usize()),
                };
            }
            model
        })
    }
}

impl ViewPayload for LogisticRegression {
    type View<'data> = LogisticRegressionView<'data>;

    fn view_payload<'data>(
        input: &mut PayloadReader<'_>,
        payload: &'data [u8],
    ) -> Result<LogisticRegressionView<'data>, Error> {
        let plane = PlaneView::read(input, payload)?;
        skip_settings(input)?;
        Ok(LogisticRegressionView { plane })
    }
}

/// Skips the options of training: the rest of the payload after the plane.
fn skip_settings(input: &mut PayloadReader<'_>) -> Result<(), Error> {
    input.skip(16)?;
    if has_training(input.layout()) {
        if input.variant(3)? == 2 {
            skip_list(input, 4)?;
        }
        input.skip(4)?;
        if input.variant(3)? == 2 {
            input.skip(8)?;
        }
    }
    Ok(())
}
