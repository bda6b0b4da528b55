//! Predictions from the nearest training samples.

mod metric;
mod tree;

use alloc::vec;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

pub use self::metric::NeighbourMetric;
use self::tree::KdTree;
use crate::checks;
use crate::error::Error;
use crate::kernels::neighbours::{Candidate, KnnWeights, Ties};
use crate::pipeline::reals::{Reals, with_slice};
use crate::pipeline::rows::Block;
use crate::pipeline::table::{RowView, Table};

/// How the nearest samples are found.
#[derive(Clone, Debug, PartialEq)]
pub enum NeighbourSearch {
    /// Each sample is looked at, in order.
    InOrder,
    /// Scikit-learn's tree over the samples, which must be dense.
    KdTree {
        /// Samples of a leaf, more or less: at least 1.
        leaf_size: usize,
        /// The rows of the samples as the tree has them: `tree.get_arrays()[1]`.
        order: Vec<u32>,
    },
}

/// Outputs of the training samples.
#[derive(Clone, Debug, PartialEq)]
pub enum NeighbourOutput {
    /// Each is of a class. A row becomes the sum of weights for every class.
    Classes {
        /// Classes: at most as many as samples.
        n_classes: usize,
        /// The class of each sample.
        class_of: Vec<u32>,
    },
    /// Each has targets. A row becomes their mean.
    Values {
        /// Targets of a sample: at least 1.
        n_outputs: usize,
        /// The targets, sample by sample.
        targets: Reals,
    },
}

/// Parameters of a [`NeighboursStep`].
#[derive(Clone, Debug, PartialEq)]
pub struct NeighboursParts {
    /// Number of neighbours, `k`: at least 1, at most all samples.
    pub k: usize,
    /// How far samples are from each other.
    pub metric: NeighbourMetric,
    /// The weights of the neighbours.
    pub weights: KnnWeights,
    /// The stored samples: `[n_samples, n_features]`. For the cosine each has a length of 1, or of 0.
    pub samples: Table,
    /// How the nearest are found.
    pub search: NeighbourSearch,
    /// Outputs of the training samples.
    pub answer: NeighbourOutput,
}

/// A step that predicts from the nearest training samples. Among samples at equal distance it keeps those that scikit-learn
/// keeps.
///
/// ```
/// use apr_models::{KnnWeights, NeighbourOutput, NeighbourMetric, NeighbourSearch, NeighboursParts, NeighboursStep, Table};
///
/// let step = NeighboursStep::new(NeighboursParts {
///     k: 2,
///     metric: NeighbourMetric::Euclidean,
///     weights: KnnWeights::Uniform,
///     samples: Table::dense(3, vec![0.0_f64, 1.0, 5.0].into())?,
///     search: NeighbourSearch::InOrder,
///     answer: NeighbourOutput::Classes { n_classes: 2, class_of: vec![0, 0, 1] },
/// })?;
/// assert_eq!(step.n_samples(), 3);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NeighboursStep {
    k: usize,
    metric: NeighbourMetric,
    weights: KnnWeights,
    samples: Table,
    tree: Option<KdTree>,
    answer: NeighbourOutput,
}

impl NeighboursStep {
    /// Checks the parts, and builds the tree if there is one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for a number of neighbours, an exponent, a class or an order that cannot be, a tree or
    /// another distance than the Euclidean one and the cosine over sparse samples, a tree for the cosine;
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength),
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn new(parts: NeighboursParts) -> Result<Self, Error> {
        let NeighboursParts { k, metric, weights, samples, search, answer } = parts;
        let n_rows = samples.n_rows();
        checks::expect("neighbours", k > 0 && k <= n_rows, "must be at least 1 and at most all samples")?;
        checks::expect("exponent of the distance", metric.is_possible(), "must be at least 1 and finite")?;
        let by_products = matches!(metric, NeighbourMetric::Euclidean | NeighbourMetric::Cosine);
        checks::expect(
            "metric",
            by_products || !samples.is_sparse(),
            "must be Euclidean or the cosine for sparse samples",
        )?;
        answer.check(n_rows)?;
        let tree = match search {
            NeighbourSearch::InOrder => None,
            NeighbourSearch::KdTree { leaf_size, order } => {
                checks::expect(
                    "metric",
                    metric != NeighbourMetric::Cosine,
                    "must not be the cosine for a tree",
                )?;
                Some(KdTree::new(&samples, leaf_size, order)?)
            }
        };
        Ok(Self { k, metric, weights, samples, tree, answer })
    }

    /// Number of known samples.
    #[must_use]
    pub const fn n_samples(&self) -> usize {
        self.samples.n_rows()
    }

    /// Values of a row after the step; `width` is their number before it.
    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        self.samples.expect_width(width)?;
        Ok(self.answer.width())
    }

    /// Whether sparse rows are compared as they are: by the sums of products that they share.
    pub(crate) fn takes_sparse(&self) -> bool {
        let by_products = matches!(self.metric, NeighbourMetric::Euclidean | NeighbourMetric::Cosine);
        by_products && self.tree.is_none()
    }

    /// Replaces each row by the prediction of its neighbours.
    pub(crate) fn run(&self, block: &mut Block<'_>) {
        let mut nearest = vec![Ties::Scikit.none(); self.k];
        let width = self.answer.width();
        if block.sparse_rows().is_some() {
            block.replace_sparse(width, |rows, out| {
                for (idx, out) in out.chunks_exact_mut(width).enumerate() {
                    let (columns, values) = rows.lists(idx);
                    self.search_in_order(RowView::Sparse(columns, values), values, &mut nearest);
                    self.answer(&mut nearest, out);
                }
            });
            return;
        }
        block.replace_rows(width, |row, out| {
            match &self.tree {
                Some(tree) => {
                    nearest.fill(Ties::Scikit.none());
                    tree.search(self.metric, &self.samples, row, &mut nearest);
                }
                None => self.search_in_order(RowView::Dense(row), row, &mut nearest),
            }
            self.answer(&mut nearest, out);
        });
    }

    /// Looks at every sample. `values` are those of the row that are not zero, or all.
    fn search_in_order(&self, row: RowView<'_>, values: &[f64], nearest: &mut [Candidate]) {
        nearest.fill(Ties::Scikit.none());
        let samples = &self.samples;
        let rows = 0..samples.n_rows();
        let mut offer = |value, place| Ties::Scikit.offer(nearest, Candidate { value, place });
        match self.metric {
            NeighbourMetric::Euclidean => rows.for_each(|idx| offer(samples.squared_distance(idx, row), idx)),
            NeighbourMetric::Cosine => {
                let length = libm::sqrt(values.iter().map(|value| value * value).sum());
                // A row of zeros has no direction: it is at the distance 1 from all. scikit-learn leaves short rows as they are, too.
                let length = if length < 10.0 * f64::EPSILON { 1.0 } else { length };
                rows.for_each(|idx| {
                    let cosine = samples.dot(idx, row) / length;
                    offer((1.0 - cosine).clamp(0.0, 2.0), idx);
                });
            }
            metric => with_slice!(samples.values(), known => {
                for (idx, known) in rows.zip(known.chunks_exact(samples.n_cols())) {
                    offer(metric.reduced(values, known), idx);
                }
            }),
        }
    }

    /// Writes the output of the nearest samples. Their distances are replaced with weights, nearest first.
    fn answer(&self, nearest: &mut [Candidate], out: &mut [f64]) {
        nearest.sort_unstable_by(Candidate::order);
        self.weights.weigh(nearest, |value| self.metric.distance(value));
        out.fill(0.0);
        match &self.answer {
            NeighbourOutput::Classes { class_of, .. } => {
                for &Candidate { value: weight, place } in nearest.iter() {
                    let class = class_of.get(place).map_or(0, |&class| class as usize);
                    if let Some(sum) = out.get_mut(class) {
                        *sum += weight;
                    }
                }
            }
            NeighbourOutput::Values { n_outputs, targets } => {
                let mut all = 0.0;
                for &Candidate { value: weight, place } in nearest.iter() {
                    all += weight;
                    for (column, sum) in out.iter_mut().enumerate() {
                        *sum += weight * targets.get(place * n_outputs + column).unwrap_or_default();
                    }
                }
                out.iter_mut().for_each(|sum| *sum /= all);
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.k)?;
        self.metric.encode(out)?;
        out.variant(u32::from(self.weights == KnnWeights::Distance))?;
        self.samples.encode(out)?;
        match &self.tree {
            None => out.variant(0)?,
            Some(tree) => {
                out.variant(1)?;
                out.usize(tree.leaf_size())?;
                out.u32s(tree.order())?;
            }
        }
        match &self.answer {
            NeighbourOutput::Classes { n_classes, class_of } => {
                out.variant(0)?;
                out.usize(*n_classes)?;
                out.u32s(class_of)
            }
            NeighbourOutput::Values { n_outputs, targets } => {
                out.variant(1)?;
                out.usize(*n_outputs)?;
                targets.encode(out)
            }
        }
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let k = input.usize()?;
        let metric = NeighbourMetric::decode(input)?;
        let weights = match input.variant(2)? {
            0 => KnnWeights::Uniform,
            _ => KnnWeights::Distance,
        };
        let samples = Table::decode(input)?;
        let search = match input.variant(2)? {
            0 => NeighbourSearch::InOrder,
            _ => {
                let leaf_size = input.usize()?;
                input.charge(KdTree::memory(samples.n_rows(), samples.n_cols(), leaf_size))?;
                NeighbourSearch::KdTree { leaf_size, order: input.u32s()? }
            }
        };
        let answer = match input.variant(2)? {
            0 => NeighbourOutput::Classes { n_classes: input.usize()?, class_of: input.u32s()? },
            _ => NeighbourOutput::Values { n_outputs: input.usize()?, targets: Reals::decode(input)? },
        };
        Ok(Self::new(NeighboursParts { k, metric, weights, samples, search, answer })?)
    }
}

impl NeighbourOutput {
    const fn width(&self) -> usize {
        match self {
            Self::Classes { n_classes, .. } => *n_classes,
            Self::Values { n_outputs, .. } => *n_outputs,
        }
    }

    fn check(&self, n_rows: usize) -> Result<(), Error> {
        checks::expect("samples", u32::try_from(n_rows).is_ok(), "must be fewer than 2^32")?;
        match self {
            Self::Classes { n_classes, class_of } => {
                checks::expect_len("classes of samples", n_rows, class_of.len())?;
                checks::expect(
                    "classes",
                    *n_classes > 0 && *n_classes <= n_rows,
                    "must be 1 to the number of samples",
                )?;
                let there = class_of.iter().all(|&class| (class as usize) < *n_classes);
                checks::expect("classes of samples", there, "must be below the number of classes")
            }
            Self::Values { n_outputs, targets } => {
                checks::expect_table("targets", n_rows, *n_outputs, targets.len())?;
                targets.expect_finite("targets")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::alone::survives_damage;
    use crate::sparse::SparseRows;

    fn parts() -> NeighboursParts {
        NeighboursParts {
            k: 3,
            metric: NeighbourMetric::Euclidean,
            weights: KnnWeights::Uniform,
            samples: Table::dense(4, vec![0.0_f64, 0.0, 3.0, 4.0, 0.0, 2.0, 9.0, 9.0].into()).unwrap(),
            search: NeighbourSearch::InOrder,
            answer: NeighbourOutput::Classes { n_classes: 2, class_of: vec![0, 1, 1, 0] },
        }
    }

    fn values(n_outputs: usize, targets: &[f64]) -> NeighbourOutput {
        NeighbourOutput::Values { n_outputs, targets: targets.into() }
    }

    fn answers(parts: NeighboursParts, row: &[f64]) -> Vec<f64> {
        let step = NeighboursStep::new(parts).unwrap();
        let space = row.len().max(step.answer.width());
        let (mut before, mut spare) = (vec![0.0; space], vec![f64::NAN; space]);
        before[..row.len()].copy_from_slice(row);
        let mut block = Block::dense(1, row.len(), &mut before, &mut spare);
        step.run(&mut block);
        let dense = block.values().to_vec();
        // The same row, sparse.
        let mut rows = SparseRows::new(row.len());
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            rows.push(column as u32, value);
        }
        rows.end_row();
        let mut block = Block::sparse(&mut rows, &mut before, &mut spare);
        if !step.takes_sparse() {
            block.make_dense();
        }
        step.run(&mut block);
        assert_eq!(block.values(), dense);
        dense
    }

    #[test]
    fn neighbours_vote_by_their_weights() {
        assert_eq!(answers(parts(), &[0.0, 0.0]), [1.0, 2.0]);
        let by_distance = NeighboursParts { weights: KnnWeights::Distance, ..parts() };
        // At distances of 1, 1 and the root of 18.
        assert_eq!(answers(by_distance.clone(), &[0.0, 1.0]), [1.0, 1.0 + 1.0 / libm::sqrt(18.0)]);
        // A sample that is the row itself counts alone.
        assert_eq!(answers(by_distance.clone(), &[3.0, 4.0]), [0.0, 1.0]);
        let targets = values(2, &[1.0, 10.0, 2.0, 20.0, 4.0, 40.0, 8.0, 80.0]);
        let mean = answers(NeighboursParts { answer: targets.clone(), ..parts() }, &[0.0, 0.0]);
        assert_eq!(mean, [7.0 / 3.0, 70.0 / 3.0]);
        // At distances of 1/2 and 3/2.
        let far = 1.0 / 1.5;
        let expected = [(2.0 + 4.0 * far) / (2.0 + far), (20.0 + 40.0 * far) / (2.0 + far)];
        assert_eq!(answers(NeighboursParts { answer: targets, k: 2, ..by_distance }, &[0.0, 0.5]), expected);
    }

    #[test]
    fn the_cosine_forgets_lengths() {
        let samples = Table::dense(3, vec![1.0_f64, 0.0, 0.6, 0.8, 0.0, 0.0].into()).unwrap();
        let answer = values(1, &[1.0, 2.0, 4.0]);
        let cosine = NeighboursParts { k: 1, metric: NeighbourMetric::Cosine, samples, answer, ..parts() };
        assert_eq!(answers(cosine.clone(), &[100.0, 1.0]), [1.0]);
        assert_eq!(answers(cosine.clone(), &[3.0, 4.0]), [2.0]);
        assert_eq!(answers(cosine.clone(), &[-1.0, -1.0]), [4.0]);
        assert_eq!(answers(cosine, &[0.0, 0.0]), [1.0]);
    }

    #[test]
    fn every_metric_finds_its_nearest() {
        // From (0, 0): (3, 3) and (0, 5) and (4, 1.5).
        let samples = Table::dense(3, vec![3.0_f64, 3.0, 0.0, 5.0, 4.0, 1.5].into()).unwrap();
        for (metric, nearest) in [
            (NeighbourMetric::Euclidean, 0.0),
            (NeighbourMetric::Manhattan, 1.0),
            (NeighbourMetric::Chebyshev, 0.0),
            (NeighbourMetric::Minkowski(1.0), 1.0),
            (NeighbourMetric::Minkowski(2.0), 0.0),
        ] {
            for search in
                [NeighbourSearch::InOrder, NeighbourSearch::KdTree { leaf_size: 1, order: vec![1, 0, 2] }]
            {
                let samples = samples.clone();
                let answer = values(1, &[0.0, 1.0, 2.0]);
                let parts = NeighboursParts { k: 1, metric, samples, search, answer, ..parts() };
                assert_eq!(answers(parts, &[0.0, 0.0]), [nearest], "{metric:?}");
            }
        }
    }

    /// Forty points of a grid of 25, so that many are equally far; the tree, and what its neighbours vote, by
    /// scikit-learn 1.9.1: `KNeighborsClassifier(algorithm="kd_tree", leaf_size=3)`.
    #[test]
    fn of_equally_far_samples_the_same_ones_vote_as_in_scikit_learn() {
        #[rustfmt::skip]
        const POINTS: [[u8; 2]; 40] = [
            [2, 0], [1, 3], [0, 0], [0, 3], [2, 3], [1, 1], [2, 0], [4, 4], [0, 2], [1, 2],
            [2, 2], [4, 1], [3, 2], [0, 1], [2, 0], [3, 0], [3, 1], [3, 0], [4, 1], [4, 4],
            [0, 0], [1, 2], [4, 0], [0, 1], [1, 1], [2, 3], [4, 4], [3, 3], [0, 0], [0, 0],
            [2, 2], [3, 0], [0, 1], [4, 1], [4, 2], [2, 4], [4, 2], [0, 4], [0, 3], [2, 0],
        ];
        let class_of = vec![
            0, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 1, 1, 2, 0, 1, 2, 2,
            0, 2, 1, 2, 0, 1, 1, 0,
        ];
        let order = vec![
            20, 13, 2, 28, 23, 29, 5, 24, 0, 6, 8, 32, 21, 9, 10, 1, 4, 3, 37, 38, 15, 14, 39, 16, 17, 31,
            18, 22, 11, 33, 27, 35, 30, 12, 25, 7, 19, 26, 36, 34,
        ];
        let samples: Vec<f64> = POINTS.concat().into_iter().map(f64::from).collect();
        let asked = [[0.0, 0.0], [2.0, 2.0], [4.0, 1.0], [2.0, 3.0], [1.0, 4.0], [3.5, 2.5]];
        for (k, metric, expected) in [
            (
                4,
                NeighbourMetric::Euclidean,
                [[2, 2, 0], [1, 2, 1], [3, 0, 1], [1, 3, 0], [0, 3, 1], [2, 1, 1]],
            ),
            (
                5,
                NeighbourMetric::Manhattan,
                [[3, 2, 0], [2, 2, 1], [4, 0, 1], [1, 3, 1], [1, 3, 1], [2, 1, 2]],
            ),
            (
                5,
                NeighbourMetric::Chebyshev,
                [[3, 2, 0], [1, 3, 1], [3, 0, 2], [2, 3, 0], [1, 4, 0], [2, 1, 2]],
            ),
        ] {
            let parts = NeighboursParts {
                k,
                metric,
                weights: KnnWeights::Uniform,
                samples: Table::dense(POINTS.len(), samples.as_slice().into()).unwrap(),
                search: NeighbourSearch::KdTree { leaf_size: 3, order: order.clone() },
                answer: NeighbourOutput::Classes { n_classes: 3, class_of: class_of.clone() },
            };
            for (row, votes) in asked.iter().zip(expected) {
                assert_eq!(answers(parts.clone(), row), votes.map(f64::from), "{metric:?} {row:?}");
            }
        }
    }

    #[test]
    fn impossible_parts_are_refused() {
        let sparse =
            || Table::sparse(2, vec![0, 1, 2, 2, 3], vec![0, 1, 0], vec![1.0_f64; 3].into()).unwrap();
        let tree = |order| NeighbourSearch::KdTree { leaf_size: 1, order };
        let classes = |n_classes, class_of| NeighbourOutput::Classes { n_classes, class_of };
        let cases = [
            NeighboursParts { k: 0, ..parts() },
            NeighboursParts { k: 5, ..parts() },
            NeighboursParts { metric: NeighbourMetric::Minkowski(0.5), ..parts() },
            NeighboursParts { metric: NeighbourMetric::Minkowski(f64::NAN), ..parts() },
            NeighboursParts { metric: NeighbourMetric::Manhattan, samples: sparse(), ..parts() },
            NeighboursParts { search: tree(vec![0, 1, 2, 3]), samples: sparse(), ..parts() },
            NeighboursParts { search: tree(vec![0, 1, 2, 2]), ..parts() },
            NeighboursParts { search: tree(vec![0, 1, 2, 3]), metric: NeighbourMetric::Cosine, ..parts() },
            NeighboursParts { answer: classes(5, vec![0; 4]), ..parts() },
            NeighboursParts { answer: classes(0, vec![0; 4]), ..parts() },
            NeighboursParts { answer: classes(2, vec![0, 1, 2, 0]), ..parts() },
            NeighboursParts { answer: classes(2, vec![0, 1, 1]), ..parts() },
            NeighboursParts { answer: values(0, &[]), ..parts() },
            NeighboursParts { answer: values(2, &[0.0; 7]), ..parts() },
            NeighboursParts { answer: values(1, &[0.0, 1.0, f64::NAN, 2.0]), ..parts() },
        ];
        for (number, parts) in cases.into_iter().enumerate() {
            assert!(NeighboursStep::new(parts).is_err(), "{number}");
        }
        let step = NeighboursStep::new(parts()).unwrap();
        assert_eq!((step.n_outputs(2).ok(), step.n_outputs(3).ok()), (Some(2), None));
        assert!(NeighboursStep::new(NeighboursParts { samples: sparse(), ..parts() }).is_ok());
    }

    #[test]
    fn payloads_are_read_as_they_were_written_and_damage_never_panics() {
        let tree = NeighbourSearch::KdTree { leaf_size: 1, order: vec![2, 0, 1, 3] };
        let answer = values(1, &[0.1, 0.2, 0.3, 0.4]);
        let steps = [
            parts(),
            NeighboursParts { search: tree, metric: NeighbourMetric::Minkowski(1.5), ..parts() },
            NeighboursParts { answer, weights: KnnWeights::Distance, ..parts() },
        ];
        for parts in steps {
            survives_damage(&NeighboursStep::new(parts).unwrap(), |step, _| {
                let (mut values, mut spare) = ([0.5; 4], [0.0; 4]);
                step.run(&mut Block::dense(1, 2, &mut values, &mut spare));
            });
        }
    }
}
