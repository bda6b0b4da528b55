//! Truncated Newton method for convex functions: conjugate gradients with a diagonal preconditioner for the step, then a
//! line search (Galli and Lin, *A study on truncated Newton methods for linear classification*, IEEE Trans. Neural Netw.
//! Learn. Syst. 33, 2022), as liblinear 2.40 and later.

use alloc::vec;
use alloc::vec::Vec;

use crate::convergence::Convergence;
use crate::kernels::products::dot;

/// Required decrease of a step as a fraction of that predicted by the slope (Armijo condition).
const GAIN: f64 = 1e-2;

/// Halvings of a step before rounding is all there is to gain.
const HALVINGS: u32 = 40;

/// Part of the preconditioner that is the diagonal of the second derivatives; the rest is the largest of them.
const DIAGONAL: f64 = 0.99;

/// Largest relative gain of a direction's last step at which the directions end.
const CG_TOLERANCE: f64 = 0.5;

/// A convex function with derivatives. `gradient`, `diagonal` and `hessian_times` are those at the point that `loss` was
/// given last.
pub(crate) trait Smooth {
    fn loss(&mut self, point: &[f64]) -> f64;
    fn gradient(&mut self, point: &[f64], out: &mut [f64]);
    /// The diagonal of the matrix of second derivatives.
    fn diagonal(&mut self, out: &mut [f64]);
    /// The product of the matrix of second derivatives with a direction.
    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]);
}

/// Moves `point` to the minimum: until the norm of the gradient is at most `tol` times that at the start.
pub(crate) fn minimize(
    function: &mut impl Smooth,
    point: &mut Vec<f64>,
    max_iter: usize,
    tol: f64,
) -> Convergence {
    let mut gradient = vec![0.0; point.len()];
    let mut loss = function.loss(point);
    function.gradient(point, &mut gradient);
    let bound = tol * norm(&gradient);
    for iterations in 0..max_iter {
        if norm(&gradient) <= bound {
            return Convergence { iterations, converged: true };
        }
        let step = step(function, &gradient);
        let slope = dot(&gradient, &step);
        let Some((next, next_loss)) = search(function, point, &step, slope, loss) else {
            // Nothing to gain but rounding: this is the minimum.
            return Convergence { iterations, converged: true };
        };
        *point = next;
        loss = next_loss;
        function.gradient(point, &mut gradient);
    }
    Convergence { iterations: max_iter, converged: norm(&gradient) <= bound }
}

/// The first of the lengths 1, 1/2, 1/4, ... of the step that lowers the loss enough.
fn search(
    function: &mut impl Smooth,
    point: &[f64],
    step: &[f64],
    slope: f64,
    loss: f64,
) -> Option<(Vec<f64>, f64)> {
    let mut length = 1.0;
    for _ in 0..HALVINGS {
        let next: Vec<f64> = point.iter().zip(step).map(|(value, step)| value + length * step).collect();
        let next_loss = function.loss(&next);
        if next_loss < loss && next_loss <= loss + GAIN * length * slope {
            return Some((next, next_loss));
        }
        length *= 0.5;
    }
    None
}

/// The direction to the minimum of the quadratic approximation, as far as conjugate gradients pay.
fn step(function: &mut impl Smooth, gradient: &[f64]) -> Vec<f64> {
    let size = gradient.len();
    let mut scales = vec![0.0; size];
    function.diagonal(&mut scales);
    let largest = scales.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    scales.iter_mut().for_each(|scale| *scale = (1.0 - DIAGONAL) * largest + DIAGONAL * *scale);
    let scaled = |residual: &[f64]| -> Vec<f64> {
        residual.iter().zip(&scales).map(|(value, scale)| value / scale).collect()
    };
    let mut step = vec![0.0; size];
    let mut residual: Vec<f64> = gradient.iter().map(|value| -value).collect();
    let mut direction = scaled(&residual);
    let mut product = vec![0.0; size];
    let mut size_before = dot(&residual, &direction);
    let tolerance = CG_TOLERANCE.min(libm::sqrt(libm::sqrt(size_before)));
    let mut model = 0.0;
    for iteration in 1..=size.max(5) {
        function.hessian_times(&direction, &mut product);
        let curvature = dot(&direction, &product);
        // Without curvature, or without anything left, there is no better step.
        if !(curvature > 0.0 && size_before > 0.0) {
            break;
        }
        let length = size_before / curvature;
        step.iter_mut().zip(&direction).for_each(|(value, along)| *value += length * along);
        residual.iter_mut().zip(&product).for_each(|(value, along)| *value -= length * along);
        // Nash and Sofer's rule: stop when the quadratic model gains little more.
        let next_model = -0.5 * (dot(&step, &residual) - dot(&step, gradient));
        let gain = next_model - model;
        if !(next_model <= 0.0 && gain <= 0.0) || iteration as f64 * gain >= tolerance * next_model {
            break;
        }
        model = next_model;
        let next = scaled(&residual);
        let size_after = dot(&residual, &next);
        let ratio = size_after / size_before;
        direction.iter_mut().zip(&next).for_each(|(value, next)| *value = next + ratio * *value);
        size_before = size_after;
    }
    step
}

fn norm(values: &[f64]) -> f64 {
    libm::sqrt(dot(values, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sum(scale * (exp(x) - 2 x))`, least at `ln 2`.
    struct Exponentials {
        scales: Vec<f64>,
        point: Vec<f64>,
    }

    impl Smooth for Exponentials {
        fn loss(&mut self, point: &[f64]) -> f64 {
            self.point = point.to_vec();
            point.iter().zip(&self.scales).map(|(&x, scale)| scale * (libm::exp(x) - 2.0 * x)).sum()
        }

        fn gradient(&mut self, point: &[f64], out: &mut [f64]) {
            for ((out, &x), scale) in out.iter_mut().zip(point).zip(&self.scales) {
                *out = scale * (libm::exp(x) - 2.0);
            }
        }

        fn diagonal(&mut self, out: &mut [f64]) {
            for ((out, &x), scale) in out.iter_mut().zip(&self.point).zip(&self.scales) {
                *out = scale * libm::exp(x);
            }
        }

        fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) {
            self.diagonal(out);
            out.iter_mut().zip(direction).for_each(|(out, along)| *out *= along);
        }
    }

    #[test]
    fn minimum_is_found_whatever_the_scales() {
        let mut function = Exponentials { scales: vec![1e-2, 1.0, 1e2, 1e3], point: Vec::new() };
        for start in [-5.0, 0.0, 5.0] {
            let mut point = vec![start; 4];
            let convergence = minimize(&mut function, &mut point, 100, 1e-14);
            assert!(convergence.converged, "{point:?}");
            for value in &point {
                assert!((value - core::f64::consts::LN_2).abs() < 1e-4, "{start} {point:?}");
            }
        }
        let mut point = vec![core::f64::consts::LN_2; 4];
        assert!(minimize(&mut function, &mut point, 1, 1e-14).converged);
        let mut point = vec![3.0; 4];
        assert!(!minimize(&mut function, &mut point, 1, 1e-14).converged);
    }
}
