//! Support vector machines with a kernel function, one class against one other.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind};
use crate::kernels::exponential::exp_all;
use crate::kernels::products::SumOrder;
use crate::kernels::svm::pair;
use crate::kernels::training::vectorized;
use crate::matrix::Matrix;
use crate::svm::smo::{self, Kernel};
use crate::svm::{KernelParts, Svm, SvmKernel};
use crate::weighting::{Balance, ClassWeight, Weights};

/// Values of the kernel matrix that are kept: 200 MB.
const CACHED: usize = 25_000_000;

/// How to train an [`Svm`] with a kernel function.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSvmOptions {
    /// The kernel function.
    pub kernel: SvmKernel,
    /// Largest coefficient of a support vector, scikit-learn's `C`: finite and above 0.
    pub c: f64,
    /// Violation of the optimality conditions at which to stop, above 0.
    pub tol: f64,
    /// Most steps for a pair of classes, each of which changes two coefficients.
    pub max_iter: usize,
    /// Weights of the classes, above 0.
    pub class_weight: ClassWeight,
}

impl KernelSvmOptions {
    /// `c` 1, a tolerance of 1e-3, at most 10 million steps, equal weights.
    #[must_use]
    pub const fn new(kernel: SvmKernel) -> Self {
        Self { kernel, c: 1.0, tol: 1e-3, max_iter: 10_000_000, class_weight: ClassWeight::Uniform }
    }
}

impl SvmKernel {
    /// The kernel `exp(-gamma * |a - b|^2)` with the `gamma` that scikit-learn calls "scale": 1 over the product of the
    /// number of features and the variance of all values of `x`; 1 if they are all equal.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureNotFinite`].
    pub fn rbf_scale(x: &Matrix) -> Result<Self, Error> {
        checks::expect_finite_rows(x.as_slice(), x.n_cols())?;
        let count = x.as_slice().len() as f64;
        let values = || x.as_slice().iter().map(|&value| f64::from(value));
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        let gamma = if variance > 0.0 { 1.0 / (x.n_cols() as f64 * variance) } else { 1.0 };
        Ok(Self::Rbf { gamma })
    }
}

pub(super) fn fit(
    x: &Matrix,
    y: &[usize],
    weights: Option<&[f32]>,
    options: &KernelSvmOptions,
) -> Result<(Svm, Convergence), Error> {
    let &KernelSvmOptions { kernel, c, tol, max_iter, ref class_weight } = options;
    checks::expect("c", c.is_finite() && c > 0.0, "a finite number above 0 is needed")?;
    checks::expect("tol", tol.is_finite() && tol > 0.0, "a finite number above 0 is needed")?;
    checks::expect("max_iter", max_iter > 0, "at least 1 is needed")?;
    if let SvmKernel::Rbf { gamma } = kernel {
        checks::expect("gamma", gamma.is_finite() && gamma > 0.0, "must be finite and above 0")?;
    }
    let (classes, places) = Classes::of_targets(x, y)?;
    let k = classes.len();
    if k < 2 {
        return Err(ErrorKind::PartLength { part: "classes", expected: 2, found: k }.into());
    }
    checks::expect_finite_rows(x.as_slice(), x.n_cols())?;
    let weights = Weights::new(classes.labels(), &places, weights, class_weight, Balance::Samples)?;
    weights.expect_all_classes(&places)?;

    // Rows of each class in order, without those that do not count.
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); k];
    for (row, (&place, &weight)) in places.iter().zip(&weights.samples).enumerate() {
        if weight > 0.0 {
            members[place as usize].push(row);
        }
    }
    let cost = |row: usize| c * weights.classes[places[row] as usize] * weights.samples[row];
    let mut all = Convergence { iterations: 0, converged: true };
    // For each class its coefficients against each other one.
    let mut duals: Vec<Vec<Vec<f64>>> =
        members.iter().map(|members| vec![vec![0.0; members.len()]; k - 1]).collect();
    let mut intercepts = vec![0.0; k * (k - 1) / 2];
    // With two classes scikit-learn lets values above 0 speak for the second one.
    let sign = if k == 2 { -1.0 } else { 1.0 };
    for first in 0..k {
        for second in first + 1..k {
            let (of_first, of_second) = (&members[first], &members[second]);
            let costs: Vec<f64> = of_first
                .iter()
                .map(|&row| cost(row))
                .chain(of_second.iter().map(|&row| -cost(row)))
                .collect();
            let rows = of_first.iter().chain(of_second).copied();
            let similarities = Similarities::new(x, rows, kernel);
            let solution = smo::solve(&similarities, &costs, tol, max_iter, CACHED);
            let Convergence { iterations, converged } = solution.convergence;
            all = Convergence {
                iterations: all.iterations + iterations,
                converged: all.converged && converged,
            };
            intercepts[pair(first, second, k)] = sign * solution.constant;
            let (a, b) = solution.coefficients.split_at(of_first.len());
            let places = [(first, second - 1, a), (second, first, b)];
            for (class, row, coefficients) in places {
                let signed = duals[class][row].iter_mut().zip(coefficients);
                signed.for_each(|(place, coefficient)| *place = sign * coefficient);
            }
        }
    }
    let svm = Svm::kernel(support(x, classes.labels(), kernel, &members, &duals, intercepts)?)?;
    Ok((svm, all))
}

/// Keeps the samples with a coefficient that is not 0.
fn support(
    x: &Matrix,
    labels: &[usize],
    kernel: SvmKernel,
    members: &[Vec<usize>],
    duals: &[Vec<Vec<f64>>],
    intercepts: Vec<f64>,
) -> Result<KernelParts, Error> {
    let mut n_support = Vec::with_capacity(labels.len());
    let mut vectors = Vec::new();
    let mut dual = vec![Vec::new(); labels.len() - 1];
    for (members, duals) in members.iter().zip(duals) {
        let mut count = 0;
        for (place, &row) in members.iter().enumerate() {
            if duals.iter().all(|coefficients| coefficients[place] == 0.0) {
                continue;
            }
            count += 1;
            vectors.extend_from_slice(&x.as_slice()[row * x.n_cols()..(row + 1) * x.n_cols()]);
            dual.iter_mut().zip(duals).for_each(|(dual, coefficients)| dual.push(coefficients[place]));
        }
        n_support.push(count);
    }
    Ok(KernelParts {
        classes: labels.to_vec(),
        kernel,
        support_vectors: Matrix::from_vec(n_support.iter().sum(), x.n_cols(), vectors)?,
        n_support,
        dual: dual.concat(),
        intercepts,
    })
}

/// Samples of two classes, in `f64`.
struct Similarities {
    values: Vec<f64>,
    n_cols: usize,
    kernel: SvmKernel,
}

impl Similarities {
    fn new(x: &Matrix, rows: impl Iterator<Item = usize>, kernel: SvmKernel) -> Self {
        let n_cols = x.n_cols();
        let mut values = Vec::new();
        for row in rows {
            values
                .extend(x.as_slice()[row * n_cols..(row + 1) * n_cols].iter().map(|&value| f64::from(value)));
        }
        Self { values, n_cols, kernel }
    }
}

impl Kernel for Similarities {
    fn row(&self, idx: usize, out: &mut [f64]) {
        let row = &self.values[idx * self.n_cols..(idx + 1) * self.n_cols];
        let each = out.iter_mut().zip(self.values.chunks_exact(self.n_cols));
        // Loops, not closures for iterators: those may be compiled apart, without the vectors.
        match self.kernel {
            SvmKernel::Linear => vectorized(
                #[inline(always)]
                || {
                    for (out, other) in each {
                        *out = SumOrder::Lanes.dot(row, other);
                    }
                },
            ),
            SvmKernel::Rbf { gamma } => {
                vectorized(
                    #[inline(always)]
                    || {
                        for (out, other) in each {
                            *out = -gamma * SumOrder::Lanes.squared_distance(row, other);
                        }
                    },
                );
                exp_all(out);
            }
        }
    }

    fn diagonal(&self, idx: usize) -> f64 {
        let row = &self.values[idx * self.n_cols..(idx + 1) * self.n_cols];
        match self.kernel {
            SvmKernel::Linear => SumOrder::Lanes.dot(row, row),
            SvmKernel::Rbf { .. } => 1.0,
        }
    }
}
