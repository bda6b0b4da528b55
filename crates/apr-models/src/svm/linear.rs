//! Linear support vector machines.

use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::error::Error;
use crate::kernels::products::dot;
use crate::matrix::Matrix;

/// What a linear [`Svm`](crate::Svm) is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearParts {
    /// Labels, strictly increasing, at least two.
    pub classes: Vec<usize>,
    /// One row for two classes, otherwise one for each class; a column for each feature.
    pub weights: Matrix,
    /// A constant for each row.
    pub intercepts: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinearMachine {
    pub(crate) weights: Matrix,
    pub(crate) intercepts: Vec<f32>,
}

impl LinearMachine {
    pub(crate) fn new(classes: &Classes, weights: Matrix, intercepts: Vec<f32>) -> Result<Self, Error> {
        let n_planes = if classes.len() == 2 { 1 } else { classes.len() };
        checks::expect_len("rows of weights", n_planes, weights.n_rows())?;
        checks::expect_len("intercepts", n_planes, intercepts.len())?;
        checks::expect_finite("weights", weights.as_slice())?;
        checks::expect_finite("intercepts", &intercepts)?;
        Ok(Self { weights, intercepts })
    }

    pub(crate) fn decide(&self, row: &[f32], out: &mut [f64]) {
        for ((place, weights), &intercept) in out.iter_mut().zip(self.weights.rows()).zip(&self.intercepts) {
            *place = dot(row, weights) + f64::from(intercept);
        }
    }
}
