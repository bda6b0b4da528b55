//! Fits the centroids.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::products::SumOrder;
use crate::kernels::tiles::all_pairs;
use crate::matrix::Matrix;
use crate::rng::Rng;
use crate::workers::Workers;

/// Samples whose distances to all centres are computed together.
const ROWS: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) max_iter: usize,
    pub(super) tol: f64,
    pub(super) seed: u64,
}

/// The result of one start.
pub(super) struct Clustering {
    pub(super) centroids: Matrix,
    pub(super) labels: Vec<usize>,
    pub(super) inertia: f64,
    pub(super) n_iter: usize,
}

pub(super) fn fit(
    workers: &dyn Workers,
    x: &Matrix,
    n_clusters: usize,
    settings: Settings,
    restarts: usize,
) -> Result<Clustering, Error> {
    if x.n_rows() < n_clusters {
        return Err(ErrorKind::TooFewSamples { needed: n_clusters, given: x.n_rows() }.into());
    }
    checks::expect_finite_rows(x.as_slice(), x.n_cols())?;
    let still = settings.tol * mean_variance(x);
    let mut rng = Rng::new(settings.seed);
    let mut best: Option<State<'_>> = None;
    workers.expect(restarts);
    // As many starts at once as there are workers; not all, because each holds as much as there are samples.
    for begin in (0..restarts).step_by(workers.count()) {
        let count = workers.count().min(restarts - begin);
        let firsts: Vec<Vec<f64>> = (0..count).map(|_| first_centres(x, n_clusters, &mut rng)).collect();
        let states = workers.map(count, |start| {
            let mut state = State::new(x, firsts[start].clone());
            state.move_all(settings.max_iter, still);
            state.move_singly(settings.max_iter);
            workers.advance();
            state
        });
        for state in states {
            if best.as_ref().is_none_or(|best| state.inertia() < best.inertia()) {
                best = Some(state);
            }
        }
    }
    best.expect("there is at least one start").finish(n_clusters)
}

/// Position of the least value, of equal ones the first; 0 if none is less than infinity.
pub(super) fn least(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::INFINITY);
    for (idx, value) in values.enumerate() {
        if value < best.1 {
            best = (idx, value);
        }
    }
    best.0
}

fn mean_variance(x: &Matrix) -> f64 {
    let (n_rows, n_cols) = (x.n_rows() as f64, x.n_cols());
    let mut means = vec![0.0; n_cols];
    for row in x.rows() {
        means.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value) / n_rows);
    }
    let total: f64 = x.rows().map(|row| SumOrder::InOrder.squared_distance(row, &means)).sum();
    total / n_rows / n_cols as f64
}

/// Draws the first centres among the samples: the first one anywhere, each other one with a probability proportional to
/// the squared distance to the centres there are; of a few such draws the one that lowers the sum most (k-means++: Arthur
/// and Vassilvitskii, SODA 2007, with the greedy choice of their section on experiments).
fn first_centres(x: &Matrix, n_clusters: usize, rng: &mut Rng) -> Vec<f64> {
    let n_candidates = 2 + libm::log(n_clusters as f64) as usize;
    let n_cols = x.n_cols();
    let sample = |row: usize| &x.as_slice()[row * n_cols..(row + 1) * n_cols];
    let wide = |row: usize| sample(row).iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();

    let mut centres = wide(rng.below(x.n_rows()));
    let mut nearest: Vec<f64> =
        x.rows().map(|row| SumOrder::InOrder.squared_distance(row, &centres)).collect();
    for _ in 1..n_clusters {
        let total: f64 = nearest.iter().sum();
        let mut best: Option<(f64, Vec<f64>, Vec<f64>)> = None;
        for _ in 0..n_candidates {
            let mut rest = rng.unit() * total;
            let drawn = nearest.iter().position(|&distance| {
                rest -= distance;
                rest < 0.0
            });
            // Every sample lies on a centre, or rounding ate the last one: any sample can be chosen.
            let centre = wide(drawn.unwrap_or_else(|| rng.below(x.n_rows())));
            let with_it: Vec<f64> = x
                .rows()
                .zip(&nearest)
                .map(|(row, &distance)| distance.min(SumOrder::InOrder.squared_distance(row, &centre)))
                .collect();
            let sum: f64 = with_it.iter().sum();
            if best.as_ref().is_none_or(|(best, ..)| sum < *best) {
                best = Some((sum, centre, with_it));
            }
        }
        let (_, centre, with_it) = best.expect("there are at least two candidates");
        centres.extend(centre);
        nearest = with_it;
    }
    centres
}

struct State<'x> {
    x: &'x Matrix,
    /// One after the other.
    centres: Vec<f64>,
    labels: Vec<usize>,
    /// Squared distance of each sample to its centre, at the last whole round.
    distances: Vec<f64>,
    counts: Vec<usize>,
    n_iter: usize,
}

impl<'x> State<'x> {
    fn new(x: &'x Matrix, centres: Vec<f64>) -> Self {
        let n_clusters = centres.len() / x.n_cols();
        let labels = vec![0; x.n_rows()];
        let distances = vec![0.0; x.n_rows()];
        let mut state = Self { x, centres, labels, distances, counts: vec![0; n_clusters], n_iter: 0 };
        state.assign();
        state
    }

    fn inertia(&self) -> f64 {
        let n_cols = self.x.n_cols();
        let pairs = self.x.rows().zip(&self.labels);
        pairs
            .map(|(row, &label)| {
                SumOrder::InOrder.squared_distance(row, &self.centres[label * n_cols..][..n_cols])
            })
            .sum()
    }

    /// Gives each sample to its nearest centre; whether that changed anything.
    fn assign(&mut self) -> bool {
        let (n_cols, n_clusters) = (self.x.n_cols(), self.counts.len());
        let mut changed = false;
        self.counts.fill(0);
        let (mut wide, mut pairs) = (Vec::new(), vec![0.0; ROWS * n_clusters]);
        let mut samples = self.labels.iter_mut().zip(&mut self.distances);
        for rows in self.x.as_slice().chunks(ROWS * n_cols) {
            wide.clear();
            wide.extend(rows.iter().map(|&value| f64::from(value)));
            let pairs = &mut pairs[..rows.len() / n_cols * n_clusters];
            let square = |a: f64, b: f64| (a - b) * (a - b);
            all_pairs(SumOrder::InOrder, &wide, &self.centres, n_cols, square, pairs);
            // Distances first: at their end no sample is taken.
            for (distances, (label, distance)) in pairs.chunks_exact(n_clusters).zip(samples.by_ref()) {
                let mut best = (0, f64::INFINITY);
                for (idx, &distance) in distances.iter().enumerate() {
                    if distance < best.1 {
                        best = (idx, distance);
                    }
                }
                changed |= *label != best.0;
                (*label, *distance) = best;
                self.counts[best.0] += 1;
            }
        }
        changed
    }

    /// Gives each centre without samples the sample farthest from its own.
    fn fill_empty(&mut self) {
        for idx in 0..self.counts.len() {
            if self.counts[idx] > 0 {
                continue;
            }
            let movable = |&row: &usize| self.counts[self.labels[row]] > 1;
            let rows = (0..self.labels.len()).filter(movable);
            let farthest = rows.max_by(|&a, &b| {
                // Of equally far ones the first.
                self.distances[a].total_cmp(&self.distances[b]).then(b.cmp(&a))
            });
            if let Some(row) = farthest {
                self.counts[self.labels[row]] -= 1;
                self.labels[row] = idx;
                self.distances[row] = 0.0;
                self.counts[idx] = 1;
            }
        }
    }

    /// Moves each centre to the mean of its samples; the sum of the squares of the moves.
    fn recentre(&mut self) -> f64 {
        let n_cols = self.x.n_cols();
        let mut means = vec![0.0; self.centres.len()];
        for (row, &label) in self.x.rows().zip(&self.labels) {
            let share = 1.0 / self.counts[label] as f64;
            let mean = &mut means[label * n_cols..][..n_cols];
            mean.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value) * share);
        }
        let moved = means.iter().zip(&self.centres).map(|(new, old)| (new - old) * (new - old)).sum();
        self.centres = means;
        moved
    }

    /// Whole rounds, until nothing changes, the centres are almost still, or there were `max_iter`.
    fn move_all(&mut self, max_iter: usize, still: f64) {
        for _ in 0..max_iter.max(1) {
            self.fill_empty();
            let moved = self.recentre();
            self.n_iter += 1;
            if !self.assign() || moved <= still {
                break;
            }
        }
        self.fill_empty();
        self.recentre();
    }

    /// Moves single samples to the cluster that gains most, as long as one gains (Hartigan, Clustering Algorithms, 1975):
    /// what is best for whole rounds is not always best for a sample, whose own weight draws its centre.
    fn move_singly(&mut self, max_iter: usize) {
        let n_cols = self.x.n_cols();
        for _ in 0..max_iter {
            let mut changed = false;
            for (row, label) in self.x.rows().zip(&mut self.labels) {
                let from = *label;
                let n_from = self.counts[from] as f64;
                if n_from <= 1.0 {
                    continue;
                }
                let leaving = SumOrder::InOrder
                    .squared_distance(row, &self.centres[from * n_cols..][..n_cols])
                    * n_from
                    / (n_from - 1.0);
                let joining = self.centres.chunks_exact(n_cols).zip(&self.counts).map(|(centre, &count)| {
                    let count = count as f64;
                    SumOrder::InOrder.squared_distance(row, centre) * count / (count + 1.0)
                });
                let mut best = (from, leaving * (1.0 - 1e-12));
                for (to, cost) in joining.enumerate() {
                    if to != from && cost < best.1 {
                        best = (to, cost);
                    }
                }
                let to = best.0;
                if to == from {
                    continue;
                }
                let n_to = self.counts[to] as f64;
                for (col, &value) in row.iter().enumerate() {
                    let value = f64::from(value);
                    let (old, new) = (from * n_cols + col, to * n_cols + col);
                    self.centres[old] -= (value - self.centres[old]) / (n_from - 1.0);
                    self.centres[new] += (value - self.centres[new]) / (n_to + 1.0);
                }
                self.counts[from] -= 1;
                self.counts[to] += 1;
                *label = to;
                changed = true;
            }
            if !changed {
                break;
            }
            self.n_iter += 1;
            // Exactly the means again: single moves round each time.
            self.recentre();
        }
    }

    /// Rounds the centres, and gives each sample to the nearest of the rounded ones, so that predictions for the samples
    /// of the training are its labels.
    fn finish(mut self, n_clusters: usize) -> Result<Clustering, Error> {
        let rounded: Vec<f32> = self.centres.iter().map(|&value| value as f32).collect();
        self.centres = rounded.iter().map(|&value| f64::from(value)).collect();
        self.assign();
        let inertia = self.distances.iter().sum();
        let centroids = Matrix::from_vec(n_clusters, self.x.n_cols(), rounded)?;
        Ok(Clustering { centroids, labels: self.labels, inertia, n_iter: self.n_iter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::Alone;

    fn matrix(n_cols: usize, values: Vec<f32>) -> Matrix {
        Matrix::from_vec(values.len() / n_cols, n_cols, values).expect("whole rows")
    }

    const SETTINGS: Settings = Settings { max_iter: 300, tol: 1e-4, seed: 1 };

    #[test]
    fn best_of_all_partitions_is_found() {
        let mut rng = Rng::new(5);
        for n_rows in 3..9 {
            let x = matrix(2, (0..2 * n_rows).map(|_| rng.normal() as f32).collect());
            for n_clusters in 1..=3 {
                let found = fit(&Alone, &x, n_clusters, SETTINGS, 10).expect("enough samples").inertia;
                let least = all_partitions(&x, n_clusters);
                assert!(
                    (found - least).abs() <= 1e-6 * least.max(1e-3),
                    "{n_rows} {n_clusters} {found} {least}"
                );
            }
        }
    }

    /// The least sum of squares over every way to give each sample one of the labels.
    fn all_partitions(x: &Matrix, n_clusters: usize) -> f64 {
        let n_ways = n_clusters.pow(x.n_rows() as u32);
        let cost = |way: usize| -> f64 {
            let label = |row: usize| way / n_clusters.pow(row as u32) % n_clusters;
            let mut total = 0.0;
            for cluster in 0..n_clusters {
                let members: Vec<&[f32]> = x
                    .rows()
                    .enumerate()
                    .filter(|(row, _)| label(*row) == cluster)
                    .map(|(_, row)| row)
                    .collect();
                for col in 0..x.n_cols() {
                    let values = || members.iter().map(|row| f64::from(row[col]));
                    let mean = values().sum::<f64>() / members.len().max(1) as f64;
                    total += values().map(|value| (value - mean) * (value - mean)).sum::<f64>();
                }
            }
            total
        };
        (0..n_ways).map(cost).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn equal_samples_and_as_many_clusters_as_samples_are_no_trouble() {
        let x = matrix(1, vec![2.0; 5]);
        let clustering = fit(&Alone, &x, 3, SETTINGS, 2).expect("enough samples");
        assert_eq!(clustering.inertia, 0.0);
        let x = matrix(1, vec![1.0, 2.0, 3.0, 4.0]);
        let clustering = fit(&Alone, &x, 4, SETTINGS, 2).expect("enough samples");
        assert_eq!(clustering.inertia, 0.0);
        let error = fit(&Alone, &x, 5, SETTINGS, 2).err().expect("too few samples");
        assert_eq!(error.code(), "am-too-few-samples");
    }
}
