//! The outputs of a pipeline as [`Predictions`].

use alloc::vec;
use alloc::vec::Vec;

use super::{Accepts, ClusterRule, Head, Input, Link, Pipeline, Samples, Step, ValueKind};
use crate::error::{Error, ErrorKind};
use crate::matrix::{Matrix, zeros};
use crate::predictions::{
    Capabilities, Floats, InputKind, OutputKind, PredictionKind, Predictions, TermWeights,
};

impl Pipeline {
    /// The outputs and the input that the pipeline supports.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let (input, accepts, n_features) = match &self.input {
            Input::Numbers { n_features, accepts } => (InputKind::F64, *accepts, Some(*n_features)),
            Input::Texts(_) => (InputKind::Text, Accepts::Finite, None),
        };
        Capabilities {
            input: Some(input),
            accepts,
            n_features,
            prediction: Some(self.prediction_kind()),
            probabilities: self.n_probabilities().is_some(),
            decision_function: self.n_decisions().is_some(),
            score_samples: self.has_score_samples(),
            transform: match &self.head {
                Head::Values { kind, .. } => *kind == ValueKind::Transformed,
                head => *head == Head::Clusters(ClusterRule::ArgMin),
            },
        }
    }

    fn prediction_kind(&self) -> PredictionKind {
        match &self.head {
            Head::Values { .. } if self.gives_terms() => PredictionKind::Terms,
            Head::Values { kind: ValueKind::Predictions, .. } if self.n_outputs == 1 => PredictionKind::Value,
            Head::Values { .. } => PredictionKind::Row,
            Head::Outliers(_) => PredictionKind::Outlier,
            Head::Classes(_) | Head::Clusters(_) => PredictionKind::Class,
        }
    }

    /// Whether its outputs stay sparse: a vectorizer, alone or with weights of terms.
    pub(super) fn gives_terms(&self) -> bool {
        matches!((&self.input, &self.head), (Input::Texts(_), Head::Values { link: Link::None, .. }))
            && self.steps.iter().all(Step::stays_sparse)
    }

    /// Predicts `n_samples` samples: numbers as rows `[n_samples, n_features]`, row-major.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSuchOutput`], [`ErrorKind::InputLength`], [`ErrorKind::FeatureCount`],
    /// [`ErrorKind::FeatureNotFinite`], [`ErrorKind::BeyondSingle`], [`ErrorKind::MatrixTooLarge`];
    /// [`ErrorKind::PartInvalid`] for samples of another type.
    pub fn predict(
        &self,
        samples: Samples<'_>,
        n_samples: usize,
        output: OutputKind,
    ) -> Result<Predictions, Error> {
        match output {
            OutputKind::Predictions => self.predictions(samples, n_samples),
            OutputKind::Probabilities => {
                let n_columns = self.head.n_probabilities(self.n_outputs)?;
                let classes = self.indices(samples, n_samples)?;
                let mut values = zeros(n_samples, n_columns)?;
                self.predict_proba_into(samples, &mut values)?;
                Ok(Predictions::Probabilities { classes, values: Floats::F64(values), n_columns })
            }
            OutputKind::DecisionFunction => {
                let n_columns = self.head.n_decisions(self.n_outputs)?;
                let mut values = zeros(n_samples, n_columns)?;
                self.decision_function_into(samples, &mut values)?;
                Ok(match n_columns {
                    1 => Predictions::Values(Floats::F64(values)),
                    _ => Predictions::Rows { values: Floats::F64(values), n_columns },
                })
            }
            OutputKind::ScoreSamples => {
                let mut values = vec![0.0; n_samples];
                self.score_samples_into(samples, &mut values)?;
                Ok(Predictions::Values(Floats::F64(values)))
            }
            OutputKind::Transformed if self.capabilities().supports(output) => self.rows(samples, n_samples),
            OutputKind::Transformed => Err(ErrorKind::NoSuchOutput { output: output.name() }.into()),
        }
    }

    /// Predicts, or transforms, each row of `x`: `[n_samples, n_features]`.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict).
    pub fn try_predict(&self, x: &Matrix) -> Result<Predictions, Error> {
        self.predict(Samples::F32(x.as_slice()), x.n_rows(), OutputKind::Predictions)
    }

    fn predictions(&self, samples: Samples<'_>, n_samples: usize) -> Result<Predictions, Error> {
        match &self.head {
            Head::Values { kind, .. } => {
                if let Samples::Text(texts) = samples
                    && self.gives_terms()
                {
                    return Ok(Predictions::Terms(TermWeights::F64(self.transform_texts(texts)?)));
                }
                match (self.rows(samples, n_samples)?, kind) {
                    (Predictions::Rows { values, n_columns: 1 }, ValueKind::Predictions) => {
                        Ok(Predictions::Values(values))
                    }
                    (rows, _) => Ok(rows),
                }
            }
            Head::Outliers(_) => {
                let indices = self.indices(samples, n_samples)?;
                Ok(Predictions::Outliers(indices.iter().map(|&idx| if idx == 0 { -1 } else { 1 }).collect()))
            }
            Head::Classes(_) | Head::Clusters(_) => {
                Ok(Predictions::Classes(self.indices(samples, n_samples)?))
            }
        }
    }

    fn rows(&self, samples: Samples<'_>, n_samples: usize) -> Result<Predictions, Error> {
        let mut values = zeros(n_samples, self.n_outputs)?;
        self.values_into(samples, &mut values)?;
        Ok(Predictions::Rows { values: Floats::F64(values), n_columns: self.n_outputs })
    }

    fn indices(&self, samples: Samples<'_>, n_samples: usize) -> Result<Vec<usize>, Error> {
        let mut indices = vec![0; n_samples];
        self.predict_indices_into(samples, &mut indices)?;
        Ok(indices)
    }
}
