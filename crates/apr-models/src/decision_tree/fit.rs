//! Grows single trees.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::classes::{Classes, largest};
use crate::decision_tree::{DecisionTreeClassifier, DecisionTreeRegressor, Trained};
use crate::error::{Error, ErrorKind};
use crate::grow::bins::{Binned, MAX_BINS};
use crate::grow::criterion::{Gini, Variance};
use crate::grow::{FeatureOrder, Grower, Grown, Limits, add_importances, normalize, samples};
use crate::matrix::Matrix;
use crate::rng::Rng;
use crate::tree::{Leaf, Tree, TreeNode};
use crate::vector::Vector;
use crate::weighting::{self, Balance, CLASS_WEIGHT, ClassWeight, Weights};
use crate::workers::Alone;

/// How to train a [`DecisionTreeClassifier`] or a [`DecisionTreeRegressor`]. The defaults are scikit-learn's: the tree grows
/// until each leaf has samples of one class, of one value, or that no feature tells apart.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeOptions {
    /// Most splits between the root and a leaf; any number if `None`.
    pub max_depth: Option<usize>,
    /// Most leaves, at least 2; with it, the split that lowers the impurity most is made first. Any number if `None`.
    pub max_leaves: Option<usize>,
    /// Fewest samples of a node that is split, at least 2. Default 2.
    pub min_samples_split: usize,
    /// Fewest samples of a leaf, at least 1. Default 1.
    pub min_samples_leaf: usize,
    /// Weights of the classes; a regressor takes [`ClassWeight::Uniform`] only.
    pub class_weight: ClassWeight,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            max_depth: None,
            max_leaves: None,
            min_samples_split: 2,
            min_samples_leaf: 1,
            class_weight: ClassWeight::Uniform,
        }
    }
}

impl TreeOptions {
    /// The checked limits.
    pub(crate) fn limits(&self) -> Result<Limits, Error> {
        let &Self { max_depth, max_leaves, min_samples_split, min_samples_leaf, .. } = self;
        checks::expect("max_depth", max_depth != Some(0), "at least 1 is needed")?;
        checks::expect("max_leaves", max_leaves.is_none_or(|max| max >= 2), "at least 2 are needed")?;
        checks::expect("min_samples_split", min_samples_split >= 2, "at least 2 are needed")?;
        checks::expect("min_samples_leaf", min_samples_leaf >= 1, "at least 1 is needed")?;
        Ok(Limits { max_depth, max_leaves, min_samples_split, min_samples_leaf })
    }

    pub(crate) fn expect_no_classes(&self) -> Result<(), Error> {
        let uniform = self.class_weight == ClassWeight::Uniform;
        checks::expect(CLASS_WEIGHT, uniform, "there are no classes: weigh the samples")
    }
}

/// Classes to learn, and the weights of their samples.
pub(crate) struct ClassTargets {
    pub(crate) classes: Classes,
    /// Of each sample among the classes.
    pub(crate) places: Vec<u32>,
    pub(crate) weights: Vec<f64>,
}

impl ClassTargets {
    pub(crate) fn new(
        x: &Matrix,
        y: &[usize],
        weights: Option<&[f32]>,
        class_weight: &ClassWeight,
    ) -> Result<Self, Error> {
        let (classes, places) = Classes::of_targets(x, y)?;
        let weights = Weights::new(classes.labels(), &places, weights, class_weight, Balance::Samples)?;
        let weights = weights.products(&places);
        checks::expect(
            CLASS_WEIGHT,
            weights.iter().any(|&weight| weight > 0.0),
            "a sample needs one above 0",
        )?;
        Ok(Self { classes, places, weights })
    }

    pub(crate) fn criterion(&self, draws: Vec<u32>) -> Gini<'_> {
        Gini { n_classes: self.classes.len(), classes: &self.places, weights: &self.weights, draws }
    }

    /// The tree, whose leaves have the class of the largest weight.
    pub(crate) fn tree(&self, grown: Grown) -> Result<Tree, Error> {
        grown.into_tree(|_, sums| self.classes.label(largest(sums.iter().skip(1).copied())))
    }
}

/// Values to learn, less their mean, and the weights of their samples.
pub(crate) struct ValueTargets {
    mean: f64,
    values: Vec<f64>,
    pub(crate) weights: Vec<f64>,
}

impl ValueTargets {
    pub(crate) fn new(x: &Matrix, y: &Vector, weights: Option<&[f32]>) -> Result<Self, Error> {
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        if let Some(row) = y.as_slice().iter().position(|value| !value.is_finite()) {
            return Err(ErrorKind::TargetNotFinite { row }.into());
        }
        let weights = weighting::of_samples(x.n_rows(), weights)?;
        let values = || y.iter().map(f64::from);
        let (mut sum, mut weight) = (0.0, 0.0);
        for (value, of_sample) in values().zip(&weights) {
            sum += of_sample * value;
            weight += of_sample;
        }
        let mean = sum / weight;
        Ok(Self { mean, values: values().map(|value| value - mean).collect(), weights })
    }

    pub(crate) fn criterion(&self, draws: Vec<u32>) -> Variance<'_> {
        Variance { targets: &self.values, weights: &self.weights, draws }
    }

    /// The tree, whose leaves have the mean of their samples.
    pub(crate) fn tree(&self, grown: Grown) -> Result<Tree, Error> {
        grown.into_tree(|_, sums| match sums {
            &[_, weight, sum] => (self.mean + sum / weight) as f32,
            _ => self.mean as f32,
        })
    }
}

impl DecisionTreeClassifier {
    /// Learns from samples `x` (`[n_samples, n_features]`) and their labels: the split of a node is the one that lowers
    /// Gini's impurity most, exact up to 65,536 distinct values of a feature, with thresholds in the middle between two
    /// values (Breiman, Friedman, Olshen and Stone, 1984). Of equally good splits, the one of the first feature with the
    /// lowest threshold is made.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::MatrixTooLarge`],
    /// [`ErrorKind::PartInvalid`] for an option outside its range or a label of 2^32 - 1 or more.
    pub fn fit(x: &Matrix, y: &[usize], options: &TreeOptions) -> Result<Self, Error> {
        Self::fit_samples(x, y, None, options)
    }

    /// As [`fit`](Self::fit), with a weight for each sample, which its class's weight is multiplied by. Samples of weight 0
    /// are left out.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit); [`ErrorKind::PartLength`] and [`ErrorKind::PartInvalid`] for weights that are not one
    /// finite number of at least 0 for each sample, or all 0.
    pub fn fit_weighted(
        x: &Matrix,
        y: &[usize],
        weights: &[f32],
        options: &TreeOptions,
    ) -> Result<Self, Error> {
        Self::fit_samples(x, y, Some(weights), options)
    }

    fn fit_samples(
        x: &Matrix,
        y: &[usize],
        weights: Option<&[f32]>,
        options: &TreeOptions,
    ) -> Result<Self, Error> {
        let limits = options.limits()?;
        let targets = ClassTargets::new(x, y, weights, &options.class_weight)?;
        let table = Binned::of(&Alone, x, MAX_BINS)?;
        let rows = samples::weighted_rows(&targets.weights);
        let mut grower = Grower::new(&table, limits, table.n_features(), FeatureOrder::Table, &Alone);
        let grown = grower.grow(&targets.criterion(Vec::new()), rows, &mut Rng::new(0));
        Self::of_grown(grown, &targets, options.max_depth, x.n_cols())
    }

    pub(crate) fn of_grown(
        grown: Grown,
        targets: &ClassTargets,
        max_depth: Option<usize>,
        n_features: usize,
    ) -> Result<Self, Error> {
        let trained = Trained::of(&grown, &targets.weights, n_features);
        Ok(Self { tree: Some(targets.tree(grown)?), max_depth, n_features: Some(n_features), trained })
    }

    /// How much of the decrease of the impurity is due to each feature, weighted by the samples at the splits: `[n_features]`,
    /// of sum 1, or all 0 without a split. Files hold impurities and numbers of samples: of a tree that was read, weights of
    /// samples count only through the impurities.
    #[must_use]
    pub fn feature_importances(&self) -> Vec<f64> {
        if let Some(importances) = &self.trained.importances {
            return importances.clone();
        }
        let tested = self.tree.as_ref().map_or(0, Tree::n_features);
        importances::<usize>(self.tree.as_ref(), self.n_features.unwrap_or(tested))
    }
}

impl DecisionTreeRegressor {
    /// Learns from samples `x` (`[n_samples, n_features]`) and their values: the split of a node is the one that lowers the
    /// squared error most; otherwise as [`DecisionTreeClassifier::fit`].
    ///
    /// # Errors
    ///
    /// As [`DecisionTreeClassifier::fit`], and [`ErrorKind::TargetNotFinite`].
    pub fn fit(x: &Matrix, y: &Vector, options: &TreeOptions) -> Result<Self, Error> {
        Self::fit_samples(x, y, None, options)
    }

    /// As [`fit`](Self::fit), with a weight for each sample. Samples of weight 0 are left out.
    ///
    /// # Errors
    ///
    /// As [`DecisionTreeClassifier::fit_weighted`], and [`ErrorKind::TargetNotFinite`].
    pub fn fit_weighted(
        x: &Matrix,
        y: &Vector,
        weights: &[f32],
        options: &TreeOptions,
    ) -> Result<Self, Error> {
        Self::fit_samples(x, y, Some(weights), options)
    }

    fn fit_samples(
        x: &Matrix,
        y: &Vector,
        weights: Option<&[f32]>,
        options: &TreeOptions,
    ) -> Result<Self, Error> {
        options.expect_no_classes()?;
        let limits = options.limits()?;
        let targets = ValueTargets::new(x, y, weights)?;
        let table = Binned::of(&Alone, x, MAX_BINS)?;
        let rows = samples::weighted_rows(&targets.weights);
        let mut grower = Grower::new(&table, limits, table.n_features(), FeatureOrder::Table, &Alone);
        let grown = grower.grow(&targets.criterion(Vec::new()), rows, &mut Rng::new(0));
        Self::of_grown(grown, &targets, options, x.n_cols())
    }

    pub(crate) fn of_grown(
        grown: Grown,
        targets: &ValueTargets,
        options: &TreeOptions,
        n_features: usize,
    ) -> Result<Self, Error> {
        let &TreeOptions { max_depth, min_samples_split, min_samples_leaf, .. } = options;
        let trained = Trained::of(&grown, &targets.weights, n_features);
        Ok(Self { tree: Some(targets.tree(grown)?), max_depth, min_samples_split, min_samples_leaf, trained })
    }

    /// As [`DecisionTreeClassifier::feature_importances`], for the first `n_features` features: such trees do not store how
    /// many there are.
    #[must_use]
    pub fn feature_importances(&self, n_features: usize) -> Vec<f64> {
        if let Some(importances) = &self.trained.importances {
            let all = importances.iter().copied().chain(core::iter::repeat(0.0));
            let mut first: Vec<f64> = all.take(n_features).collect();
            normalize(&mut first);
            return first;
        }
        importances::<f32>(self.tree.as_ref(), n_features)
    }
}

impl Trained {
    fn of(grown: &Grown, weights: &[f64], n_features: usize) -> Self {
        let mut counted = weights.iter().filter(|weight| **weight > 0.0);
        let first = counted.next();
        let is_weighted = counted.any(|weight| Some(weight) != first);
        Self { importances: is_weighted.then(|| grown.importances(n_features)) }
    }
}

fn importances<L: Leaf>(tree: Option<&Tree>, n_features: usize) -> Vec<f64> {
    let nodes: Vec<TreeNode<L>> = tree.iter().flat_map(|tree| tree.iter()).collect();
    let mut importances = vec![0.0; n_features];
    add_importances(&nodes, |_| None, &mut importances);
    normalize(&mut importances);
    importances
}
