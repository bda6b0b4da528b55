//! Search for the nearest samples.

use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::neighbours::{Candidate, KnnWeights, Ties};
use crate::kernels::products::squared_distance;
use crate::matrix::Matrix;
use crate::model;
use crate::scratch::with_scratch;

/// Number of candidates that are kept on the stack.
const ON_STACK: usize = 512;

/// Maximum number of samples per batch.
const MAX_BLOCK: usize = 16;

/// Values of known samples compared with a block before the next ones: they stay in the innermost cache meanwhile.
const TILE_VALUES: usize = 4096;

/// One of the nearest samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Its row among the samples of the model.
    pub row: usize,
    /// Euclidean distance.
    pub distance: f32,
}

/// Samples to be near to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Neighbours {
    pub(crate) k: usize,
    pub(crate) weights: KnnWeights,
    pub(crate) samples: Matrix,
}

impl Neighbours {
    pub(crate) fn new(samples: Matrix, k: usize, weights: KnnWeights) -> Result<Self, Error> {
        checks::expect_finite_rows(samples.as_slice(), samples.n_cols())?;
        checks::expect("k", k > 0, "must be at least 1")?;
        if samples.n_rows() < k {
            return Err(ErrorKind::TooFewSamples { needed: k, given: samples.n_rows() }.into());
        }
        Ok(Self { k, weights, samples })
    }

    /// Gives `each` the number of every sample of `rows` and its nearest, nearest first.
    pub(crate) fn for_each(
        &self,
        rows: &[f32],
        n_rows: usize,
        each: &mut dyn FnMut(usize, &mut [Candidate]),
    ) -> Result<(), Error> {
        let (n_features, k) = (self.samples.n_cols(), self.k);
        model::check_rows(rows, n_rows, n_features)?;
        checks::expect_finite_rows(rows, n_features)?;
        let block = (ON_STACK / k).clamp(1, MAX_BLOCK).min(n_rows.max(1));
        let tile = (TILE_VALUES / n_features).max(1);
        with_scratch::<Candidate, ON_STACK, _>(block * k, |candidates| {
            for (number, rows) in rows.chunks(block * n_features).enumerate() {
                candidates.fill(Ties::SmallestRows.none());
                for (tile_number, known) in self.samples.as_slice().chunks(tile * n_features).enumerate() {
                    let asked = rows.chunks_exact(n_features).zip(candidates.chunks_exact_mut(k));
                    for (row, nearest) in asked {
                        for (idx, sample) in known.chunks_exact(n_features).enumerate() {
                            let value = squared_distance(row, sample);
                            let place = tile_number * tile + idx;
                            Ties::SmallestRows.offer(nearest, Candidate { value, place });
                        }
                    }
                }
                let asked = rows.chunks_exact(n_features).zip(candidates.chunks_exact_mut(k));
                for (idx, (_, nearest)) in asked.enumerate() {
                    nearest.sort_unstable_by(Candidate::order);
                    each(number * block + idx, nearest);
                }
            }
        });
        Ok(())
    }

    pub(crate) fn nearest(&self, row: &[f32]) -> Result<Vec<Neighbour>, Error> {
        let mut found = Vec::new();
        self.for_each(row, 1, &mut |_, nearest| {
            let neighbour =
                |near: &Candidate| Neighbour { row: near.place, distance: libm::sqrt(near.value) as f32 };
            found.extend(nearest.iter().map(neighbour));
        })?;
        Ok(found)
    }

    /// Turns squared distances into weights.
    pub(crate) fn weigh(&self, nearest: &mut [Candidate]) {
        self.weights.weigh(nearest, libm::sqrt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn nearest_are_those_of_a_full_sort() {
        let mut rng = Rng::new(1);
        // Few different values: many ties.
        let mut table = |n_rows: usize, n_cols: usize| {
            let values = (0..n_rows * n_cols).map(|_| rng.below(4) as f32).collect();
            Matrix::from_vec(n_rows, n_cols, values).unwrap()
        };
        for (n_rows, n_cols, k) in [(1, 1, 1), (700, 9, 5), (300, 2, 300), (900, 3, 600), (100, 5000, 2)] {
            let (samples, asked) = (table(n_rows, n_cols), table(40, n_cols));
            let neighbours = Neighbours::new(samples.clone(), k, KnnWeights::Uniform).unwrap();
            let mut seen = 0;
            neighbours
                .for_each(asked.as_slice(), 40, &mut |number, nearest| {
                    assert_eq!(number, seen);
                    seen += 1;
                    let row = asked.row(number).unwrap();
                    let mut all: Vec<Candidate> = samples
                        .rows()
                        .enumerate()
                        .map(|(place, sample)| Candidate { value: squared_distance(row, sample), place })
                        .collect();
                    all.sort_by(Candidate::order);
                    let places = |list: &[Candidate]| list.iter().map(|near| near.place).collect::<Vec<_>>();
                    assert_eq!(places(nearest), places(&all[..k]));
                })
                .unwrap();
            assert_eq!(seen, 40);
        }
    }

    #[test]
    fn unusable_parts_and_rows_are_refused() {
        let samples = || Matrix::from_vec(2, 1, vec![1.0, 2.0]).unwrap();
        assert_eq!(Neighbours::new(samples(), 0, KnnWeights::Uniform).unwrap_err().code(), "am-part");
        let error = Neighbours::new(samples(), 3, KnnWeights::Uniform).unwrap_err();
        assert_eq!(error.code(), "am-too-few-samples");
        let neighbours = Neighbours::new(samples(), 1, KnnWeights::Uniform).unwrap();
        assert_eq!(neighbours.nearest(&[f32::NAN]).unwrap_err().code(), "am-feature-not-finite");
        assert_eq!(neighbours.nearest(&[1.0, 2.0]).unwrap_err().code(), "am-feature-count");
        assert!(neighbours.nearest(&[]).is_err());
        assert_eq!(neighbours.nearest(&[1.75]).unwrap(), [Neighbour { row: 1, distance: 0.25 }]);
    }

    use alloc::vec;
}
