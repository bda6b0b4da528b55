//! TF-IDF weights.

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::Error;
use crate::payload::values::{read_option, write_option};
use crate::pipeline::reals::Reals;
use crate::pipeline::rows::Block;
use crate::tf_idf::{RowNorm, TermFrequency};

/// Counts times the weights of their terms, each row then divided by its norm: scikit-learn 1.9.1's
/// `TfidfTransformer`. Zeros stay zeros, so rows may be sparse or dense.
#[derive(Clone, Debug, PartialEq)]
pub struct TfIdfWeights {
    frequency: TermFrequency,
    norm: RowNorm,
    idf: Option<Reals>,
}

impl TfIdfWeights {
    /// A weight for each column in `idf`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn new(frequency: TermFrequency, norm: RowNorm, idf: Option<Reals>) -> Result<Self, Error> {
        if let Some(idf) = &idf {
            idf.expect_finite("idf")?;
        }
        Ok(Self { frequency, norm, idf })
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        if let Some(idf) = &self.idf {
            idf.expect_len("idf", width)?;
        }
        Ok(width)
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        if let Some(rows) = rows.sparse_rows() {
            return rows.for_each_row_mut(|columns, values| {
                self.weigh(columns.iter().map(|&column| column as usize), values);
            });
        }
        let width = rows.width().max(1);
        rows.values_mut().chunks_exact_mut(width).for_each(|row| self.weigh(0..width, row));
    }

    /// Weights the values of a row in those columns.
    fn weigh(&self, columns: impl Iterator<Item = usize>, values: &mut [f64]) {
        for (value, column) in values.iter_mut().zip(columns) {
            if *value == 0.0 {
                continue;
            }
            *value = self.frequency.of(*value);
            if let Some(weight) = self.idf.as_ref().and_then(|idf| idf.get(column)) {
                *value *= weight;
            }
        }
        if self.norm != RowNorm::None {
            let norm = self.norm.of(values.iter().copied());
            values.iter_mut().for_each(|value| *value /= norm);
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.bool(self.frequency == TermFrequency::Logarithm)?;
        out.variant(match self.norm {
            RowNorm::None => 0,
            RowNorm::L1 => 1,
            RowNorm::L2 => 2,
        })?;
        write_option(out, self.idf.as_ref(), |out, idf| idf.encode(out))
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let frequency = if input.bool()? { TermFrequency::Logarithm } else { TermFrequency::Count };
        let norm = match input.variant(3)? {
            0 => RowNorm::None,
            1 => RowNorm::L1,
            _ => RowNorm::L2,
        };
        Ok(Self::new(frequency, norm, read_option(input, Reals::decode)?)?)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::sparse::SparseRows;

    #[test]
    fn dense_and_sparse_rows_are_weighed_alike() {
        let idf = || Some(vec![1.0_f64, 2.0, 0.5].into());
        let e = core::f64::consts::E;
        for (frequency, norm, expected) in [
            (TermFrequency::Count, RowNorm::None, [0.0, 2.0 * e, 0.5]),
            (TermFrequency::Logarithm, RowNorm::None, [0.0, 4.0, 0.5]),
            (TermFrequency::Logarithm, RowNorm::L1, [0.0, 4.0 / 4.5, 0.5 / 4.5]),
            (TermFrequency::Logarithm, RowNorm::L2, [0.0, 4.0 / libm::sqrt(16.25), 0.5 / libm::sqrt(16.25)]),
        ] {
            let step = TfIdfWeights::new(frequency, norm, idf()).unwrap();
            let (mut values, mut spare) = ([0.0, e, 1.0, 0.0, 0.0, 0.0], [0.0; 6]);
            let mut block = Block::dense(2, 3, &mut values, &mut spare);
            step.run(&mut block);
            assert_eq!(block.values(), [&expected[..], &[0.0; 3]].concat());
            let mut rows = SparseRows::new(3);
            rows.push(1, e);
            rows.push(2, 1.0);
            rows.end_row();
            rows.end_row();
            step.run(&mut Block::sparse(&mut rows, &mut [], &mut []));
            assert_eq!(rows.values(), &expected[1..]);
        }
    }

    #[test]
    fn weights_that_cannot_be_are_refused() {
        let new = |idf: &[f64]| TfIdfWeights::new(TermFrequency::Count, RowNorm::L2, Some(idf.into()));
        assert_eq!(new(&[f64::NAN]).unwrap_err().code(), "am-part-not-finite");
        assert_eq!(new(&[1.0]).unwrap().n_outputs(2).unwrap_err().code(), "am-part-length");
    }
}
