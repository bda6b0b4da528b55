//! Grows boosted trees, stage by stage.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::decision_tree::{ClassTargets, TreeOptions};
use crate::error::{Error, ErrorKind};
use crate::gradient_boosting::boosted::Boosted;
use crate::gradient_boosting::loss::Loss;
use crate::gradient_boosting::{GradientBoostingClassifier, GradientBoostingRegressor};
use crate::grow::bins::Binned;
use crate::grow::criterion::{OfValue, Variance};
use crate::grow::{ENSEMBLE_BINS, FeatureOrder, Grower, Grown, normalize, samples};
use crate::matrix::Matrix;
use crate::rng::Rng;
use crate::tree::Tree;
use crate::vector::Vector;
use crate::weighting::{self, CLASS_WEIGHT, ClassWeight, SAMPLE_WEIGHT};
use crate::workers::{Alone, Workers};

/// How to train a [`GradientBoostingClassifier`] or a [`GradientBoostingRegressor`]. The defaults are those of scikit-learn's
/// classes of these names.
#[derive(Clone, Debug, PartialEq)]
pub struct BoostingOptions {
    /// Number of stages, at least 1; one tree each, or one for each class if there are more than two. Default 100.
    pub n_estimators: usize,
    /// The learning rate: factor of the trees' values, above 0. Default 0.1.
    pub learning_rate: f64,
    /// Most splits between the root and a leaf; any number if `None`. Default 3.
    pub max_depth: Option<usize>,
    /// Most leaves of a tree, at least 2; with it, the best split is made first. Default `None`.
    pub max_leaves: Option<usize>,
    /// Fewest samples of a leaf, at least 1. Default 1.
    pub min_samples_leaf: usize,
    /// Added to the denominator of the Newton step that gives a leaf its value, at least 0. Default 0.
    pub l2: f64,
    /// Share of the samples that each stage is grown on, drawn without replacement: above 0, at most 1. Default 1.
    pub subsample: f64,
    /// When to stop before the last stage. Default `None`: never.
    pub early_stopping: Option<EarlyStopping>,
    /// Weights of the classes; a regressor takes [`ClassWeight::Uniform`] only.
    pub class_weight: ClassWeight,
    /// Seed of the random numbers. Default 0.
    pub seed: u64,
}

/// Stops a training when samples that it does not learn from are predicted no better; the stages of boosting, or the epochs of a
/// network, after the best one are dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyStopping {
    /// Share of the samples (of each class) to validate with: above 0, below 1. Default 0.1.
    pub validation_share: f64,
    /// Stages or epochs without a smaller loss after which training stops, at least 1. Default 10.
    pub patience: usize,
}

impl Default for EarlyStopping {
    fn default() -> Self {
        Self { validation_share: 0.1, patience: 10 }
    }
}

impl EarlyStopping {
    pub(crate) fn check(self) -> Result<(), Error> {
        let shared = self.validation_share > 0.0 && self.validation_share < 1.0;
        checks::expect("validation_share", shared, "a number above 0 and below 1 is needed")?;
        checks::expect("patience", self.patience > 0, "at least 1 is needed")
    }
}

impl Default for BoostingOptions {
    fn default() -> Self {
        Self {
            n_estimators: 100,
            learning_rate: 0.1,
            max_depth: Some(3),
            max_leaves: None,
            min_samples_leaf: 1,
            l2: 0.0,
            subsample: 1.0,
            early_stopping: None,
            class_weight: ClassWeight::Uniform,
            seed: 0,
        }
    }
}

impl BoostingOptions {
    fn tree(&self) -> TreeOptions {
        TreeOptions {
            max_depth: self.max_depth,
            max_leaves: self.max_leaves,
            min_samples_leaf: self.min_samples_leaf,
            class_weight: self.class_weight.clone(),
            ..TreeOptions::default()
        }
    }

    fn check(&self) -> Result<(), Error> {
        let rate = self.learning_rate;
        checks::expect_estimators(self.n_estimators)?;
        checks::expect("learning_rate", rate.is_finite() && rate > 0.0, "a finite number above 0 is needed")?;
        checks::expect_not_negative("l2", self.l2)?;
        let shared = self.subsample > 0.0 && self.subsample <= 1.0;
        checks::expect("subsample", shared, "a number above 0 and at most 1 is needed")?;
        self.early_stopping.map_or(Ok(()), EarlyStopping::check)
    }
}

/// What a training of boosted trees found besides the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoostingReport {
    /// Stages of the model.
    pub n_stages: usize,
    /// The mean loss of the validation samples after each stage, also of those dropped: half the squared error, or the
    /// negative logarithm of the probability of the right class. Empty without early stopping.
    pub validation_loss: Vec<f64>,
    /// How much of the decrease of the squared error of the residuals is due to each feature: `[n_features]`, of sum 1, or all
    /// 0 without a split. The model does not store it.
    pub feature_importances: Vec<f64>,
}

impl GradientBoostingClassifier {
    /// Learns from samples `x` (`[n_samples, n_features]`) and their labels, of which there are at least two (Friedman,
    /// Annals of Statistics 29, 2001, algorithms 5 and 6): each tree is fitted to the residuals of the probabilities by least
    /// squares, and its leaves take the value of one Newton step. Features with more than 256 distinct values are divided
    /// into 256 bins of similar numbers of samples, and splits are between bins.
    ///
    /// The same data, options and seed give the same bits on every platform.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::MatrixTooLarge`],
    /// [`ErrorKind::PartLength`] for fewer than two classes, [`ErrorKind::PartInvalid`] for an option outside its range,
    /// [`ErrorKind::Diverged`].
    pub fn fit(x: &Matrix, y: &[usize], options: &BoostingOptions) -> Result<Self, Error> {
        Self::fit_with_report(x, y, None, options).map(|(model, _)| model)
    }

    /// As [`fit`](Self::fit), with a weight for each sample if they are given, which its class's weight is multiplied by.
    /// Samples of weight 0 are left out.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit); [`ErrorKind::PartLength`] and [`ErrorKind::PartInvalid`] for weights that are not one
    /// finite number of at least 0 for each sample, or leave fewer than two classes.
    pub fn fit_with_report(
        x: &Matrix,
        y: &[usize],
        weights: Option<&[f32]>,
        options: &BoostingOptions,
    ) -> Result<(Self, BoostingReport), Error> {
        Self::fit_on(&Alone, x, y, weights, options)
    }

    /// As [`fit_with_report`](Self::fit_with_report); histograms are summed by the workers.
    ///
    /// # Errors
    ///
    /// As [`fit_with_report`](Self::fit_with_report).
    pub fn fit_on(
        workers: &dyn Workers,
        x: &Matrix,
        y: &[usize],
        weights: Option<&[f32]>,
        options: &BoostingOptions,
    ) -> Result<(Self, BoostingReport), Error> {
        let targets = ClassTargets::new(x, y, weights, &options.class_weight)?;
        let n_classes = targets.classes.len();
        if n_classes < 2 {
            let error = ErrorKind::PartLength { part: "classes", expected: 2, found: n_classes };
            return Err(error.into());
        }
        let mut of_classes = vec![0.0; n_classes];
        for (&place, weight) in targets.places.iter().zip(&targets.weights) {
            of_classes[place as usize] += weight;
        }
        let weighted = of_classes.iter().all(|&weight| weight > 0.0);
        let is_uniform = matches!(options.class_weight, ClassWeight::Uniform);
        let part = if is_uniform { SAMPLE_WEIGHT } else { CLASS_WEIGHT };
        checks::expect(part, weighted, "every class needs a sample of a weight above 0")?;
        let loss = Loss::of_classes(&targets.places, n_classes);
        let (boosted, report) = fit(workers, x, &loss, &targets.weights, &targets.places, options)?;
        Ok((Self::of(targets.classes, boosted)?, report))
    }
}

impl GradientBoostingRegressor {
    /// Learns from samples `x` (`[n_samples, n_features]`) and their values, by squared error (Friedman, 2001, algorithm 2);
    /// otherwise as [`GradientBoostingClassifier::fit`].
    ///
    /// # Errors
    ///
    /// As [`GradientBoostingClassifier::fit`], and [`ErrorKind::TargetNotFinite`].
    pub fn fit(x: &Matrix, y: &Vector, options: &BoostingOptions) -> Result<Self, Error> {
        Self::fit_with_report(x, y, None, options).map(|(model, _)| model)
    }

    /// As [`fit`](Self::fit), with a weight for each sample if they are given. Samples of weight 0 are left out.
    ///
    /// # Errors
    ///
    /// As [`GradientBoostingClassifier::fit_with_report`], and [`ErrorKind::TargetNotFinite`].
    pub fn fit_with_report(
        x: &Matrix,
        y: &Vector,
        weights: Option<&[f32]>,
        options: &BoostingOptions,
    ) -> Result<(Self, BoostingReport), Error> {
        Self::fit_on(&Alone, x, y, weights, options)
    }

    /// As [`fit_with_report`](Self::fit_with_report); histograms are summed by the workers.
    ///
    /// # Errors
    ///
    /// As [`fit_with_report`](Self::fit_with_report).
    pub fn fit_on(
        workers: &dyn Workers,
        x: &Matrix,
        y: &Vector,
        weights: Option<&[f32]>,
        options: &BoostingOptions,
    ) -> Result<(Self, BoostingReport), Error> {
        options.tree().expect_no_classes()?;
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        if let Some(row) = y.as_slice().iter().position(|value| !value.is_finite()) {
            return Err(ErrorKind::TargetNotFinite { row }.into());
        }
        let weights = weighting::of_samples(x.n_rows(), weights)?;
        let loss = Loss::Squared { y: y.iter().map(f64::from).collect() };
        let (boosted, report) = fit(workers, x, &loss, &weights, &vec![0; x.n_rows()], options)?;
        Ok((Self::of(boosted)?, report))
    }
}

/// Boosts trees for a loss; `groups` are the classes of the rows.
fn fit(
    workers: &dyn Workers,
    x: &Matrix,
    loss: &Loss<'_>,
    weights: &[f64],
    groups: &[u32],
    options: &BoostingOptions,
) -> Result<(Boosted, BoostingReport), Error> {
    options.check()?;
    let limits = options.tree().limits()?;
    let table = Binned::of(workers, x, ENSEMBLE_BINS)?;
    let mut rng = Rng::new(options.seed);
    let mut rows = samples::weighted_rows(weights);
    let share = options.early_stopping.map(|stopping| stopping.validation_share);
    let validation = share.map(|share| samples::set_aside(&mut rows, groups, share, &mut rng));
    let validation = validation.filter(|validation| !validation.is_empty());
    let start = loss.start(&rows, weights);
    let mut stages = Stages {
        x,
        loss,
        weights,
        options,
        grower: Grower::new(&table, limits, table.n_features(), FeatureOrder::Random, workers),
        scores: start.iter().copied().cycle().take(x.n_rows() * start.len()).collect(),
        predictions: vec![0.0; x.n_rows() * start.len()],
        residuals: vec![0.0; x.n_rows()],
        curvatures: vec![0.0; x.n_rows()],
    };
    let mut trees: Vec<Tree> = Vec::new();
    let (mut report, mut importances, mut best) = (BoostingReport::default(), Vec::new(), f64::INFINITY);
    workers.expect(options.n_estimators);
    for stage in 0..options.n_estimators {
        let drawn = samples::subsample(&rows, options.subsample, &mut rng);
        let mut of_stage = vec![0.0; x.n_cols()];
        stages.add(&rows, validation.as_deref(), drawn, (&mut trees, &mut of_stage), &mut rng)?;
        workers.advance();
        importances.push(of_stage);
        let (Some(validation), Some(stopping)) = (&validation, options.early_stopping) else { continue };
        let validation_loss = loss.mean(&stages.scores, validation, weights);
        if !validation_loss.is_finite() {
            return Err(ErrorKind::Diverged { epoch: stage }.into());
        }
        report.validation_loss.push(validation_loss);
        if validation_loss < best {
            (best, report.n_stages) = (validation_loss, stage + 1);
        } else if stage + 1 - report.n_stages >= stopping.patience {
            break;
        }
    }
    if validation.is_none() {
        report.n_stages = options.n_estimators;
    }
    trees.truncate(report.n_stages * start.len());
    report.feature_importances = vec![0.0; x.n_cols()];
    for of_stage in importances.iter().take(report.n_stages) {
        report.feature_importances.iter_mut().zip(of_stage).for_each(|(sum, value)| *sum += value);
    }
    normalize(&mut report.feature_importances);
    Ok((Boosted::new(x.n_cols(), options.learning_rate, start, trees)?, report))
}

/// The state between two stages.
struct Stages<'f, I> {
    x: &'f Matrix,
    loss: &'f Loss<'f>,
    weights: &'f [f64],
    options: &'f BoostingOptions,
    grower: Grower<'f, I>,
    /// Scores of each row: `[n_rows, n_outputs]`.
    scores: Vec<f64>,
    /// What the scores of each row predict.
    predictions: Vec<f64>,
    /// What the prediction of each row lacks, and how fast that changes, for the tree that is grown.
    residuals: Vec<f64>,
    curvatures: Vec<f64>,
}

impl Stages<'_, OfValue> {
    /// Grows the trees of one stage on the rows drawn, and adds them to the scores of all.
    fn add(
        &mut self,
        rows: &[u32],
        validation: Option<&[u32]>,
        drawn: Option<Vec<u32>>,
        (trees, importances): (&mut Vec<Tree>, &mut [f64]),
        rng: &mut Rng,
    ) -> Result<(), Error> {
        let n_outputs = self.loss.n_outputs();
        let chosen = drawn.as_deref().unwrap_or(rows);
        // All trees of the stage start from the same predictions.
        for &row in chosen {
            let span = row as usize * n_outputs..(row as usize + 1) * n_outputs;
            let predictions = &mut self.predictions[span.clone()];
            predictions.copy_from_slice(&self.scores[span]);
            self.loss.predict(predictions);
        }
        for output in 0..n_outputs {
            for &row in chosen {
                let row = row as usize;
                let prediction = self.predictions[row * n_outputs + output];
                (self.residuals[row], self.curvatures[row]) = self.loss.derivatives(row, prediction, output);
            }
            let criterion = Variance { targets: &self.residuals, weights: self.weights, draws: Vec::new() };
            let grown = self.grower.grow(&criterion, chosen.to_vec(), rng);
            grown.add_importances(importances);
            let values = self.leaf_values(&grown);
            let (scores, rate) = (&mut self.scores, self.options.learning_rate);
            let mut step = |row: u32, value: f32| {
                scores[row as usize * n_outputs + output] += rate * f64::from(value);
            };
            for (node, rows, _) in grown.leaves() {
                rows.iter().for_each(|&row| step(row, values[node]));
            }
            let tree = grown.into_tree(|node, _| values[node])?;
            let not_chosen = rows.iter().filter(|_| drawn.is_some());
            // Sorted, as the rows drawn are.
            let not_chosen = not_chosen.filter(|row| chosen.binary_search(row).is_err());
            for &row in not_chosen.chain(validation.unwrap_or_default()) {
                let start = row as usize * self.x.n_cols();
                step(row, tree.predict(&self.x.as_slice()[start..start + self.x.n_cols()]));
            }
            trees.push(tree);
        }
        Ok(())
    }

    /// A Newton step for each leaf, by the index of its node.
    fn leaf_values(&self, grown: &Grown) -> Vec<f32> {
        let mut values = vec![0.0; grown.n_nodes()];
        for (node, rows, _) in grown.leaves() {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for &row in rows {
                let weight = self.weights[row as usize];
                slope += weight * self.residuals[row as usize];
                curvature += weight * self.curvatures[row as usize];
            }
            let step = self.loss.step_factor() * slope / (curvature + self.options.l2);
            // Probabilities of 0 and 1 have no curvature, and nothing is left to learn.
            let step = step as f32;
            values[node] = if step.is_finite() { step } else { 0.0 };
        }
        values
    }
}
