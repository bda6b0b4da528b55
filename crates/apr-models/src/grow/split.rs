//! The best split of a node.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::grow::bins::Binned;
use crate::grow::criterion::Criterion;
use crate::rng::Rng;
use crate::workers::{Job, Workers};

/// A node is sorted if it has fewer rows than this part of the feature's bins; otherwise its bins are summed.
const SORTED_SHARE: usize = 4;

/// Fewest values of a node whose histogram is worth threads.
const SHARED_VALUES: usize = 1 << 18;

/// How a node is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pub(super) feature: usize,
    pub(super) threshold: f32,
    /// The last bin whose rows go left.
    pub(super) last_left: u16,
    /// By how much the score grows.
    pub(super) gain: f64,
}

/// The order in which features are tried: of equally good splits the first is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeatureOrder {
    /// As in the table.
    Table,
    /// At random for each node, so that the trees of an ensemble differ more.
    Random,
}

/// A node that needs a split.
pub(super) struct Task<'n> {
    pub(super) table: &'n Binned,
    pub(super) rows: &'n [u32],
    /// The sums over the rows.
    pub(super) sums: &'n [f64],
    pub(super) min_samples_leaf: usize,
    /// Sums of the bins of all features, if they are known.
    pub(super) histogram: Option<&'n [f64]>,
}

/// The best split so far.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    feature: usize,
    last_left: u16,
    first_right: u16,
}

/// Looks for splits; has the buffers for it.
pub(super) struct Finder<I> {
    /// What the rows of the current node add to cells.
    items: Vec<I>,
    /// Sums of the bins of one feature.
    cells: Vec<f64>,
    /// Bins of rows and their places in the node.
    keys: Vec<u32>,
    /// Sums of the rows that go left.
    left: Vec<f64>,
    /// All features, those tried for the current node first.
    features: Vec<usize>,
}

impl<I: Copy + Sync> Finder<I> {
    pub(super) fn new(n_features: usize) -> Self {
        Self {
            items: Vec::new(),
            cells: Vec::new(),
            keys: Vec::new(),
            left: Vec::new(),
            features: (0..n_features).collect(),
        }
    }

    /// Puts the features into the order of the table again.
    pub(super) fn forget_order(&mut self) {
        (0..).zip(&mut self.features).for_each(|(number, feature)| *feature = number);
    }

    /// Takes the rows of a node, and returns their sums, their impurity, and whether they are all alike.
    pub(super) fn gather<C>(&mut self, criterion: &C, rows: &[u32]) -> (Vec<f64>, f64, bool)
    where
        C: Criterion<Item = I>,
    {
        self.take(criterion, rows);
        let mut sums = vec![0.0; criterion.width()];
        self.items.iter().for_each(|&item| criterion.add(&mut sums, 0, item));
        let impurity = criterion.impurity(&self.items, &sums);
        (sums, impurity, criterion.is_pure(&self.items))
    }

    fn take<C: Criterion<Item = I>>(&mut self, criterion: &C, rows: &[u32]) {
        self.items.clear();
        self.items.extend(rows.iter().map(|&row| criterion.item(row)));
    }

    /// Adds rows to the histogram of all features.
    pub(super) fn add_all<C>(
        &mut self,
        workers: &dyn Workers,
        criterion: &C,
        table: &Binned,
        rows: &[u32],
        histogram: &mut [f64],
    ) where
        C: Criterion<Item = I>,
    {
        self.take(criterion, rows);
        let (items, mut rest) = (&self.items, histogram);
        let of_features = (0..table.n_features()).map(|feature| {
            let len = table.span(feature).1 * criterion.width();
            let (cells, others) = core::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            (feature, cells)
        });
        let add = |(feature, cells): (usize, &mut [f64])| {
            add_rows(criterion, table.codes(feature), rows, items, cells);
        };
        if workers.count() == 1 || rows.len() * table.n_features() < SHARED_VALUES {
            of_features.for_each(add);
            return;
        }
        let add = &add;
        workers.run(of_features.map(|part| -> Job<'_> { Box::new(move || add(part)) }).collect());
    }

    /// The best split of the node whose rows were [gathered](Self::gather) last; of equally good ones the first.
    ///
    /// Of `max_features` features, and of more as long as all of them were constant.
    pub(super) fn find<C>(
        &mut self,
        criterion: &C,
        task: &Task<'_>,
        (max_features, order): (usize, FeatureOrder),
        rng: &mut Rng,
    ) -> Option<Split>
    where
        C: Criterion<Item = I>,
    {
        let n_features = self.features.len();
        let mut best = None;
        let (mut tried, mut all_constant) = (0, true);
        while tried < n_features && (tried < max_features || all_constant) {
            if order == FeatureOrder::Random {
                let drawn = tried + rng.below(n_features - tried);
                self.features.swap(tried, drawn);
            }
            all_constant &= !self.try_feature(criterion, task, self.features[tried], &mut best);
            tried += 1;
        }
        let Best { score, feature, last_left, first_right } = best?;
        Some(Split {
            feature,
            threshold: task.table.threshold(feature, last_left, first_right),
            last_left,
            gain: score - criterion.score(task.sums),
        })
    }

    /// Compares the splits by a feature with the best; whether it has more than one value.
    fn try_feature<C>(
        &mut self,
        criterion: &C,
        task: &Task<'_>,
        feature: usize,
        best: &mut Option<Best>,
    ) -> bool
    where
        C: Criterion<Item = I>,
    {
        let width = criterion.width();
        let (start, n_bins) = task.table.span(feature);
        self.left.clear();
        self.left.resize(width, 0.0);
        let mut scan =
            Scan { criterion, task, feature, left: &mut self.left, before: None, varies: false, best };
        if let Some(histogram) = task.histogram {
            scan.cells(&histogram[start * width..(start + n_bins) * width]);
            return scan.varies;
        }
        let codes = task.table.codes(feature);
        let by_bins = task.rows.len() * SORTED_SHARE >= n_bins;
        if by_bins {
            self.cells.clear();
            self.cells.resize(n_bins * width, 0.0);
            add_rows(criterion, codes, task.rows, &self.items, &mut self.cells);
            scan.cells(&self.cells);
        } else {
            // Fewer rows than a quarter of 2^16 bins: their places fit in 16 bits.
            self.keys.clear();
            let keys = task.rows.iter().zip(0_u32..);
            self.keys.extend(keys.map(|(&row, place)| u32::from(codes[row as usize]) << 16 | place));
            self.keys.sort_unstable();
            for &key in &self.keys {
                scan.advance((key >> 16) as u16);
                criterion.add(scan.left, 0, self.items[(key & 0xFFFF) as usize]);
            }
        }
        scan.varies
    }
}

/// Adds each row to the cell of its bin.
fn add_rows<C: Criterion>(criterion: &C, codes: &[u16], rows: &[u32], items: &[C::Item], cells: &mut [f64]) {
    for (&row, &item) in rows.iter().zip(items) {
        criterion.add(cells, usize::from(codes[row as usize]), item);
    }
}

/// A walk over the bins of a feature in their order.
struct Scan<'s, C> {
    criterion: &'s C,
    task: &'s Task<'s>,
    feature: usize,
    /// Sums of the bins passed.
    left: &'s mut [f64],
    /// The last bin passed that has rows.
    before: Option<u16>,
    varies: bool,
    best: &'s mut Option<Best>,
}

impl<C: Criterion> Scan<'_, C> {
    fn cells(&mut self, cells: &[f64]) {
        for (bin, cell) in (0..=u16::MAX).zip(cells.chunks_exact(self.criterion.width())) {
            if cell[0] > 0.0 {
                self.advance(bin);
                self.left.iter_mut().zip(cell).for_each(|(left, cell)| *left += cell);
            }
        }
    }

    /// Comes to a bin with rows; if it is another than the last, the rows before it are a possible left side.
    fn advance(&mut self, bin: u16) {
        let Some(before) = self.before.replace(bin).filter(|&before| before != bin) else { return };
        self.varies = true;
        let needed = self.task.min_samples_leaf as f64;
        if self.left[0] < needed || self.task.sums[0] - self.left[0] < needed {
            return;
        }
        let score = self.criterion.score_of_sides(self.left, self.task.sums);
        // Weights of too different magnitude leave a side without any.
        if score.is_finite() && self.best.is_none_or(|best| score > best.score) {
            *self.best = Some(Best { score, feature: self.feature, last_left: before, first_right: bin });
        }
    }
}
