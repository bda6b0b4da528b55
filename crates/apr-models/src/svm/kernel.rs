//! Kernel support vector machines, one-vs-one.

use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::products::{dot, squared_distance};

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
    fn of(self, a: &[f32], b: &[f32]) -> f64 {
        match self {
            Self::Linear => dot(a, b),
            Self::Rbf { gamma } => libm::exp(-gamma * squared_distance(a, b)),
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
        let sum = parts.n_support.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count));
        checks::expect_len("support vectors", sum.unwrap_or(usize::MAX), n_vectors)?;
        checks::expect_table("dual coefficients", k - 1, n_vectors, parts.dual.len())?;
        let n_pairs = k.checked_mul(k - 1).map(|twice| twice / 2);
        checks::expect_len("intercepts", n_pairs.unwrap_or(usize::MAX), parts.intercepts.len())?;
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
        let parts = &self.parts;
        let (k, n_vectors) = (parts.n_support.len(), parts.support_vectors.n_rows());
        for (place, &intercept) in out.iter_mut().zip(&parts.intercepts) {
            *place = intercept;
        }
        let mut behind = 0;
        for (class, &count) in parts.n_support.iter().enumerate() {
            let begin = behind;
            behind += count;
            for idx in begin..behind {
                let vector = parts.support_vectors.row(idx).unwrap_or_default();
                let alike = parts.kernel.of(row, vector);
                // Each vector speaks in the pairs of its class with every other one.
                for other in (0..k).filter(|&other| other != class) {
                    let (coefficients, pair) = match other < class {
                        true => (other, pair(other, class, k)),
                        false => (other - 1, pair(class, other, k)),
                    };
                    let coefficient =
                        parts.dual.get(coefficients * n_vectors + idx).copied().unwrap_or_default();
                    if let Some(place) = out.get_mut(pair) {
                        *place += coefficient * alike;
                    }
                }
            }
        }
    }
}

/// Place of the pair `(i, j)`, `i < j < k`, in the order (0, 1), (0, 2), ... (1, 2), ...
pub(crate) const fn pair(i: usize, j: usize, k: usize) -> usize {
    // Of the rows before, row 0 has k - 1 pairs, row 1 k - 2, ...
    i * (2 * k - i - 1) / 2 + j - i - 1
}

/// Place of the class with the most votes, the first of equal ones: a decision above 0 is a vote for the first class of
/// its pair, any other one for the second.
pub(crate) fn most_votes(decisions: &[f64], k: usize) -> usize {
    let mut best = (0, 0);
    for class in 0..k {
        let votes = (0..k).filter(|&other| {
            let won = |pair: usize| decisions.get(pair).is_some_and(|&decision| decision > 0.0);
            match other {
                _ if other == class => false,
                _ if other > class => won(pair(class, other, k)),
                _ => !won(pair(other, class, k)),
            }
        });
        let votes = votes.count();
        if votes > best.1 {
            best = (class, votes);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::svm::Svm;

    #[test]
    fn pairs_are_counted_in_order() {
        for k in 2..9 {
            let mut expected = 0;
            for i in 0..k {
                for j in i + 1..k {
                    assert_eq!(pair(i, j, k), expected);
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn votes_are_counted_and_ties_go_to_the_first() {
        // (0,1) (0,2) (1,2): each class wins once.
        assert_eq!(most_votes(&[1.0, -1.0, 1.0], 3), 0);
        assert_eq!(most_votes(&[-1.0, -1.0, 1.0], 3), 1);
        assert_eq!(most_votes(&[-1.0, -1.0, -1.0], 3), 2);
        // A decision of 0, or of no number, is for the second class of the pair.
        assert_eq!(most_votes(&[0.0, f64::NAN, 0.0], 3), 2);
    }

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
