//! Kernel support vector machines, one-vs-one.

use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::error::{Error, ErrorKind};
use crate::kernels::exponential::exp_all;
use crate::kernels::products::{dot, squared_distance};
use crate::kernels::svm::{Pairs, check_lengths};
use crate::matrix::Matrix;

/// Kernel function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SvmKernel {
    /// The sum of the products of their features.
    Linear,
    /// `exp(-gamma * |a - b|^2)`.
    Rbf {
        /// Above 0.
        gamma: f64,
    },
}

impl SvmKernel {
    /// The similarities of a sample and some support vectors.
    fn of_all<'v>(self, row: &[f32], vectors: impl Iterator<Item = &'v [f32]>, out: &mut [f64]) {
        let each = out.iter_mut().zip(vectors);
        match self {
            Self::Linear => each.for_each(|(place, vector)| *place = dot(row, vector)),
            Self::Rbf { gamma } => {
                each.for_each(|(place, vector)| *place = -gamma * squared_distance(row, vector));
                exp_all(out);
            }
        }
    }
}

/// What an [`Svm`](crate::Svm) of support vectors is made of, in the order and with the signs of scikit-learn's `SVC`
/// (which are libsvm's for three and more classes).
#[derive(Clone, Debug, PartialEq)]
pub struct KernelParts {
    /// Labels, strictly increasing, `k` of them, at least two.
    pub classes: Vec<usize>,
    /// Kernel function.
    pub kernel: SvmKernel,
    /// Support vectors of each class.
    pub n_support: Vec<usize>,
    /// The support vectors, class by class: a row each.
    pub support_vectors: Matrix,
    /// Coefficients, a column for each support vector, `k - 1` rows one after the other: those of class `i` against
    /// class `j` are in row `j` if `j < i`, in row `j - 1` if `j > i`.
    pub dual: Vec<f64>,
    /// A constant for each pair of classes: (0, 1), (0, 2), ... (1, 2), ...
    pub intercepts: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelMachine {
    parts: KernelParts,
}

impl KernelMachine {
    pub(crate) fn new(classes: &Classes, mut parts: KernelParts) -> Result<Self, Error> {
        // They are kept once, beside the machine.
        parts.classes = Vec::new();
        let (k, n_vectors) = (classes.len(), parts.support_vectors.n_rows());
        if let SvmKernel::Rbf { gamma } = parts.kernel {
            checks::expect("gamma", gamma.is_finite() && gamma > 0.0, "must be finite and above 0")?;
        }
        checks::expect_len("numbers of support vectors", k, parts.n_support.len())?;
        check_lengths(&parts.n_support, n_vectors, parts.dual.len(), parts.intercepts.len())?;
        checks::expect_finite("support vectors", parts.support_vectors.as_slice())?;
        checks::expect_finite("dual coefficients", &parts.dual)?;
        checks::expect_finite("intercepts", &parts.intercepts)?;
        match n_vectors {
            0 => Err(ErrorKind::EmptyMatrix { n_rows: 0, n_cols: parts.support_vectors.n_cols() }.into()),
            _ => Ok(Self { parts }),
        }
    }

    pub(crate) const fn parts(&self) -> &KernelParts {
        &self.parts
    }

    pub(crate) fn to_parts(&self, classes: Vec<usize>) -> KernelParts {
        KernelParts { classes, ..self.parts.clone() }
    }

    pub(crate) const fn intercepts(&self) -> &[f64] {
        self.parts.intercepts.as_slice()
    }

    pub(crate) const fn n_features(&self) -> usize {
        self.parts.support_vectors.n_cols()
    }

    pub(crate) fn decide(&self, row: &[f32], out: &mut [f64]) {
        let KernelParts { kernel, n_support, support_vectors, dual, intercepts, .. } = &self.parts;
        out.iter_mut().zip(intercepts).for_each(|(place, &intercept)| *place = intercept);
        let similarities =
            |start, out: &mut [f64]| kernel.of_all(row, support_vectors.rows().skip(start), out);
        Pairs { n_support, dual }.add_to(similarities, out);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::svm::Svm;

    pub(crate) fn parts() -> KernelParts {
        KernelParts {
            classes: vec![1, 2, 5],
            kernel: SvmKernel::Linear,
            n_support: vec![1, 2, 1],
            support_vectors: Matrix::from_vec(4, 1, vec![1.0, 10.0, 100.0, 1000.0]).unwrap(),
            dual: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
            intercepts: vec![0.1, 0.2, 0.3],
        }
    }

    #[test]
    fn decisions_take_the_coefficients_of_their_pair() {
        let svm = Svm::kernel(parts()).unwrap();
        let x = Matrix::from_vec(1, 1, vec![1.0]).unwrap();
        let found = svm.decision_function(&x).unwrap();
        let expected = [
            0.1 + 1.0 * 1.0 + (2.0 * 10.0 + 3.0 * 100.0),
            0.2 + 5.0 * 1.0 + 4.0 * 1000.0,
            0.3 + (6.0 * 10.0 + 7.0 * 100.0) + 8.0 * 1000.0,
        ];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        assert_eq!(svm.predict(&x), [1]);
        assert_eq!(svm.kernel_parts(), Some(parts()));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        type Change = fn(&mut KernelParts);
        let changes: [(Change, &str); 10] = [
            (|parts| parts.classes = vec![1], "am-part-length"),
            (|parts| parts.classes = vec![1, 5, 2], "am-part"),
            (|parts| parts.n_support = vec![1, 2], "am-part-length"),
            (|parts| parts.n_support = vec![1, 2, 2], "am-part-length"),
            (|parts| parts.n_support = vec![usize::MAX, 2, 1], "am-part-length"),
            (|parts| parts.dual.truncate(7), "am-part-length"),
            (|parts| parts.intercepts.push(0.0), "am-part-length"),
            (|parts| parts.dual[3] = f64::NAN, "am-part-not-finite"),
            (|parts| parts.kernel = SvmKernel::Rbf { gamma: 0.0 }, "am-part"),
            (|parts| parts.kernel = SvmKernel::Rbf { gamma: f64::INFINITY }, "am-part"),
        ];
        for (change, code) in changes {
            let mut parts = parts();
            change(&mut parts);
            assert_eq!(Svm::kernel(parts.clone()).unwrap_err().code(), code, "{parts:?}");
        }
    }
}
