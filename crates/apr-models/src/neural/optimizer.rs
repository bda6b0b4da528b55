//! Optimizers.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::Error;

/// How gradients become steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// Gradient descent: `v = momentum * v - learning_rate * gradient`, then `weight += v`.
    Sgd {
        /// Above 0.
        learning_rate: f32,
        /// 0 (none) to 1, exclusive.
        momentum: f32,
    },
    /// Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015) with corrected bias.
    Adam {
        /// Above 0.
        learning_rate: f32,
        /// Share of the mean gradient that is kept in each step: 0 to 1, exclusive.
        beta1: f32,
        /// Share of the mean squared gradient that is kept in each step: 0 to 1, exclusive.
        beta2: f32,
        /// Added to the root of the mean square: above 0.
        epsilon: f32,
    },
}

impl Optimizer {
    /// Gradient descent without momentum.
    #[must_use]
    pub const fn sgd(learning_rate: f32) -> Self {
        Self::Sgd { learning_rate, momentum: 0.0 }
    }

    /// Adam with the constants of its authors: 0.9, 0.999, 1e-8.
    #[must_use]
    pub const fn adam(learning_rate: f32) -> Self {
        Self::Adam { learning_rate, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        let share = |value: f32| (0.0..1.0).contains(&value);
        let (rate, shares) = match self {
            Self::Sgd { learning_rate, momentum } => (learning_rate, share(momentum)),
            Self::Adam { learning_rate, beta1, beta2, epsilon } => {
                checks::expect(
                    "epsilon",
                    epsilon > 0.0 && epsilon.is_finite(),
                    "must be finite and above 0",
                )?;
                (learning_rate, share(beta1) && share(beta2))
            }
        };
        checks::expect("learning rate", rate > 0.0 && rate.is_finite(), "must be finite and above 0")?;
        checks::expect("momentum and betas", shares, "must be at least 0 and below 1")
    }
}

/// What an optimizer remembers of the steps before.
#[derive(Debug)]
pub(crate) struct Steps {
    optimizer: Optimizer,
    /// For each parameter the velocity, or the mean gradient.
    first: Vec<f32>,
    /// For each parameter the mean squared gradient, if the optimizer needs it.
    second: Vec<f32>,
    /// `beta1` and `beta2` to the power of the steps taken.
    powers: (f64, f64),
}

impl Steps {
    pub(crate) fn new(optimizer: Optimizer, n_parameters: usize) -> Self {
        let n_second = if matches!(optimizer, Optimizer::Adam { .. }) { n_parameters } else { 0 };
        Self { optimizer, first: vec![0.0; n_parameters], second: vec![0.0; n_second], powers: (1.0, 1.0) }
    }

    /// Begins the next step; every parameter is then moved once.
    pub(crate) fn begin(&mut self) {
        if let Optimizer::Adam { beta1, beta2, .. } = self.optimizer {
            self.powers.0 *= f64::from(beta1);
            self.powers.1 *= f64::from(beta2);
        }
    }

    /// Moves parameters against their gradients; the first of them is parameter number `offset`.
    pub(crate) fn step(&mut self, offset: usize, parameters: &mut [f32], gradients: &[f32]) {
        let first = self.first.iter_mut().skip(offset);
        let moved = parameters.iter_mut().zip(gradients).zip(first);
        match self.optimizer {
            Optimizer::Sgd { learning_rate, momentum } => {
                for ((parameter, gradient), velocity) in moved {
                    *velocity = momentum * *velocity - learning_rate * gradient;
                    *parameter += *velocity;
                }
            }
            Optimizer::Adam { learning_rate, beta1, beta2, epsilon } => {
                let rate = (f64::from(learning_rate) / (1.0 - self.powers.0)) as f32;
                let correction = (1.0 / (1.0 - self.powers.1)) as f32;
                for (((parameter, &gradient), mean), square) in moved.zip(self.second.iter_mut().skip(offset))
                {
                    *mean += (1.0 - beta1) * (gradient - *mean);
                    *square += (1.0 - beta2) * (gradient * gradient - *square);
                    *parameter -= rate * *mean / (libm::sqrtf(*square * correction) + epsilon);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_their_formulas() {
        let mut steps = Steps::new(Optimizer::Sgd { learning_rate: 0.5, momentum: 0.25 }, 3);
        let mut parameters = [10.0, 20.0];
        for expected in [[9.5, 19.0], [8.875, 17.75]] {
            steps.begin();
            steps.step(1, &mut parameters, &[1.0, 2.0]);
            assert_eq!(parameters, expected);
        }
        // The first step of Adam is the learning rate, whatever the size of the gradient.
        let mut steps = Steps::new(Optimizer::adam(0.01), 2);
        let mut parameters = [1.0, 1.0];
        steps.begin();
        steps.step(0, &mut parameters, &[1e-3, -50.0]);
        assert!((parameters[0] - 0.99).abs() < 1e-5 && (parameters[1] - 1.01).abs() < 1e-5, "{parameters:?}");
    }

    #[test]
    fn impossible_constants_are_refused() {
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(Optimizer::sgd(rate).check().is_err());
            assert!(Optimizer::adam(rate).check().is_err());
        }
        assert!(Optimizer::Sgd { learning_rate: 0.1, momentum: 1.0 }.check().is_err());
        for (beta1, beta2, epsilon) in
            [(1.0, 0.9, 1e-8), (0.9, -0.1, 1e-8), (0.9, 0.9, 0.0), (f32::NAN, 0.9, 1.0)]
        {
            assert!(Optimizer::Adam { learning_rate: 0.1, beta1, beta2, epsilon }.check().is_err());
        }
        Optimizer::adam(0.1).check().unwrap();
        Optimizer::sgd(0.1).check().unwrap();
    }
}
