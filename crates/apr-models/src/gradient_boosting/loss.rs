//! What boosting minimizes.

use alloc::vec;
use alloc::vec::Vec;

use crate::kernels::activations::{sigmoid, softmax};

/// A loss of the scores of a row.
pub(super) enum Loss<'y> {
    /// Half the squared error of the score.
    Squared { y: Vec<f64> },
    /// Of two classes, the negative logarithm of the probability of the right one, with the score as the logarithm of their odds.
    Logistic { places: &'y [u32] },
    /// The same of more classes, each with a score.
    Softmax { places: &'y [u32], n_classes: usize },
}

impl<'y> Loss<'y> {
    pub(super) const fn of_classes(places: &'y [u32], n_classes: usize) -> Self {
        match n_classes {
            2 => Self::Logistic { places },
            _ => Self::Softmax { places, n_classes },
        }
    }

    pub(super) const fn n_outputs(&self) -> usize {
        match self {
            Self::Squared { .. } | Self::Logistic { .. } => 1,
            Self::Softmax { n_classes, .. } => *n_classes,
        }
    }

    /// The scores that the rows have the least loss with, the same for all.
    pub(super) fn start(&self, rows: &[u32], weights: &[f64]) -> Vec<f64> {
        let mean = |of: &dyn Fn(usize) -> f64| {
            let (mut sum, mut weight) = (0.0, 0.0);
            for &row in rows {
                sum += weights[row as usize] * of(row as usize);
                weight += weights[row as usize];
            }
            sum / weight
        };
        let share =
            |places: &[u32], class: usize| mean(&|row| f64::from(u8::from(places[row] as usize == class)));
        match self {
            Self::Squared { y } => vec![mean(&|row| y[row])],
            Self::Logistic { places } => {
                let second = share(places, 1);
                vec![libm::log(second / (1.0 - second))]
            }
            Self::Softmax { places, n_classes } => {
                (0..*n_classes).map(|class| libm::log(share(places, class))).collect()
            }
        }
    }

    /// Replaces the scores of a row by what they predict: the value, or probabilities.
    pub(super) fn predict(&self, scores: &mut [f64]) {
        match (self, scores) {
            (Self::Squared { .. }, _) => {}
            (Self::Logistic { .. }, scores) => scores.iter_mut().for_each(|score| *score = sigmoid(*score)),
            (Self::Softmax { .. }, scores) => softmax(scores),
        }
    }

    /// The negative first derivative of the loss by one of the scores, and the second one, at a prediction.
    pub(super) fn derivatives(&self, row: usize, prediction: f64, output: usize) -> (f64, f64) {
        let (places, class) = match self {
            Self::Squared { y } => return (y[row] - prediction, 1.0),
            Self::Logistic { places } => (places, 1),
            Self::Softmax { places, .. } => (places, output),
        };
        let expected = f64::from(u8::from(places[row] as usize == class));
        (expected - prediction, prediction * (1.0 - prediction))
    }

    /// The factor of a Newton step: of several scores, each step assumes that the others take theirs (Friedman, equation 35).
    pub(super) fn step_factor(&self) -> f64 {
        match self {
            Self::Squared { .. } | Self::Logistic { .. } => 1.0,
            Self::Softmax { n_classes, .. } => (*n_classes as f64 - 1.0) / *n_classes as f64,
        }
    }

    /// The weighted mean over rows.
    pub(super) fn mean(&self, scores: &[f64], rows: &[u32], weights: &[f64]) -> f64 {
        let n_outputs = self.n_outputs();
        let (mut sum, mut weight) = (0.0, 0.0);
        for &row in rows {
            let row = row as usize;
            let scores = &scores[row * n_outputs..(row + 1) * n_outputs];
            let loss = match self {
                Self::Squared { y } => 0.5 * (y[row] - scores[0]) * (y[row] - scores[0]),
                // The score of the other class is 0.
                Self::Logistic { places } => {
                    log_sum(&[0.0, scores[0]]) - if places[row] == 1 { scores[0] } else { 0.0 }
                }
                Self::Softmax { places, .. } => log_sum(scores) - scores[places[row] as usize],
            };
            sum += weights[row] * loss;
            weight += weights[row];
        }
        sum / weight
    }
}

/// The logarithm of the sum of exponentials.
fn log_sum(scores: &[f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| libm::exp(score - largest)).sum();
    largest + libm::log(sum)
}
