//! One layer.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::activations::{relu, sigmoid_single, softmax_single};
use crate::matrix::Matrix;
use crate::rng::Rng;

/// Inputs per block of weights.
pub(crate) const GROUP: usize = 4;

/// Activation function of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// They stay.
    #[default]
    Identity,
    /// Negative ones become 0.
    Relu,
    /// Their hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `exp` of each over the sum of all of the layer.
    Softmax,
}

/// A layer that computes `activation(x * weights + bias)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// `[n_inputs, n_outputs]`, row-major.
    weights: Matrix,
    bias: Vec<f32>,
    activation: Activation,
}

impl Dense {
    /// Takes weights, a row for each input and a column for each output, and a constant for each output.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`], [`ErrorKind::PartNotFinite`].
    pub fn new(weights: Matrix, bias: Vec<f32>, activation: Activation) -> Result<Self, Error> {
        checks::expect_len("bias", weights.n_cols(), bias.len())?;
        checks::expect_finite("weights", weights.as_slice())?;
        checks::expect_finite("bias", &bias)?;
        Ok(Self { weights, bias, activation })
    }

    pub(crate) fn random(
        n_inputs: usize,
        n_outputs: usize,
        activation: Activation,
        rng: &mut Rng,
    ) -> Result<Self, Error> {
        let too_large = ErrorKind::MatrixTooLarge { n_rows: n_inputs, n_cols: n_outputs };
        let mut weights = Vec::new();
        let Some(len) = n_inputs.checked_mul(n_outputs).filter(|&len| weights.try_reserve_exact(len).is_ok())
        else {
            return Err(too_large.into());
        };
        let fan = match activation {
            Activation::Relu => n_inputs as f64,
            _ => n_inputs as f64 + n_outputs as f64,
        };
        let bound = libm::sqrt(6.0 / fan);
        weights.extend((0..len).map(|_| ((2.0 * rng.unit() - 1.0) * bound) as f32));
        Self::new(Matrix::from_vec(n_inputs, n_outputs, weights)?, vec![0.0; n_outputs], activation)
    }

    /// Values of a sample it takes.
    #[must_use]
    pub const fn n_inputs(&self) -> usize {
        self.weights.n_rows()
    }

    /// Values it gives.
    #[must_use]
    pub const fn n_outputs(&self) -> usize {
        self.weights.n_cols()
    }

    /// `[n_inputs, n_outputs]`, row-major.
    #[must_use]
    pub const fn weights(&self) -> &Matrix {
        &self.weights
    }

    /// A constant for each output.
    #[must_use]
    pub const fn bias(&self) -> &[f32] {
        self.bias.as_slice()
    }

    /// Its activation function.
    #[must_use]
    pub const fn activation(&self) -> Activation {
        self.activation
    }

    /// Outputs of samples that stand one after the other.
    pub(crate) fn forward(&self, inputs: &[f32], out: &mut [f32]) {
        let (n_inputs, n_outputs) = self.weights.shape();
        for row in out.chunks_exact_mut(n_outputs) {
            row.copy_from_slice(&self.bias);
        }
        // The weights of a few inputs at a time for all samples: they come from far only once.
        for (group, weights) in self.weights.as_slice().chunks(GROUP * n_outputs).enumerate() {
            let first = group * GROUP;
            for (sample, row) in inputs.chunks_exact(n_inputs).zip(out.chunks_exact_mut(n_outputs)) {
                let last = n_inputs.min(first + GROUP);
                add_products(row, sample.get(first..last).unwrap_or_default(), weights);
            }
        }
        self.activation.apply(out, n_outputs);
    }

    /// The same layer with other numbers; they may not be finite.
    pub(crate) fn parameters_mut(&mut self) -> (&mut [f32], &mut [f32]) {
        (self.weights.as_mut_slice(), &mut self.bias)
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.weights.as_slice().iter().chain(&self.bias).all(|value| value.is_finite())
    }
}

/// Adds to `sums` each factor times its row of `table`, in order. Four rows at a time are added before a sum is stored.
pub(crate) fn add_products(sums: &mut [f32], factors: &[f32], table: &[f32]) {
    let width = sums.len();
    if let (&[a, b, c, d], Some((first, rest))) = (factors, table.split_at_checked(width))
        && let Some((second, rest)) = rest.split_at_checked(width)
        && let Some((third, fourth)) = rest.split_at_checked(width)
    {
        let rows = first.iter().zip(second).zip(third.iter().zip(fourth));
        for (sum, ((first, second), (third, fourth))) in sums.iter_mut().zip(rows) {
            *sum = *sum + a * first + b * second + c * third + d * fourth;
        }
        return;
    }
    for (&factor, row) in factors.iter().zip(table.chunks_exact(width)) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
    }
}

impl Activation {
    /// Turns the sums of samples of `width` outputs into outputs. A sum that is not a number stays one.
    fn apply(self, values: &mut [f32], width: usize) {
        match self {
            Self::Identity => {}
            Self::Relu => values.iter_mut().for_each(|value| *value = relu(*value)),
            Self::Tanh => values.iter_mut().for_each(|value| *value = libm::tanhf(*value)),
            Self::Sigmoid => values.iter_mut().for_each(|value| *value = sigmoid_single(*value)),
            Self::Softmax => values.chunks_exact_mut(width).for_each(softmax_single),
        }
    }

    /// Turns the derivatives of a loss with respect to the outputs into those with respect to the sums.
    pub(crate) fn derive(self, outputs: &[f32], gradients: &mut [f32], width: usize) {
        let each = |gradients: &mut [f32], slope: fn(f32) -> f32| {
            gradients.iter_mut().zip(outputs).for_each(|(gradient, &output)| *gradient *= slope(output));
        };
        match self {
            Self::Identity => {}
            Self::Relu => each(gradients, |output| if output > 0.0 { 1.0 } else { 0.0 }),
            Self::Tanh => each(gradients, |output| 1.0 - output * output),
            Self::Sigmoid => each(gradients, |output| output * (1.0 - output)),
            Self::Softmax => {
                for (gradients, outputs) in gradients.chunks_exact_mut(width).zip(outputs.chunks_exact(width))
                {
                    let mean: f32 =
                        gradients.iter().zip(outputs).map(|(gradient, output)| gradient * output).sum();
                    let pairs = gradients.iter_mut().zip(outputs);
                    pairs.for_each(|(gradient, output)| *gradient = output * (*gradient - mean));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_are_what_their_names_say() {
        let apply = |activation: Activation, values: &[f32]| {
            let mut values = values.to_vec();
            activation.apply(&mut values, 2);
            values
        };
        let values = [-2.0, 0.5];
        assert_eq!(apply(Activation::Identity, &values), values);
        assert_eq!(apply(Activation::Relu, &values), [0.0, 0.5]);
        for (found, expected) in [
            (apply(Activation::Tanh, &values), [-0.964_027_6, 0.462_117_2]),
            (apply(Activation::Sigmoid, &values), [0.119_202_92, 0.622_459_35]),
            (apply(Activation::Softmax, &values), [0.075_858_18, 0.924_141_8]),
            (apply(Activation::Softmax, &[-1e30, 1e30]), [0.0, 1.0]),
            (apply(Activation::Sigmoid, &[-1e30, 1e30]), [0.0, 1.0]),
        ] {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
        }
        for activation in [Activation::Relu, Activation::Tanh, Activation::Sigmoid, Activation::Softmax] {
            assert!(apply(activation, &[f32::NAN, 1.0])[0].is_nan(), "{activation:?}");
        }
    }

    #[test]
    fn parts_are_checked() {
        let weights = || Matrix::from_vec(1, 2, vec![1.0, 2.0]).unwrap();
        assert!(Dense::new(weights(), vec![0.0], Activation::Relu).is_err());
        assert!(Dense::new(weights(), vec![0.0, f32::NAN], Activation::Relu).is_err());
        let layer = Dense::new(weights(), vec![0.5, -1.0], Activation::Relu).unwrap();
        let mut out = [0.0; 10];
        layer.forward(&[1.0, 2.0, -1.0, 0.0, 3.0], &mut out);
        assert_eq!(out, [1.5, 1.0, 2.5, 3.0, 0.0, 0.0, 0.5, 0.0, 3.5, 5.0]);
    }
}
