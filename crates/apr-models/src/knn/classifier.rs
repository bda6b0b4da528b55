//! Classification by the majority of neighbours.

use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::error::{Error, ErrorKind};
use crate::kernels::neighbours::{Candidate, KnnWeights};
use crate::knn::neighbours::{Neighbour, Neighbours};
use crate::matrix::{Matrix, table};
use crate::model::Classifier;
use crate::probability;

/// k-nearest-neighbours classifier (Cover and Hart, IEEE Trans. Inf. Theory 13, 1967): the class of the largest
/// weight among the `k` nearest samples, as scikit-learn 1.9.1's `KNeighborsClassifier` but for ties.
///
/// Distances are Euclidean, summed in `f64`. Of equally distant samples the one with the smaller index counts as
/// nearer; of classes of equal weight the smallest label wins.
///
/// ```
/// use apr_models::{Classifier, KnnClassifier, KnnWeights, Matrix};
///
/// let x = Matrix::from_vec(4, 1, vec![0.0, 1.0, 10.0, 11.0])?;
/// let model = KnnClassifier::fit(x, &[1, 1, 2, 2], 3, KnnWeights::Uniform)?;
/// assert_eq!(model.predict(&Matrix::from_vec(2, 1, vec![2.0, 8.0])?), [1, 2]);
/// assert_eq!(model.nearest(&[9.0])?[0].row, 2);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KnnClassifier {
    pub(crate) neighbours: Neighbours,
    pub(crate) classes: Classes,
    /// Place of each sample's class.
    pub(crate) class_of: Vec<u32>,
}

impl KnnClassifier {
    /// Stores the samples `x` (`[n_samples, n_features]`) and their classes `y` (`[n_samples]`); predictions use the
    /// `k` nearest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::PartInvalid`] if `k` is 0,
    /// [`ErrorKind::TooFewSamples`] if it is more than the samples.
    pub fn fit(x: Matrix, y: &[usize], k: usize, weights: KnnWeights) -> Result<Self, Error> {
        let (classes, class_of) = Classes::of_targets(&x, y)?;
        Ok(Self { neighbours: Neighbours::new(x, k, weights)?, classes, class_of })
    }

    /// Takes classes beside the samples: labels, strictly increasing, and the place of each sample's among them.
    pub(crate) fn from_parts(
        neighbours: Neighbours,
        classes: Classes,
        class_of: Vec<u32>,
    ) -> Result<Self, Error> {
        checks::expect_len("class of each sample", neighbours.samples.n_rows(), class_of.len())?;
        if class_of.iter().any(|&place| place as usize >= classes.len()) {
            let (part, problem) = ("class of each sample", "must be the place of a label");
            return Err(ErrorKind::PartInvalid { part, problem }.into());
        }
        Ok(Self { neighbours, classes, class_of })
    }

    /// The stored samples: `[n_samples, n_features]`.
    #[must_use]
    pub const fn samples(&self) -> &Matrix {
        &self.neighbours.samples
    }

    /// Their labels.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = usize> {
        self.class_of.iter().map(|&place| self.classes.label(place as usize))
    }

    /// Labels, strictly increasing.
    #[must_use]
    pub const fn classes(&self) -> &[usize] {
        self.classes.labels()
    }

    /// Number of neighbours, `k`.
    #[must_use]
    pub const fn k(&self) -> usize {
        self.neighbours.k
    }

    /// The weights of the neighbours.
    #[must_use]
    pub const fn weights(&self) -> KnnWeights {
        self.neighbours.weights
    }

    /// The stored samples nearest to `row` (`[n_features]`), nearest first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::FeatureNotFinite`].
    pub fn nearest(&self, row: &[f32]) -> Result<Vec<Neighbour>, Error> {
        self.neighbours.nearest(row)
    }

    /// The probability of each class, its part of the weight of the neighbours, for each row of `rows`
    /// (`[n_samples, n_features]`, row-major) into `out` (`[n_samples, n_classes]`, row-major). Allocates nothing for
    /// up to 512 neighbours.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutputLength`], [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if the lengths do not
    /// fit each other and the model; [`ErrorKind::FeatureNotFinite`].
    pub fn predict_proba_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_classes = self.classes.len();
        probability::check_outputs(rows, out.len(), self.samples().n_cols(), n_classes)?;
        let n_rows = out.len() / n_classes;
        out.fill(0.0);
        self.neighbours.for_each(rows, n_rows, &mut |number, nearest| {
            self.weigh_classes(nearest);
            let total: f64 = nearest.iter().map(|near| near.value).sum();
            for_runs(nearest, |class, weight| {
                if let Some(place) = out.get_mut(number * n_classes + class) {
                    *place = (weight / total) as f32;
                }
            });
        })
    }

    /// Turns rows and distances into classes and weights, sorted so that each class is one run.
    fn weigh_classes(&self, nearest: &mut [Candidate]) {
        self.neighbours.weigh(nearest);
        for near in nearest.iter_mut() {
            near.place = self.class_of.get(near.place).map_or(0, |&class| class as usize);
        }
        nearest.sort_unstable_by(|a, b| a.place.cmp(&b.place).then(b.value.total_cmp(&a.value)));
    }

    /// The probability of each class, its part of the weight of the neighbours: `[n_samples, n_classes]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::FeatureNotFinite`].
    pub fn try_predict_proba(&self, x: &Matrix) -> Result<Matrix, Error> {
        table(x, self.classes.len(), |rows, out| self.predict_proba_into(rows, out))
    }
}

/// A sample with a feature that is not finite is refused as [`ErrorKind::FeatureNotFinite`]. Up to 512 neighbours need
/// no memory but the stack.
impl Classifier for KnnClassifier {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        self.neighbours.for_each(rows, out.len(), &mut |number, nearest| {
            self.weigh_classes(nearest);
            let mut best = (0, f64::NEG_INFINITY);
            for_runs(nearest, |class, weight| {
                if weight > best.1 {
                    best = (class, weight);
                }
            });
            if let Some(place) = out.get_mut(number) {
                *place = self.classes.label(best.0);
            }
        })
    }
}

/// Gives `each` every class that occurs, in order, and its weight.
fn for_runs(sorted: &[Candidate], mut each: impl FnMut(usize, f64)) {
    for run in sorted.chunk_by(|a, b| a.place == b.place) {
        if let Some(first) = run.first() {
            each(first.place, run.iter().map(|near| near.value).sum());
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn model(k: usize, weights: KnnWeights) -> KnnClassifier {
        let x = Matrix::from_vec(5, 1, vec![0.0, 1.0, 3.0, 4.0, 4.0]).unwrap();
        KnnClassifier::fit(x, &[9, 2, 5, 9, 5], k, weights).unwrap()
    }

    #[test]
    fn ties_go_to_the_smallest_label_and_the_first_row() {
        let asked = Matrix::from_vec(1, 1, vec![2.0]).unwrap();
        // One and three are equally near.
        assert_eq!(model(2, KnnWeights::Uniform).predict(&asked), [2]);
        assert_eq!(model(1, KnnWeights::Uniform).nearest(&[2.0]).unwrap()[0].row, 1);
        let model = model(1, KnnWeights::Uniform);
        assert_eq!(model.predict(&Matrix::from_vec(1, 1, vec![4.0]).unwrap()), [9]);
        assert_eq!(model.targets().collect::<Vec<_>>(), [9, 2, 5, 9, 5]);
    }

    #[test]
    fn touching_neighbours_outweigh_all_others() {
        let model = model(5, KnnWeights::Distance);
        let asked = Matrix::from_vec(2, 1, vec![4.0, 1.5]).unwrap();
        let proba = model.try_predict_proba(&asked).unwrap();
        assert_eq!(proba.row(0).unwrap(), [0.0, 0.5, 0.5]);
        let weights = [1.0 / 0.5, 1.0 / 1.5 + 1.0 / 2.5, 1.0 / 1.5 + 1.0 / 2.5];
        let total: f64 = weights.iter().sum();
        for (found, weight) in proba.row(1).unwrap().iter().zip(weights) {
            assert!((f64::from(*found) - weight / total).abs() < 1e-7);
        }
        assert_eq!(model.predict(&asked), [5, 2]);
    }

    #[test]
    fn classes_outside_the_list_are_refused() {
        let model = model(1, KnnWeights::Uniform);
        let parts =
            |class_of| KnnClassifier::from_parts(model.neighbours.clone(), model.classes.clone(), class_of);
        assert!(parts(vec![0, 1, 2, 0, 1]).is_ok());
        assert!(parts(vec![0, 1, 2, 0, 3]).is_err());
        assert!(parts(vec![0; 4]).is_err());
    }
}
