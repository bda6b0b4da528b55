//! Models whose parameters are samples: support vector machines and nearest neighbours.

use apr_container::{Map, Value};
use apr_models::{
    Accepts, AnyModel, Input, KernelSvmOptions, KnnClassifier, KnnRegressor, KnnWeights, Labels, LinearParts,
    LinearSvmOptions, Matrix, Pipeline, Svm, SvmKernel,
};
use clap::{Args, ValueEnum};

use super::Trained;
use super::algorithms::{SETTINGS, named};
use super::data::{ClassesArg, Data, Needs, Target};
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
    pub(super) classes: ClassesArg,
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
    #[arg(long, visible_alias = "neighbors", value_name = "N", default_value = "5", help_heading = SETTINGS)]
    neighbours: usize,
    /// What neighbours count: the same, or by the inverse of their distance.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = WeightsArg::Uniform, help_heading = SETTINGS)]
    weights: WeightsArg,
    #[command(flatten)]
    classes: ClassesArg,
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
        self.classes.or(Needs::Either)
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
    let mut model = AnyModel::from(model);
    if let Some(scale) = scale {
        model = scaled(&model, &scale, Some(names))?;
    }
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

/// The model after the scaler.
fn scaled(model: &AnyModel, scale: &Scale, names: Option<&[String]>) -> Result<AnyModel, Failure> {
    let n_features = scale.columns().count();
    let pipeline = Pipeline::of_model(model, n_features, names.map(labels))?;
    let input = Input::Numbers { n_features, accepts: Accepts::Finite };
    Ok(pipeline.preceded_by(input, vec![scale.step()?])?.into())
}

/// The labels of classes in a pipeline: their names, or their numbers from 0, which `apr.classes` names, where names are in another
/// order than texts are.
pub(super) fn labels(names: &[String]) -> Labels {
    match names.is_sorted_by(|a, b| a < b) {
        true => Labels::Texts(names.to_vec()),
        false => Labels::Integers((0..names.len() as i64).collect()),
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
    let mut model: AnyModel = match &table.target {
        Target::Classes { ids, .. } => KnnClassifier::fit(x, ids, k, weights)?.into(),
        _ => KnnRegressor::fit(x, table.numbers()?.clone(), k, weights)?.into(),
    };
    if let Some(scale) = scale {
        model = scaled(&model, &scale, table.classes().ok().map(|(_, names)| names))?;
    }
    Ok(Trained::new(model, hyperparameters))
}
