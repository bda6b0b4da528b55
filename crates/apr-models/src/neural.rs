//! Networks of dense layers.

mod dense;
mod distilled;
mod optimizer;
mod softmax;
mod stored;
mod fit;

use alloc::vec::Vec;

pub use self::dense::{Activation, Dense};
pub use self::distilled::SoftTargets;
pub use self::fit::{NeuralLoss, NeuralOptions, NeuralReport, NeuralTargets};
pub use self::optimizer::Optimizer;
pub use self::softmax::SoftmaxOptions;

use crate::checks;
use crate::classes::largest;
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind};
use crate::matrix::{Matrix, table};
use crate::model::Transformer;
use crate::probability::check_outputs;
use crate::rng::Rng;
use crate::scratch::with_scratch;
use crate::workers::{Alone, Workers};

/// Number of hidden values that are kept on the stack.
const ON_STACK: usize = 2048;

/// Most samples that go through one layer before the next: weights are read once for several of them.
const MAX_BLOCK: usize = 32;

/// Feed-forward network of dense layers: each computes `activation(x · weights + bias)`.
///
/// Computed in `f32`, each sum over the inputs in their order, so a sample's outputs do not depend on the samples beside
/// it.
///
/// ```
/// use apr_models::{Activation, Matrix, NeuralLoss, NeuralOptions, NeuralSequential, NeuralTargets, Optimizer};
///
/// // Learn "exclusive or".
/// let x = Matrix::from_vec(4, 2, vec![0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])?;
/// let mut model = NeuralSequential::random(2, &[(8, Activation::Tanh), (1, Activation::Sigmoid)], 1)?;
/// let options = NeuralOptions {
///     optimizer: Optimizer::adam(0.05),
///     epochs: 300,
///     batch_size: 4,
///     ..NeuralOptions::new(NeuralLoss::CrossEntropy)
/// };
/// let losses = model.fit(&x, NeuralTargets::Classes(&[0, 1, 1, 0]), &options)?;
/// assert!(losses[299] < 0.1 && losses[299] < losses[0]);
/// assert_eq!(model.classes(&x)?, [0, 1, 1, 0]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NeuralSequential {
    layers: Vec<Dense>,
}

impl NeuralSequential {
    /// Takes layers of which each has as many inputs as the one before has outputs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] without layers, [`ErrorKind::PartLength`] for ones that do not fit.
    pub fn from_layers(layers: Vec<Dense>) -> Result<Self, Error> {
        checks::expect("layers", !layers.is_empty(), "at least one is needed")?;
        for pair in layers.windows(2) {
            if let [before, layer] = pair {
                checks::expect_len("inputs of a layer", before.n_outputs(), layer.n_inputs())?;
            }
        }
        Ok(Self { layers })
    }

    /// A network of these outputs and activations with random weights, to be fitted: uniform within the bounds of
    /// Glorot and Bengio (AISTATS 2010), before ReLU of He et al. (ICCV 2015); biases 0. The same seed gives the same
    /// weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] without layers; [`ErrorKind::EmptyMatrix`], [`ErrorKind::MatrixTooLarge`].
    pub fn random(n_inputs: usize, layers: &[(usize, Activation)], seed: u64) -> Result<Self, Error> {
        let mut rng = Rng::new(seed);
        let mut width = n_inputs;
        let layers = layers.iter().map(|&(n_outputs, activation)| {
            let layer = Dense::random(width, n_outputs, activation, &mut rng);
            width = n_outputs;
            layer
        });
        Self::from_layers(layers.collect::<Result<_, _>>()?)
    }

    /// Fits the network to samples `x` (`[n_samples, n_inputs]`), starting from its current weights; on an error it
    /// is unchanged. Returns the mean loss of each epoch, measured before each batch's step.
    ///
    /// The same network, samples and options give the same bits on every platform.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`],
    /// [`ErrorKind::TargetNotFinite`], [`ErrorKind::Label`] for a class the network has no output for;
    /// [`ErrorKind::PartInvalid`] for options outside their ranges or cross entropy after another activation than sigmoid or
    /// softmax; [`ErrorKind::Diverged`].
    pub fn fit(
        &mut self,
        x: &Matrix,
        targets: NeuralTargets<'_>,
        options: &NeuralOptions,
    ) -> Result<Vec<f64>, Error> {
        Ok(self.fit_on(&Alone, x, targets, options)?.losses)
    }

    /// As [`fit`](Self::fit), with a report. The workers are told of epochs; batches follow each other.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn fit_on(
        &mut self,
        workers: &dyn Workers,
        x: &Matrix,
        targets: NeuralTargets<'_>,
        options: &NeuralOptions,
    ) -> Result<NeuralReport, Error> {
        let (layers, report) = fit::fit(workers, &self.layers, x, targets, options)?;
        self.layers = layers;
        Ok(report)
    }

    /// Multinomial logistic regression: a network of one softmax layer with the least sum of the negative logarithms of the
    /// probabilities of the classes `y` (`[n_samples]`, counted from 0 without gaps) of the samples `x` (`[n_samples,
    /// n_features]`), times `c`, plus half the sum of the squared coefficients; constants have no penalty. That is
    /// scikit-learn 1.9.1's `LogisticRegression(C=c)`, also for two classes.
    ///
    /// A truncated Newton method in `f64`, rounded once; the same input gives the same bits on every platform. Time of a
    /// step is O(`n_samples` · `n_features` · `n_classes`), memory O(`n_samples` · (`n_features` + `n_classes`)).
    ///
    /// ```
    /// use apr_models::{Matrix, NeuralSequential, SoftmaxOptions};
    ///
    /// let x = Matrix::from_vec(6, 1, vec![0.0, 1.0, 4.0, 5.0, 8.0, 9.0])?;
    /// let (model, convergence) = NeuralSequential::softmax_regression(&x, &[0, 0, 1, 1, 2, 2], &SoftmaxOptions::default())?;
    /// assert!(convergence.converged);
    /// assert_eq!(model.classes(&x)?, [0, 0, 1, 1, 2, 2]);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::Label`] for classes with gaps,
    /// [`ErrorKind::PartLength`] for fewer than two classes, [`ErrorKind::PartInvalid`] for
    /// an option that is out of its range, [`ErrorKind::OutOfRange`] if a coefficient does not fit `f32`.
    pub fn softmax_regression(
        x: &Matrix,
        y: &[usize],
        options: &SoftmaxOptions,
    ) -> Result<(Self, Convergence), Error> {
        softmax::fit(x, y, None, options)
    }

    /// As [`softmax_regression`](Self::softmax_regression), with a weight for each sample, which its class's weight is multiplied
    /// by.
    ///
    /// # Errors
    ///
    /// As [`softmax_regression`](Self::softmax_regression), and for weights that are not one finite number of at least 0 for
    /// each sample, or leave a class without any.
    pub fn softmax_regression_weighted(
        x: &Matrix,
        y: &[usize],
        weights: &[f32],
        options: &SoftmaxOptions,
    ) -> Result<(Self, Convergence), Error> {
        softmax::fit(x, y, Some(weights), options)
    }

    /// The layers, in the order in which they compute.
    #[must_use]
    pub const fn layers(&self) -> &[Dense] {
        self.layers.as_slice()
    }

    /// Returns the layers.
    #[must_use]
    pub fn into_layers(self) -> Vec<Dense> {
        self.layers
    }

    /// Inputs of the first layer.
    #[must_use]
    pub fn n_inputs(&self) -> usize {
        self.layers.first().map_or(0, Dense::n_inputs)
    }

    /// Values a sample has between layers, at most.
    fn hidden_width(&self) -> usize {
        let hidden = self.layers.split_last().map_or(&[][..], |(_, hidden)| hidden);
        hidden.iter().map(Dense::n_outputs).max().unwrap_or(0)
    }

    fn width(&self) -> usize {
        self.layers.last().map_or(0, Dense::n_outputs)
    }

    /// Length of the scratch with which [`forward_into`](Self::forward_into) is fastest for so many samples.
    #[must_use]
    pub fn scratch_len(&self, n_rows: usize) -> usize {
        2 * self.hidden_width() * n_rows.clamp(1, MAX_BLOCK)
    }

    /// Computes the outputs for the samples of `rows`, which stand one after the other, into `out`, where they do too.
    /// Nothing is allocated: hidden values are stored in `scratch`, whose previous content does not matter.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutputLength`], [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if the lengths do not
    /// fit each other and the network; [`ErrorKind::PartLength`] for a scratch that is too short for one sample.
    pub fn forward_into(&self, rows: &[f32], out: &mut [f32], scratch: &mut [f32]) -> Result<(), Error> {
        let (n_inputs, n_outputs, hidden) = (self.n_inputs(), self.width(), self.hidden_width());
        check_outputs(rows, out.len(), n_inputs, n_outputs)?;
        if scratch.len() < 2 * hidden {
            return Err(ErrorKind::PartLength {
                part: "scratch",
                expected: 2 * hidden,
                found: scratch.len(),
            }
            .into());
        }
        let block = scratch.len().checked_div(2 * hidden).unwrap_or(MAX_BLOCK).min(MAX_BLOCK);
        let (first, second) = scratch.split_at_mut(scratch.len() / 2);
        for (rows, out) in rows.chunks(block * n_inputs).zip(out.chunks_mut(block * n_outputs)) {
            self.forward_block(rows, out, first, second);
        }
        Ok(())
    }

    fn forward_block(&self, rows: &[f32], out: &mut [f32], first: &mut [f32], second: &mut [f32]) {
        let n_rows = rows.len() / self.n_inputs().max(1);
        let Some((last, hidden)) = self.layers.split_last() else { return };
        let (mut from, mut to) = (first, second);
        let mut from_len = 0;
        for (idx, layer) in hidden.iter().enumerate() {
            let len = n_rows * layer.n_outputs();
            let inputs = if idx == 0 { rows } else { from.get(..from_len).unwrap_or_default() };
            layer.forward(inputs, to.get_mut(..len).unwrap_or_default());
            (from, to, from_len) = (to, from, len);
        }
        let inputs = if hidden.is_empty() { rows } else { from.get(..from_len).unwrap_or_default() };
        last.forward(inputs, out);
    }

    /// Computes the outputs of each sample.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::MatrixTooLarge`].
    pub fn outputs(&self, x: &Matrix) -> Result<Matrix, Error> {
        table(x, self.width(), |rows, out| self.transform_into(rows, out))
    }

    /// The class of each sample: the place of the largest output, the first of equal ones; for a network of one output
    /// whether it is above 0.5.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::MatrixTooLarge`].
    pub fn classes(&self, x: &Matrix) -> Result<Vec<usize>, Error> {
        let outputs = self.outputs(x)?;
        let class = |row: &[f32]| match *row {
            [output] => usize::from(output > 0.5),
            _ => largest(row.iter().map(|&value| value.into())),
        };
        Ok(outputs.rows().map(class).collect())
    }
}

/// Hidden layers of up to 1024 values need no memory but the stack; for wider ones
/// [`forward_into`](NeuralSequential::forward_into) allocates nothing either.
impl Transformer for NeuralSequential {
    fn n_outputs(&self) -> Option<usize> {
        Some(self.width())
    }

    fn transform_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let one_row = 2 * self.hidden_width();
        let block = ON_STACK.checked_div(one_row).unwrap_or(1).clamp(1, MAX_BLOCK);
        with_scratch::<f32, ON_STACK, _>(one_row * block, |scratch| self.forward_into(rows, out, scratch))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn outputs_do_not_depend_on_the_way_they_are_computed() {
        let layers = [(7, Activation::Relu), (1500, Activation::Tanh), (3, Activation::Softmax)];
        for layers in [&layers[..], &layers[..1], &layers[1..]] {
            let model = NeuralSequential::random(5, layers, 3).unwrap();
            let mut rng = Rng::new(9);
            let x = Matrix::from_vec(70, 5, (0..350).map(|_| rng.normal() as f32).collect()).unwrap();
            let together = model.outputs(&x).unwrap();
            let n_outputs = together.n_cols();
            for (row, expected) in x.rows().zip(together.rows()) {
                let mut out = vec![0.0; n_outputs];
                model.transform_into(row, &mut out).unwrap();
                assert_eq!(out, expected);
            }
            for n_rows in [1, 3, 70] {
                let mut out = vec![0.0; 70 * n_outputs];
                let mut scratch = vec![f32::NAN; model.scratch_len(n_rows)];
                model.forward_into(x.as_slice(), &mut out, &mut scratch).unwrap();
                assert_eq!(out, together.as_slice());
            }
        }
    }

    #[test]
    fn layers_that_do_not_fit_are_refused() {
        let layer = |n_inputs, n_outputs| {
            let weights = Matrix::from_vec(n_inputs, n_outputs, vec![0.5; n_inputs * n_outputs]).unwrap();
            Dense::new(weights, vec![0.0; n_outputs], Activation::Identity).unwrap()
        };
        let refusal = |layers| NeuralSequential::from_layers(layers).unwrap_err();
        assert_eq!(refusal(vec![]).code(), "am-part");
        assert_eq!(refusal(vec![layer(2, 3), layer(2, 1)]).code(), "am-part-length");
        let model = NeuralSequential::from_layers(vec![layer(2, 3), layer(3, 1)]).unwrap();
        let short = model.forward_into(&[1.0, 2.0], &mut [0.0], &mut [0.0; 5]).unwrap_err();
        assert_eq!(short.code(), "am-part-length");
        model.forward_into(&[1.0, 2.0], &mut [0.0], &mut [0.0; 6]).unwrap();
        assert_eq!(
            model.forward_into(&[1.0], &mut [0.0], &mut [0.0; 6]).unwrap_err().code(),
            "am-feature-count"
        );
        assert!(NeuralSequential::random(0, &[(1, Activation::Relu)], 0).is_err());
        assert!(NeuralSequential::random(usize::MAX, &[(2, Activation::Relu)], 0).is_err());
        assert!(NeuralSequential::random(1, &[], 0).is_err());
    }
}
