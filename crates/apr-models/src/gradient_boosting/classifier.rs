//! Boosted trees for classification.

use alloc::vec::Vec;

use crate::checks;
use crate::classes::{Classes, largest};
use crate::error::Error;
use crate::gradient_boosting::boosted::Boosted;
use crate::kernels::activations::sigmoid;
use crate::matrix::{Matrix, table};
use crate::model::Classifier;
use crate::probability;
use crate::tree::TreeNode;

/// Gradient boosted classification trees (Friedman, Annals of Statistics 29, 2001): the trees of
/// each stage add to one score for two classes, or to one for each class. Probabilities are the logistic function of
/// the score, or the softmax; sums are in `f64`.
///
/// ```
/// use apr_models::{BoostedClassifierParts, Classifier, GradientBoostingClassifier, Matrix, TreeNode};
///
/// let leaf = |value| TreeNode::Leaf { value, n_samples: 0, impurity: 0.0 };
/// let stump = vec![
///     TreeNode::Split { feature: 0, threshold: 2.5, left: 1, right: 2, n_samples: 0, impurity: 0.0 },
///     leaf(-4.0),
///     leaf(4.0),
/// ];
/// let model = GradientBoostingClassifier::from_parts(BoostedClassifierParts {
///     classes: vec![3, 8],
///     n_features: 1,
///     learning_rate: 0.1,
///     start: vec![0.0],
///     trees: vec![stump],
/// })?;
/// assert_eq!(model.predict(&Matrix::from_vec(2, 1, vec![1.0, 3.0])?), [3, 8]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GradientBoostingClassifier {
    pub(crate) classes: Classes,
    pub(crate) boosted: Boosted,
}

/// Parameters of a [`GradientBoostingClassifier`].
#[derive(Clone, Debug, PartialEq)]
pub struct BoostedClassifierParts {
    /// Labels, strictly increasing, at least two.
    pub classes: Vec<usize>,
    /// Features of a sample.
    pub n_features: usize,
    /// The learning rate: factor of the trees' values.
    pub learning_rate: f64,
    /// The scores before the first tree: one for two classes, otherwise one for each.
    pub start: Vec<f64>,
    /// The trees, stage by stage, in each one for each score; samples counted and impurities are not kept.
    pub trees: Vec<Vec<TreeNode<f32>>>,
}

impl GradientBoostingClassifier {
    /// Makes a model of its parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength) for fewer than two classes or another number of scores,
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for labels that do not increase, nodes that are no
    /// tree, features that samples do not have, leaves or a learning rate that are not finite, a stage that is not
    /// whole; [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn from_parts(parts: BoostedClassifierParts) -> Result<Self, Error> {
        let BoostedClassifierParts { classes, n_features, learning_rate, start, trees } = parts;
        let classes = Classes::from_labels(classes, 2)?;
        Self::of(classes, Boosted::from_nodes(n_features, learning_rate, start, &trees)?)
    }

    pub(crate) fn of(classes: Classes, boosted: Boosted) -> Result<Self, Error> {
        let n_scores = if classes.len() == 2 { 1 } else { classes.len() };
        checks::expect_len("start", n_scores, boosted.width())?;
        Ok(Self { classes, boosted })
    }

    /// Returns the parts.
    #[must_use]
    pub fn to_parts(&self) -> BoostedClassifierParts {
        BoostedClassifierParts {
            classes: self.classes().to_vec(),
            n_features: self.boosted.n_features,
            learning_rate: self.boosted.learning_rate,
            start: self.boosted.start.clone(),
            trees: self.boosted.to_nodes(),
        }
    }

    /// Labels, strictly increasing.
    #[must_use]
    pub const fn classes(&self) -> &[usize] {
        self.classes.labels()
    }

    /// Number of trees.
    #[must_use]
    pub const fn n_trees(&self) -> usize {
        self.boosted.trees.len()
    }

    /// The learning rate: factor of the trees' values.
    #[must_use]
    pub const fn learning_rate(&self) -> f64 {
        self.boosted.learning_rate
    }

    /// The scores before the first tree.
    #[must_use]
    pub const fn start(&self) -> &[f64] {
        self.boosted.start.as_slice()
    }

    /// The decision function of each row of `rows` (`[n_samples, n_features]`, row-major) into `out`
    /// (`[n_samples, n_scores]`, row-major), with one score for two classes and otherwise one for each class.
    /// Allocates nothing for up to 512 classes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutputLength`](crate::ErrorKind::OutputLength),
    /// [`ErrorKind::InputLength`](crate::ErrorKind::InputLength) and
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount) if the lengths do not fit each other and the model.
    pub fn decision_function_into(&self, rows: &[f32], out: &mut [f64]) -> Result<(), Error> {
        let width = self.boosted.width();
        probability::check_outputs(rows, out.len(), self.boosted.n_features, width)?;
        self.boosted.for_each(rows, out.len() / width, &mut |number, scores| {
            if let Some(place) = out.get_mut(number * width..(number + 1) * width) {
                place.copy_from_slice(scores);
            }
        })
    }

    /// The probability of each class for each row of `rows` (`[n_samples, n_features]`, row-major) into `out`
    /// (`[n_samples, n_classes]`, row-major). Allocates nothing for up to 512 classes.
    ///
    /// # Errors
    ///
    /// As [`decision_function_into`](Self::decision_function_into).
    pub fn predict_proba_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_classes = self.classes.len();
        probability::check_outputs(rows, out.len(), self.boosted.n_features, n_classes)?;
        self.boosted.for_each(rows, out.len() / n_classes, &mut |number, scores| match (
            out.get_mut(number * n_classes..(number + 1) * n_classes),
            scores,
        ) {
            (Some([first, second]), &mut [score]) => {
                *first = sigmoid(-score) as f32;
                *second = sigmoid(score) as f32;
            }
            (Some(out), scores) => probability::softmax(scores, out),
            (None, _) => {}
        })
    }

    /// The probability of each class for each sample: a row for each sample, a column for each class.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount).
    pub fn try_predict_proba(&self, x: &Matrix) -> Result<Matrix, Error> {
        table(x, self.classes.len(), |rows, out| self.predict_proba_into(rows, out))
    }
}

/// Of equal scores, and at the score 0 with two classes, the smaller label is predicted.
impl Classifier for GradientBoostingClassifier {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        self.boosted.for_each(rows, out.len(), &mut |number, scores| {
            let class = match *scores {
                [score] => usize::from(score > 0.0),
                _ => largest(scores.iter().copied()),
            };
            if let Some(place) = out.get_mut(number) {
                *place = self.classes.label(class);
            }
        })
    }
}
