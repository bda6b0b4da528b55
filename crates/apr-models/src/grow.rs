//! Grows trees: one grower for single trees, forests and boosting (Breiman, Friedman, Olshen and Stone, *Classification and
//! Regression Trees*, 1984).
//!
//! The values of a feature are replaced once by the numbers of their bins ([`bins`]), at most 256 for ensembles; a single
//! tree has a bin for each distinct value, so its splits are exact. A node with many rows sums the statistics of each
//! bin (a histogram), one with few sorts its rows by bin. Where all features are candidates, the histogram of the larger
//! child is that of its parent less that of its sibling. All sums are `f64`, in the order of the rows.

use alloc::vec::Vec;
use core::ops::Range;

use crate::error::Error;
use crate::grow::bins::Binned;
use crate::grow::criterion::Criterion;
use crate::grow::split::{Finder, Split, Task};
use crate::rng::Rng;
use crate::tree::{Leaf, Tree, TreeNode};
use crate::workers::Workers;

pub(crate) mod bins;
pub(crate) mod criterion;
pub(crate) mod outputs;
pub(crate) mod samples;
mod split;

pub(crate) use self::split::FeatureOrder;

/// Bins of a feature for ensembles.
pub(crate) const ENSEMBLE_BINS: usize = 256;

/// Fewest rows of a node whose histogram is kept for its children. Smaller nodes are cheaper to sum again.
const MIN_KEPT_ROWS: usize = 512;

/// Most memory of kept histograms, in bytes; those beyond it are summed again.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Where a tree ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_depth: Option<usize>,
    /// With it, the leaf with the largest gain is split first.
    pub(crate) max_leaves: Option<usize>,
    pub(crate) min_samples_split: usize,
    pub(crate) min_samples_leaf: usize,
}

/// A grown tree before its leaves have values.
pub(crate) struct Grown {
    /// The value of a leaf is its own index.
    nodes: Vec<TreeNode<usize>>,
    /// Of each node.
    regions: Vec<Region>,
    /// The rows; those of a leaf stand together.
    rows: Vec<u32>,
}

/// The rows of a node.
pub(crate) struct Region {
    rows: Range<usize>,
    /// The sums of the criterion over the rows.
    pub(crate) sums: Vec<f64>,
    /// Their weight.
    weight: f64,
}

impl Grown {
    pub(crate) const fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Rows and sums of each leaf, with the index of its node.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = (usize, &[u32], &[f64])> {
        self.nodes.iter().zip(&self.regions).enumerate().filter_map(|(idx, (node, region))| match node {
            TreeNode::Leaf { .. } => Some((idx, &self.rows[region.rows.clone()], region.sums.as_slice())),
            TreeNode::Split { .. } => None,
        })
    }

    /// The tree, with what `value` makes of the sums of each leaf, whose index it gets.
    pub(crate) fn into_tree<L: Leaf>(self, value: impl Fn(usize, &[f64]) -> L) -> Result<Tree, Error> {
        let nodes = self.nodes.iter().zip(&self.regions).map(|(node, region)| match *node {
            TreeNode::Split { feature, threshold, left, right, n_samples, impurity } => {
                TreeNode::Split { feature, threshold, left, right, n_samples, impurity }
            }
            TreeNode::Leaf { value: idx, n_samples, impurity } => {
                TreeNode::Leaf { value: value(idx, &region.sums), n_samples, impurity }
            }
        });
        Tree::from_nodes(&nodes.collect::<Vec<_>>())
    }

    /// Adds the decrease of the impurity at each split, by the weights of the samples, to that of its feature.
    pub(crate) fn add_importances(&self, importances: &mut [f64]) {
        add_importances(&self.nodes, |node| self.regions.get(node).map(|region| region.weight), importances);
    }

    /// The share of each of `n_features` in these decreases.
    pub(crate) fn importances(&self, n_features: usize) -> Vec<f64> {
        let mut importances = alloc::vec![0.0; n_features];
        self.add_importances(&mut importances);
        normalize(&mut importances);
        importances
    }
}

/// Adds the decrease of the impurity at each split, by the `weight` of each node, else by its samples, to that of its feature.
pub(crate) fn add_importances<L>(
    nodes: &[TreeNode<L>],
    weight: impl Fn(usize) -> Option<f64>,
    importances: &mut [f64],
) {
    let weighted = |idx: usize| {
        nodes.get(idx).map_or(0.0, |node| {
            let (TreeNode::Split { n_samples, impurity, .. } | TreeNode::Leaf { n_samples, impurity, .. }) =
                node;
            weight(idx).unwrap_or(*n_samples as f64) * f64::from(*impurity)
        })
    };
    for (idx, node) in nodes.iter().enumerate() {
        if let TreeNode::Split { feature, left, right, .. } = *node
            && let Some(sum) = importances.get_mut(feature)
        {
            // Rounded impurities can make it negative where nothing was gained.
            *sum += (weighted(idx) - weighted(left) - weighted(right)).max(0.0);
        }
    }
}

/// Divides the importances by their sum, unless all are 0.
pub(crate) fn normalize(importances: &mut [f64]) {
    let sum: f64 = importances.iter().sum();
    if sum > 0.0 {
        importances.iter_mut().for_each(|value| *value /= sum);
    }
}

/// A leaf that a split was found for.
struct Pending {
    node: usize,
    depth: usize,
    split: Split,
    histogram: Option<Vec<f64>>,
}

/// Grows trees on one table; buffers are used again for the next tree.
pub(crate) struct Grower<'t, I> {
    table: &'t Binned,
    limits: Limits,
    /// Features that each split chooses among; all of them if it is their number.
    max_features: usize,
    order: FeatureOrder,
    workers: &'t dyn Workers,
    finder: Finder<I>,
    /// Rows that go right, while a node is divided.
    right: Vec<u32>,
    /// Histograms to be used again.
    spare: Vec<Vec<f64>>,
    n_kept: usize,
}

impl<'t, I: Copy + Sync> Grower<'t, I> {
    /// The histograms of large nodes are summed by the workers.
    pub(crate) fn new(
        table: &'t Binned,
        limits: Limits,
        max_features: usize,
        order: FeatureOrder,
        workers: &'t dyn Workers,
    ) -> Self {
        let finder = Finder::new(table.n_features());
        let (right, spare) = (Vec::new(), Vec::new());
        Self { table, limits, max_features, order, workers, finder, right, spare, n_kept: 0 }
    }

    /// Forgets the random order of the features, so that the next tree does not depend on those before it.
    pub(crate) fn forget_order(&mut self) {
        self.finder.forget_order();
    }

    /// Grows a tree on these rows.
    pub(crate) fn grow<C: Criterion<Item = I>>(
        &mut self,
        criterion: &C,
        rows: Vec<u32>,
        rng: &mut Rng,
    ) -> Grown {
        let n_rows = rows.len();
        let mut grown = Grown { nodes: Vec::new(), regions: Vec::new(), rows };
        let mut pending: Vec<Pending> = Vec::new();
        let mut splits_left = self.limits.max_leaves.map_or(usize::MAX, |max| max.saturating_sub(1));
        let searches = splits_left > 0 && self.limits.max_depth != Some(0);
        let histogram = self.root_histogram(criterion, &grown.rows, searches);
        pending.extend(self.open(criterion, &mut grown, 0..n_rows, 0, (searches, histogram), rng));
        while splits_left > 0
            && let Some(Pending { node, depth, split, histogram }) = self.next(&mut pending)
        {
            splits_left -= 1;
            let rows = grown.regions[node].rows.clone();
            let middle = rows.start + self.divide(&mut grown.rows[rows.clone()], &split);
            let (left, right) = (rows.start..middle, middle..rows.end);
            let searches = splits_left > 0 && self.limits.max_depth.is_none_or(|max| depth + 1 < max);
            let sides = [&grown.rows[left.clone()], &grown.rows[right.clone()]];
            let histograms = self.child_histograms(criterion, sides, histogram, searches);
            let children = grown.nodes.len();
            if let TreeNode::Leaf { n_samples, impurity, .. } = grown.nodes[node] {
                let Split { feature, threshold, .. } = split;
                let (left, right) = (children, children + 1);
                grown.nodes[node] = TreeNode::Split { feature, threshold, left, right, n_samples, impurity };
            }
            for (rows, histogram) in [left, right].into_iter().zip(histograms) {
                let search = (searches, histogram);
                pending.extend(self.open(criterion, &mut grown, rows, depth + 1, search, rng));
            }
        }
        pending.into_iter().for_each(|left| self.release(left.histogram));
        grown
    }

    /// The leaf to split next.
    fn next(&self, pending: &mut Vec<Pending>) -> Option<Pending> {
        if self.limits.max_leaves.is_none() {
            return pending.pop();
        }
        let mut best: Option<usize> = None;
        for (place, candidate) in pending.iter().enumerate() {
            // Of equal gains the first node's.
            let better = |best: usize| {
                let best = &pending[best];
                candidate.split.gain > best.split.gain
                    || candidate.split.gain == best.split.gain && candidate.node < best.node
            };
            if best.is_none_or(better) {
                best = Some(place);
            }
        }
        Some(pending.swap_remove(best?))
    }

    /// Adds a leaf of these rows, and looks for its split unless it stays one.
    fn open<C: Criterion<Item = I>>(
        &mut self,
        criterion: &C,
        grown: &mut Grown,
        rows: Range<usize>,
        depth: usize,
        (searches, histogram): (bool, Option<Vec<f64>>),
        rng: &mut Rng,
    ) -> Option<Pending> {
        let node = grown.nodes.len();
        let (sums, impurity, is_pure) = self.finder.gather(criterion, &grown.rows[rows.clone()]);
        let n_samples = sums.first().map_or(0, |&count| count as usize);
        grown.nodes.push(TreeNode::Leaf { value: node, n_samples, impurity: impurity as f32 });
        let can_split = searches
            && !is_pure
            && n_samples >= self.limits.min_samples_split
            && n_samples / 2 >= self.limits.min_samples_leaf;
        let split = can_split.then(|| {
            let task = Task {
                table: self.table,
                rows: &grown.rows[rows.clone()],
                sums: &sums,
                min_samples_leaf: self.limits.min_samples_leaf,
                histogram: histogram.as_deref(),
            };
            self.finder.find(criterion, &task, (self.max_features, self.order), rng)
        });
        let weight = criterion.weight(&sums);
        grown.regions.push(Region { rows, sums, weight });
        match split.flatten() {
            Some(split) => Some(Pending { node, depth, split, histogram }),
            None => {
                self.release(histogram);
                None
            }
        }
    }

    /// Brings the rows that go left to the front, each side in its order, and returns their number.
    fn divide(&mut self, rows: &mut [u32], split: &Split) -> usize {
        let codes = self.table.codes(split.feature);
        self.right.clear();
        let mut n_left = 0;
        for idx in 0..rows.len() {
            let row = rows[idx];
            if codes[row as usize] <= split.last_left {
                rows[n_left] = row;
                n_left += 1;
            } else {
                self.right.push(row);
            }
        }
        rows[n_left..].copy_from_slice(&self.right);
        n_left
    }

    /// An empty histogram of all features, if it is worth its memory for a node of so many rows.
    fn take_histogram<C: Criterion<Item = I>>(&mut self, criterion: &C, n_rows: usize) -> Option<Vec<f64>> {
        let n_bins = self.table.n_bins();
        let len = n_bins * criterion.width();
        let worth = self.max_features == self.table.n_features()
            && n_rows >= MIN_KEPT_ROWS.max(n_bins / self.table.n_features() / 2)
            && (self.n_kept + 1).saturating_mul(len * size_of::<f64>()) <= MAX_KEPT_BYTES;
        if !worth {
            return None;
        }
        self.n_kept += 1;
        let mut histogram = self.spare.pop().unwrap_or_default();
        histogram.clear();
        histogram.resize(len, 0.0);
        Some(histogram)
    }

    fn release(&mut self, histogram: Option<Vec<f64>>) {
        if let Some(histogram) = histogram {
            self.n_kept -= 1;
            self.spare.push(histogram);
        }
    }

    fn root_histogram<C: Criterion<Item = I>>(
        &mut self,
        criterion: &C,
        rows: &[u32],
        searches: bool,
    ) -> Option<Vec<f64>> {
        let mut histogram = if searches { self.take_histogram(criterion, rows.len())? } else { return None };
        self.finder.add_all(self.workers, criterion, self.table, rows, &mut histogram);
        Some(histogram)
    }

    /// The histograms of the children, from that of their parent.
    fn child_histograms<C: Criterion<Item = I>>(
        &mut self,
        criterion: &C,
        sides: [&[u32]; 2],
        parent: Option<Vec<f64>>,
        searches: bool,
    ) -> [Option<Vec<f64>>; 2] {
        let right_is_smaller = sides[1].len() < sides[0].len();
        let [smaller, larger] = if right_is_smaller { [sides[1], sides[0]] } else { sides };
        let worth = searches && parent.is_some();
        let histogram = if worth { self.take_histogram(criterion, larger.len()) } else { None };
        let Some(mut histogram) = histogram else {
            self.release(parent);
            return [None, None];
        };
        let mut of_larger = parent.unwrap_or_default();
        self.finder.add_all(self.workers, criterion, self.table, smaller, &mut histogram);
        of_larger.iter_mut().zip(&histogram).for_each(|(parent, part)| *parent -= part);
        if right_is_smaller { [Some(of_larger), Some(histogram)] } else { [Some(histogram), Some(of_larger)] }
    }
}
