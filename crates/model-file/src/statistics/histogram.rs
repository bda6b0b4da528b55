//! How often values lie in each part of a range.

use alloc::vec;
use alloc::vec::Vec;

use st_core::Dtype;

use super::values;

/// Counts of values in equal parts of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    low: f64,
    high: f64,
    counts: Vec<u64>,
    count: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl Histogram {
    /// Of `n_bins` parts of a range of finite numbers, at least one.
    #[must_use]
    pub fn new((low, high): (f64, f64), n_bins: usize) -> Self {
        Self { low, high, counts: vec![0; n_bins.max(1)], count: 0, sum: 0.0, sum_of_squares: 0.0 }
    }

    /// Adds whole values of plain elements; values that are not finite are left out.
    pub fn add(&mut self, dtype: Dtype, bytes: &[u8]) {
        let scale = self.counts.len() as f64 / (self.high - self.low);
        let last = self.counts.len() - 1;
        let add = |value: f64| {
            if value.is_finite() {
                // A range of one value has one part; casts saturate.
                let bin = if scale.is_finite() { ((value - self.low) * scale) as usize } else { 0 };
                self.counts[bin.min(last)] += 1;
                self.count += 1;
                self.sum += value;
                self.sum_of_squares += value * value;
            }
        };
        // A complex number is two floats.
        let dtype = if dtype == Dtype::C64 { Dtype::F32 } else { dtype };
        values(dtype, bytes).for_each(add);
    }

    /// Adds what another histogram of the same range and parts has counted.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, more)| *mine += more);
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// The number of values in each part, from the least on.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The mean of the values; NaN of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    /// The standard deviation of the values; NaN of none.
    #[must_use]
    pub fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        libm::sqrt((self.sum_of_squares / self.count as f64 - mean * mean).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_count_all_finite_values() {
        let values = [0.0_f32, 1.0, 2.0, 3.0, 4.0, f32::NAN];
        let bytes = values.map(f32::to_le_bytes).concat();
        let mut histogram = Histogram::new((0.0, 4.0), 4);
        histogram.add(Dtype::F32, &bytes);
        assert_eq!(histogram.counts(), [1, 1, 1, 2]);
        assert_eq!(histogram.mean(), 2.0);
        assert!((histogram.standard_deviation() - 2.0_f64.sqrt()).abs() < 1e-12);
        let mut one = Histogram::new((5.0, 5.0), 4);
        one.add(Dtype::F64, &5.0_f64.to_le_bytes());
        assert_eq!(one.counts(), [1, 0, 0, 0]);
    }
}
