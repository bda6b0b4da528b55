//! Training by mini-batches.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::gradient_boosting::EarlyStopping;
use crate::matrix::Matrix;
use crate::neural::dense::{Activation, Dense, GROUP, add_products};
use crate::neural::distilled::SoftTargets;
use crate::neural::optimizer::{Optimizer, Steps};
use crate::rng::Rng;
use crate::split::held_out;
use crate::workers::Workers;

/// Lower bound of probabilities before the logarithm.
const LEAST_PROBABILITY: f64 = 1e-38;

/// Targets of a network for each sample.
#[derive(Clone, Copy, Debug)]
pub enum NeuralTargets<'t> {
    /// These outputs: a row for each sample.
    Values(&'t Matrix),
    /// The output of this class 1, all others 0; with one output 0 or 1 itself.
    Classes(&'t [usize]),
    /// The probabilities of another model, and classes: for a last layer of a softmax, with [`NeuralLoss::CrossEntropy`].
    Distilled(SoftTargets<'t>),
}

/// What training makes small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeuralLoss {
    /// The mean of the squared differences between outputs and targets.
    MeanSquared,
    /// For each sample the sum of `-target * ln(output)`, for a last layer of sigmoids also of
    /// `-(1 - target) * ln(1 - output)`. The last layer must be of sigmoids or a softmax.
    CrossEntropy,
}

/// How to train a [`NeuralSequential`](crate::NeuralSequential).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeuralOptions {
    /// What training makes small.
    pub loss: NeuralLoss,
    /// How gradients become steps. Default Adam at 0.001.
    pub optimizer: Optimizer,
    /// Passes over the samples: at least 1. Default 100.
    pub epochs: usize,
    /// Samples per batch: at least 1. Default 32.
    pub batch_size: usize,
    /// Times each weight, added to its gradient. Default 0; constants have none.
    pub weight_decay: f32,
    /// When to stop before the last epoch. Default `None`: never.
    pub early_stopping: Option<EarlyStopping>,
    /// Decides the order of the samples in each epoch, and which ones are set aside. Default 0.
    pub seed: u64,
}

/// What a training of a network found besides its weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeuralReport {
    /// The mean loss of a sample in each epoch, while the weights change.
    pub losses: Vec<f64>,
    /// The mean loss of the samples set aside after each epoch, also of those whose weights are dropped. Empty without early
    /// stopping.
    pub validation_losses: Vec<f64>,
    /// Epochs that made the weights: all, or those up to the least loss of the samples set aside.
    pub n_epochs: usize,
}

impl NeuralOptions {
    /// The defaults for that loss.
    #[must_use]
    pub const fn new(loss: NeuralLoss) -> Self {
        Self {
            loss,
            optimizer: Optimizer::adam(0.001),
            epochs: 100,
            batch_size: 32,
            weight_decay: 0.0,
            early_stopping: None,
            seed: 0,
        }
    }

    fn check(&self, last: Activation, targets: NeuralTargets<'_>) -> Result<(), Error> {
        self.optimizer.check()?;
        checks::expect("epochs", self.epochs > 0, "must be at least 1")?;
        checks::expect("batch size", self.batch_size > 0, "must be at least 1")?;
        let decay = self.weight_decay >= 0.0 && self.weight_decay.is_finite();
        checks::expect("weight decay", decay, "must be finite and not negative")?;
        self.early_stopping.map_or(Ok(()), EarlyStopping::check)?;
        let fits =
            self.loss == NeuralLoss::MeanSquared || matches!(last, Activation::Sigmoid | Activation::Softmax);
        checks::expect("loss", fits, "cross entropy needs a last layer of sigmoids or a softmax")?;
        let is_soft = matches!(targets, NeuralTargets::Distilled(_));
        let fits = !is_soft || self.loss == NeuralLoss::CrossEntropy && last == Activation::Softmax;
        checks::expect("loss", fits, "distillation needs cross entropy and a softmax as the last layer")
    }
}

pub(crate) fn fit(
    workers: &dyn Workers,
    layers: &[Dense],
    x: &Matrix,
    targets: NeuralTargets<'_>,
    options: &NeuralOptions,
) -> Result<(Vec<Dense>, NeuralReport), Error> {
    let (Some(first), Some(last)) = (layers.first(), layers.last()) else {
        return Err(ErrorKind::PartInvalid { part: "layers", problem: "at least one is needed" }.into());
    };
    options.check(last.activation(), targets)?;
    let (n_rows, n_inputs) = x.shape();
    if n_inputs != first.n_inputs() {
        return Err(ErrorKind::FeatureCount { expected: first.n_inputs(), found: n_inputs }.into());
    }
    checks::expect_finite_rows(x.as_slice(), n_inputs)?;
    let expected = targets.table(n_rows, last.n_outputs())?;
    let lesson = Lesson { x, targets, expected: &expected, options };

    let mut learner = Learner::new(layers.to_vec(), options, n_rows);
    let mut rng = Rng::new(options.seed);
    let aside = options
        .early_stopping
        .map(|stopping| held_out(n_rows, targets.classes(), stopping.validation_share, options.seed));
    let is_aside = |row: usize| aside.as_ref().is_some_and(|aside| aside[row]);
    let validation: Vec<usize> = (0..n_rows).filter(|&row| is_aside(row)).collect();
    let mut order: Vec<usize> = (0..n_rows).filter(|&row| !is_aside(row)).collect();
    let n_learned = order.len() as f64;
    let mut report = NeuralReport::default();
    let mut best: Option<(f64, Vec<Dense>)> = None;
    workers.expect(options.epochs);
    for epoch in 0..options.epochs {
        rng.shuffle(&mut order);
        let mut sum = 0.0;
        for batch in order.chunks(options.batch_size) {
            sum += learner.learn(lesson, batch);
        }
        workers.advance();
        let loss = sum / n_learned;
        if !loss.is_finite() || !learner.layers.iter().all(Dense::is_finite) {
            return Err(ErrorKind::Diverged { epoch }.into());
        }
        report.losses.push(loss);
        let Some(stopping) = options.early_stopping.filter(|_| !validation.is_empty()) else {
            report.n_epochs = epoch + 1;
            continue;
        };
        let chunks = validation.chunks(options.batch_size);
        let sum: f64 = chunks.map(|batch| learner.loss(lesson, batch)).sum();
        let loss = sum / validation.len() as f64;
        if !loss.is_finite() {
            return Err(ErrorKind::Diverged { epoch }.into());
        }
        report.validation_losses.push(loss);
        if best.as_ref().is_none_or(|(best, _)| loss < *best) {
            best = Some((loss, learner.layers.clone()));
            report.n_epochs = epoch + 1;
        } else if epoch + 1 - report.n_epochs >= stopping.patience {
            break;
        }
    }
    Ok((best.map_or(learner.layers, |(_, layers)| layers), report))
}

impl NeuralTargets<'_> {
    /// The classes of the samples, if each has one.
    const fn classes(&self) -> Option<&[usize]> {
        match self {
            Self::Classes(classes) => Some(classes),
            _ => None,
        }
    }

    /// The outputs wanted: a row for each sample.
    fn table(self, n_rows: usize, n_outputs: usize) -> Result<Matrix, Error> {
        match self {
            Self::Values(values) => {
                if values.n_rows() != n_rows {
                    return Err(ErrorKind::TargetLength { n_rows, given: values.n_rows() }.into());
                }
                checks::expect_len("outputs wanted of each sample", n_outputs, values.n_cols())?;
                let broken = values.as_slice().iter().position(|value| !value.is_finite());
                match broken {
                    Some(idx) => Err(ErrorKind::TargetNotFinite { row: idx / n_outputs }.into()),
                    None => Ok(values.clone()),
                }
            }
            Self::Classes(classes) => {
                if classes.len() != n_rows {
                    return Err(ErrorKind::TargetLength { n_rows, given: classes.len() }.into());
                }
                let n_classes = n_outputs.max(2);
                if let Some(row) = classes.iter().position(|&class| class >= n_classes) {
                    let problem = "must be below the number of outputs, or 0 or 1 for one output";
                    return Err(ErrorKind::Label { row, problem }.into());
                }
                let too_large = ErrorKind::MatrixTooLarge { n_rows, n_cols: n_outputs };
                let len = n_rows.checked_mul(n_outputs).ok_or(too_large)?;
                let mut values = vec![0.0; len];
                for (row, &class) in values.chunks_exact_mut(n_outputs).zip(classes) {
                    match row {
                        [value] => *value = class as f32,
                        _ => row.iter_mut().skip(class).take(1).for_each(|value| *value = 1.0),
                    }
                }
                Matrix::from_vec(n_rows, n_outputs, values)
            }
            Self::Distilled(soft) => {
                soft.check(n_rows, n_outputs)?;
                Ok(soft.softened.clone())
            }
        }
    }
}

/// What a network learns.
#[derive(Clone, Copy)]
struct Lesson<'l> {
    x: &'l Matrix,
    targets: NeuralTargets<'l>,
    /// The outputs wanted, from `targets`.
    expected: &'l Matrix,
    options: &'l NeuralOptions,
}

/// A network in training, with the memory that every batch uses again.
struct Learner {
    layers: Vec<Dense>,
    steps: Steps,
    /// The batch's samples, then each layer's outputs.
    outputs: Vec<Vec<f32>>,
    /// Derivatives with respect to a layer's outputs, then sums; and those of the layer before.
    gradients: (Vec<f32>, Vec<f32>),
    /// Derivatives with respect to one layer's weights and constants.
    weight_gradients: Vec<f32>,
    bias_gradients: Vec<f32>,
}

impl Learner {
    fn new(layers: Vec<Dense>, options: &NeuralOptions, n_rows: usize) -> Self {
        let n_parameters =
            layers.iter().map(|layer| layer.weights().as_slice().len() + layer.n_outputs()).sum();
        let batch = options.batch_size.min(n_rows);
        let widths =
            layers.first().map(Dense::n_inputs).into_iter().chain(layers.iter().map(Dense::n_outputs));
        let outputs: Vec<Vec<f32>> =
            widths.map(|width| Vec::with_capacity(batch.saturating_mul(width))).collect();
        Self {
            steps: Steps::new(options.optimizer, n_parameters),
            layers,
            outputs,
            gradients: (Vec::new(), Vec::new()),
            weight_gradients: Vec::new(),
            bias_gradients: Vec::new(),
        }
    }

    /// The sum of the losses of these rows; `gradients.0` has the derivatives of their mean with respect to the sums of the last layer.
    fn loss(&mut self, lesson: Lesson<'_>, rows: &[usize]) -> f64 {
        let Lesson { x, targets, expected, options } = lesson;
        let Self { layers, outputs, gradients, .. } = self;
        if let Some(samples) = outputs.first_mut() {
            samples.clear();
            rows.iter().filter_map(|&row| x.row(row)).for_each(|row| samples.extend_from_slice(row));
        }
        for (idx, layer) in layers.iter().enumerate() {
            if let Some([inputs, out, ..]) = outputs.get_mut(idx..) {
                out.clear();
                out.resize(rows.len() * layer.n_outputs(), 0.0);
                layer.forward(inputs, out);
            }
        }

        let current = &mut gradients.0;
        let said = outputs.last().map_or(&[][..], Vec::as_slice);
        let wanted = rows.iter().filter_map(|&row| expected.row(row)).flatten().copied();
        let last = layers.last();
        let activation = last.map_or(Activation::default(), Dense::activation);
        let width = last.map_or(0, Dense::n_outputs);
        match targets {
            NeuralTargets::Distilled(soft) => {
                current.clear();
                current.extend(wanted);
                soft.gradients(rows, said, width, current)
            }
            _ => output_gradients(options.loss, activation, said, wanted, width, current),
        }
    }

    /// One step from the samples of these rows; the sum of their losses before it.
    fn learn(&mut self, lesson: Lesson<'_>, rows: &[usize]) -> f64 {
        let loss = self.loss(lesson, rows);
        let Self { layers, steps, outputs, gradients, weight_gradients, bias_gradients } = self;
        let (current, next) = (&mut gradients.0, &mut gradients.1);
        steps.begin();
        let mut offset: usize =
            layers.iter().map(|layer| layer.weights().as_slice().len() + layer.n_outputs()).sum();
        for idx in (0..layers.len()).rev() {
            let (Some(layer), Some(inputs)) = (layers.get_mut(idx), outputs.get(idx)) else { continue };
            let (n_inputs, n_outputs) = (layer.n_inputs(), layer.n_outputs());
            clear_to(weight_gradients, n_inputs * n_outputs);
            clear_to(bias_gradients, n_outputs);
            let groups = inputs.chunks(GROUP * n_inputs).zip(current.chunks(GROUP * n_outputs));
            for (samples, gradients) in groups {
                let mut values = [0.0; GROUP];
                for (input, row) in weight_gradients.chunks_exact_mut(n_outputs).enumerate() {
                    let column = samples.iter().skip(input).step_by(n_inputs);
                    let count = values.iter_mut().zip(column).map(|(place, &value)| *place = value).count();
                    add_products(row, values.get(..count).unwrap_or_default(), gradients);
                }
                for gradient in gradients.chunks_exact(n_outputs) {
                    bias_gradients.iter_mut().zip(gradient).for_each(|(sum, gradient)| *sum += gradient);
                }
            }
            if idx > 0 {
                clear_to(next, inputs.len());
                for (place, gradient) in next.chunks_exact_mut(n_inputs).zip(current.chunks_exact(n_outputs))
                {
                    for (value, weights) in place.iter_mut().zip(layer.weights().rows()) {
                        *value = dot(weights, gradient);
                    }
                }
            }
            let (weights, bias) = layer.parameters_mut();
            for (gradient, weight) in weight_gradients.iter_mut().zip(weights.iter()) {
                *gradient += lesson.options.weight_decay * weight;
            }
            offset -= weights.len() + bias.len();
            steps.step(offset, weights, weight_gradients);
            steps.step(offset + weights.len(), bias, bias_gradients);
            if let Some(before) = idx.checked_sub(1).and_then(|before| layers.get(before)) {
                before.activation().derive(inputs, next, n_inputs);
                core::mem::swap(current, next);
            }
        }
        loss
    }
}

/// Writes the derivatives of the batch's mean loss with respect to the sums of the last layer; the sum of the losses.
fn output_gradients(
    loss: NeuralLoss,
    activation: Activation,
    said: &[f32],
    wanted: impl Iterator<Item = f32>,
    width: usize,
    gradients: &mut Vec<f32>,
) -> f64 {
    gradients.clear();
    gradients.extend(wanted);
    let n_rows = (said.len() / width.max(1)) as f32;
    let mut sum = 0.0;
    match loss {
        NeuralLoss::MeanSquared => {
            let scale = 2.0 / (n_rows * width as f32);
            for (place, &output) in gradients.iter_mut().zip(said) {
                let apart = output - *place;
                sum += f64::from(apart) * f64::from(apart);
                *place = scale * apart;
            }
            activation.derive(said, gradients, width);
            sum / width as f64
        }
        NeuralLoss::CrossEntropy => {
            // After sigmoids and softmax the derivatives of logarithm and activation cancel.
            for (places, outputs) in gradients.chunks_exact_mut(width).zip(said.chunks_exact(width)) {
                let mass = match activation {
                    Activation::Softmax => places.iter().sum(),
                    _ => 1.0_f32,
                };
                for (place, &output) in places.iter_mut().zip(outputs) {
                    let (target, probability) = (f64::from(*place), f64::from(output));
                    sum -= target * logarithm(probability);
                    if activation != Activation::Softmax {
                        sum -= (1.0 - target) * logarithm(1.0 - probability);
                    }
                    *place = (output * mass - *place) / n_rows;
                }
            }
            sum
        }
    }
}

/// Natural logarithm of a probability; of a number that is none, not a number.
pub(super) fn logarithm(probability: f64) -> f64 {
    match probability < LEAST_PROBABILITY {
        true => libm::log(LEAST_PROBABILITY),
        false => libm::log(probability),
    }
}

fn clear_to(values: &mut Vec<f32>, len: usize) {
    values.clear();
    values.resize(len, 0.0);
}

/// Dot product with as many partial sums as the processor has lanes, in a fixed order.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += a * b;
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neural::NeuralSequential;

    /// Mean loss of a network in `f64`, by the definition.
    fn loss_of(model: &NeuralSequential, x: &Matrix, targets: &Matrix, loss: NeuralLoss) -> f64 {
        let outputs = model.outputs(x).unwrap();
        let sigmoid = model.layers().last().unwrap().activation() == Activation::Sigmoid;
        let pairs = outputs.as_slice().iter().zip(targets.as_slice());
        let terms = pairs.map(|(&output, &target)| {
            let (output, target) = (f64::from(output), f64::from(target));
            match loss {
                NeuralLoss::MeanSquared => (output - target) * (output - target) / targets.n_cols() as f64,
                NeuralLoss::CrossEntropy if sigmoid => {
                    -target * libm::log(output) - (1.0 - target) * libm::log(1.0 - output)
                }
                NeuralLoss::CrossEntropy => -target * libm::log(output),
            }
        });
        terms.sum::<f64>() / x.n_rows() as f64
    }

    #[test]
    fn gradients_are_those_of_the_loss() {
        use Activation::{Identity, Relu, Sigmoid, Softmax, Tanh};
        let mut rng = Rng::new(4);
        let x = Matrix::from_vec(6, 3, (0..18).map(|_| rng.normal() as f32).collect()).unwrap();
        let cases = [
            (vec![(4, Tanh), (2, Identity)], NeuralLoss::MeanSquared),
            (vec![(4, Sigmoid), (3, Softmax)], NeuralLoss::MeanSquared),
            (vec![(3, Softmax), (4, Tanh), (2, Sigmoid)], NeuralLoss::MeanSquared),
            (vec![(5, Relu), (3, Softmax)], NeuralLoss::CrossEntropy),
            (vec![(4, Tanh), (3, Sigmoid)], NeuralLoss::CrossEntropy),
            (vec![(1, Sigmoid)], NeuralLoss::CrossEntropy),
        ];
        for (layers, loss) in cases {
            let model = NeuralSequential::random(3, &layers, 11).unwrap();
            let width = layers.last().unwrap().0;
            let mut targets: Vec<f32> = (0..6 * width).map(|_| rng.unit() as f32).collect();
            if layers.last().unwrap().1 == Softmax {
                targets.chunks_mut(width).for_each(|row| {
                    let sum: f32 = row.iter().sum();
                    row.iter_mut().for_each(|value| *value /= sum);
                });
            }
            let targets = Matrix::from_vec(6, width, targets).unwrap();
            // One step of plain descent moves each parameter by the rate times its derivative.
            let rate = 1e-2;
            let options = NeuralOptions {
                optimizer: Optimizer::sgd(rate),
                epochs: 1,
                batch_size: 6,
                ..NeuralOptions::new(loss)
            };
            let mut moved = model.clone();
            let losses = moved.fit(&x, NeuralTargets::Values(&targets), &options).unwrap();
            assert!((losses[0] - loss_of(&model, &x, &targets, loss)).abs() < 1e-5, "{layers:?}");
            for layer in 0..layers.len() {
                let n_weights = model.layers()[layer].weights().as_slice().len();
                for idx in 0..n_weights + model.layers()[layer].n_outputs() {
                    let at = |model: &NeuralSequential| {
                        let layer = &model.layers()[layer];
                        *layer.weights().as_slice().iter().chain(layer.bias()).nth(idx).unwrap()
                    };
                    let nudged = |by: f32| {
                        let mut layers = model.layers().to_vec();
                        let (weights, bias) = layers[layer].parameters_mut();
                        *weights.iter_mut().chain(bias).nth(idx).unwrap() += by;
                        loss_of(&NeuralSequential::from_layers(layers).unwrap(), &x, &targets, loss)
                    };
                    let step = 5e-3;
                    let slope = (nudged(step) - nudged(-step)) / (2.0 * f64::from(step));
                    let found = f64::from(at(&model) - at(&moved)) / f64::from(rate);
                    assert!((slope - found).abs() < 2e-3, "{layers:?} layer {layer} {idx}: {slope} {found}");
                }
            }
        }
    }

    #[test]
    fn training_is_decided_by_its_seed() {
        let mut rng = Rng::new(2);
        let x = Matrix::from_vec(40, 3, (0..120).map(|_| rng.normal() as f32).collect()).unwrap();
        let classes: Vec<usize> = x.rows().map(|row| usize::from(row[0] > row[1])).collect();
        let train = |seed| {
            let mut model =
                NeuralSequential::random(3, &[(6, Activation::Relu), (2, Activation::Softmax)], 5).unwrap();
            let options = NeuralOptions {
                optimizer: Optimizer::Sgd { learning_rate: 0.1, momentum: 0.9 },
                epochs: 30,
                batch_size: 7,
                weight_decay: 1e-4,
                seed,
                ..NeuralOptions::new(NeuralLoss::CrossEntropy)
            };
            let losses = model.fit(&x, NeuralTargets::Classes(&classes), &options).unwrap();
            (model, losses)
        };
        assert_eq!(train(1), train(1));
        assert_ne!(train(1), train(2));
        let (model, losses) = train(1);
        assert!(losses[29] < 0.2, "{losses:?}");
        assert_eq!(model.classes(&x).unwrap(), classes);
    }

    #[test]
    fn what_cannot_be_learned_is_refused_and_changes_nothing() {
        let x = Matrix::from_vec(2, 1, vec![1e19, -1e19]).unwrap();
        let y = Matrix::from_vec(2, 1, vec![1.0, 2.0]).unwrap();
        let new = |activation| NeuralSequential::random(1, &[(1, activation)], 0).unwrap();
        let mut model = new(Activation::Identity);
        let options =
            NeuralOptions { optimizer: Optimizer::sgd(1.0), ..NeuralOptions::new(NeuralLoss::MeanSquared) };
        let error = model.fit(&x, NeuralTargets::Values(&y), &options).unwrap_err();
        assert_eq!((error.code(), model), ("am-diverged", new(Activation::Identity)));

        let x = Matrix::from_vec(2, 1, vec![1.0, 2.0]).unwrap();
        let refusal = |activation, targets: NeuralTargets<'_>, options: NeuralOptions| {
            new(activation).fit(&x, targets, &options).unwrap_err().code()
        };
        let entropy = NeuralOptions::new(NeuralLoss::CrossEntropy);
        assert_eq!(refusal(Activation::Relu, NeuralTargets::Values(&y), entropy), "am-part");
        assert_eq!(refusal(Activation::Sigmoid, NeuralTargets::Classes(&[0, 2]), entropy), "am-label");
        assert_eq!(refusal(Activation::Sigmoid, NeuralTargets::Classes(&[0]), entropy), "am-target-length");
        let wide = Matrix::from_vec(1, 2, vec![1.0, 2.0]).unwrap();
        assert_eq!(refusal(Activation::Relu, NeuralTargets::Values(&wide), options), "am-target-length");
        for options in [
            NeuralOptions { epochs: 0, ..options },
            NeuralOptions { batch_size: 0, ..options },
            NeuralOptions { weight_decay: -1.0, ..options },
            NeuralOptions { weight_decay: f32::NAN, ..options },
        ] {
            assert_eq!(refusal(Activation::Relu, NeuralTargets::Values(&y), options), "am-part");
        }
        let whole = NeuralOptions { batch_size: usize::MAX, ..options };
        let losses = new(Activation::Tanh).fit(&x, NeuralTargets::Values(&y), &whole).unwrap();
        assert_eq!(losses.len(), 100);
    }
}
