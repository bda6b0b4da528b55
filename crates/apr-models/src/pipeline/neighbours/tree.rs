//! A tree over samples, as scikit-learn builds it.
//!
//! Only the order of the samples is stored. Node `i` has the children `2 i + 1` and `2 i + 2`; each has half of its
//! samples, the first one less if their number is odd. What is near is found in the same order as there, so that of equally
//! far samples the same ones are kept.

use alloc::vec;
use alloc::vec::Vec;

use super::metric::NeighbourMetric;
use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::neighbours::{Candidate, Ties, worst};
use crate::pipeline::reals::with_slice;
use crate::pipeline::table::Table;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct KdTree {
    leaf_size: usize,
    /// Rows of the samples, those of a node together.
    order: Vec<u32>,
    n_nodes: usize,
    /// For each node the least and then the largest value of every column.
    boxes: Vec<f64>,
}

/// A search for the neighbours of one sample.
struct Search<'s, T> {
    tree: &'s KdTree,
    metric: NeighbourMetric,
    values: &'s [T],
    sample: &'s [f64],
    heap: &'s mut [Candidate],
}

/// A node and its samples: places in the order.
#[derive(Clone, Copy)]
struct Node {
    idx: usize,
    start: usize,
    end: usize,
}

impl KdTree {
    pub(super) fn new(samples: &Table, leaf_size: usize, order: Vec<u32>) -> Result<Self, Error> {
        let (n_rows, width) = (samples.n_rows(), samples.n_cols());
        checks::expect("leaf size", leaf_size > 0, "must be at least 1")?;
        checks::expect("samples", !samples.is_sparse(), "of a tree must be dense")?;
        checks::expect_len("order of samples", n_rows, order.len())?;
        let mut seen = vec![false; n_rows];
        let whole = order
            .iter()
            .all(|&row| seen.get_mut(row as usize).is_some_and(|seen| !core::mem::replace(seen, true)));
        checks::expect("order of samples", whole, "must name each row once")?;
        let n_nodes = n_nodes(n_rows, leaf_size);
        let len = n_nodes.checked_mul(2 * width);
        let mut boxes = Vec::new();
        let made = len.is_some_and(|len| boxes.try_reserve_exact(len).is_ok());
        if !made {
            return Err(ErrorKind::MatrixTooLarge { n_rows: n_nodes, n_cols: 2 * width }.into());
        }
        boxes.resize(len.unwrap_or_default(), 0.0);
        let mut tree = Self { leaf_size, order, n_nodes, boxes };
        with_slice!(samples.values(), values => tree.fill(tree.root(), width, values));
        Ok(tree)
    }

    /// Bytes of the boxes, and of what checks the order.
    pub(super) fn memory(n_rows: usize, width: usize, leaf_size: usize) -> u64 {
        let boxes = (n_nodes(n_rows, leaf_size) as u64).saturating_mul(16).saturating_mul(width as u64);
        boxes.saturating_add(n_rows as u64)
    }

    pub(super) const fn leaf_size(&self) -> usize {
        self.leaf_size
    }

    pub(super) const fn order(&self) -> &[u32] {
        self.order.as_slice()
    }

    /// Offers the samples that may be near to the heap.
    pub(super) fn search(
        &self,
        metric: NeighbourMetric,
        samples: &Table,
        sample: &[f64],
        heap: &mut [Candidate],
    ) {
        with_slice!(samples.values(), values => {
            let mut search = Search { tree: self, metric, values, sample, heap };
            let root = self.root();
            let bound = search.bound(root);
            search.visit(root, bound);
        });
    }

    const fn root(&self) -> Node {
        Node { idx: 0, start: 0, end: self.order.len() }
    }

    /// The two children, `None` for a leaf.
    const fn children(&self, node: Node) -> Option<[Node; 2]> {
        let Node { idx, start, end } = node;
        if 2 * idx + 1 >= self.n_nodes || end - start < 2 {
            return None;
        }
        let middle = start + (end - start) / 2;
        Some([Node { idx: 2 * idx + 1, start, end: middle }, Node { idx: 2 * idx + 2, start: middle, end }])
    }

    fn rows(&self, node: Node) -> &[u32] {
        self.order.get(node.start..node.end).unwrap_or_default()
    }

    /// The box of every node below, as deep as the logarithm of the number of samples.
    fn fill<T: Copy + Into<f64>>(&mut self, node: Node, width: usize, values: &[T]) {
        let mut low = vec![f64::INFINITY; width];
        let mut high = vec![f64::NEG_INFINITY; width];
        for &row in self.rows(node) {
            let values = row_of(values, row, width);
            for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(values) {
                (*low, *high) = (low.min(value.into()), high.max(value.into()));
            }
        }
        if let Some(space) = self.boxes.get_mut(2 * width * node.idx..) {
            space.iter_mut().zip(low.iter().chain(&high)).for_each(|(place, &value)| *place = value);
        }
        if let Some(children) = self.children(node) {
            children.into_iter().for_each(|child| self.fill(child, width, values));
        }
    }
}

impl<T: Copy + Into<f64>> Search<'_, T> {
    fn bound(&self, node: Node) -> f64 {
        let width = self.sample.len();
        let both = self.tree.boxes.get(2 * width * node.idx..).unwrap_or_default();
        let (low, high) = both.split_at_checked(width).unwrap_or_default();
        self.metric.reduced_to_box(self.sample, low, high)
    }

    fn visit(&mut self, node: Node, bound: f64) {
        if bound > worst(self.heap) {
            return;
        }
        let Some([left, right]) = self.tree.children(node) else {
            for &row in self.tree.rows(node) {
                let known = row_of(self.values, row, self.sample.len());
                let value = self.metric.reduced(self.sample, known);
                Ties::Scikit.offer(self.heap, Candidate { value, place: row as usize });
            }
            return;
        };
        let (to_left, to_right) = (self.bound(left), self.bound(right));
        if to_left <= to_right {
            self.visit(left, to_left);
            self.visit(right, to_right);
        } else {
            self.visit(right, to_right);
            self.visit(left, to_left);
        }
    }
}

fn row_of<T>(values: &[T], row: u32, width: usize) -> &[T] {
    let start = row as usize * width;
    values.get(start..start + width).unwrap_or_default()
}

/// Adds a level while leaves would be twice as large as requested: at most twice as many nodes as samples.
const fn n_nodes(n_rows: usize, leaf_size: usize) -> usize {
    let halvings = match n_rows.saturating_sub(1).checked_div(leaf_size) {
        Some(times @ 1..) => times.ilog2(),
        _ => 0,
    };
    2 * (1 << halvings) - 1
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec as list;
    use proptest::prelude::*;

    use super::*;
    use crate::pipeline::reals::Reals;

    #[test]
    fn levels_follow_from_the_number_of_samples() {
        for (n_rows, leaf_size, expected) in [
            (1, 1, 1),
            (2, 1, 1),
            (3, 1, 3),
            (4, 1, 3),
            (5, 1, 7),
            (61, 30, 3),
            (60, 30, 1),
            (9, usize::MAX, 1),
        ] {
            assert_eq!(n_nodes(n_rows, leaf_size), expected, "{n_rows} {leaf_size}");
        }
    }

    #[test]
    fn orders_that_are_none_are_refused() {
        let samples = Table::dense(3, Reals::from(vec![1.0_f64, 2.0, 3.0])).unwrap();
        assert!(KdTree::new(&samples, 1, vec![2, 0, 1]).is_ok());
        for (leaf_size, order) in [
            (0, vec![2, 0, 1]),
            (1, vec![0, 1]),
            (1, vec![0, 1, 1]),
            (1, vec![0, 1, 3]),
            (1, vec![0, 1, 2, 2]),
        ] {
            assert!(KdTree::new(&samples, leaf_size, order).is_err());
        }
    }

    proptest! {
        /// Any order makes a tree that finds the nearest, if a slow one when samples of a node are far apart.
        #[test]
        fn trees_find_what_the_search_in_order_finds(
            points in list(list(-4..5_i8, 2), 1..50),
            sample in list(-5..6_i8, 2),
            leaf_size in 1..6_usize,
            k in 1..9_usize,
            metric in prop_oneof![
                Just(NeighbourMetric::Euclidean),
                Just(NeighbourMetric::Manhattan),
                Just(NeighbourMetric::Chebyshev),
                Just(NeighbourMetric::Minkowski(3.0)),
            ],
        ) {
            let values: Vec<f64> = points.concat().into_iter().map(f64::from).collect();
            let sample: Vec<f64> = sample.into_iter().map(f64::from).collect();
            let samples = Table::dense(points.len(), Reals::from(values.as_slice())).unwrap();
            let mut order: Vec<u32> = (0..points.len() as u32).collect();
            order.sort_by_key(|&row| points[row as usize][0]);
            let tree = KdTree::new(&samples, leaf_size, order).unwrap();
            let (mut found, mut expected) = (vec![Ties::Scikit.none(); k], vec![Ties::Scikit.none(); k]);
            tree.search(metric, &samples, &sample, &mut found);
            for (row, known) in values.chunks(2).enumerate() {
                let value = metric.reduced(&sample, known);
                Ties::Scikit.offer(&mut expected, Candidate { value, place: row });
            }
            let distances = |heap: &[Candidate]| {
                let mut distances: Vec<u64> = heap.iter().map(|candidate| candidate.value.to_bits()).collect();
                distances.sort_unstable();
                distances
            };
            prop_assert_eq!(distances(&found), distances(&expected));
        }
    }
}
