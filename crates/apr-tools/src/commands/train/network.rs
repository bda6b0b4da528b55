//! Neural networks: scaled data in training, unscaled data in predictions.

use apr_models::{
    Activation, Dense, Matrix, NeuralLoss, NeuralOptions, NeuralReport, NeuralSequential, NeuralTargets,
    Optimizer, Workers,
};
use clap::{Args, ValueEnum};

use super::Trained;
use super::algorithms::{Run, SETTINGS, decimal, named};
use super::data::{ClassesArg, Data, Needs, Target};
use super::scaling::Scale;
use super::validation::EarlyStoppingArgs;
use crate::error::{CODE_TABLE_COLUMNS, CODE_USAGE, Failure};
use crate::terminal::escape;

#[derive(Debug, Args)]
pub(super) struct MlpArgs {
    /// Outputs of the hidden layers, separated by commas; empty for none.
    #[arg(long, value_name = "N,N", default_value = "16", help_heading = SETTINGS)]
    hidden: String,
    /// Activation function of the hidden layers.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ActivationArg::Relu, help_heading = SETTINGS)]
    activation: ActivationArg,
    /// Passes over the samples.
    #[arg(long, value_name = "N", default_value = "200", help_heading = SETTINGS)]
    epochs: usize,
    /// Samples per step.
    #[arg(long, value_name = "N", default_value = "32", help_heading = SETTINGS)]
    batch_size: usize,
    /// Learning rate (Adam).
    #[arg(long, value_name = "NUMBER", default_value = "0.01", help_heading = SETTINGS)]
    learning_rate: f32,
    /// Weight decay.
    #[arg(long, value_name = "NUMBER", default_value = "0", help_heading = SETTINGS)]
    weight_decay: f32,
    #[command(flatten)]
    early_stopping: EarlyStoppingArgs,
    #[command(flatten)]
    classes: ClassesArg,
}

/// A value of `--activation`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ActivationArg {
    Relu,
    Tanh,
    Sigmoid,
}

impl MlpArgs {
    pub(super) fn needs(&self) -> Needs {
        self.classes.or(Needs::Either)
    }
}

pub(super) fn train(args: &MlpArgs, data: &Data, run: Run<'_>) -> Result<Trained, Failure> {
    let (table, Run { seed, workers }) = (data.table()?, run);
    let hidden = hidden(&args.hidden)?;
    let (activation, name) = match args.activation {
        ActivationArg::Relu => (Activation::Relu, "relu"),
        ActivationArg::Tanh => (Activation::Tanh, "tanh"),
        ActivationArg::Sigmoid => (Activation::Sigmoid, "sigmoid"),
    };
    let &MlpArgs { epochs, batch_size, learning_rate, weight_decay, early_stopping, .. } = args;

    if let Target::Classes { names, .. } = &table.target
        && let [only] = &names[..]
    {
        let what =
            format!("the target has one class, `{}`: a network learns two or more", escape::cut(only, 60));
        return Err(Failure::new(CODE_TABLE_COLUMNS, what));
    }
    let (n_outputs, last, loss) = match &table.target {
        Target::Classes { names, .. } => (names.len(), Activation::Softmax, NeuralLoss::CrossEntropy),
        Target::Numbers(_) | Target::None | Target::Names(_) => {
            (1, Activation::Identity, NeuralLoss::MeanSquared)
        }
    };
    let mut layers: Vec<(usize, Activation)> = hidden.iter().map(|&width| (width, activation)).collect();
    layers.push((n_outputs, last));
    let options = NeuralOptions {
        optimizer: Optimizer::adam(learning_rate),
        epochs,
        batch_size,
        weight_decay,
        early_stopping: early_stopping.options(),
        seed,
        ..NeuralOptions::new(loss)
    };
    let outputs = Outputs::of(&table.target)?;
    let (model, report) = learn(workers, &table.x, &outputs, &layers, &options, |network, _| Ok(network))?;

    let mut metrics = EarlyStoppingArgs::metrics("epochs", report.n_epochs, &report.validation_losses);
    let final_loss = report.n_epochs.checked_sub(1).and_then(|last| report.losses.get(last));
    metrics.extend(final_loss.map(|&loss| ("loss".to_owned(), loss.into())));
    let mut hyperparameters = named([
        ("hidden", hidden.iter().map(|&width| width.into()).collect::<Vec<_>>().into()),
        ("activation", name.into()),
        ("epochs", epochs.into()),
        ("batch_size", batch_size.into()),
        ("learning_rate", decimal(learning_rate)),
        ("weight_decay", decimal(weight_decay)),
        ("seed", seed.into()),
    ]);
    hyperparameters.extend(early_stopping.settings());
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

/// The widths in a list such as `16,8`.
///
/// # Errors
///
/// If it is none.
pub(crate) fn hidden(text: &str) -> Result<Vec<usize>, Failure> {
    let widths = text.split(',').map(str::trim).filter(|width| !width.is_empty());
    widths.map(str::parse).collect::<Result<_, _>>().map_err(|_| {
        let failure = Failure::new(CODE_USAGE, format!("`--hidden {text}` is no list of numbers"));
        failure.help("write the outputs of each layer, for example --hidden 16,8")
    })
}

/// What a network learns to give.
pub(crate) enum Outputs<'t> {
    Classes(NeuralTargets<'t>),
    /// One number for each sample.
    Numbers(&'t [f32]),
}

impl<'t> Outputs<'t> {
    fn of(target: &'t Target) -> Result<Self, Failure> {
        match target {
            Target::Classes { ids, .. } => Ok(Self::Classes(NeuralTargets::Classes(ids))),
            Target::Numbers(y) => Ok(Self::Numbers(y.as_slice())),
            Target::None | Target::Names(_) => Err(Failure::new(CODE_USAGE, "no target is given")),
        }
    }
}

/// Trains a network of these layers on scaled samples; the one that is returned takes samples as they are. Before that, `prepare` gets the
/// network as it begins, and the scaled samples.
///
/// # Errors
///
/// Those of [`NeuralSequential::random`], [`NeuralSequential::fit`] and `prepare`.
pub(crate) fn learn(
    workers: &dyn Workers,
    x: &Matrix,
    outputs: &Outputs<'_>,
    layers: &[(usize, Activation)],
    options: &NeuralOptions,
    prepare: impl FnOnce(NeuralSequential, &Matrix) -> Result<NeuralSequential, Failure>,
) -> Result<(NeuralSequential, NeuralReport), Failure> {
    let (inputs, x) = scaled(x)?;
    let mut model = prepare(NeuralSequential::random(x.n_cols(), layers, options.seed)?, &x)?;
    match *outputs {
        Outputs::Classes(targets) => {
            let report = model.fit_on(workers, &x, targets, options)?;
            Ok((unscaled(model, &inputs, None)?, report))
        }
        Outputs::Numbers(y) => {
            let (outputs, y) = scaled(&Matrix::from_vec(y.len(), 1, y.to_vec())?)?;
            let report = model.fit_on(workers, &x, NeuralTargets::Values(&y), options)?;
            Ok((unscaled(model, &inputs, Some(&outputs))?, report))
        }
    }
}

/// A table in units of the deviations of its columns.
///
/// # Errors
///
/// If memory does not suffice.
pub(crate) fn scaled(table: &Matrix) -> Result<(Scale, Matrix), Failure> {
    let (n_rows, n_cols) = table.shape();
    let scale = Scale::of(table.as_slice(), n_cols);
    let scaled = Matrix::from_vec(n_rows, n_cols, scale.apply(table.as_slice()))?;
    Ok((scale, scaled))
}

/// The network that gives for plain samples what this one gives for scaled ones.
fn unscaled(
    model: NeuralSequential,
    inputs: &Scale,
    outputs: Option<&Scale>,
) -> Result<NeuralSequential, Failure> {
    let mut layers = model.into_layers();
    if let Some(first) = layers.first_mut() {
        let n_outputs = first.n_outputs();
        let mut bias: Vec<f64> = first.bias().iter().map(|&bias| bias.into()).collect();
        let mut weights = Vec::with_capacity(first.weights().as_slice().len());
        for (row, (mean, deviation)) in first.weights().rows().zip(inputs.columns()) {
            for (&weight, bias) in row.iter().zip(&mut bias) {
                let weight = f64::from(weight) / deviation;
                *bias -= weight * mean;
                weights.push(weight as f32);
            }
        }
        let weights = Matrix::from_vec(first.n_inputs(), n_outputs, weights)?;
        *first = Dense::new(weights, bias.iter().map(|&bias| bias as f32).collect(), first.activation())?;
    }
    if let (Some(last), Some((mean, deviation))) =
        (layers.last_mut(), outputs.and_then(|scale| scale.columns().next()))
    {
        let weights =
            last.weights().as_slice().iter().map(|&weight| (f64::from(weight) * deviation) as f32).collect();
        let weights = Matrix::from_vec(last.n_inputs(), last.n_outputs(), weights)?;
        let bias = last.bias().iter().map(|&bias| (f64::from(bias) * deviation + mean) as f32).collect();
        *last = Dense::new(weights, bias, last.activation())?;
    }
    Ok(NeuralSequential::from_layers(layers)?)
}

#[cfg(test)]
mod tests {
    use apr_models::Vector;

    use super::*;

    #[test]
    fn scaling_becomes_part_of_the_layers() {
        let values = [100.0, 0.5, 7.0, 140.0, 0.25, 7.0, 90.0, 0.75, 7.0];
        let inputs = Scale::of(&values, 3);
        assert_eq!(inputs.columns().nth(2), Some((7.0, 1.0)));
        let x = Matrix::from_vec(3, 3, values.to_vec()).unwrap();
        let scaled = Matrix::from_vec(3, 3, inputs.apply(&values)).unwrap();
        let y = Vector::from_vec(vec![1000.0, 1200.0, 900.0]);
        let targets = Scale::of(&y.iter().collect::<Vec<_>>(), 1);
        let (mean, deviation) = targets.columns().next().unwrap();
        for layers in [&[(1, Activation::Identity)][..], &[(4, Activation::Tanh), (1, Activation::Identity)]]
        {
            let model = NeuralSequential::random(3, layers, 3).unwrap();
            let expected = model.outputs(&scaled).unwrap();
            let found = unscaled(model, &inputs, Some(&targets)).unwrap().outputs(&x).unwrap();
            for (found, expected) in found.as_slice().iter().zip(expected.as_slice()) {
                let expected = f64::from(*expected) * deviation + mean;
                assert!((f64::from(*found) - expected).abs() < 1e-3 * expected.abs(), "{found} {expected}");
            }
        }
    }
}
