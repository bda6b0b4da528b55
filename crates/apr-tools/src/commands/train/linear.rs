//! Linear models with a penalty: lasso, elastic net and softmax regression.

use apr_container::{Map, Value};
use apr_models::{
    Activation, Convergence, Dense, ElasticNet, Lasso, Matrix, NeuralSequential, SoftmaxOptions, Vector,
};
use clap::Args;

use super::Trained;
use super::algorithms::{SETTINGS, decimal, named};
use super::data::{ClassesArg, Data};
use super::scaling::{Scale, StandardizeArg};
use super::weights::WeightArgs;
use crate::error::Failure;

#[derive(Debug, Args)]
pub(super) struct LassoArgs {
    #[command(flatten)]
    penalty: PenaltyArgs,
}

#[derive(Debug, Args)]
pub(super) struct ElasticNetArgs {
    #[command(flatten)]
    penalty: PenaltyArgs,
    /// Fraction of the penalty that is on absolute values; the rest is on squares.
    #[arg(long, value_name = "NUMBER", default_value = "0.5", help_heading = SETTINGS)]
    l1_ratio: f32,
}

#[derive(Clone, Copy, Debug, Args)]
struct PenaltyArgs {
    /// Weight of the penalty.
    #[arg(long, value_name = "NUMBER", default_value = "1", help_heading = SETTINGS)]
    alpha: f32,
    /// Maximum number of passes over the coefficients.
    #[arg(long, value_name = "N", default_value = "1000", help_heading = SETTINGS)]
    max_iter: usize,
    /// Duality gap at which to stop, as a fraction of the sum of squares of the target.
    #[arg(long, value_name = "NUMBER", default_value = "1e-4", help_heading = SETTINGS)]
    tol: f32,
    #[command(flatten)]
    standardize: StandardizeArg,
}

#[derive(Debug, Args)]
pub(super) struct SoftmaxArgs {
    /// Weight of the errors against that of the penalty on large coefficients.
    #[arg(long, value_name = "NUMBER", default_value = "1", help_heading = SETTINGS)]
    c: f64,
    /// Maximum number of iterations.
    #[arg(long, value_name = "N", default_value = "100", help_heading = SETTINGS)]
    max_iter: usize,
    #[command(flatten)]
    pub(super) classes: ClassesArg,
    #[command(flatten)]
    pub(super) weights: WeightArgs,
    #[command(flatten)]
    standardize: StandardizeArg,
}

/// How the training ended, as metrics.
pub(super) fn ended(convergence: Convergence) -> Map<Value> {
    let Convergence { iterations, converged } = convergence;
    named([("iterations", iterations.into()), ("converged", converged.into())])
}

impl PenaltyArgs {
    fn hyperparameters(&self) -> Map<Value> {
        let &Self { alpha, max_iter, tol, standardize } = self;
        named([
            ("alpha", decimal(alpha)),
            ("max_iter", max_iter.into()),
            ("tol", decimal(tol)),
            ("standardize", standardize.standardize.into()),
        ])
    }
}

/// The function of plain samples, if that of scaled ones is another one.
fn unscaled(scale: Option<Scale>, coefficients: &Vector, intercept: f32) -> Option<(Vector, f32)> {
    let (weights, constant) = scale?.plain(coefficients.iter(), intercept);
    Some((Vector::from_vec(weights), constant))
}

pub(super) fn lasso(args: &LassoArgs, data: &Data) -> Result<Trained, Failure> {
    let (table, PenaltyArgs { alpha, max_iter, tol, standardize }) = (data.table()?, args.penalty);
    let (scale, x) = standardize.samples(table)?;
    let mut model = Lasso::new(alpha)?.with_stop(max_iter, tol);
    let convergence = model.fit(&x, table.numbers()?)?;
    if let Some((weights, constant)) = unscaled(scale, model.coefficients(), model.intercept()) {
        model = Lasso::from_parts(alpha, weights, constant)?.with_stop(max_iter, tol);
    }
    let not_zero = model.coefficients().iter().filter(|&value| value != 0.0).count();
    let mut metrics = ended(convergence);
    metrics.insert("not_zero".to_owned(), not_zero);
    Ok(Trained::new(model, args.penalty.hyperparameters()).with_metrics(metrics))
}

pub(super) fn elastic_net(args: &ElasticNetArgs, data: &Data) -> Result<Trained, Failure> {
    let (table, PenaltyArgs { alpha, max_iter, tol, standardize }) = (data.table()?, args.penalty);
    let l1_ratio = args.l1_ratio;
    let (scale, x) = standardize.samples(table)?;
    let mut model = ElasticNet::new(alpha, l1_ratio)?.with_stop(max_iter, tol);
    let convergence = model.fit(&x, table.numbers()?)?;
    if let Some((weights, constant)) = unscaled(scale, model.coefficients(), model.intercept()) {
        model = ElasticNet::from_parts(alpha, l1_ratio, weights, constant)?.with_stop(max_iter, tol);
    }
    let not_zero = model.coefficients().iter().filter(|&value| value != 0.0).count();
    let mut metrics = ended(convergence);
    metrics.insert("not_zero".to_owned(), not_zero);
    let mut hyperparameters = args.penalty.hyperparameters();
    hyperparameters.insert("l1_ratio".to_owned(), decimal(l1_ratio));
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

pub(super) fn softmax(args: &SoftmaxArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (ids, _) = table.classes()?;
    let &SoftmaxArgs { c, max_iter, ref weights, standardize, .. } = args;
    let (scale, x) = standardize.samples(table)?;
    let class_weight = weights.class_weight(table)?;
    let options = SoftmaxOptions { c, max_iter, class_weight, ..SoftmaxOptions::default() };
    let (mut model, convergence) = match table.weights() {
        None => NeuralSequential::softmax_regression(&x, ids, &options)?,
        Some(weights) => NeuralSequential::softmax_regression_weighted(&x, ids, weights, &options)?,
    };
    if let (Some(scale), [layer]) = (scale, model.layers()) {
        let (n_inputs, n_outputs) = layer.weights().shape();
        let mut weights = vec![0.0; n_inputs * n_outputs];
        let mut bias = Vec::with_capacity(n_outputs);
        for (class, &constant) in layer.bias().iter().enumerate() {
            let column = layer.weights().as_slice().iter().skip(class).step_by(n_outputs);
            let (plain, constant) = scale.plain(column.copied(), constant);
            let places = weights.iter_mut().skip(class).step_by(n_outputs);
            places.zip(plain).for_each(|(place, value)| *place = value);
            bias.push(constant);
        }
        let layer = Dense::new(Matrix::from_vec(n_inputs, n_outputs, weights)?, bias, Activation::Softmax)?;
        model = NeuralSequential::from_layers(vec![layer])?;
    }
    let mut hyperparameters = named([
        ("c", c.into()),
        ("max_iter", max_iter.into()),
        ("standardize", standardize.standardize.into()),
    ]);
    hyperparameters.extend(weights.settings());
    Ok(Trained::new(model, hyperparameters).with_metrics(ended(convergence)))
}
