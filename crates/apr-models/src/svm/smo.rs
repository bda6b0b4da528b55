//! The dual problem of a support vector machine of two classes, by sequential minimal optimization with working sets of
//! second order (Fan, Chen and Lin, *Working set selection using second order information for training support vector
//! machines*, JMLR 6, 2005), as libsvm 3.
//!
//! Minimizes `1/2 a' Q a - sum(a)` where `0 <= a_i <= cost_i`, `sum(sign_i * a_i) = 0` and `Q_ij = sign_i * sign_j *
//! K(x_i, x_j)`. Nothing is shrunk: rows of the kernel matrix stay in a cache of bounded size.

use alloc::vec;
use alloc::vec::Vec;

use crate::convergence::Convergence;

/// Least curvature along a pair: kernels need not be positive definite, nor samples different.
const LEAST_CURVATURE: f64 = 1e-12;

/// Rows of a kernel matrix.
pub(super) trait Kernel {
    /// The similarities of sample `idx` and every sample.
    fn row(&self, idx: usize, out: &mut [f64]);
    /// The similarity of a sample and itself.
    fn diagonal(&self, idx: usize) -> f64;
}

/// Solution of the dual problem.
pub(super) struct Solution {
    /// `sign_i * a_i` for each sample.
    pub(super) coefficients: Vec<f64>,
    /// The constant term of the decision function.
    pub(super) constant: f64,
    pub(super) convergence: Convergence,
}

/// Solves the problem for samples with these costs, negative for samples of the negative class and not 0, to within `tol`
/// of the optimality conditions. `cache` is the most values of the kernel matrix in memory.
pub(super) fn solve(
    kernel: &impl Kernel,
    costs: &[f64],
    tol: f64,
    max_iter: usize,
    cache: usize,
) -> Solution {
    let mut state = State::new(kernel, costs, cache);
    let mut iterations = 0;
    let mut converged = true;
    while let Some((i, j)) = state.select(tol) {
        if iterations == max_iter {
            converged = false;
            break;
        }
        iterations += 1;
        state.improve(i, j);
    }
    let constant = state.constant();
    let coefficients = state.alphas.iter().zip(costs).map(|(alpha, cost)| alpha.copysign(*cost)).collect();
    Solution { coefficients, constant, convergence: Convergence { iterations, converged } }
}

struct State<'k, K> {
    costs: &'k [f64],
    alphas: Vec<f64>,
    /// Derivatives times sign: `sign_i * (Q a - 1)_i`.
    slopes: Vec<f64>,
    diagonal: Vec<f64>,
    rows: RowCache<'k, K>,
}

impl<'k, K: Kernel> State<'k, K> {
    fn new(kernel: &'k K, costs: &'k [f64], cache: usize) -> Self {
        Self {
            costs,
            alphas: vec![0.0; costs.len()],
            slopes: costs.iter().map(|cost| -1.0_f64.copysign(*cost)).collect(),
            diagonal: (0..costs.len()).map(|idx| kernel.diagonal(idx)).collect(),
            rows: RowCache::new(kernel, costs.len(), cache),
        }
    }

    /// Whether `sign * a` can become greater.
    fn can_rise(&self, idx: usize) -> bool {
        let (cost, alpha) = (self.costs[idx], self.alphas[idx]);
        if cost > 0.0 { alpha < cost } else { alpha > 0.0 }
    }

    /// Whether `sign * a` can become smaller.
    fn can_fall(&self, idx: usize) -> bool {
        let (cost, alpha) = (self.costs[idx], self.alphas[idx]);
        if cost > 0.0 { alpha > 0.0 } else { alpha < -cost }
    }

    /// The pair that lowers the objective most among those with the sample that violates the conditions most; `None` if
    /// no pair violates them by more than `tol`.
    fn select(&mut self, tol: f64) -> Option<(usize, usize)> {
        let mut first = None;
        let mut rise = f64::NEG_INFINITY;
        for (idx, slope) in self.slopes.iter().enumerate() {
            if -slope >= rise && self.can_rise(idx) {
                (first, rise) = (Some(idx), -slope);
            }
        }
        let i = first?;
        let row = self.rows.get(i);
        let mut second = None;
        let (mut fall, mut best) = (f64::NEG_INFINITY, f64::INFINITY);
        for (idx, slope) in self.slopes.iter().enumerate() {
            let (cost, alpha) = (self.costs[idx], self.alphas[idx]);
            let can_fall = if cost > 0.0 { alpha > 0.0 } else { alpha < -cost };
            if !can_fall {
                continue;
            }
            fall = fall.max(*slope);
            let violation = rise + slope;
            if violation > 0.0 {
                let curvature = self.diagonal[i] + self.diagonal[idx] - 2.0 * row[idx];
                let gain = -violation * violation / curvature.max(LEAST_CURVATURE);
                if gain <= best {
                    (second, best) = (Some(idx), gain);
                }
            }
        }
        if rise + fall < tol {
            return None;
        }
        Some((i, second?))
    }

    /// Moves along the pair, `i` up and `j` down, to the least objective inside the box.
    fn improve(&mut self, i: usize, j: usize) {
        let similarity = self.rows.get(i)[j];
        let curvature = (self.diagonal[i] + self.diagonal[j] - 2.0 * similarity).max(LEAST_CURVATURE);
        let step = (self.slopes[j] - self.slopes[i]) / curvature;
        // Distance of each to its bound.
        let up = if self.costs[i] > 0.0 { self.costs[i] - self.alphas[i] } else { self.alphas[i] };
        let down = if self.costs[j] > 0.0 { self.alphas[j] } else { -self.costs[j] - self.alphas[j] };
        let step = step.min(up).min(down);
        for (idx, change, distance) in [(i, step, up), (j, -step, down)] {
            let cost = self.costs[idx];
            let rises = (change > 0.0) == (cost > 0.0);
            self.alphas[idx] = match step == distance {
                // Exactly at the bound, whatever rounding says.
                true if rises => cost.abs(),
                true => 0.0,
                false => self.alphas[idx] + change * 1.0_f64.copysign(cost),
            };
        }
        for (idx, change) in [(i, step), (j, -step)] {
            let row = self.rows.get(idx);
            self.slopes.iter_mut().zip(row).for_each(|(slope, similarity)| *slope += change * similarity);
        }
    }

    /// libsvm's `-rho`: the mean over the samples between their bounds, or the middle of what is possible.
    fn constant(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0_usize);
        let (mut least, mut greatest) = (f64::NEG_INFINITY, f64::INFINITY);
        for (idx, &slope) in self.slopes.iter().enumerate() {
            match (self.can_rise(idx), self.can_fall(idx)) {
                (true, true) => {
                    sum += slope;
                    count += 1;
                }
                (true, false) => greatest = greatest.min(slope),
                _ => least = least.max(slope),
            }
        }
        if count > 0 { -sum / count as f64 } else { -0.5 * (least + greatest) }
    }
}

/// Rows of the kernel matrix that were used last.
struct RowCache<'k, K> {
    kernel: &'k K,
    rows: Vec<f64>,
    width: usize,
    /// Place of each sample's row.
    places: Vec<Option<usize>>,
    /// Sample of each place, and when it was used.
    owners: Vec<(usize, u64)>,
    capacity: usize,
    clock: u64,
}

impl<'k, K: Kernel> RowCache<'k, K> {
    fn new(kernel: &'k K, width: usize, values: usize) -> Self {
        // Two at least: those of a pair.
        let capacity = (values / width.max(1)).clamp(2, width.max(2));
        Self {
            kernel,
            rows: Vec::new(),
            width,
            places: vec![None; width],
            owners: Vec::new(),
            capacity,
            clock: 0,
        }
    }

    fn get(&mut self, idx: usize) -> &[f64] {
        self.clock += 1;
        let place = match self.places[idx] {
            Some(place) => place,
            None => self.compute(idx),
        };
        self.owners[place].1 = self.clock;
        &self.rows[place * self.width..(place + 1) * self.width]
    }

    /// Computes a row in a new place, or in that of the row not used for longest.
    fn compute(&mut self, idx: usize) -> usize {
        let place = if self.owners.len() < self.capacity {
            self.owners.push((idx, 0));
            self.rows.resize(self.owners.len() * self.width, 0.0);
            self.owners.len() - 1
        } else {
            let oldest = self.owners.iter().enumerate().min_by_key(|(_, (_, used))| *used);
            let place = oldest.map_or(0, |(place, _)| place);
            self.places[self.owners[place].0] = None;
            self.owners[place].0 = idx;
            place
        };
        self.places[idx] = Some(place);
        self.kernel.row(idx, &mut self.rows[place * self.width..(place + 1) * self.width]);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::products::dot;
    use crate::rng::Rng;

    struct Products(Vec<[f64; 2]>);

    impl Kernel for Products {
        fn row(&self, idx: usize, out: &mut [f64]) {
            out.iter_mut().zip(&self.0).for_each(|(out, other)| *out = dot(&self.0[idx], other));
        }

        fn diagonal(&self, idx: usize) -> f64 {
            dot(&self.0[idx], &self.0[idx])
        }
    }

    /// Two points: the plane is in the middle between them.
    #[test]
    fn margin_of_two_points_is_theirs() {
        let found = solve(&Products(vec![[0.0, 0.0], [4.0, 0.0]]), &[-10.0, 10.0], 1e-9, 100, 100);
        assert!(found.convergence.converged);
        // w = 1/2: a = 2 / |x - y|^2.
        assert_eq!(found.coefficients, [-0.125, 0.125]);
        assert_eq!(found.constant, -1.0);
    }

    #[test]
    fn size_of_the_cache_changes_nothing() {
        let mut rng = Rng::new(3);
        let points: Vec<[f64; 2]> = (0..60).map(|_| [rng.normal(), rng.normal()]).collect();
        let costs: Vec<f64> =
            points.iter().map(|[a, b]| 1.0_f64.copysign(a + b + 0.7 * rng.normal())).collect();
        let kernel = Products(points);
        let whole = solve(&kernel, &costs, 1e-6, 1_000_000, usize::MAX);
        let small = solve(&kernel, &costs, 1e-6, 1_000_000, 0);
        assert_eq!(whole.coefficients, small.coefficients);
        assert_eq!(whole.constant, small.constant);
        assert!(whole.convergence.converged && whole.convergence == small.convergence);
        assert!(whole.coefficients.iter().sum::<f64>().abs() < 1e-9);
        // The conditions: a margin of 1 between the bounds, at least 1 at 0, at most 1 at the cost.
        for (idx, (&coefficient, &cost)) in whole.coefficients.iter().zip(&costs).enumerate() {
            let mut row = vec![0.0; costs.len()];
            kernel.row(idx, &mut row);
            let margin = (dot(&row, &whole.coefficients) + whole.constant) * cost.signum();
            match coefficient.abs() {
                0.0 => assert!(margin > 1.0 - 1e-5, "{margin}"),
                1.0 => assert!(margin < 1.0 + 1e-5, "{margin}"),
                _ => assert!((margin - 1.0).abs() < 1e-5, "{margin}"),
            }
        }
    }

    #[test]
    fn equal_samples_of_both_classes_end() {
        let found = solve(&Products(vec![[1.0, 1.0]; 4]), &[-1.0, 1.0, -1.0, 1.0], 1e-3, 1000, 100);
        assert!(found.convergence.converged);
        assert!(found.coefficients.iter().sum::<f64>().abs() < 1e-12);
    }
}
