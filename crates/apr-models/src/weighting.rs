//! What classes and samples count in a training.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::Error;

/// The weights of the classes in training.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ClassWeight {
    /// All the same.
    #[default]
    Uniform,
    /// Class `c` with `n_c` of `n` samples weighs `n / (k n_c)` for `k` classes, as in scikit-learn; in a
    /// [`LogisticRegression`](crate::LogisticRegression) `sqrt(n / (2 n_c))`, as in aprender.
    Balanced,
    /// Class `k` weighs value `k`, 1 where there is none.
    Manual(Vec<f32>),
}

/// What "balanced" counts.
#[derive(Clone, Copy)]
pub(crate) enum Balance {
    /// Samples: as scikit-learn's `SVC` and trees.
    Samples,
    /// Their weights: as scikit-learn's linear models.
    Weights,
}

/// Checked weights: finite and not negative.
pub(crate) struct Weights {
    /// One for each class.
    pub(crate) classes: Vec<f64>,
    /// One for each sample, without that of its class.
    pub(crate) samples: Vec<f64>,
}

impl Weights {
    /// The weights of samples whose labels have these places among `labels`.
    ///
    /// # Errors
    ///
    /// Those of [`of_samples`]; [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for the weight of a class that is
    /// negative or not finite.
    pub(crate) fn new(
        labels: &[usize],
        places: &[u32],
        samples: Option<&[f32]>,
        class_weight: &ClassWeight,
        balance: Balance,
    ) -> Result<Self, Error> {
        let samples = of_samples(places.len(), samples)?;
        let classes = match class_weight {
            ClassWeight::Uniform => vec![1.0; labels.len()],
            ClassWeight::Balanced => {
                let mut totals = vec![0.0; labels.len()];
                for (&place, &weight) in places.iter().zip(&samples) {
                    totals[place as usize] += if matches!(balance, Balance::Samples) { 1.0 } else { weight };
                }
                let sum: f64 = totals.iter().sum();
                let balanced = |&total: &f64| sum / (labels.len() as f64 * total);
                // A class that does not count needs no weight.
                totals.iter().map(|total| if *total > 0.0 { balanced(total) } else { 1.0 }).collect()
            }
            ClassWeight::Manual(given) => {
                labels.iter().map(|&label| given.get(label).map_or(1.0, |&weight| weight.into())).collect()
            }
        };
        checks::expect(CLASS_WEIGHT, classes.iter().all(is_weight), NOT_NEGATIVE)?;
        Ok(Self { classes, samples })
    }

    /// The weight of each sample times that of its class.
    pub(crate) fn products(mut self, places: &[u32]) -> Vec<f64> {
        let samples = self.samples.iter_mut().zip(places);
        samples.for_each(|(weight, &place)| *weight *= self.classes[place as usize]);
        self.samples
    }

    /// Checks that every class counts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if a class weighs nothing, or has no sample that does.
    pub(crate) fn expect_all_classes(&self, places: &[u32]) -> Result<(), Error> {
        checks::expect(CLASS_WEIGHT, self.classes.iter().all(|&weight| weight > 0.0), "must be above 0")?;
        let mut totals = vec![0.0; self.classes.len()];
        for (&place, &weight) in places.iter().zip(&self.samples) {
            totals[place as usize] += weight;
        }
        let all_count = totals.iter().all(|&total| total > 0.0);
        checks::expect(SAMPLE_WEIGHT, all_count, "each class needs a sample whose weight is above 0")
    }
}

/// Weights of samples as `f64`, 1 where none are given.
///
/// # Errors
///
/// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength), [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for
/// weights that are negative or not finite, or all 0.
pub(crate) fn of_samples(n_rows: usize, given: Option<&[f32]>) -> Result<Vec<f64>, Error> {
    let Some(given) = given else { return Ok(vec![1.0; n_rows]) };
    checks::expect_len(SAMPLE_WEIGHT, n_rows, given.len())?;
    let weights: Vec<f64> = given.iter().map(|&weight| weight.into()).collect();
    checks::expect(SAMPLE_WEIGHT, weights.iter().all(is_weight), NOT_NEGATIVE)?;
    checks::expect(SAMPLE_WEIGHT, weights.iter().any(|&weight| weight > 0.0), "one above 0 is needed")?;
    Ok(weights)
}

fn is_weight(weight: &f64) -> bool {
    weight.is_finite() && *weight >= 0.0
}

pub(crate) const CLASS_WEIGHT: &str = "class_weight";
pub(crate) const SAMPLE_WEIGHT: &str = "sample_weight";
const NOT_NEGATIVE: &str = "finite numbers of at least 0 are needed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_weigh_the_same_together() {
        let places = [0, 0, 0, 1];
        let balanced = |balance| {
            let samples = Some(&[1.0, 1.0, 1.0, 3.0][..]);
            Weights::new(&[0, 7], &places, samples, &ClassWeight::Balanced, balance).unwrap()
        };
        let found = balanced(Balance::Samples);
        assert_eq!(found.classes, [4.0 / 6.0, 2.0]);
        assert_eq!(found.samples, [1.0, 1.0, 1.0, 3.0]);
        assert_eq!(found.products(&places)[3], 6.0);
        assert_eq!(balanced(Balance::Weights).classes, [1.0, 1.0]);
    }

    #[test]
    fn weights_that_are_none_are_refused_by_name() {
        let each = |weights: &[f32]| (ClassWeight::Manual(weights.to_vec()), None);
        let samples = |weights: &'static [f32]| (ClassWeight::Uniform, Some(weights));
        for ((class_weight, samples), code) in [
            (each(&[1.0, -1.0]), "am-part"),
            (each(&[1.0, f32::NAN]), "am-part"),
            (samples(&[1.0]), "am-part-length"),
            (samples(&[1.0, -1.0]), "am-part"),
            (samples(&[1.0, f32::INFINITY]), "am-part"),
            (samples(&[0.0, 0.0]), "am-part"),
        ] {
            let found = Weights::new(&[0, 1], &[0, 1], samples, &class_weight, Balance::Samples);
            assert_eq!(found.err().map(|error| error.code()), Some(code), "{class_weight:?} {samples:?}");
        }
        for (class_weight, samples) in [each(&[1.0, 0.0]), samples(&[1.0, 0.0])] {
            let found = Weights::new(&[0, 1], &[0, 1], samples, &class_weight, Balance::Samples).unwrap();
            assert_eq!(found.expect_all_classes(&[0, 1]).unwrap_err().code(), "am-part");
        }
        // Weights are those of labels, whatever the others are.
        let found = Weights::new(&[1, 4], &[0, 1], None, &each(&[9.0, 2.0]).0, Balance::Samples).unwrap();
        assert_eq!(found.classes, [2.0, 1.0]);
    }
}
