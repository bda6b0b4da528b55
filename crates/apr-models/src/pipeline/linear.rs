//! The step of linear models, projections and the layers of networks.

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::kernels::products::SumOrder;
use crate::kernels::tiles::all_pairs;
use crate::pipeline::reals::{Reals, with_slice};
use crate::pipeline::rows::Block;

/// Sums of weighted columns: each output has a row of weights and a constant. Sparse rows are multiplied as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearStep {
    n_outputs: usize,
    weights: Reals,
    bias: Reals,
}

impl LinearStep {
    /// A row of weights for each output, one after the other, and `n_outputs` constants.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyMatrix`](crate::ErrorKind::EmptyMatrix),
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength),
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn new(n_outputs: usize, weights: Reals, bias: Reals) -> Result<Self, Error> {
        let n_cols = weights.len().checked_div(n_outputs).unwrap_or(0);
        checks::expect_table("weights", n_outputs, n_cols, weights.len())?;
        bias.expect_len("bias", n_outputs)?;
        weights.expect_finite("weights")?;
        bias.expect_finite("bias")?;
        Ok(Self { n_outputs, weights, bias })
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        checks::expect_table("weights", self.n_outputs, width, self.weights.len())?;
        Ok(self.n_outputs)
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        with_slice!(&self.weights, weights => self.run_with(weights, rows));
    }

    fn run_with<T: Copy + Into<f64>>(&self, weights: &[T], rows: &mut Block<'_>) {
        let (n_outputs, width) = (self.n_outputs, rows.width().max(1));
        let each = |out: &mut [f64], sum: &dyn Fn(&[T]) -> f64| {
            let outputs = weights.chunks_exact(width).zip(self.bias.iter());
            for (place, (weights, bias)) in out.iter_mut().zip(outputs) {
                *place = sum(weights) + bias;
            }
        };
        if rows.sparse_rows().is_none() {
            return rows.replace(n_outputs, |rows, out| {
                all_pairs(SumOrder::Lanes, rows, weights, width, |a, b| a * b, out);
                for out in out.chunks_exact_mut(n_outputs) {
                    out.iter_mut().zip(self.bias.iter()).for_each(|(place, bias)| *place += bias);
                }
            });
        }
        rows.replace_sparse(n_outputs, |rows, out| {
            for (idx, out) in out.chunks_exact_mut(n_outputs).enumerate() {
                let (columns, values) = rows.lists(idx);
                each(out, &|weights| {
                    let terms = columns.iter().zip(values).filter_map(|(&column, value)| {
                        let weight: f64 = (*weights.get(column as usize)?).into();
                        Some(value * weight)
                    });
                    terms.sum()
                });
            }
        });
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.n_outputs)?;
        self.weights.encode(out)?;
        self.bias.encode(out)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let n_outputs = input.usize()?;
        let weights = Reals::decode(input)?;
        Ok(Self::new(n_outputs, weights, Reals::decode(input)?)?)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::sparse::SparseRows;

    #[test]
    fn dense_and_sparse_rows_give_the_same_sums() {
        let step = LinearStep::new(2, vec![1.0_f64, 2.0, 3.0, 0.1, 0.2, 0.3].into(), vec![0.5, -0.5].into());
        let step = step.unwrap();
        let (mut values, mut spare) = ([1.0, 0.0, -1.0, 0.0, 0.0, 0.0], [0.0; 6]);
        let mut dense = Block::dense(2, 3, &mut values, &mut spare);
        step.run(&mut dense);
        assert_eq!((dense.width(), dense.values()), (2, &[-1.5, -0.7, 0.5, -0.5][..]));
        let mut rows = SparseRows::new(3);
        rows.push(0, 1.0);
        rows.push(2, -1.0);
        rows.end_row();
        rows.end_row();
        let (mut values, mut spare) = ([0.0; 4], [0.0; 4]);
        let mut sparse = Block::sparse(&mut rows, &mut values, &mut spare);
        step.run(&mut sparse);
        assert_eq!((sparse.width(), sparse.values()), (2, &[-1.5, -0.7, 0.5, -0.5][..]));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let new = |n_outputs, n_weights, n_bias| {
            let step =
                LinearStep::new(n_outputs, vec![0.5_f64; n_weights].into(), vec![1.5_f64; n_bias].into());
            step.map(|_| ()).map_err(|error| error.code())
        };
        assert_eq!(new(2, 6, 2), Ok(()));
        assert_eq!(new(2, 5, 2), Err("am-part-length"));
        assert_eq!(new(2, 6, 3), Err("am-part-length"));
        assert_eq!(new(0, 0, 0), Err("am-empty-matrix"));
        assert_eq!(new(7, 6, 7), Err("am-empty-matrix"));
        let step = LinearStep::new(1, vec![f64::NAN].into(), vec![0.0_f64].into());
        assert_eq!(step.unwrap_err().code(), "am-part-not-finite");
        let step = LinearStep::new(1, vec![1.0_f64; 3].into(), vec![0.0_f64].into()).unwrap();
        assert_eq!(step.n_outputs(2).unwrap_err().code(), "am-part-length");
    }
}
