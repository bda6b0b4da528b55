//! Distances between samples.

use apr_container::{Error, PayloadReader, PayloadWriter};

/// Distances between samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum NeighbourMetric {
    /// The length of the difference.
    #[default]
    Euclidean,
    /// The sum of absolute differences.
    Manhattan,
    /// The largest that a value differs.
    Chebyshev,
    /// The root of the sum of powers; the exponent is at least 1.
    Minkowski(f64),
    /// One less the cosine of the angle; the known samples have a length of 1, or of 0.
    Cosine,
}

impl NeighbourMetric {
    /// Something that grows with the distance and is faster to have: powers without their root, added in the order of the
    /// columns. Not for the cosine.
    pub(super) fn reduced<T: Copy + Into<f64>>(self, a: &[f64], b: &[T]) -> f64 {
        let differences = a.iter().zip(b).map(|(&a, &b)| a - b.into());
        match self {
            Self::Chebyshev => differences.fold(0.0, |most: f64, difference| most.max(difference.abs())),
            _ => differences.fold(0.0, |sum, difference| sum + self.power(difference.abs())),
        }
    }

    /// The least [`reduced`](Self::reduced) distance from a sample to anything between two corners of a box.
    pub(super) fn reduced_to_box(self, sample: &[f64], low: &[f64], high: &[f64]) -> f64 {
        let outside = sample.iter().zip(low.iter().zip(high)).map(|(&value, (&low, &high))| {
            let (below, above) = (low - value, value - high);
            // x + |x| is twice the x that is above 0; the order of roundings is that of scikit-learn.
            0.5 * ((below + below.abs()) + (above + above.abs()))
        });
        match self {
            Self::Chebyshev => outside.fold(0.0, f64::max),
            _ => outside.fold(0.0, |sum, outside| sum + self.power(outside)),
        }
    }

    /// The distance of a reduced one.
    pub(super) fn distance(self, reduced: f64) -> f64 {
        match self {
            Self::Euclidean => libm::sqrt(reduced),
            Self::Minkowski(p) => libm::pow(reduced, 1.0 / p),
            Self::Manhattan | Self::Chebyshev | Self::Cosine => reduced,
        }
    }

    fn power(self, value: f64) -> f64 {
        match self {
            Self::Minkowski(p) => libm::pow(value, p),
            Self::Euclidean => value * value,
            Self::Manhattan | Self::Chebyshev | Self::Cosine => value,
        }
    }

    pub(super) fn is_possible(self) -> bool {
        match self {
            Self::Minkowski(p) => p >= 1.0 && p.is_finite(),
            _ => true,
        }
    }

    pub(super) fn encode(self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        match self {
            Self::Euclidean => out.variant(0),
            Self::Manhattan => out.variant(1),
            Self::Chebyshev => out.variant(2),
            Self::Minkowski(p) => {
                out.variant(3)?;
                out.f64(p)
            }
            Self::Cosine => out.variant(4),
        }
    }

    pub(super) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        Ok(match input.variant(5)? {
            0 => Self::Euclidean,
            1 => Self::Manhattan,
            2 => Self::Chebyshev,
            3 => Self::Minkowski(input.f64()?),
            _ => Self::Cosine,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_their_definitions() {
        let (a, b) = ([1.0, -2.0, 0.5], [4.0_f32, 2.0, 0.5]);
        let distance = |metric: NeighbourMetric| metric.distance(metric.reduced(&a, &b));
        assert_eq!(distance(NeighbourMetric::Euclidean), 5.0);
        assert_eq!(distance(NeighbourMetric::Manhattan), 7.0);
        assert_eq!(distance(NeighbourMetric::Chebyshev), 4.0);
        let cubes = distance(NeighbourMetric::Minkowski(3.0));
        assert!((cubes - 91.0_f64.cbrt()).abs() < 1e-14);
    }

    #[test]
    fn no_point_of_a_box_is_nearer_than_the_box() {
        use NeighbourMetric::{Chebyshev, Euclidean, Manhattan, Minkowski};
        let (low, high) = ([0.0, -1.0], [2.0, 1.0]);
        for (sample, metric, expected) in [
            ([3.0, 2.0], Euclidean, 2.0),
            ([-1.0, 3.0], Manhattan, 3.0),
            ([-1.0, 3.0], Chebyshev, 2.0),
            ([-1.0, 3.0], Minkowski(3.0), 9.0),
            ([1.0, 0.0], Euclidean, 0.0),
        ] {
            assert_eq!(metric.reduced_to_box(&sample, &low, &high), expected);
        }
    }
}
