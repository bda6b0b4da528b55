//! What classes and samples count in a training.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::Error;

/// What the errors of each class count in a training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ClassWeighting<'w> {
    /// All the same.
    #[default]
    Uniform,
    /// A class weighs the number of samples over the number of classes times its own number of samples, as
    /// scikit-learn's `class_weight="balanced"`: `n / (k * n_k)`.
    Balanced,
    /// These weights, in the order of the labels.
    Each(&'w [f64]),
}

/// What the errors of each sample count in a training: the weight of its class times its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weighting<'w> {
    /// The weights of the classes.
    pub classes: ClassWeighting<'w>,
    /// A weight for each sample, not negative; 1 for all if `None`.
    pub samples: Option<&'w [f32]>,
}

/// Checked weights.
pub(crate) struct Weights {
    /// One for each class.
    pub(crate) classes: Vec<f64>,
    /// One for each sample, without that of its class.
    pub(crate) samples: Vec<f64>,
}

/// What "balanced" counts.
#[derive(Clone, Copy)]
pub(crate) enum Balance {
    /// Samples: as scikit-learn's `SVC`.
    Samples,
    /// Their weights: as scikit-learn's linear models.
    Weights,
}

impl Weighting<'_> {
    /// The weights of samples whose classes have these indices.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength) if there is not one for each class or sample,
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for a weight that is negative or not finite, for one of a
    /// class that is 0, and if a class has no sample of a weight above 0.
    pub(crate) fn weights(
        &self,
        places: &[u32],
        n_classes: usize,
        balance: Balance,
    ) -> Result<Weights, Error> {
        let samples: Vec<f64> = match self.samples {
            None => vec![1.0; places.len()],
            Some(weights) => {
                checks::expect_len(SAMPLES, places.len(), weights.len())?;
                weights.iter().map(|&weight| weight.into()).collect()
            }
        };
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        checks::expect(SAMPLES, samples.iter().all(is_weight), "finite numbers of at least 0 are needed")?;
        let mut totals = vec![0.0; n_classes];
        for (&place, &weight) in places.iter().zip(&samples) {
            totals[place as usize] += weight;
        }
        let all_count = totals.iter().all(|&total| total > 0.0);
        checks::expect(SAMPLES, all_count, "each class needs a sample whose weight is above 0")?;
        let classes: Vec<f64> = match self.classes {
            ClassWeighting::Uniform => vec![1.0; n_classes],
            ClassWeighting::Balanced => {
                if matches!(balance, Balance::Samples) {
                    totals.fill(0.0);
                    places.iter().for_each(|&place| totals[place as usize] += 1.0);
                }
                let sum: f64 = totals.iter().sum();
                totals.iter().map(|total| sum / (n_classes as f64 * total)).collect()
            }
            ClassWeighting::Each(weights) => {
                checks::expect_len(CLASSES, n_classes, weights.len())?;
                weights.to_vec()
            }
        };
        let are_positive = classes.iter().all(|weight| weight.is_finite() && *weight > 0.0);
        checks::expect(CLASSES, are_positive, "finite numbers above 0 are needed")?;
        Ok(Weights { classes, samples })
    }
}

const CLASSES: &str = "class_weight";
const SAMPLES: &str = "sample_weight";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_weigh_the_same_together() {
        let places = [0, 0, 0, 1];
        let balanced = Weighting { classes: ClassWeighting::Balanced, samples: Some(&[1.0, 1.0, 1.0, 3.0]) };
        let found = balanced.weights(&places, 2, Balance::Samples).unwrap();
        assert_eq!(found.classes, [4.0 / 6.0, 2.0]);
        assert_eq!(found.samples, [1.0, 1.0, 1.0, 3.0]);
        let found = balanced.weights(&places, 2, Balance::Weights).unwrap();
        assert_eq!(found.classes, [1.0, 1.0]);
    }

    #[test]
    fn weights_that_are_none_are_refused_by_name() {
        let each = |weights| Weighting { classes: ClassWeighting::Each(weights), samples: None };
        let samples = |weights| Weighting { samples: Some(weights), ..Weighting::default() };
        for (weighting, code) in [
            (each(&[1.0]), "am-part-length"),
            (each(&[1.0, 0.0]), "am-part"),
            (each(&[1.0, f64::NAN]), "am-part"),
            (samples(&[1.0]), "am-part-length"),
            (samples(&[1.0, -1.0]), "am-part"),
            (samples(&[1.0, f32::INFINITY]), "am-part"),
            (samples(&[1.0, 0.0]), "am-part"),
        ] {
            let found = weighting.weights(&[0, 1], 2, Balance::Samples).err().map(|error| error.code());
            assert_eq!(found, Some(code), "{weighting:?}");
        }
    }
}
