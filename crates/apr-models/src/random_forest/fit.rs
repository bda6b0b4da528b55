//! Grows forests.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::decision_tree::{
    ClassTargets, DecisionTreeClassifier, DecisionTreeRegressor, TreeOptions, ValueTargets,
};
use crate::error::Error;
use crate::grow::bins::Binned;
use crate::grow::criterion::Criterion;
use crate::grow::{ENSEMBLE_BINS, FeatureOrder, Grower, Grown, normalize, samples};
use crate::matrix::Matrix;
use crate::random_forest::forest::Forest;
use crate::random_forest::{RandomForestClassifier, RandomForestRegressor};
use crate::rng::Rng;
use crate::vector::Vector;
use crate::workers::{Alone, Workers};

/// How many random features each split chooses among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxFeatures {
    /// All: then only the drawing of samples makes trees differ.
    All,
    /// The square root of the number of features, rounded down.
    Sqrt,
    /// This many, at least 1; no more than there are.
    Count(usize),
}

impl MaxFeatures {
    pub(crate) fn of(self, n_features: usize) -> Result<usize, Error> {
        checks::expect("max_features", self != Self::Count(0), "at least 1 is needed")?;
        Ok(match self {
            Self::All => n_features,
            Self::Sqrt => n_features.isqrt().max(1),
            Self::Count(count) => count.min(n_features),
        })
    }
}

/// The samples that each tree of a forest is grown on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeSamples {
    /// As many as there are, drawn with replacement.
    #[default]
    Bootstrap,
    /// All.
    All,
}

/// How to train a [`RandomForestClassifier`] or a [`RandomForestRegressor`].
#[derive(Clone, Debug, PartialEq)]
pub struct ForestOptions {
    /// Number of trees, at least 1. Default 100.
    pub n_estimators: usize,
    /// Features that each split chooses among, drawn again at each. `None`, the default: the square root of their number for
    /// classes, all for values, as in scikit-learn.
    pub max_features: Option<MaxFeatures>,
    /// The samples of each tree.
    pub samples: TreeSamples,
    /// How each tree grows.
    pub tree: TreeOptions,
    /// Seed of the random numbers. Default 0.
    pub seed: u64,
}

impl Default for ForestOptions {
    fn default() -> Self {
        Self {
            n_estimators: 100,
            max_features: None,
            samples: TreeSamples::Bootstrap,
            tree: TreeOptions::default(),
            seed: 0,
        }
    }
}

/// Grows each tree on the rows of weight above 0; `criterion` is given how often each was drawn.
fn grow<C: Criterion, T: Send>(
    workers: &dyn Workers,
    (x, weights): (&Matrix, &[f64]),
    (options, default): (&ForestOptions, MaxFeatures),
    criterion: impl Fn(Vec<u32>) -> C + Sync,
    tree: impl Fn(Grown) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    checks::expect_estimators(options.n_estimators)?;
    let limits = options.tree.limits()?;
    let max_features = options.max_features.unwrap_or(default).of(x.n_cols())?;
    let table = Binned::of(workers, x, ENSEMBLE_BINS)?;
    let rows = samples::weighted_rows(weights);
    let mut rng = Rng::new(options.seed);
    let seeds: Vec<u64> = (0..options.n_estimators).map(|_| rng.next_u64()).collect();
    // One grower, whose buffers are used again, for several trees; short lists, so that all workers end together.
    let lists: Vec<&[u64]> =
        seeds.chunks(seeds.len().div_ceil(LISTS_OF_A_WORKER * workers.count())).collect();
    workers.expect(seeds.len());
    let trees = workers.map(lists.len(), |list| {
        let mut grower = Grower::new(&table, limits, max_features, FeatureOrder::Random, &Alone);
        let trees = lists[list].iter().map(|&seed| {
            let mut rng = Rng::new(seed);
            let (rows, draws) = match options.samples {
                TreeSamples::All => (rows.clone(), Vec::new()),
                TreeSamples::Bootstrap => {
                    let draws = samples::bootstrap(&rows, x.n_rows(), &mut rng);
                    let drawn = rows.iter().copied().filter(|&row| draws[row as usize] > 0);
                    (drawn.collect(), draws)
                }
            };
            grower.forget_order();
            let tree = tree(grower.grow(&criterion(draws), rows, &mut rng));
            workers.advance();
            tree
        });
        checks::all(trees)
    });
    Ok(checks::all(trees.into_iter())?.into_iter().flatten().collect())
}

/// Lists of trees for each worker.
const LISTS_OF_A_WORKER: usize = 8;

impl RandomForestClassifier {
    /// Learns from samples `x` (`[n_samples, n_features]`) and their labels: each tree is grown on a random draw of the
    /// samples, each of its splits chooses among random features (Breiman, 2001). Features with more than 256 distinct values
    /// are divided into 256 bins of similar numbers of samples, and splits are between bins.
    ///
    /// The same data, options and seed give the same bits on every platform.
    ///
    /// # Errors
    ///
    /// As [`DecisionTreeClassifier::fit`].
    pub fn fit(x: &Matrix, y: &[usize], options: &ForestOptions) -> Result<Self, Error> {
        Self::fit_on(&Alone, x, y, None, options)
    }

    /// As [`fit`](Self::fit), with a weight for each sample, which its class's weight is multiplied by. Samples of weight 0
    /// are left out; those of other weights are drawn alike.
    ///
    /// # Errors
    ///
    /// As [`DecisionTreeClassifier::fit_weighted`].
    pub fn fit_weighted(
        x: &Matrix,
        y: &[usize],
        weights: &[f32],
        options: &ForestOptions,
    ) -> Result<Self, Error> {
        Self::fit_on(&Alone, x, y, Some(weights), options)
    }

    /// As [`fit_weighted`](Self::fit_weighted) if there are weights, else as [`fit`](Self::fit); trees are grown by the workers.
    ///
    /// # Errors
    ///
    /// As [`fit_weighted`](Self::fit_weighted).
    pub fn fit_on(
        workers: &dyn Workers,
        x: &Matrix,
        y: &[usize],
        weights: Option<&[f32]>,
        options: &ForestOptions,
    ) -> Result<Self, Error> {
        let targets = ClassTargets::new(x, y, weights, &options.tree.class_weight)?;
        let max_depth = options.tree.max_depth;
        let trees = grow(
            workers,
            (x, &targets.weights),
            (options, MaxFeatures::Sqrt),
            |draws| targets.criterion(draws),
            |grown| DecisionTreeClassifier::of_grown(grown, &targets, max_depth, x.n_cols()),
        )?;
        Ok(Self(Forest::from_trees(trees)?).with_training(max_depth, Some(options.seed)))
    }

    /// The mean of the trees' [importances](DecisionTreeClassifier::feature_importances): `[n_features]`, of sum 1, or all 0
    /// without a split.
    #[must_use]
    pub fn feature_importances(&self) -> Vec<f64> {
        mean(self.0.trees.iter().map(DecisionTreeClassifier::feature_importances))
    }
}

impl RandomForestRegressor {
    /// Learns from samples `x` (`[n_samples, n_features]`) and their values, as [`RandomForestClassifier::fit`].
    ///
    /// # Errors
    ///
    /// As [`DecisionTreeRegressor::fit`].
    pub fn fit(x: &Matrix, y: &Vector, options: &ForestOptions) -> Result<Self, Error> {
        Self::fit_on(&Alone, x, y, None, options)
    }

    /// As [`fit`](Self::fit), with a weight for each sample. Samples of weight 0 are left out; those of other weights are
    /// drawn alike.
    ///
    /// # Errors
    ///
    /// As [`DecisionTreeRegressor::fit_weighted`].
    pub fn fit_weighted(
        x: &Matrix,
        y: &Vector,
        weights: &[f32],
        options: &ForestOptions,
    ) -> Result<Self, Error> {
        Self::fit_on(&Alone, x, y, Some(weights), options)
    }

    /// As [`fit_weighted`](Self::fit_weighted) if there are weights, else as [`fit`](Self::fit); trees are grown by the workers.
    ///
    /// # Errors
    ///
    /// As [`fit_weighted`](Self::fit_weighted).
    pub fn fit_on(
        workers: &dyn Workers,
        x: &Matrix,
        y: &Vector,
        weights: Option<&[f32]>,
        options: &ForestOptions,
    ) -> Result<Self, Error> {
        options.tree.expect_no_classes()?;
        let targets = ValueTargets::new(x, y, weights)?;
        let trees = grow(
            workers,
            (x, &targets.weights),
            (options, MaxFeatures::All),
            |draws| targets.criterion(draws),
            |grown| DecisionTreeRegressor::of_grown(grown, &targets, &options.tree, x.n_cols()),
        )?;
        Ok(Self(Forest::from_trees(trees)?).with_training(options.tree.max_depth, Some(options.seed)))
    }

    /// The mean of the trees' [importances](DecisionTreeRegressor::feature_importances) of the first `n_features` features.
    #[must_use]
    pub fn feature_importances(&self, n_features: usize) -> Vec<f64> {
        mean(self.0.trees.iter().map(|tree| tree.feature_importances(n_features)))
    }
}

fn mean(of_trees: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    let mut sums = Vec::new();
    for importances in of_trees {
        if sums.is_empty() {
            sums = vec![0.0; importances.len()];
        }
        sums.iter_mut().zip(importances).for_each(|(sum, value)| *sum += value);
    }
    normalize(&mut sums);
    sums
}
