//! Grows isolation forests.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::grow::samples;
use crate::isolation_forest::IsolationForest;
use crate::matrix::Matrix;
use crate::rng::Rng;
use crate::tree::TreeNode;

/// Which samples are outliers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Contamination {
    /// Those whose score is below -0.5, the score of an average path.
    #[default]
    Auto,
    /// This share of the training samples, above 0 and at most 0.5.
    Share(f32),
}

/// How to train an [`IsolationForest`]. The defaults are scikit-learn's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IsolationOptions {
    /// Number of trees, at least 1. Default 100.
    pub n_estimators: usize,
    /// Samples of each tree, drawn without replacement: at least 2, no more than there are. Default `None`: 256 or all.
    pub max_samples: Option<usize>,
    /// Which samples are outliers.
    pub contamination: Contamination,
    /// Seed of the random numbers. Default 0.
    pub seed: u64,
}

impl Default for IsolationOptions {
    fn default() -> Self {
        Self { n_estimators: 100, max_samples: None, contamination: Contamination::Auto, seed: 0 }
    }
}

/// Samples of each tree unless there are fewer (Liu, Ting and Zhou, section 4).
const DEFAULT_SAMPLES: usize = 256;

impl IsolationForest {
    /// Learns from samples `x` (`[n_samples, n_features]`), at least two: each node of a tree tests a random feature of those that
    /// vary in it against a random value in its range, down to the depth `ceil(log2(max_samples))` (Liu, Ting and Zhou,
    /// ICDM 2008).
    ///
    /// With [`Contamination::Auto`] the [`contamination`](Self::contamination) stored is 0. The same data, options and seed
    /// give the same bits on every platform.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureNotFinite`], [`ErrorKind::TooFewSamples`], [`ErrorKind::MatrixTooLarge`] for 2^32 samples or
    /// more, [`ErrorKind::PartInvalid`] for an option outside its range.
    pub fn fit(x: &Matrix, options: &IsolationOptions) -> Result<Self, Error> {
        let (n_rows, n_cols) = x.shape();
        let max_samples = options.max_samples.unwrap_or(DEFAULT_SAMPLES.min(n_rows));
        checks::expect_estimators(options.n_estimators)?;
        checks::expect(
            "max_samples",
            options.max_samples.is_none_or(|max| max >= 2),
            "at least 2 are needed",
        )?;
        if let Contamination::Share(share) = options.contamination {
            let valid = share > 0.0 && share <= 0.5;
            checks::expect("contamination", valid, "a number above 0 and at most 0.5 is needed")?;
        }
        let needed = max_samples.max(2);
        if n_rows < needed {
            return Err(ErrorKind::TooFewSamples { needed, given: n_rows }.into());
        }
        checks::expect_finite_rows(x.as_slice(), n_cols)?;
        let count = u32::try_from(n_rows).map_err(|_| ErrorKind::MatrixTooLarge { n_rows, n_cols })?;

        let mut rng = Rng::new(options.seed);
        let mut rows: Vec<u32> = (0..count).collect();
        let mut features: Vec<usize> = (0..n_cols).collect();
        let max_depth = (max_samples - 1).ilog2() as usize + 1;
        let mut trees = Vec::new();
        for _ in 0..options.n_estimators {
            samples::draw(&mut rows, max_samples, &mut rng);
            trees.push(grow(x, &mut rows[..max_samples], max_depth, &mut features, &mut rng));
        }
        let forest = Self::from_parts(&trees, max_samples, -0.5)?;
        let seed = Some(options.seed);
        match options.contamination {
            Contamination::Auto => Ok(forest.with_training(0.0, seed)),
            Contamination::Share(share) => {
                let mut scores = forest.try_score_samples(x)?.into_vec();
                let threshold = quantile(&mut scores, share.into());
                Ok(Self::from_parts(&trees, max_samples, threshold)?.with_training(share, seed))
            }
        }
    }
}

/// The nodes of a tree on these rows, whose order changes.
fn grow(
    x: &Matrix,
    rows: &mut [u32],
    max_depth: usize,
    features: &mut [usize],
    rng: &mut Rng,
) -> Vec<TreeNode<()>> {
    let leaf = |n_samples| TreeNode::Leaf { value: (), n_samples, impurity: 0.0 };
    let mut nodes = vec![leaf(rows.len())];
    let mut ahead = vec![(0, 0..rows.len(), 0)];
    while let Some((node, span, depth)) = ahead.pop() {
        if depth == max_depth || span.len() < 2 {
            continue;
        }
        let of_node = &mut rows[span.clone()];
        let Some((feature, threshold)) = random_split(x, of_node, features, rng) else { continue };
        let value = |row: u32| x.as_slice()[row as usize * x.n_cols() + feature];
        let mut n_left = 0;
        for place in 0..of_node.len() {
            if value(of_node[place]) < threshold {
                of_node.swap(n_left, place);
                n_left += 1;
            }
        }
        let (left, right) = (nodes.len(), nodes.len() + 1);
        let n_samples = span.len();
        nodes[node] = TreeNode::Split { feature, threshold, left, right, n_samples, impurity: 0.0 };
        nodes.extend([leaf(n_left), leaf(n_samples - n_left)]);
        let middle = span.start + n_left;
        ahead.extend([(right, middle..span.end, depth + 1), (left, span.start..middle, depth + 1)]);
    }
    nodes
}

/// A random feature that varies, and a threshold above its least value and not above its greatest; `None` if none varies.
fn random_split(x: &Matrix, rows: &[u32], features: &mut [usize], rng: &mut Rng) -> Option<(usize, f32)> {
    for tried in 0..features.len() {
        features.swap(tried, tried + rng.below(features.len() - tried));
        let feature = features[tried];
        let values = rows.iter().map(|&row| x.as_slice()[row as usize * x.n_cols() + feature]);
        let (low, high) = values
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low < high {
            let (from, to) = (f64::from(low), f64::from(high));
            let threshold = (from + rng.unit() * (to - from)) as f32;
            // Rounding may reach either end; at the lower one nothing would go left.
            return Some((feature, if threshold > low { threshold.min(high) } else { high }));
        }
    }
    None
}

/// The quantile of the values, of which there is at least one: linear between the two next to it.
fn quantile(values: &mut [f32], share: f64) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    let place = share * (values.len() - 1) as f64;
    let (below, part) = (place as usize, place - libm::floor(place));
    let value = |place: usize| f64::from(values[place.min(values.len() - 1)]);
    (value(below) + part * (value(below + 1) - value(below))) as f32
}
