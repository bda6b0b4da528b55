//! What is learned from teachers.

use apr_models::{AnyModel, Matrix, SoftTargets};

use super::method::Average;
use super::rows::Rows;
use super::teacher::{numbers, probabilities, table};
use crate::error::Failure;

/// What one teacher says of samples.
pub(super) struct Answer {
    /// Probabilities, `[n_samples, n_classes]`, or numbers, `[n_samples]`.
    pub(super) values: Vec<f64>,
    /// Of all teachers they sum to 1.
    pub(super) weight: f64,
    /// Votes that the probabilities are parts of, if they are.
    pub(super) n_votes: Option<f64>,
}

/// What all teachers together say of samples.
pub(super) enum Lessons {
    Classes(Soft),
    /// `[n_samples]`.
    Numbers(Vec<f64>),
}

/// Probabilities of classes.
pub(super) struct Soft {
    /// As the teachers give them: what students are compared with. `[n_samples, n_classes]`.
    pub(super) said: Vec<f64>,
    /// With a vote more for each class, where they are votes: what trees learn. `[n_samples, n_classes]`.
    pub(super) plain: Matrix,
    /// The same at the temperature: what networks learn. `[n_samples, n_classes]`.
    pub(super) softened: Matrix,
}

impl Lessons {
    /// The mean of probabilities of so many classes.
    ///
    /// # Errors
    ///
    /// If there are more of them than this machine can hold.
    pub(super) fn of_classes(
        answers: &[Answer],
        n_classes: usize,
        average: Average,
        temperature: f64,
    ) -> Result<Self, Failure> {
        let smoothed: Vec<Vec<f64>> = answers.iter().map(|answer| answer.smoothed(n_classes)).collect();
        let said = answers.iter().map(|answer| (answer.weight, answer.values.as_slice()));
        let smoothed =
            || answers.iter().zip(&smoothed).map(|(answer, values)| (answer.weight, values.as_slice()));
        let (said, plain) = match average {
            Average::Probabilities => (mean(said), mean(smoothed())),
            Average::Logits => (mean_of_logits(said, n_classes), mean_of_logits(smoothed(), n_classes)),
        };
        let plain = table(&plain, n_classes)?;
        let softened = match answers {
            [_, _, ..] if average == Average::Probabilities => {
                let mut sums = vec![0.0; plain.as_slice().len()];
                for (weight, values) in smoothed() {
                    let member = SoftTargets::soften(&table(values, n_classes)?, temperature)?;
                    let values = sums.iter_mut().zip(member.as_slice());
                    values.for_each(|(sum, &value)| *sum += weight * f64::from(value));
                }
                table(&sums, n_classes)?
            }
            _ => SoftTargets::soften(&plain, temperature)?,
        };
        Ok(Self::Classes(Soft { said, plain, softened }))
    }

    /// The mean of numbers.
    pub(super) fn of_numbers(answers: &[Answer]) -> Self {
        Self::Numbers(mean(answers.iter().map(|answer| (answer.weight, answer.values.as_slice()))))
    }

    /// What a model says that learned from these, for the next one to learn.
    ///
    /// # Errors
    ///
    /// Those of the model.
    pub(super) fn next(&self, model: &AnyModel, rows: &Rows, temperature: f64) -> Result<Self, Failure> {
        match self {
            Self::Classes(soft) => {
                let values = probabilities(model, rows)?;
                let answer = Answer { values, weight: 1.0, n_votes: None };
                Self::of_classes(&[answer], soft.plain.n_cols(), Average::Probabilities, temperature)
            }
            Self::Numbers(_) => Ok(Self::Numbers(numbers(model, rows)?)),
        }
    }

    /// What is compared: probabilities or numbers.
    pub(super) fn said(&self) -> &[f64] {
        match self {
            Self::Classes(soft) => &soft.said,
            Self::Numbers(numbers) => numbers,
        }
    }
}

impl Answer {
    /// Laplace's rule of succession: a class that no tree votes for is not impossible.
    fn smoothed(&self, n_classes: usize) -> Vec<f64> {
        match self.n_votes {
            Some(count) => {
                let smooth = |value: &f64| (count * value + 1.0) / (count + n_classes as f64);
                self.values.iter().map(smooth).collect()
            }
            None => self.values.clone(),
        }
    }
}

fn mean<'v>(answers: impl Iterator<Item = (f64, &'v [f64])>) -> Vec<f64> {
    let mut sums = Vec::new();
    for (weight, values) in answers {
        sums.resize(values.len(), 0.0);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
    }
    sums
}

/// Probabilities whose logits are the mean of those of the answers.
fn mean_of_logits<'v>(answers: impl Iterator<Item = (f64, &'v [f64])>, n_classes: usize) -> Vec<f64> {
    let least = SoftTargets::LEAST_TEACHER;
    let mut sums = Vec::new();
    for (weight, values) in answers {
        sums.resize(values.len(), 0.0);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * libm::log(value.max(least)));
    }
    for row in sums.chunks_exact_mut(n_classes) {
        row.iter_mut().for_each(|logit| *logit = libm::exp(*logit));
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum);
    }
    sums
}
