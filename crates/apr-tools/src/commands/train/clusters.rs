//! Gaussian mixtures and DBSCAN.

use apr_models::{CovarianceType, Dbscan, GaussianMixture, GaussianMixtureOptions, Matrix};
use clap::{Args, ValueEnum};

use super::Trained;
use super::algorithms::{Run, SETTINGS, SeedArg, decimal, named};
use super::data::Data;
use super::linear::ended;
use super::scaling::{Scale, StandardizeArg};
use crate::error::Failure;

#[derive(Debug, Args)]
pub(super) struct MixtureArgs {
    /// Number of normal distributions.
    #[arg(long, value_name = "N", default_value = "1", help_heading = SETTINGS)]
    components: usize,
    /// Covariances: of each component, one for all, without correlations, the same variance of each feature.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = CovarianceArg::Full, help_heading = SETTINGS)]
    covariance: CovarianceArg,
    /// Added to every variance.
    #[arg(long, value_name = "NUMBER", default_value = "1e-6", help_heading = SETTINGS)]
    reg_covar: f64,
    /// Maximum number of iterations of one start.
    #[arg(long, value_name = "N", default_value = "100", help_heading = SETTINGS)]
    max_iter: usize,
    /// Gain of the mean log likelihood at which to stop.
    #[arg(long, value_name = "NUMBER", default_value = "1e-3", help_heading = SETTINGS)]
    tol: f32,
    /// Number of restarts; the best result is kept.
    #[arg(long, value_name = "N", default_value = "1", help_heading = SETTINGS)]
    restarts: usize,
    #[command(flatten)]
    standardize: StandardizeArg,
    #[command(flatten)]
    seed: SeedArg,
}

/// A value of `--covariance`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum CovarianceArg {
    Full,
    Tied,
    Diag,
    Spherical,
}

#[derive(Debug, Args)]
pub(super) struct DbscanArgs {
    /// Maximum distance of neighbours.
    #[arg(long, value_name = "NUMBER", default_value = "0.5", help_heading = SETTINGS)]
    eps: f32,
    /// Neighbours of a core sample, itself included.
    #[arg(long, value_name = "N", default_value = "5", help_heading = SETTINGS)]
    min_samples: usize,
    #[command(flatten)]
    standardize: StandardizeArg,
}

pub(super) fn mixture(args: &MixtureArgs, data: &Data, run: Run<'_>) -> Result<Trained, Failure> {
    let table = data.table()?;
    let &MixtureArgs { components, reg_covar, max_iter, tol, restarts, standardize, .. } = args;
    let seed = args.seed.seed;
    let (covariance_type, name) = match args.covariance {
        CovarianceArg::Full => (CovarianceType::Full, "full"),
        CovarianceArg::Tied => (CovarianceType::Tied, "tied"),
        CovarianceArg::Diag => (CovarianceType::Diag, "diag"),
        CovarianceArg::Spherical => (CovarianceType::Spherical, "spherical"),
    };
    let options = GaussianMixtureOptions {
        n_components: components,
        covariance_type,
        max_iter,
        tol,
        reg_covar,
        restarts,
        seed,
    };
    let (scale, x) = standardize.samples(table)?;
    let (mut model, convergence) = GaussianMixture::fit_on(run.workers, &x, &options)?;
    if let Some(scale) = scale {
        model = unscaled(&model, &scale)?.with_training(max_iter, tol, Some(seed));
    }
    let mut metrics = ended(convergence);
    let scores = model.try_score_samples(&table.x)?;
    let mean = scores.iter().map(f64::from).sum::<f64>() / scores.len() as f64;
    metrics.insert("log_likelihood".to_owned(), mean);
    let hyperparameters = named([
        ("components", components.into()),
        ("covariance", name.into()),
        ("reg_covar", reg_covar.into()),
        ("max_iter", max_iter.into()),
        ("tol", decimal(tol)),
        ("restarts", restarts.into()),
        ("standardize", standardize.standardize.into()),
        ("seed", seed.into()),
    ]);
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

/// The mixture of plain samples that is this one of scaled ones.
fn unscaled(model: &GaussianMixture, scale: &Scale) -> Result<GaussianMixture, Failure> {
    let parts = model.means().zip(model.covariances()).zip(model.weights());
    let ((means, covariances), weights) = parts.expect("the mixture is fitted");
    let columns: Vec<(f64, f64)> = scale.columns().collect();
    let values = means.as_slice().iter().zip(columns.iter().cycle());
    let values = values.map(|(&value, (mean, deviation))| (f64::from(value) * deviation + mean) as f32);
    let plain = Matrix::from_vec(means.n_rows(), means.n_cols(), values.collect())?;
    let covariances = covariances.iter().map(|matrix| {
        let rows = matrix.rows().zip(&columns).flat_map(|(row, (_, of_row))| {
            let values = row.iter().zip(&columns);
            values.map(move |(&value, (_, of_column))| (f64::from(value) * of_row * of_column) as f32)
        });
        Matrix::from_vec(matrix.n_rows(), matrix.n_cols(), rows.collect())
    });
    // In other units the variances of the features differ.
    let kind = match model.covariance_type() {
        CovarianceType::Spherical => CovarianceType::Diag,
        kind => kind,
    };
    let covariances = covariances.collect::<Result<_, _>>()?;
    Ok(GaussianMixture::from_parts(kind, plain, covariances, weights.to_vec())?)
}

pub(super) fn dbscan(args: &DbscanArgs, data: &Data) -> Result<Trained, Failure> {
    let &DbscanArgs { eps, min_samples, standardize } = args;
    let (_, x) = standardize.samples(data.table()?)?;
    let model = Dbscan::fit(&x, eps, min_samples)?;
    let labels = model.labels().unwrap_or_default();
    let n_clusters = labels.iter().max().map_or(0, |&last| last + 1);
    let noise = labels.iter().filter(|&&label| label < 0).count();
    let metrics = named([("clusters", i64::from(n_clusters).into()), ("noise", noise.into())]);
    let hyperparameters = named([
        ("eps", decimal(eps)),
        ("min_samples", min_samples.into()),
        ("standardize", standardize.standardize.into()),
    ]);
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}
