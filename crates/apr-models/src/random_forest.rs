//! Random forests: majority vote of classes, mean of values.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::classes::largest;
use crate::decision_tree::{DecisionTreeClassifier, DecisionTreeRegressor, tree_row_width};
use crate::error::{Error, ErrorKind};
use crate::kernels::trees::walk::LANES;
use crate::matrix::Matrix;
use crate::model::{Classifier, Model, Regressor};
use crate::random_forest::forest::Forest;
use crate::random_forest::votes::Votes;
use crate::scratch::with_scratch;
use crate::tensors::Tensors;
use crate::vector::Vector;

mod fit;
mod forest;
mod votes;

pub use self::fit::{ForestOptions, MaxFeatures, TreeSamples};
pub(crate) use self::forest::ForestTree;
pub use self::forest::TrainingData;

/// Random forest classifier (Breiman, Machine Learning 45, 2001): the class that most trees predict, the smallest
/// one in a tie, as in aprender. scikit-learn averages the trees' probabilities instead.
///
/// The files of other implementations hold the whole table that the forest was trained on. Reading one keeps it, so
/// that [`stored_training_data`](Self::stored_training_data) can show it; writing leaves it out unless
/// [`keep_training_data`](Self::keep_training_data) says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RandomForestClassifier(Forest<DecisionTreeClassifier, Vec<usize>>);

/// Random forest regressor (Breiman, Machine Learning 45, 2001): the mean of the trees' values, in `f64`, rounded
/// once.
///
/// The files of other implementations hold the whole table that the forest was trained on: see
/// [`RandomForestClassifier`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RandomForestRegressor(Forest<DecisionTreeRegressor, Vector>);

/// Most samples that go through one tree before the next: the nodes of a tree stay in the cache meanwhile.
const MAX_BLOCK: usize = 4096;

/// Most counts of votes of a block of samples.
const MAX_COUNTS: usize = 1 << 16;

/// Counts or sums that are kept on the stack.
const ON_STACK: usize = 512;

/// Whether samples go through the forest one by one: few of them, or such without features, which trees without splits take.
const fn is_one_by_one(rows: &[f32], block: usize) -> bool {
    cfg!(apr_small) || block < LANES || rows.is_empty()
}

/// Calls `each` with every sample and the place of its result. Samples without features get one.
fn for_each_sample<T>(rows: &[f32], width: usize, out: &mut [T], mut each: impl FnMut(&[f32], &mut T)) {
    for (idx, place) in out.iter_mut().enumerate() {
        each(rows.get(idx * width..(idx + 1) * width).unwrap_or(&[0.0]), place);
    }
}

/// The methods of both forests; a trait would have to be public, and imported to be used.
macro_rules! forest {
    ($forest:ident $name:literal, $tree:ident, $target:ty) => {
        impl $forest {
            /// A forest of these trees.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::PartInvalid`] without a tree, if one of them has no nodes, or if they disagree about the
            /// number of features.
            pub fn from_parts(trees: Vec<$tree>) -> Result<Self, Error> {
                Forest::from_trees(trees).map(Self)
            }

            /// Sets the maximum depth and the seed of training.
            #[must_use]
            pub fn with_training(mut self, max_depth: Option<usize>, random_state: Option<u64>) -> Self {
                self.0.max_depth = max_depth;
                self.0.random_state = random_state;
                self
            }

            /// The trees.
            #[must_use]
            pub fn trees(&self) -> &[$tree] {
                &self.0.trees
            }

            /// Number of trees of the training, `n_estimators`.
            #[must_use]
            pub const fn n_estimators(&self) -> usize {
                self.0.n_estimators
            }

            /// The maximum depth of training.
            #[must_use]
            pub const fn max_depth(&self) -> Option<usize> {
                self.0.max_depth
            }

            /// The seed of training.
            #[must_use]
            pub const fn random_state(&self) -> Option<u64> {
                self.0.random_state
            }

            /// What the file the model was read from says about the samples it was trained on.
            #[must_use]
            pub const fn stored_training_data(&self) -> Option<&TrainingData<$target>> {
                self.0.training.as_ref()
            }

            /// Samples of the training that the file the model was read from holds; `None` if it holds none.
            #[must_use]
            pub fn stored_samples(&self) -> Option<usize> {
                self.0.stored_samples()
            }

            /// Removes the training data.
            pub fn forget_training_data(&mut self) {
                self.0.training = None;
            }

            /// Writes the training data with the model: anyone with the file can read every sample.
            #[must_use]
            pub const fn keep_training_data(mut self) -> Self {
                self.0.keeps_training_data = true;
                self
            }

            /// Reads the model from named tensors: those of each tree after `tree_0_`, `tree_1_` and so on, and
            /// `n_estimators`, `max_depth`, `random_state`.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
            /// malformed tensors, and all of [`from_parts`](Self::from_parts).
            pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
                tensors.expect_model(Self::NAME)?;
                Forest::from_tensors(tensors).map(Self)
            }

            fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
                self.0.push_tensors(tensors)
            }

            fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
                self.0.encode(out)
            }

            fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
                Forest::decode(input).map(Self)
            }
        }

        stored_model! {
            $forest $name [RandomForest]
            n_features: |model| model.0.n_features();
            is_fitted: |model| !model.0.trees.is_empty();
            skip: Forest::<$tree, $target>::skip;
        }
    };
}

forest!(RandomForestClassifier "RandomForestClassifier", DecisionTreeClassifier, Vec<usize>);
forest!(RandomForestRegressor "RandomForestRegressor", DecisionTreeRegressor, Vector);

impl RandomForestClassifier {
    /// Number of classes: one more than the greatest class of a leaf.
    #[must_use]
    pub const fn n_classes(&self) -> usize {
        self.0.n_classes()
    }

    /// The probability of each class, the part of the trees that vote for it: `[n_samples, n_classes]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`], [`ErrorKind::MatrixTooLarge`].
    pub fn try_predict_proba(&self, x: &Matrix) -> Result<Matrix, Error> {
        let trees = self.0.fitted()?;
        let width = tree_row_width(x.as_slice(), x.n_rows(), self.n_features(), self.0.tested())?;
        let (n_rows, n_cols) = (x.n_rows(), self.n_classes());
        let mut shares: Vec<f32> = Vec::new();
        match n_rows.checked_mul(n_cols) {
            Some(len) if shares.try_reserve_exact(len).is_ok() => shares.resize(len, 0.0),
            _ => return Err(ErrorKind::MatrixTooLarge { n_rows, n_cols }.into()),
        }
        trees.for_each_leaf::<usize>(x.as_slice(), width, |row, class| {
            if let Some(share) = shares.get_mut(row * n_cols + class) {
                *share += 1.0;
            }
        });
        shares.iter_mut().for_each(|share| *share /= trees.len() as f32);
        Matrix::from_vec(n_rows, n_cols, shares)
    }
}

impl Classifier for RandomForestClassifier {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        let trees = self.0.fitted()?;
        let n_rows = out.len();
        let width = tree_row_width(rows, n_rows, self.n_features(), self.0.tested())?;
        let n_classes = self.n_classes().max(1);
        let block = MAX_BLOCK.min(MAX_COUNTS / n_classes).min(n_rows);
        if is_one_by_one(rows, block) {
            let mut votes = Votes::new();
            for_each_sample(rows, width, out, |row, place| {
                votes.clear();
                trees.for_each_leaf(row, width, |_, class| votes.add(class));
                *place = votes.winner();
            });
            return Ok(());
        }
        with_scratch::<u32, ON_STACK, _>(block * n_classes, |counts| {
            for (rows, out) in rows.chunks(block * width).zip(out.chunks_mut(block)) {
                counts.fill(0);
                trees.for_each_leaf::<usize>(rows, width, |row, class| {
                    if let Some(count) = counts.get_mut(row * n_classes + class) {
                        *count += 1;
                    }
                });
                for (place, counts) in out.iter_mut().zip(counts.chunks_exact(n_classes)) {
                    *place = largest(counts.iter().copied().map(f64::from));
                }
            }
        });
        Ok(())
    }
}

impl Regressor for RandomForestRegressor {
    fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let trees = self.0.fitted()?;
        let n_rows = out.len();
        let width = tree_row_width(rows, n_rows, None, self.0.tested())?;
        let mean = |sum: f64| (sum / trees.len() as f64) as f32;
        let block = MAX_BLOCK.min(n_rows);
        // Sums begin with a zero that keeps the sign of the first leaf.
        if is_one_by_one(rows, block) {
            for_each_sample(rows, width, out, |row, place| {
                let mut sum = -0.0;
                trees.for_each_leaf(row, width, |_, value: f32| sum += f64::from(value));
                *place = mean(sum);
            });
            return Ok(());
        }
        with_scratch::<f64, ON_STACK, _>(block, |sums| {
            for (rows, out) in rows.chunks(block * width).zip(out.chunks_mut(block)) {
                sums.fill(-0.0);
                trees.for_each_leaf::<f32>(rows, width, |row, value| {
                    if let Some(sum) = sums.get_mut(row) {
                        *sum += f64::from(value);
                    }
                });
                out.iter_mut().zip(&*sums).for_each(|(place, &sum)| *place = mean(sum));
            }
        });
        Ok(())
    }
}
