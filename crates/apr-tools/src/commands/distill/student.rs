//! The model that learns.

use apr_container::{Map, Value};
use apr_models::{
    Activation, AnyModel, LinearRegression, Matrix, NeuralLoss, NeuralOptions, NeuralSequential,
    NeuralTargets, Optimizer, SoftTargets, Vector,
};
use clap::{Args, ValueEnum};

use super::rows::{Labels, Rows};
use super::teacher::Lessons;
use crate::commands::train::decimal;
use crate::commands::train::network::{hidden, learn_classes, learn_numbers};
use crate::error::{CODE_USAGE, Failure};

#[derive(Debug, Args)]
#[command(next_help_heading = "Student")]
pub(super) struct StudentArgs {
    /// What the student is: a softmax layer for classes, a linear regression for numbers, or a network; without it, one of the first two.
    #[arg(long, value_name = "KIND", value_enum)]
    student: Option<KindArg>,
    /// Outputs of the hidden layers of a network, separated by commas.
    #[arg(long, value_name = "N,N", default_value = "32")]
    hidden: String,
    /// Passes over the rows.
    #[arg(long, value_name = "N", default_value = "200")]
    epochs: usize,
    /// Rows per step.
    #[arg(long, value_name = "N", default_value = "32")]
    batch_size: usize,
    /// Learning rate (Adam).
    #[arg(long, value_name = "NUMBER", default_value = "0.001")]
    learning_rate: f32,
}

/// A value of `--student`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindArg {
    Softmax,
    Linear,
    Mlp,
}

pub(super) struct Settings<'s> {
    pub(super) temperature: f64,
    pub(super) alpha: f64,
    pub(super) seed: u64,
    pub(super) args: &'s StudentArgs,
    /// Rows with labels, which come first.
    pub(super) n_labeled: usize,
}

/// A student, and what the same training gives from labels alone.
pub(super) struct Student {
    pub(super) model: AnyModel,
    pub(super) baseline: AnyModel,
    /// Of the student on the rows that it learned from.
    pub(super) final_loss: f64,
    pub(super) kind: &'static str,
    pub(super) hyperparameters: Map<Value>,
}

/// Trains a student.
///
/// # Errors
///
/// If a setting is out of its range, or the training diverges.
pub(super) fn train(settings: &Settings<'_>, rows: &Rows, lessons: &Lessons) -> Result<Student, Failure> {
    let usage = |error: apr_models::Error| Failure::new(CODE_USAGE, error.to_string());
    let Settings { temperature, alpha, .. } = *settings;
    let x = rows.matrix()?;
    let labeled = Matrix::from_vec(
        settings.n_labeled,
        rows.n_features,
        x.as_slice().iter().take(settings.n_labeled * rows.n_features).copied().collect(),
    )?;
    let (model, baseline, final_loss, kind, layers) = match (lessons, &rows.labels) {
        (Lessons::Classes(teacher), Labels::Classes(classes)) => {
            let kind = settings.args.student.unwrap_or(KindArg::Softmax);
            let mut layers = match kind {
                KindArg::Softmax => Vec::new(),
                KindArg::Mlp => hidden_layers(settings.args)?,
                KindArg::Linear => {
                    return Err(Failure::new(
                        CODE_USAGE,
                        "a linear student learns numbers, and the teacher predicts classes",
                    ));
                }
            };
            layers.push((teacher.n_cols(), Activation::Softmax));
            let options = options(settings, NeuralLoss::CrossEntropy);
            let softened = SoftTargets::soften(teacher, temperature).map_err(usage)?;
            let soft = SoftTargets { softened: &softened, classes, temperature, alpha };
            let (model, _) = learn_classes(&x, NeuralTargets::Distilled(soft), &layers, &options)?;
            let known: Vec<usize> = classes.iter().flatten().copied().collect();
            let (baseline, _) = learn_classes(&labeled, NeuralTargets::Classes(&known), &layers, &options)?;
            let loss = soft.loss(&model.outputs(&x)?).map_err(usage)?;
            (model.into(), baseline.into(), loss, kind, layers)
        }
        (Lessons::Numbers(teacher), Labels::Numbers(labels)) => {
            let kind = settings.args.student.unwrap_or(KindArg::Linear);
            // The least squared errors to both, weighted, are those to their weighted mean.
            let blend = |(&teacher, label): (&f64, &Option<f64>)| {
                label.map_or(teacher, |label| alpha * teacher + (1.0 - alpha) * label) as f32
            };
            let blended: Vec<f32> = teacher.iter().zip(labels).map(blend).collect();
            let known: Vec<f32> = labels.iter().flatten().map(|&label| label as f32).collect();
            let (model, baseline, layers): (AnyModel, AnyModel, _) = match kind {
                KindArg::Linear => {
                    let fit = |x: &Matrix, y: Vec<f32>| {
                        let mut model = LinearRegression::new();
                        model.fit(x, &Vector::from_vec(y)).map(|()| model)
                    };
                    (fit(&x, blended)?.into(), fit(&labeled, known)?.into(), Vec::new())
                }
                KindArg::Mlp => {
                    let mut layers = hidden_layers(settings.args)?;
                    layers.push((1, Activation::Identity));
                    let options = options(settings, NeuralLoss::MeanSquared);
                    let fit = |x: &Matrix, y: &[f32]| -> Result<NeuralSequential, Failure> {
                        Ok(learn_numbers(x, y, &layers, &options)?.0)
                    };
                    (fit(&x, &blended)?.into(), fit(&labeled, &known)?.into(), layers)
                }
                KindArg::Softmax => {
                    return Err(Failure::new(
                        CODE_USAGE,
                        "a softmax student learns classes, and the teacher predicts numbers",
                    ));
                }
            };
            let found = super::report::numbers(&model, rows)?;
            let loss = loss_of_numbers(&found, teacher, labels, alpha);
            (model, baseline, loss, kind, layers)
        }
        _ => {
            return Err(Failure::new(
                CODE_USAGE,
                "labels and predictions of the teacher are of different kinds",
            ));
        }
    };
    let (kind, is_network) = match kind {
        KindArg::Softmax => ("softmax", true),
        KindArg::Linear => ("linear", false),
        KindArg::Mlp => ("mlp", true),
    };
    let widths = layers.iter().rev().skip(1).rev().map(|&(width, _)| Value::from(width)).collect::<Vec<_>>();
    let mut hyperparameters: Map<Value> = Map::default();
    hyperparameters.insert("student".to_owned(), kind);
    if is_network {
        hyperparameters.insert("hidden".to_owned(), widths);
        hyperparameters.insert("epochs".to_owned(), settings.args.epochs);
        hyperparameters.insert("batch_size".to_owned(), settings.args.batch_size);
        hyperparameters.insert("learning_rate".to_owned(), decimal(settings.args.learning_rate));
    }
    hyperparameters.insert("seed".to_owned(), settings.seed);
    Ok(Student { model, baseline, final_loss, kind, hyperparameters })
}

/// The mean of `alpha` times the squared difference from the teacher and `1 - alpha` times that from the label.
fn loss_of_numbers(found: &[f64], teacher: &[f64], labels: &[Option<f64>], alpha: f64) -> f64 {
    let losses = found.iter().zip(teacher).zip(labels).map(|((found, teacher), label)| {
        let from_teacher = (found - teacher).powi(2);
        label.map_or(from_teacher, |label| alpha * from_teacher + (1.0 - alpha) * (found - label).powi(2))
    });
    losses.sum::<f64>() / found.len() as f64
}

fn hidden_layers(args: &StudentArgs) -> Result<Vec<(usize, Activation)>, Failure> {
    Ok(hidden(&args.hidden)?.into_iter().map(|width| (width, Activation::Relu)).collect())
}

fn options(settings: &Settings<'_>, loss: NeuralLoss) -> NeuralOptions {
    NeuralOptions {
        optimizer: Optimizer::adam(settings.args.learning_rate),
        epochs: settings.args.epochs,
        batch_size: settings.args.batch_size,
        seed: settings.seed,
        ..NeuralOptions::new(loss)
    }
}
