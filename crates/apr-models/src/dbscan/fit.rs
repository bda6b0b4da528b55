//! Finds the clusters.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::training::vectorized;
use crate::matrix::Matrix;

/// Label of samples in no cluster.
const NOISE: i32 = -1;

/// Most samples of a leaf.
const LEAF: usize = 32;

/// Samples whose distances are summed side by side.
const LANES: usize = 8;

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
    let tree = Tree::new(x);
    let is_core: Vec<bool> = x
        .rows()
        .map(|row| {
            let mut count = 0;
            tree.near(row, radius, |_| {
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
            tree.near(tree.row(core, x), radius, |other| {
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
    Ok(labels)
}

/// A k-d tree (Bentley, *Multidimensional binary search trees used for associative searching*, Commun. ACM 18, 1975) whose
/// nodes have the bounds of their samples. A bound is computed by the operations of the distances it bounds, in their
/// order, so that rounding cannot hide a neighbour.
struct Tree {
    n_cols: usize,
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

impl Tree {
    fn new(x: &Matrix) -> Self {
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
        Self { n_cols, blocks, order, nodes, bounds }
    }

    /// A sample.
    fn row<'x>(&self, idx: usize, x: &'x Matrix) -> &'x [f32] {
        &x.as_slice()[idx * self.n_cols..(idx + 1) * self.n_cols]
    }

    /// Visits the samples whose squared distance is at most `radius`, until `visit` returns false.
    fn near(&self, row: &[f32], radius: f64, visit: impl FnMut(usize) -> bool) {
        let row: Vec<f64> = row.iter().map(|&value| f64::from(value)).collect();
        vectorized(
            #[inline(always)]
            || self.walk(&row, radius, visit),
        );
    }

    #[inline(always)]
    fn walk(&self, row: &[f64], radius: f64, mut visit: impl FnMut(usize) -> bool) {
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            let bounds = &self.bounds[2 * node * self.n_cols..2 * (node + 1) * self.n_cols];
            let (low, high) = bounds.split_at(self.n_cols);
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
            let blocks = self.blocks[block..].chunks_exact(LANES * self.n_cols);
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
    fn tree_finds_what_all_distances_find() {
        let mut rng = Rng::new(9);
        for (n_rows, n_cols) in [(1, 1), (33, 1), (400, 2), (300, 3), (200, 17)] {
            // On a grid, so that distances equal to the radius occur.
            let values = (0..n_rows * n_cols).map(|_| (4.0 * rng.normal()) as i32 as f32).collect();
            let x = Matrix::from_vec(n_rows, n_cols, values).unwrap();
            for eps in [0.5, 1.0, 2.0, 5.0, 13.0] {
                for min_samples in [1, 3, 8] {
                    let found = labels(&x, eps, min_samples).unwrap();
                    assert_eq!(found, slowly(&x, eps, min_samples), "{n_rows} {n_cols} {eps} {min_samples}");
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
