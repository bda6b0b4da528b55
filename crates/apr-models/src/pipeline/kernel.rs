//! The step of support vector machines with a kernel.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::kernels::exponential::exp_all;
use crate::kernels::svm::{Pairs, check_lengths};
use crate::pipeline::reals::{Reals, with_slice};
use crate::pipeline::rows::Block;
use crate::pipeline::table::{RowView, Table};
use crate::scratch::with_scratch;

/// Similarities of a block of samples: they stay in the cache.
const SIMILARITIES: usize = 1 << 15;

/// Similarities that are kept on the stack.
const ON_STACK: usize = 512;

/// How alike a sample and a support vector are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepKernel {
    /// `exp(-gamma * |a - b|^2)`.
    Rbf {
        /// Not negative.
        gamma: f64,
    },
    /// `(gamma * a.b + coef0)^degree`.
    Polynomial {
        /// Not negative.
        gamma: f64,
        /// Added before the power is computed.
        coef0: f64,
        /// The power.
        degree: u32,
    },
    /// `tanh(gamma * a.b + coef0)`.
    Sigmoid {
        /// Not negative.
        gamma: f64,
        /// Added before the tangent is computed.
        coef0: f64,
    },
}

impl StepKernel {
    /// What the kernel is computed from: the squared distances or the dot products of samples and vectors.
    const fn is_of_distances(self) -> bool {
        matches!(self, Self::Rbf { .. })
    }

    /// Turns squared distances or dot products into similarities.
    fn apply(self, values: &mut [f64]) {
        match self {
            Self::Rbf { gamma } => {
                values.iter_mut().for_each(|value| *value *= -gamma);
                exp_all(values);
            }
            Self::Polynomial { gamma, coef0, degree } => {
                values.iter_mut().for_each(|value| *value = power(gamma * *value + coef0, degree));
            }
            Self::Sigmoid { gamma, coef0 } => {
                values.iter_mut().for_each(|value| *value = libm::tanh(gamma * *value + coef0));
            }
        }
    }

    fn check(self) -> Result<(), Error> {
        let (gamma, coef0) = match self {
            Self::Rbf { gamma } => (gamma, 0.0),
            Self::Polynomial { gamma, coef0, .. } | Self::Sigmoid { gamma, coef0 } => (gamma, coef0),
        };
        checks::expect("gamma", gamma.is_finite() && gamma >= 0.0, "must be finite and not negative")?;
        checks::expect("coef0", coef0.is_finite(), "must be finite")
    }

    fn encode(self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        match self {
            Self::Rbf { gamma } => {
                out.variant(0)?;
                out.f64(gamma)
            }
            Self::Polynomial { gamma, coef0, degree } => {
                out.variant(1)?;
                out.f64(gamma)?;
                out.f64(coef0)?;
                out.u32(degree)
            }
            Self::Sigmoid { gamma, coef0 } => {
                out.variant(2)?;
                out.f64(gamma)?;
                out.f64(coef0)
            }
        }
    }

    fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        Ok(match input.variant(3)? {
            0 => Self::Rbf { gamma: input.f64()? },
            1 => Self::Polynomial { gamma: input.f64()?, coef0: input.f64()?, degree: input.u32()? },
            _ => Self::Sigmoid { gamma: input.f64()?, coef0: input.f64()? },
        })
    }
}

/// Decisions between each two of `k` classes, (0, 1), (0, 2), ... (1, 2), ..., by support vectors, with the signs of libsvm:
/// above 0 is for the first of the two.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelStep {
    kernel: StepKernel,
    n_support: Vec<usize>,
    vectors: Table,
    dual: Reals,
    intercepts: Reals,
}

impl KernelStep {
    /// Support vectors grouped by class, `n_support` of each. `dual` has a column for each of them and `k - 1` rows, one after
    /// the other: the coefficient of a vector of class `i` against class `j` is in row `j` if `j < i`, in row `j - 1` if `j >
    /// i`. `intercepts` has a constant for each pair.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength),
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite),
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for fewer than two classes and impossible kernels.
    pub fn new(
        kernel: StepKernel,
        n_support: Vec<usize>,
        vectors: Table,
        dual: Reals,
        intercepts: Reals,
    ) -> Result<Self, Error> {
        kernel.check()?;
        checks::expect("numbers of support vectors", n_support.len() >= 2, "two classes are needed")?;
        check_lengths(&n_support, vectors.n_rows(), dual.len(), intercepts.len())?;
        dual.expect_finite("dual coefficients")?;
        intercepts.expect_finite("intercepts")?;
        Ok(Self { kernel, n_support, vectors, dual, intercepts })
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        self.vectors.expect_width(width)?;
        Ok(self.intercepts.len())
    }

    /// Whether sparse rows need not become dense.
    pub(crate) const fn takes_sparse(&self) -> bool {
        self.vectors.is_sparse()
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        let n_outputs = self.intercepts.len();
        let (width, n_vectors) = (rows.width().max(1), self.vectors.n_rows());
        if rows.sparse_rows().is_none() {
            return rows.replace(n_outputs, |rows, out| {
                let n_rows = (SIMILARITIES / n_vectors).clamp(1, (rows.len() / width).max(1));
                with_scratch::<f64, ON_STACK, _>(n_rows * n_vectors, |similarities| {
                    for (rows, out) in rows.chunks(n_rows * width).zip(out.chunks_mut(n_rows * n_outputs)) {
                        let len = rows.len() / width * n_vectors;
                        let similarities = similarities.get_mut(..len).unwrap_or_default();
                        self.vectors.compare_all(rows, self.kernel.is_of_distances(), similarities);
                        self.decide_all(similarities, out);
                    }
                });
            });
        }
        rows.replace_sparse(n_outputs, |rows, out| {
            with_scratch::<f64, ON_STACK, _>(n_vectors, |similarities| {
                for (idx, out) in out.chunks_exact_mut(n_outputs).enumerate() {
                    let (columns, values) = rows.lists(idx);
                    let sample = RowView::Sparse(columns, values);
                    for (idx, place) in similarities.iter_mut().enumerate() {
                        *place = self.vectors.compare(idx, sample, self.kernel.is_of_distances());
                    }
                    self.decide_all(similarities, out);
                }
            });
        });
    }

    /// The decisions of samples, from their squared distances from all vectors or their dot products with them.
    fn decide_all(&self, similarities: &mut [f64], out: &mut [f64]) {
        self.kernel.apply(similarities);
        let n_outputs = self.intercepts.len();
        with_slice!(&self.dual, dual => {
            let pairs = Pairs { n_support: &self.n_support, dual };
            let samples = similarities.chunks_exact(self.vectors.n_rows());
            for (similarities, out) in samples.zip(out.chunks_exact_mut(n_outputs)) {
                out.iter_mut().zip(self.intercepts.iter()).for_each(|(place, intercept)| *place = intercept);
                let of_vectors = |start: usize, out: &mut [f64]| {
                    let found = similarities.get(start..).unwrap_or_default();
                    out.iter_mut().zip(found).for_each(|(place, &value)| *place = value);
                };
                pairs.add_to(of_vectors, out);
            }
        });
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.kernel.encode(out)?;
        out.usizes(&self.n_support)?;
        self.vectors.encode(out)?;
        self.dual.encode(out)?;
        self.intercepts.encode(out)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let kernel = StepKernel::decode(input)?;
        let n_support = input.usizes()?;
        let vectors = Table::decode(input)?;
        let dual = Reals::decode(input)?;
        Ok(Self::new(kernel, n_support, vectors, dual, Reals::decode(input)?)?)
    }
}

/// A power in the order of multiplications that libsvm has: by squares, from the lowest bit of the exponent.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut square, mut result, mut left) = (base, 1.0, exponent);
    while left > 0 {
        if left % 2 == 1 {
            result *= square;
        }
        square *= square;
        left /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn step(kernel: StepKernel) -> Result<KernelStep, Error> {
        let vectors = Table::dense(4, vec![1.0_f64, 10.0, 100.0, 1000.0].into())?;
        let dual = (1..=8).map(f64::from).collect();
        KernelStep::new(kernel, vec![1, 2, 1], vectors, dual, vec![0.1_f64, 0.2, 0.3].into())
    }

    #[test]
    fn coefficients_are_those_of_the_pair() {
        let step = step(StepKernel::Polynomial { gamma: 1.0, coef0: 0.0, degree: 1 }).unwrap();
        let (mut values, mut spare) = ([1.0, 0.0, 0.0], [0.0; 3]);
        let mut block = Block::dense(1, 1, &mut values, &mut spare);
        step.run(&mut block);
        let expected = [
            0.1 + 1.0 * 1.0 + (2.0 * 10.0 + 3.0 * 100.0),
            0.2 + 5.0 * 1.0 + 4.0 * 1000.0,
            0.3 + (6.0 * 10.0 + 7.0 * 100.0) + 8.0 * 1000.0,
        ];
        let found = block.values();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
    }

    #[test]
    fn kernels_have_their_values() {
        let vectors = Table::dense(1, vec![1.0_f64, 2.0].into()).unwrap();
        let sample = RowView::Dense(&[3.0, -1.0]);
        let of = |kernel: StepKernel| {
            let mut value = [vectors.compare(0, sample, kernel.is_of_distances())];
            kernel.apply(&mut value);
            value[0]
        };
        assert_eq!(of(StepKernel::Rbf { gamma: 0.5 }), libm::exp(-6.5));
        assert_eq!(of(StepKernel::Polynomial { gamma: 2.0, coef0: 1.0, degree: 3 }), 27.0);
        assert_eq!(of(StepKernel::Polynomial { gamma: 2.0, coef0: 1.0, degree: 0 }), 1.0);
        assert_eq!(of(StepKernel::Sigmoid { gamma: 0.5, coef0: -0.5 }), 0.0);
        assert_eq!([2, 3, 5, 10].map(|exponent| power(-2.0, exponent)), [4.0, -8.0, -32.0, 1024.0]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        for kernel in [
            StepKernel::Rbf { gamma: -1.0 },
            StepKernel::Rbf { gamma: f64::NAN },
            StepKernel::Sigmoid { gamma: f64::INFINITY, coef0: 0.0 },
            StepKernel::Polynomial { gamma: 1.0, coef0: f64::NAN, degree: 2 },
        ] {
            assert_eq!(step(kernel).unwrap_err().code(), "am-part", "{kernel:?}");
        }
        let new = |n_support: &[usize], n_dual: usize, n_intercepts: usize| {
            let vectors = Table::dense(4, vec![1.0_f64; 8].into()).unwrap();
            let (dual, intercepts) = (vec![1.0_f64; n_dual].into(), vec![1.0_f64; n_intercepts].into());
            KernelStep::new(StepKernel::Rbf { gamma: 1.0 }, n_support.to_vec(), vectors, dual, intercepts)
                .map(|step| step.n_outputs(2).unwrap())
                .map_err(|error| error.code())
        };
        assert_eq!(new(&[1, 3], 4, 1), Ok(1));
        assert_eq!(new(&[1, 3, 0], 8, 3), Ok(3));
        assert_eq!(new(&[4], 0, 0), Err("am-part"));
        assert_eq!(new(&[1, 2], 4, 1), Err("am-part-length"));
        assert_eq!(new(&[usize::MAX, 5], 4, 1), Err("am-part-length"));
        assert_eq!(new(&[1, 3], 5, 1), Err("am-part-length"));
        assert_eq!(new(&[1, 3], 4, 2), Err("am-part-length"));
    }
}
