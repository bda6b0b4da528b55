//! Decision trees, forests of them, boosted trees and isolation forests.

use apr_container::Value;
use apr_models::{
    BoostingOptions, Contamination, DecisionTreeClassifier, DecisionTreeRegressor, ForestOptions,
    GradientBoostingClassifier, GradientBoostingRegressor, IsolationForest, IsolationOptions, MaxFeatures,
    RandomForestClassifier, RandomForestRegressor, TreeOptions, TreeSamples,
};
use clap::{Args, ValueEnum};

use super::Trained;
use super::algorithms::{Run, SETTINGS, SeedArg, decimal, named};
use super::data::{ClassesArg, Data, Needs, Table, Target};
use super::validation::EarlyStoppingArgs;
use super::weights::WeightArgs;
use crate::error::Failure;

#[derive(Debug, Args)]
pub(super) struct DecisionTreeArgs {
    /// Most splits between the root and a leaf.
    #[arg(long, value_name = "N", help_heading = SETTINGS)]
    max_depth: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Fewest samples of a node that is split.
    #[arg(long, value_name = "N", default_value = "2", help_heading = SETTINGS)]
    min_samples_split: usize,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

#[derive(Debug, Args)]
pub(super) struct RandomForestArgs {
    /// Number of trees.
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one, help_heading = SETTINGS)]
    trees: usize,
    /// Random features that each split chooses among: `sqrt`, `all` or a number; by default `sqrt` for classes, `all` for numbers.
    #[arg(long, value_name = "FEATURES", value_parser = max_features, help_heading = SETTINGS)]
    max_features: Option<MaxFeatures>,
    /// Samples of each tree.
    #[arg(long, value_name = "SAMPLES", value_enum, default_value_t = SamplesArg::Bootstrap, help_heading = SETTINGS)]
    samples: SamplesArg,
    #[command(flatten)]
    tree: DecisionTreeArgs,
}

/// A value of `--samples`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SamplesArg {
    /// As many as there are, drawn with replacement.
    Bootstrap,
    /// All.
    All,
}

#[derive(Debug, Args)]
pub(super) struct BoostingArgs {
    /// Number of stages: a tree each, or one for each class if there are more than two.
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one, help_heading = SETTINGS)]
    trees: usize,
    /// Factor of the values of the trees.
    #[arg(long, value_name = "NUMBER", default_value = "0.1", help_heading = SETTINGS)]
    learning_rate: f64,
    /// Most splits between the root and a leaf [default: 3, with --max-leaves any number].
    #[arg(long, value_name = "N", help_heading = SETTINGS)]
    max_depth: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Added to the denominator of the values of leaves.
    #[arg(long, value_name = "NUMBER", default_value = "0", help_heading = SETTINGS)]
    l2: f64,
    /// Share of the samples that each stage learns from.
    #[arg(long, value_name = "SHARE", default_value = "1", help_heading = SETTINGS)]
    subsample: f64,
    #[command(flatten)]
    early_stopping: EarlyStoppingArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

#[derive(Debug, Args)]
struct LimitArgs {
    /// Most leaves of a tree; the best split is then made first.
    #[arg(long, value_name = "N", help_heading = SETTINGS)]
    max_leaves: Option<usize>,
    /// Fewest samples of a leaf.
    #[arg(long, value_name = "N", default_value = "1", help_heading = SETTINGS)]
    min_samples_leaf: usize,
}

#[derive(Debug, Args)]
pub(super) struct TargetArgs {
    #[command(flatten)]
    classes: ClassesArg,
    #[command(flatten)]
    weights: WeightArgs,
}

#[derive(Debug, Args)]
pub(super) struct IsolationForestArgs {
    /// Number of trees.
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one, help_heading = SETTINGS)]
    trees: usize,
    /// Samples of each tree [default: 256, or all if there are fewer].
    #[arg(long, value_name = "N", help_heading = SETTINGS)]
    max_samples: Option<usize>,
    /// Share of the samples that are outliers; by default those whose score is below -0.5.
    #[arg(long, value_name = "SHARE", help_heading = SETTINGS)]
    contamination: Option<f32>,
    #[command(flatten)]
    seed: SeedArg,
}

fn at_least_one(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|&count| count > 0).ok_or("a number of at least 1")
}

fn max_features(text: &str) -> Result<MaxFeatures, String> {
    match text {
        "sqrt" => Ok(MaxFeatures::Sqrt),
        "all" => Ok(MaxFeatures::All),
        _ => text.parse().map(MaxFeatures::Count).map_err(|_| "`sqrt`, `all` or a number".to_owned()),
    }
}

impl RandomForestArgs {
    pub(super) const fn target(&self) -> &TargetArgs {
        &self.tree.target
    }
}

impl TargetArgs {
    /// What the target is, and the column of weights.
    pub(super) fn asked(&self) -> (Needs, Option<&str>) {
        let needs = self.classes.or(Needs::Either);
        (needs, self.weights.column())
    }
}

impl LimitArgs {
    fn settings(&self) -> impl Iterator<Item = (String, Value)> {
        let least = ("min_samples_leaf".to_owned(), self.min_samples_leaf.into());
        optional("max_leaves", self.max_leaves).chain([least])
    }
}

impl DecisionTreeArgs {
    fn options(&self, table: &Table) -> Result<TreeOptions, Failure> {
        Ok(TreeOptions {
            max_depth: self.max_depth,
            max_leaves: self.limits.max_leaves,
            min_samples_split: self.min_samples_split,
            min_samples_leaf: self.limits.min_samples_leaf,
            class_weight: self.target.weights.class_weight(table)?,
        })
    }

    fn settings(&self) -> impl Iterator<Item = (String, Value)> {
        optional("max_depth", self.max_depth)
            .chain(self.limits.settings())
            .chain([("min_samples_split".to_owned(), self.min_samples_split.into())])
            .chain(self.target.weights.settings())
    }
}

fn optional(name: &str, value: Option<usize>) -> impl Iterator<Item = (String, Value)> {
    value.map(|value| (name.to_owned(), value.into())).into_iter()
}

pub(super) fn decision_tree(args: &DecisionTreeArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (x, options) = (&table.x, args.options(table)?);
    let settings = args.settings().collect();
    if let Target::Classes { ids, .. } = &table.target {
        let model = match table.weights() {
            None => DecisionTreeClassifier::fit(x, ids, &options)?,
            Some(weights) => DecisionTreeClassifier::fit_weighted(x, ids, weights, &options)?,
        };
        let importances = model.feature_importances();
        return Ok(Trained::new(model, settings).with_importances(importances));
    }
    let y = table.numbers()?;
    let model = match table.weights() {
        None => DecisionTreeRegressor::fit(x, y, &options)?,
        Some(weights) => DecisionTreeRegressor::fit_weighted(x, y, weights, &options)?,
    };
    let importances = model.feature_importances(x.n_cols());
    Ok(Trained::new(model, settings).with_importances(importances))
}

pub(super) fn random_forest(args: &RandomForestArgs, data: &Data, run: Run<'_>) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (x, weights, Run { seed, workers }) = (&table.x, table.weights(), run);
    let options = ForestOptions {
        n_estimators: args.trees,
        max_features: args.max_features,
        samples: match args.samples {
            SamplesArg::Bootstrap => TreeSamples::Bootstrap,
            SamplesArg::All => TreeSamples::All,
        },
        tree: args.tree.options(table)?,
        seed,
    };
    let default = if table.class_ids().is_some() { MaxFeatures::Sqrt } else { MaxFeatures::All };
    let max_features = match args.max_features.unwrap_or(default) {
        MaxFeatures::All => Value::from("all"),
        MaxFeatures::Sqrt => "sqrt".into(),
        MaxFeatures::Count(count) => count.into(),
    };
    let samples = if options.samples == TreeSamples::All { "all" } else { "bootstrap" };
    let mut settings = named([
        ("trees", args.trees.into()),
        ("max_features", max_features),
        ("samples", samples.into()),
        ("seed", seed.into()),
    ]);
    settings.extend(args.tree.settings());
    if let Target::Classes { ids, .. } = &table.target {
        let model = RandomForestClassifier::fit_on(workers, x, ids, weights, &options)?;
        let importances = model.feature_importances();
        return Ok(Trained::new(model, settings).with_importances(importances));
    }
    let y = table.numbers()?;
    let model = RandomForestRegressor::fit_on(workers, x, y, weights, &options)?;
    let importances = model.feature_importances(x.n_cols());
    Ok(Trained::new(model, settings).with_importances(importances))
}

pub(super) fn gradient_boosting(args: &BoostingArgs, data: &Data, run: Run<'_>) -> Result<Trained, Failure> {
    let (table, Run { seed, workers }) = (data.table()?, run);
    let &BoostingArgs { trees, learning_rate, l2, subsample, early_stopping, .. } = args;
    let LimitArgs { max_leaves, min_samples_leaf } = args.limits;
    let max_depth = args.max_depth.or(if max_leaves.is_some() { None } else { Some(3) });
    let options = BoostingOptions {
        n_estimators: trees,
        learning_rate,
        max_depth,
        max_leaves,
        min_samples_leaf,
        l2,
        subsample,
        early_stopping: early_stopping.options(),
        class_weight: args.target.weights.class_weight(table)?,
        seed,
    };
    let mut settings = named([
        ("trees", trees.into()),
        ("learning_rate", learning_rate.into()),
        ("l2", l2.into()),
        ("subsample", subsample.into()),
        ("seed", seed.into()),
    ]);
    settings.extend(optional("max_depth", max_depth));
    settings.extend(args.limits.settings());
    settings.extend(args.target.weights.settings());
    settings.extend(early_stopping.settings());
    let (x, weights) = (&table.x, table.weights());
    let (trained, report) = match &table.target {
        Target::Classes { ids, .. } => {
            let (model, report) = GradientBoostingClassifier::fit_on(workers, x, ids, weights, &options)?;
            (Trained::new(model, settings), report)
        }
        _ => {
            let y = table.numbers()?;
            let (model, report) = GradientBoostingRegressor::fit_on(workers, x, y, weights, &options)?;
            (Trained::new(model, settings), report)
        }
    };
    let metrics = EarlyStoppingArgs::metrics("stages", report.n_stages, &report.validation_loss);
    Ok(trained.with_metrics(metrics).with_importances(report.feature_importances))
}

pub(super) fn isolation_forest(args: &IsolationForestArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let &IsolationForestArgs { trees, max_samples, contamination, seed: SeedArg { seed } } = args;
    let options = IsolationOptions {
        n_estimators: trees,
        max_samples,
        contamination: contamination.map_or(Contamination::Auto, Contamination::Share),
        seed,
    };
    let model = IsolationForest::fit(&table.x, &options)?;
    let outliers = model.try_predict(&table.x)?.iter().filter(|&&answer| answer < 0).count();
    let mut settings = named([("trees", trees.into()), ("seed", seed.into())]);
    settings.extend(optional("max_samples", max_samples));
    settings.insert("contamination".to_owned(), contamination.map_or_else(|| Value::from("auto"), decimal));
    let mut metrics = named([("outliers", outliers.into())]);
    metrics.extend(model.threshold().map(|threshold| ("threshold".to_owned(), decimal(threshold))));
    Ok(Trained::new(model, settings).with_metrics(metrics))
}
