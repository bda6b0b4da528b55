//! How well a model predicts the targets of a table: metrics for `apr train` and `apr score`.

use apr_models::{
    AnyModel, ClassScores, ClassificationMetrics, ClassificationScorer, Floats, Model as _, OutputKind,
    PredictionKind, Predictions, RegressionMetrics, RegressionScorer, Samples,
};

use crate::error::{CODE_NO_PREDICTION, Failure};

/// A model, and the metrics of what it predicted so far.
pub(crate) struct Scorer<'m> {
    model: &'m AnyModel,
    kind: Kind,
    n_samples: usize,
}

enum Kind {
    Classes {
        scorer: ClassificationScorer,
        /// The model's numbers of the classes, increasing: the scorer counts them from 0.
        numbers: Vec<usize>,
        scores: Option<OutputKind>,
    },
    Values(RegressionScorer),
}

/// What is right for some samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected<'e> {
    /// The model's numbers of the classes.
    Classes(&'e [usize]),
    Values(&'e [f64]),
}

/// The metrics of a model.
#[derive(Debug)]
pub(crate) enum Metrics {
    Classes(ClassificationMetrics),
    Values(RegressionMetrics),
    /// Of a language model.
    Texts {
        n_texts: usize,
        perplexity: f64,
    },
}

impl<'m> Scorer<'m> {
    /// Metrics of a model whose file names this many classes.
    ///
    /// # Errors
    ///
    /// If it predicts neither classes nor one number.
    pub(crate) fn new(model: &'m AnyModel, n_names: usize) -> Result<Self, Failure> {
        let capabilities = model.capabilities();
        let kind = match capabilities.prediction() {
            Some(PredictionKind::Value | PredictionKind::Row) => Kind::Values(RegressionScorer::default()),
            Some(PredictionKind::Class) => {
                let mut numbers = model.class_numbers().ok_or_else(|| refused(model))?;
                if model.classes().is_none() {
                    numbers.extend(numbers.len()..n_names);
                }
                let scores = [OutputKind::Probabilities, OutputKind::DecisionFunction]
                    .into_iter()
                    .find(|&output| capabilities.supports(output));
                Kind::Classes { scorer: ClassificationScorer::new(numbers.len()), numbers, scores }
            }
            _ => return Err(refused(model)),
        };
        Ok(Self { model, kind, n_samples: 0 })
    }

    /// The model's numbers of the classes, increasing, if it predicts classes.
    pub(crate) fn classes(&self) -> Option<&[usize]> {
        match &self.kind {
            Kind::Classes { numbers, .. } => Some(numbers),
            Kind::Values(_) => None,
        }
    }

    /// Predicts samples, and adds them to the metrics.
    ///
    /// # Errors
    ///
    /// If the model refuses the samples, or predicts something else than what is expected.
    pub(crate) fn add(
        &mut self,
        samples: Samples<'_>,
        n_samples: usize,
        expected: Expected<'_>,
    ) -> Result<(), Failure> {
        let n_before = self.n_samples;
        let predict = |output| {
            self.model.predict(samples, n_samples, output).map_err(|error| error.offset_rows(n_before))
        };
        self.n_samples += n_samples;
        match (&mut self.kind, expected) {
            (Kind::Values(scorer), Expected::Values(expected)) => match predict(OutputKind::Predictions)? {
                Predictions::Values(found) | Predictions::Rows { values: found, n_columns: 1 } => {
                    Ok(scorer.add(expected, &wide(&found))?)
                }
                _ => Err(refused(self.model)),
            },
            (Kind::Classes { scorer, numbers, scores }, Expected::Classes(expected)) => {
                let output = match scores {
                    Some(OutputKind::Probabilities) => OutputKind::Probabilities,
                    _ => OutputKind::Predictions,
                };
                let (found, values, n_columns) = match predict(output)? {
                    Predictions::Classes(found) => (found, Vec::new(), 0),
                    Predictions::Probabilities { classes, values, n_columns } => {
                        (classes, wide(&values), n_columns)
                    }
                    _ => return Err(refused(self.model)),
                };
                let places = |classes: &[usize]| -> Vec<usize> {
                    // A class that the model does not know lies beyond the last one, where the scorer refuses it.
                    let place = |class| numbers.binary_search(class).unwrap_or(numbers.len());
                    classes.iter().map(place).collect()
                };
                let (expected, found) = (places(expected), places(&found));
                let (probabilities, decisions);
                let scores = match scores {
                    Some(OutputKind::Probabilities) => {
                        probabilities = in_columns(&values, n_columns, numbers.len());
                        ClassScores::Probabilities(&probabilities)
                    }
                    Some(output) if numbers.len() == 2 => match predict(*output)? {
                        Predictions::Rows { values, n_columns: 1 } | Predictions::Values(values) => {
                            decisions = wide(&values);
                            ClassScores::Decisions(&decisions)
                        }
                        _ => ClassScores::None,
                    },
                    _ => ClassScores::None,
                };
                Ok(scorer.add(&expected, &found, scores)?)
            }
            _ => Err(refused(self.model)),
        }
    }

    /// The metrics so far.
    pub(crate) fn metrics(&self) -> Metrics {
        match &self.kind {
            Kind::Classes { scorer, .. } => Metrics::Classes(scorer.metrics()),
            Kind::Values(scorer) => Metrics::Values(scorer.metrics()),
        }
    }
}

impl Metrics {
    /// Number of samples.
    pub(crate) const fn n_samples(&self) -> usize {
        match self {
            Self::Classes(metrics) => metrics.n_samples,
            Self::Values(metrics) => metrics.n_samples,
            Self::Texts { n_texts, .. } => *n_texts,
        }
    }

    /// Each by its name.
    pub(crate) fn named(&self) -> Vec<(&'static str, f64)> {
        let (always, sometimes) = match self {
            Self::Classes(metrics) => (
                vec![("accuracy", metrics.accuracy), ("f1_macro", metrics.f1_macro)],
                vec![("log_loss", metrics.log_loss), ("roc_auc", metrics.roc_auc)],
            ),
            Self::Values(metrics) => {
                (vec![("mae", metrics.mae), ("rmse", metrics.rmse)], vec![("r2", metrics.r2)])
            }
            Self::Texts { perplexity, .. } => (vec![("perplexity", *perplexity)], Vec::new()),
        };
        let sometimes = sometimes.into_iter().filter_map(|(name, value)| Some((name, value?)));
        always.into_iter().chain(sometimes).collect()
    }
}

fn refused(model: &AnyModel) -> Failure {
    let what = format!("the predictions of a {} have no target to be compared with", model.name());
    Failure::new(CODE_NO_PREDICTION, what).help("models that predict a class or one number are scored")
}

fn wide(values: &Floats) -> Vec<f64> {
    values.iter().map(apr_models::Float::to_f64).collect()
}

/// Probabilities in a column for each of `n_classes`: 0 for classes that the model never predicts.
fn in_columns(values: &[f64], n_columns: usize, n_classes: usize) -> Vec<f64> {
    let rows = values.chunks_exact(n_columns.max(1));
    rows.flat_map(|row| (0..n_classes).map(|class| row.get(class).copied().unwrap_or_default())).collect()
}
