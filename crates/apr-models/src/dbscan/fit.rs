//! Finds the clusters.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::products::SumOrder;
use crate::kernels::tiles::all_pairs;
use crate::kernels::training::vectorized;
use crate::matrix::Matrix;

/// Label of samples in no cluster.
const NOISE: i32 = -1;

/// Most samples of a leaf.
const LEAF: usize = 32;

/// Samples whose distances are summed side by side.
const LANES: usize = 8;

/// Most features of samples for a tree.
const WIDE: usize = 15;

/// Most samples whose pairs are all looked at: 32 MiB of bits.
const MOST_PAIRED: usize = 1 << 14;

/// Columns after which sums are compared.
const COLUMNS: usize = 16;

/// Labels in the order of the first core sample of each cluster.
pub(super) fn labels(x: &Matrix, eps: f32, min_samples: usize) -> Result<Vec<i32>, Error> {
    let (n_rows, n_cols) = x.shape();
    checks::expect_finite_rows(x.as_slice(), n_cols)?;
    if i32::try_from(n_rows).is_err() {
        return Err(ErrorKind::MatrixTooLarge { n_rows, n_cols }.into());
    }
    let radius = f64::from(eps) * f64::from(eps);
    match n_cols > WIDE && n_rows <= MOST_PAIRED {
        true => Ok(clusters(n_rows, min_samples, Pairs::new(x, radius))),
        false => Ok(clusters(n_rows, min_samples, Tree::new(x, radius))),
    }
}

/// What finds the samples near a sample.
trait Near {
    /// Visits the samples near the sample, itself included, until `visit` returns false.
    fn near(&self, row: usize, visit: impl FnMut(usize) -> bool);
}

fn clusters(n_rows: usize, min_samples: usize, samples: impl Near) -> Vec<i32> {
    let is_core: Vec<bool> = (0..n_rows)
        .map(|row| {
            let mut count = 0;
            samples.near(row, |_| {
                count += 1;
                count < min_samples
            });
            count >= min_samples
        })
        .collect();
    let mut labels = vec![NOISE; n_rows];
    let mut reached = Vec::new();
    let mut cluster = 0;
    for start in 0..n_rows {
        if !is_core[start] || labels[start] != NOISE {
            continue;
        }
        labels[start] = cluster;
        reached.push(start);
        while let Some(core) = reached.pop() {
            samples.near(core, |other| {
                if labels[other] == NOISE {
                    labels[other] = cluster;
                    if is_core[other] {
                        reached.push(other);
                    }
                }
                true
            });
        }
        cluster += 1;
    }
    labels
}

/// All pairs of near samples, a bit for each: where features are many, trees have to look at most samples.
struct Pairs {
    /// For each sample the words of its bits.
    bits: Vec<u64>,
    words: usize,
}

impl Pairs {
    fn new(x: &Matrix, radius: f64) -> Self {
        let (n_rows, n_cols) = x.shape();
        let values: Vec<f64> = x.as_slice().iter().map(|&value| f64::from(value)).collect();
        let words = n_rows.div_ceil(64);
        let (mut bits, mut distances) = (vec![0_u64; n_rows * words], vec![0.0; 64 * n_rows]);
        // Distances from each 64 samples to these and to those after them.
        for (word, rows) in values.chunks(64 * n_cols).enumerate() {
            let (begin, count) = (64 * word, rows.len() / n_cols);
            let distances = &mut distances[..count * (n_rows - begin)];
            let square = |a: f64, b: f64| (a - b) * (a - b);
            all_pairs(SumOrder::InOrder, rows, &values[begin * n_cols..], n_cols, square, distances);
            for (idx, distances) in distances.chunks_exact(n_rows - begin).enumerate() {
                let row = begin + idx;
                for (other, distances) in distances.chunks(64).enumerate() {
                    let mut near = 0;
                    for (place, &distance) in distances.iter().enumerate() {
                        near |= u64::from(distance <= radius) << place;
                    }
                    let other = word + other;
                    bits[row * words + other] |= near;
                    for place in ones(near) {
                        bits[(64 * other + place) * words + word] |= 1 << idx;
                    }
                }
            }
        }
        Self { bits, words }
    }
}

impl Near for Pairs {
    fn near(&self, row: usize, mut visit: impl FnMut(usize) -> bool) {
        for (word, &bits) in self.bits[row * self.words..][..self.words].iter().enumerate() {
            for place in ones(bits) {
                if !visit(64 * word + place) {
                    return;
                }
            }
        }
    }
}

/// Places of the bits that are 1.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (bits != 0).then(|| {
            let place = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            place
        })
    })
}

/// A k-d tree (Bentley, *Multidimensional binary search trees used for associative searching*, Commun. ACM 18, 1975) whose
/// nodes have the bounds of their samples. A bound is computed by the operations of the distances it bounds, in their
/// order, so that rounding cannot hide a neighbour.
struct Tree<'x> {
    x: &'x Matrix,
    /// Greatest squared distance of near samples.
    radius: f64,
    /// Blocks of samples of a leaf, column by column; lanes without a sample are infinite.
    blocks: Vec<f64>,
    /// Indices of the samples in the order of the leaves.
    order: Vec<usize>,
    nodes: Vec<Node>,
    /// For each node the least value of each feature, then the greatest.
    bounds: Vec<f32>,
}

struct Node {
    start: usize,
    end: usize,
    /// The first of two children, which follow each other; none for a leaf.
    children: Option<usize>,
    /// Where the blocks of a leaf begin.
    block: usize,
}

impl<'x> Tree<'x> {
    fn new(x: &'x Matrix, radius: f64) -> Self {
        let (n_rows, n_cols) = x.shape();
        let mut order: Vec<usize> = (0..n_rows).collect();
        let mut nodes = vec![Node { start: 0, end: n_rows, children: None, block: 0 }];
        let mut bounds: Vec<f32> = Vec::new();
        let value = |row: usize, col: usize| x.as_slice()[row * n_cols + col];
        let mut next = 0;
        while next < nodes.len() {
            let (start, end) = (nodes[next].start, nodes[next].end);
            let members = &mut order[start..end];
            let extreme = |first: f32, of: fn(f32, f32) -> f32, col: usize| {
                members.iter().fold(first, |extreme, &row| of(extreme, value(row, col)))
            };
            let low: Vec<f32> = (0..n_cols).map(|col| extreme(f32::INFINITY, f32::min, col)).collect();
            let high: Vec<f32> = (0..n_cols).map(|col| extreme(f32::NEG_INFINITY, f32::max, col)).collect();
            let mut widest = (0, 0.0);
            for (col, (low, high)) in low.iter().zip(&high).enumerate() {
                let width = f64::from(*high) - f64::from(*low);
                if width > widest.1 {
                    widest = (col, width);
                }
            }
            bounds.extend(low);
            bounds.extend(high);
            // Equal samples cannot be parted.
            if members.len() > LEAF && widest.1 > 0.0 {
                let middle = members.len() / 2;
                members.select_nth_unstable_by(middle, |&a, &b| {
                    value(a, widest.0).total_cmp(&value(b, widest.0)).then(a.cmp(&b))
                });
                nodes[next].children = Some(nodes.len());
                nodes.push(Node { start, end: start + middle, children: None, block: 0 });
                nodes.push(Node { start: start + middle, end, children: None, block: 0 });
            }
            next += 1;
        }
        let mut blocks = Vec::new();
        for node in nodes.iter_mut().filter(|node| node.children.is_none()) {
            node.block = blocks.len();
            for members in order[node.start..node.end].chunks(LANES) {
                for col in 0..n_cols {
                    let mut lanes = [f64::INFINITY; LANES];
                    lanes.iter_mut().zip(members).for_each(|(lane, &row)| *lane = value(row, col).into());
                    blocks.extend(lanes);
                }
            }
        }
        Self { x, radius, blocks, order, nodes, bounds }
    }

    #[inline(always)]
    fn walk(&self, row: &[f64], mut visit: impl FnMut(usize) -> bool) {
        let (n_cols, radius) = (row.len(), self.radius);
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            let bounds = &self.bounds[2 * node * n_cols..2 * (node + 1) * n_cols];
            let (low, high) = bounds.split_at(n_cols);
            let mut least = 0.0;
            for (&value, (&low, &high)) in row.iter().zip(low.iter().zip(high)) {
                let (below, above) = (f64::from(low) - value, value - f64::from(high));
                let apart = if below > above { below } else { above };
                let apart = if apart > 0.0 { apart } else { 0.0 };
                least += apart * apart;
            }
            if least > radius {
                continue;
            }
            let &Node { start, end, children, block } = &self.nodes[node];
            if let Some(first) = children {
                open.extend([first + 1, first]);
                continue;
            }
            let blocks = self.blocks[block..].chunks_exact(LANES * n_cols);
            for (indices, block) in self.order[start..end].chunks(LANES).zip(blocks) {
                let distances = distances(row, block, radius);
                for (&idx, distance) in indices.iter().zip(distances) {
                    if distance <= radius && !visit(idx) {
                        return;
                    }
                }
            }
        }
    }
}

impl Near for Tree<'_> {
    fn near(&self, row: usize, visit: impl FnMut(usize) -> bool) {
        let n_cols = self.x.n_cols();
        let row: Vec<f64> =
            self.x.as_slice()[row * n_cols..][..n_cols].iter().map(|&value| value.into()).collect();
        vectorized(
            #[inline(always)]
            || self.walk(&row, visit),
        );
    }
}

/// Squared distances to the samples of a block, or parts of them if all are above `radius`.
#[inline(always)]
fn distances(row: &[f64], block: &[f64], radius: f64) -> [f64; LANES] {
    let mut sums = [0.0; LANES];
    let (columns, _) = block.as_chunks::<LANES>();
    for (values, columns) in row.chunks(COLUMNS).zip(columns.chunks(COLUMNS)) {
        let mut added = sums;
        for (value, column) in values.iter().zip(columns) {
            for lane in 0..LANES {
                let apart = value - column[lane];
                added[lane] += apart * apart;
            }
        }
        sums = added;
        // Without a branch for each lane.
        if sums.iter().fold(0, |count, &sum| count + usize::from(sum > radius)) == LANES {
            break;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::products::squared_distance;
    use crate::rng::Rng;

    /// The definition, by all distances.
    fn slowly(x: &Matrix, eps: f32, min_samples: usize) -> Vec<i32> {
        let radius = f64::from(eps) * f64::from(eps);
        let rows: Vec<&[f32]> = x.rows().collect();
        let near = |row: usize| -> Vec<usize> {
            (0..rows.len()).filter(|&other| squared_distance(rows[row], rows[other]) <= radius).collect()
        };
        let neighbours: Vec<Vec<usize>> = (0..rows.len()).map(near).collect();
        let mut labels = vec![NOISE; rows.len()];
        let mut cluster = 0;
        for start in 0..rows.len() {
            if labels[start] != NOISE || neighbours[start].len() < min_samples {
                continue;
            }
            let mut open = vec![start];
            labels[start] = cluster;
            while let Some(row) = open.pop() {
                if neighbours[row].len() < min_samples {
                    continue;
                }
                for &other in &neighbours[row] {
                    if labels[other] == NOISE {
                        labels[other] = cluster;
                        open.push(other);
                    }
                }
            }
            cluster += 1;
        }
        labels
    }

    #[test]
    fn both_find_what_all_distances_find() {
        let mut rng = Rng::new(9);
        for (n_rows, n_cols) in [(1, 1), (33, 1), (400, 2), (300, 3), (200, 17)] {
            // On a grid, so that distances equal to the radius occur.
            let values = (0..n_rows * n_cols).map(|_| (4.0 * rng.normal()) as i32 as f32).collect();
            let x = Matrix::from_vec(n_rows, n_cols, values).unwrap();
            for eps in [0.5, 1.0, 2.0, 5.0, 13.0] {
                for min_samples in [1, 3, 8] {
                    let (expected, radius) = (slowly(&x, eps, min_samples), f64::from(eps) * f64::from(eps));
                    let about = (n_rows, n_cols, eps, min_samples);
                    let found = clusters(n_rows, min_samples, Tree::new(&x, radius));
                    assert_eq!(found, expected, "tree {about:?}");
                    let found = clusters(n_rows, min_samples, Pairs::new(&x, radius));
                    assert_eq!(found, expected, "pairs {about:?}");
                    assert_eq!(labels(&x, eps, min_samples).unwrap(), expected, "{about:?}");
                }
            }
        }
    }

    #[test]
    fn equal_samples_are_one_cluster() {
        let x = Matrix::from_vec(100, 2, vec![0.1; 200]).unwrap();
        assert_eq!(labels(&x, 1e-30, 100).unwrap(), [0; 100]);
        assert_eq!(labels(&x, 1e-30, 101).unwrap(), [NOISE; 100]);
        let x = Matrix::from_vec(1, 2, vec![0.1, f32::INFINITY]).unwrap();
        assert_eq!(labels(&x, 1.0, 1).err().unwrap().code(), "am-feature-not-finite");
    }
}
