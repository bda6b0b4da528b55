//! Values of features as numbers of bins.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::workers::{Job, Workers};

/// Most bins of a feature.
pub(crate) const MAX_BINS: usize = 1 << 16;

/// A table whose values are replaced by the numbers of their bins.
pub(crate) struct Binned {
    n_rows: usize,
    /// Those of the first feature, then those of the next.
    codes: Vec<u16>,
    features: Vec<Bins>,
    n_bins: usize,
}

/// The bins of a feature: each holds the values from one to another that occur.
#[derive(Default)]
struct Bins {
    /// Bins of the features before it.
    start: usize,
    low: Vec<f32>,
    high: Vec<f32>,
}

impl Binned {
    /// A table with up to `max_bins` bins for each feature, at most [`MAX_BINS`]: one for each distinct value if they are
    /// no more than that, otherwise bins of similar numbers of rows.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureNotFinite`]; [`ErrorKind::MatrixTooLarge`] for 2^32 rows or more.
    pub(crate) fn of(workers: &dyn Workers, x: &Matrix, max_bins: usize) -> Result<Self, Error> {
        let (n_rows, n_cols) = x.shape();
        checks::expect_finite_rows(x.as_slice(), n_cols)?;
        let too_large = || Error::from(ErrorKind::MatrixTooLarge { n_rows, n_cols });
        u32::try_from(n_rows).map_err(|_| too_large())?;
        let mut codes: Vec<u16> = Vec::new();
        codes.try_reserve_exact(x.as_slice().len()).map_err(|_| too_large())?;
        codes.resize(x.as_slice().len(), 0);
        let mut features: Vec<Bins> = (0..n_cols).map(|_| Bins::default()).collect();
        let bin = |feature: usize, bins: &mut Bins, codes: &mut [u16]| {
            // Adding 0 makes -0 of 0: they are equal.
            let values = || x.as_slice().iter().skip(feature).step_by(n_cols).map(|value| value + 0.0);
            let mut sorted: Vec<u32> = values().map(to_ordered).collect();
            sorted.sort_unstable();
            *bins = Bins::of(&sorted, max_bins.min(MAX_BINS));
            codes.iter_mut().zip(values()).for_each(|(code, value)| *code = bins.code(value));
        };
        let bin = &bin;
        let of_features = features.iter_mut().zip(codes.chunks_exact_mut(n_rows)).enumerate();
        let jobs = of_features
            .map(|(feature, (bins, codes))| -> Job<'_> { Box::new(move || bin(feature, bins, codes)) });
        workers.run(jobs.collect());
        let mut n_bins = 0;
        for bins in &mut features {
            bins.start = n_bins;
            n_bins += bins.len();
        }
        Ok(Self { n_rows, codes, features, n_bins })
    }

    pub(crate) const fn n_features(&self) -> usize {
        self.features.len()
    }

    /// Bins of all features.
    pub(crate) const fn n_bins(&self) -> usize {
        self.n_bins
    }

    /// The number of the first bin of a feature among those of all, and their number.
    pub(super) fn span(&self, feature: usize) -> (usize, usize) {
        let bins = &self.features[feature];
        (bins.start, bins.len())
    }

    /// The bin of each row.
    pub(super) fn codes(&self, feature: usize) -> &[u16] {
        &self.codes[feature * self.n_rows..(feature + 1) * self.n_rows]
    }

    /// A threshold in the middle between two bins, `value <= threshold` of the values of the first and not of the second.
    pub(super) fn threshold(&self, feature: usize, last_left: u16, first_right: u16) -> f32 {
        let bins = &self.features[feature];
        let (low, high) = (bins.high[usize::from(last_left)], bins.low[usize::from(first_right)]);
        let middle = 0.5 * (f64::from(low) + f64::from(high));
        // Rounded down, so that it stays below the greater value.
        let rounded = middle as f32;
        if f64::from(rounded) > middle { rounded.next_down() } else { rounded }
    }
}

impl Bins {
    fn of(sorted: &[u32], max_bins: usize) -> Self {
        let n_distinct = sorted.chunk_by(|a, b| a == b).count();
        let (mut low, mut high) = (Vec::new(), Vec::new());
        let (mut rows_left, mut in_bin) = (sorted.len() as u64, 0);
        for equal in sorted.chunk_by(|a, b| a == b) {
            let value = equal.first().map_or(0.0, |&key| from_ordered(key));
            if in_bin == 0 {
                low.push(value);
                high.push(value);
            } else if let Some(last) = high.last_mut() {
                *last = value;
            }
            in_bin += equal.len() as u64;
            // The rows that are left, in equal parts.
            let bins_left = (max_bins + 1 - high.len()) as u64;
            if n_distinct <= max_bins || bins_left > 1 && in_bin * bins_left >= rows_left {
                rows_left -= in_bin;
                in_bin = 0;
            }
        }
        Self { start: 0, low, high }
    }

    const fn len(&self) -> usize {
        self.high.len()
    }

    fn code(&self, value: f32) -> u16 {
        self.high.partition_point(|&high| high < value) as u16
    }
}

/// Bits whose order as integers is that of the numbers.
const fn to_ordered(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

const fn from_ordered(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 0 { !key } else { key & !(1 << 31) })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::workers::Alone;

    fn column(values: Vec<f32>, max_bins: usize) -> Binned {
        Binned::of(&Alone, &Matrix::from_vec(values.len(), 1, values).unwrap(), max_bins).unwrap()
    }

    #[test]
    fn few_values_have_a_bin_each() {
        let table = column(vec![2.0, -1.0, 0.0, -0.0, 2.0], 3);
        assert_eq!(table.codes(0), [2, 0, 1, 1, 2]);
        assert_eq!((table.threshold(0, 0, 1), table.threshold(0, 1, 2)), (-0.5, 1.0));
    }

    #[test]
    fn many_values_share_bins_of_similar_size() {
        let table = column((0..1000_u16).map(f32::from).rev().collect(), 8);
        let mut counts = [0; 8];
        table.codes(0).iter().for_each(|&code| counts[usize::from(code)] += 1);
        assert_eq!(counts, [125; 8]);
        assert_eq!(table.threshold(0, 0, 1), 124.5);
        // One value takes most of the rows: the others still get bins.
        let table = column((0..1000_u16).map(|row| f32::from(row.saturating_sub(900))).collect(), 4);
        let last = table.codes(0).iter().copied().max();
        assert_eq!((table.codes(0)[0], table.codes(0)[901], last), (0, 1, Some(3)));
    }

    #[test]
    fn thresholds_separate_neighbours() {
        let low = 1.0_f32;
        let table = column(vec![low, low.next_up(), f32::MAX, f32::MIN], 256);
        assert_eq!(table.threshold(0, 1, 2), low);
        assert_eq!(table.threshold(0, 0, 3), 0.0);
    }

    #[test]
    fn order_of_keys_is_that_of_numbers() {
        let values = [f32::MIN, -1.0, -f32::MIN_POSITIVE, 0.0, 1e-40, 3.5, f32::MAX];
        assert!(values.iter().map(|&value| to_ordered(value)).is_sorted());
        assert!(values.iter().all(|&value| from_ordered(to_ordered(value)) == value));
    }
}
