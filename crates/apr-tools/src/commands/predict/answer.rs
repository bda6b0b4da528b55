//! A model and the requested output.

use apr_models::{AnyModel, InputKind, Model as _, OutputKind, Predictions, Samples, Terms};

use crate::error::{CODE_NO_PREDICTION, Failure};
use crate::input::NamedModel;

/// A model that has the requested output.
pub(super) struct Asked<'k> {
    known: &'k NamedModel,
    /// Type of the samples.
    pub(super) input_kind: InputKind,
    wanted: OutputKind,
    terms: Option<Terms<'k>>,
}

impl<'k> Asked<'k> {
    /// Checks that the model has the output.
    ///
    /// # Errors
    ///
    /// If it has no predictions, or no probabilities and they are requested.
    pub(super) fn new(known: &'k NamedModel, wanted: OutputKind) -> Result<Self, Failure> {
        let model = &known.model;
        let capabilities = model.capabilities();
        let refused = |what: String| Failure::new(CODE_NO_PREDICTION, what);
        let Some(input_kind) = capabilities.input() else {
            return Err(refused(format!("a {} predicts nothing about rows", model.name())));
        };
        if !capabilities.supports(wanted) {
            let what = format!("a {} gives no {}", model.name(), wanted.name());
            return Err(refused(what).help("leave --proba out"));
        }
        Ok(Self { known, input_kind, wanted, terms: model.terms() })
    }

    /// Predicts this many rows or texts.
    ///
    /// # Errors
    ///
    /// Those of the model.
    pub(super) fn predict(
        &self,
        samples: Samples<'_>,
        n_samples: usize,
    ) -> Result<Predictions, apr_models::Error> {
        self.known.model.predict(samples, n_samples, self.wanted)
    }

    /// Predictions of no samples, which have the types of all others.
    ///
    /// # Errors
    ///
    /// Those of the model.
    #[cfg(feature = "tables")]
    pub(super) fn predict_nothing(&self) -> Result<Predictions, apr_models::Error> {
        self.known.model.predict_nothing(self.wanted)
    }

    /// The kind of the predictions, as in JSON.
    pub(super) fn kind(&self) -> Option<&'static str> {
        self.known.model.capabilities().prediction().map(apr_models::PredictionKind::name)
    }

    /// The term of that column.
    pub(super) fn term(&self, column: usize) -> &str {
        self.terms.as_ref().and_then(|terms| terms.get(column)).unwrap_or_default()
    }

    /// The model.
    pub(super) fn model(&self) -> &'k AnyModel {
        &self.known.model
    }
}
