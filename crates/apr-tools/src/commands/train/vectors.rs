//! Models whose parameters are samples: support vector machines and nearest neighbours.

use apr_container::{Map, Value};
use apr_models::{
    Accepts, AnyModel, ClassHead, DecisionFunction, DecisionRule, Head, Input, KernelStep, KernelSvmOptions,
    KnnClassifier, KnnRegressor, KnnWeights, Labels, LinearParts, LinearSvmOptions, Link, Matrix,
    NeighbourMetric, NeighbourOutput, NeighbourSearch, NeighboursParts, NeighboursStep, OutputShape,
    Pipeline, ProbabilityRule, Step, StepKernel, Svm, SvmKernel, Table as Rows, ValueKind,
};
use clap::{Args, ValueEnum};

use super::Trained;
use super::algorithms::{SETTINGS, named};
use super::data::{Data, Needs, Target};
use super::linear::ended;
use super::scaling::{Scale, StandardizeArg};
use super::weights::WeightArgs;
use crate::error::{CODE_USAGE, Failure};

#[derive(Debug, Args)]
pub(super) struct SvmArgs {
    /// Kernel function: planes, or `exp(-gamma * |a - b|^2)`.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = KernelArg::Rbf, help_heading = SETTINGS)]
    kernel: KernelArg,
    /// Weight of the errors against that of the penalty on large coefficients.
    #[arg(long, value_name = "NUMBER", default_value = "1", help_heading = SETTINGS)]
    c: f64,
    /// A number; `scale`: 1 / (features * variance of all values); `auto`: 1 / features.
    #[arg(long, value_name = "GAMMA", default_value = "scale", help_heading = SETTINGS)]
    gamma: String,
    /// Maximum number of iterations for a class, or a pair of classes [default: 1000, or 10000000 with a kernel].
    #[arg(long, value_name = "N", help_heading = SETTINGS)]
    max_iter: Option<usize>,
    #[command(flatten)]
    pub(super) weights: WeightArgs,
    #[command(flatten)]
    standardize: StandardizeArg,
}

/// A value of `--kernel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KernelArg {
    Linear,
    Rbf,
}

#[derive(Debug, Args)]
pub(super) struct KnnArgs {
    /// Number of neighbours.
    #[arg(long, value_name = "N", default_value = "5", help_heading = SETTINGS)]
    neighbours: usize,
    /// What neighbours count: the same, or by the inverse of their distance.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = WeightsArg::Uniform, help_heading = SETTINGS)]
    weights: WeightsArg,
    /// The target is a class even if it is a number.
    #[arg(long, help_heading = SETTINGS)]
    classes: bool,
    #[command(flatten)]
    standardize: StandardizeArg,
}

/// A value of `--weights`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WeightsArg {
    Uniform,
    Distance,
}

impl KnnArgs {
    pub(super) const fn needs(&self) -> Needs {
        if self.classes { Needs::Classes } else { Needs::Either }
    }
}

pub(super) fn svm(args: &SvmArgs, data: &Data) -> Result<Trained, Failure> {
    match args.kernel {
        KernelArg::Linear => linear_svm(args, data),
        KernelArg::Rbf => kernel_svm(args, data),
    }
}

fn linear_svm(args: &SvmArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (ids, _) = table.classes()?;
    let &SvmArgs { c, ref weights, standardize, .. } = args;
    let (scale, x) = standardize.samples(table)?;
    let defaults = LinearSvmOptions::default();
    let max_iter = args.max_iter.unwrap_or(defaults.max_iter);
    let class_weight = weights.class_weight(table)?;
    let options = LinearSvmOptions { c, max_iter, class_weight, ..defaults };
    let (mut model, convergence) = match table.weights() {
        None => Svm::fit_linear(&x, ids, &options)?,
        Some(weights) => Svm::fit_linear_weighted(&x, ids, weights, &options)?,
    };
    if let (Some(scale), Some(LinearParts { classes, weights, intercepts })) = (scale, model.linear_parts()) {
        let (n_rows, n_cols) = weights.shape();
        let planes = weights.rows().zip(intercepts);
        let (weights, intercepts): (Vec<Vec<f32>>, Vec<f32>) =
            planes.map(|(row, constant)| scale.plain(row.iter().copied(), constant)).unzip();
        let weights = Matrix::from_vec(n_rows, n_cols, weights.concat())?;
        model = Svm::linear(LinearParts { classes, weights, intercepts })?;
    }
    let hyperparameters = svm_settings(args, "linear", max_iter);
    Ok(Trained::new(model, hyperparameters).with_metrics(ended(convergence)))
}

fn svm_settings(args: &SvmArgs, kernel: &str, max_iter: usize) -> Map<Value> {
    let mut settings = named([
        ("kernel", kernel.into()),
        ("c", args.c.into()),
        ("max_iter", max_iter.into()),
        ("standardize", args.standardize.standardize.into()),
    ]);
    settings.extend(args.weights.settings());
    settings
}

fn gamma(text: &str, x: &Matrix) -> Result<f64, Failure> {
    match (text, SvmKernel::rbf_scale(x)?) {
        ("scale", SvmKernel::Rbf { gamma }) => Ok(gamma),
        ("auto", _) => Ok(1.0 / x.n_cols() as f64),
        _ => text.parse().map_err(|_| {
            let failure = Failure::new(CODE_USAGE, format!("`--gamma {text}` is no number"));
            failure.help("write a number, `scale` or `auto`")
        }),
    }
}

fn kernel_svm(args: &SvmArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (ids, names) = table.classes()?;
    let &SvmArgs { c, ref weights, standardize, .. } = args;
    let (scale, x) = standardize.samples(table)?;
    let gamma = gamma(&args.gamma, &x)?;
    let defaults = KernelSvmOptions::new(SvmKernel::Rbf { gamma });
    let max_iter = args.max_iter.unwrap_or(defaults.max_iter);
    let class_weight = weights.class_weight(table)?;
    let options = KernelSvmOptions { c, max_iter, class_weight, ..defaults };
    let (model, convergence) = match table.weights() {
        None => Svm::fit_kernel(&x, ids, &options)?,
        Some(weights) => Svm::fit_kernel_weighted(&x, ids, weights, &options)?,
    };
    let mut metrics = ended(convergence);
    let n_vectors = model.kernel_parts().map_or(0, |parts| parts.support_vectors.n_rows());
    metrics.insert("support_vectors".to_owned(), n_vectors);
    let mut hyperparameters = svm_settings(args, "rbf", max_iter);
    hyperparameters.insert("gamma".to_owned(), gamma);
    let model = match scale {
        None => model.into(),
        Some(scale) => scaled_svm(&model, gamma, &scale, names)?,
    };
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

/// The machine after the scaler.
fn scaled_svm(model: &Svm, gamma: f64, scale: &Scale, names: &[String]) -> Result<AnyModel, Failure> {
    let Some(mut parts) = model.kernel_parts() else {
        return Err(Failure::new(CODE_USAGE, "the machine has no support vectors"));
    };
    // The step has libsvm's signs: with two classes, values above 0 speak for the first one.
    if parts.classes.len() == 2 {
        let numbers = parts.dual.iter_mut().chain(&mut parts.intercepts);
        numbers.for_each(|number| *number = -*number);
    }
    let vectors = Rows::dense(parts.support_vectors.n_rows(), parts.support_vectors.into_vec().into())?;
    let (kernel, n_support) = (StepKernel::Rbf { gamma }, parts.n_support);
    let step = KernelStep::new(kernel, n_support, vectors, parts.dual.into(), parts.intercepts.into())?;
    let head = ClassHead {
        labels: labels(names),
        rule: DecisionRule::OneVsOne,
        probabilities: ProbabilityRule::None,
        decision_function: DecisionFunction::OneVsOne,
    };
    pipeline(scale, Step::Kernel(step), Head::Classes(head))
}

fn pipeline(scale: &Scale, step: Step, head: Head) -> Result<AnyModel, Failure> {
    let input = Input::Numbers { n_features: scale.columns().count(), accepts: Accepts::Finite };
    Ok(Pipeline::from_parts(input, vec![scale.step()?, step], head)?.into())
}

/// The classes as a pipeline has them: whole numbers are that.
fn labels(names: &[String]) -> Labels {
    let numbers = names.iter().map(|name| name.parse()).collect::<Result<Vec<i64>, _>>();
    match numbers {
        Ok(numbers) => Labels::Integers(numbers),
        Err(_) => Labels::Texts(names.to_vec()),
    }
}

pub(super) fn knn(args: &KnnArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let &KnnArgs { neighbours: k, standardize, .. } = args;
    let (weights, name) = match args.weights {
        WeightsArg::Uniform => (KnnWeights::Uniform, "uniform"),
        WeightsArg::Distance => (KnnWeights::Distance, "distance"),
    };
    let hyperparameters = named([
        ("neighbours", k.into()),
        ("weights", name.into()),
        ("standardize", standardize.standardize.into()),
    ]);
    let (scale, x) = standardize.samples(table)?;
    let x = x.into_owned();
    let Some(scale) = scale else {
        let model: AnyModel = match &table.target {
            Target::Classes { ids, .. } => KnnClassifier::fit(x, ids, k, weights)?.into(),
            _ => KnnRegressor::fit(x, table.numbers()?.clone(), k, weights)?.into(),
        };
        return Ok(Trained::new(model, hyperparameters));
    };
    let (answer, head) = match &table.target {
        Target::Classes { ids, names } => {
            let class_of = ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
            let head = ClassHead {
                labels: labels(names),
                rule: DecisionRule::ArgMax,
                probabilities: ProbabilityRule::Normalized,
                decision_function: DecisionFunction::None,
            };
            (NeighbourOutput::Classes { n_classes: names.len(), class_of }, Head::Classes(head))
        }
        _ => {
            let targets = table.numbers()?.iter().collect::<Vec<f32>>().into();
            let (kind, link, shape) = (ValueKind::Predictions, Link::None, OutputShape::Vector);
            (NeighbourOutput::Values { n_outputs: 1, targets }, Head::Values { kind, link, shape })
        }
    };
    let (metric, search) = (NeighbourMetric::Euclidean, NeighbourSearch::InOrder);
    let samples = Rows::dense(x.n_rows(), x.into_vec().into())?;
    let step = NeighboursStep::new(NeighboursParts { k, metric, weights, samples, search, answer })?;
    Ok(Trained::new(pipeline(&scale, Step::Neighbours(step), head)?, hyperparameters))
}
