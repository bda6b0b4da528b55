//! Sums over two rows of values, in `f64`.
//!
//! The order of the additions is fixed, so the result has the same bits everywhere.

pub(super) const LANES: usize = 8;

/// The order in which terms are added. It decides the last bits, so that each use keeps its own.
#[derive(Clone, Copy)]
pub(crate) enum SumOrder {
    /// One after the other.
    InOrder,
    /// Eight sums side by side, then those: several additions at a time.
    Lanes,
}

impl SumOrder {
    /// Sum of a term of each two values. Becomes part of the loop around it, for the vectors that this is compiled for.
    #[inline(always)]
    pub(super) fn sum<A: Copy + Into<f64>, B: Copy + Into<f64>>(
        self,
        a: &[A],
        b: &[B],
        term: impl Fn(f64, f64) -> f64,
    ) -> f64 {
        if matches!(self, Self::InOrder) {
            let mut sum = 0.0;
            for (&a, &b) in a.iter().zip(b) {
                sum += term(a.into(), b.into());
            }
            return sum;
        }
        let mut sums = [0.0_f64; LANES];
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                sums[lane] += term(a[lane].into(), b[lane].into());
            }
        }
        for (sum, (&a, &b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
            *sum += term(a.into(), b.into());
        }
        let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
        ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
    }

    /// Sum of the products of two rows of the same length.
    #[inline(always)]
    pub(crate) fn dot<A: Copy + Into<f64>, B: Copy + Into<f64>>(self, a: &[A], b: &[B]) -> f64 {
        self.sum(a, b, |a, b| a * b)
    }

    /// Square of the Euclidean distance between two rows of the same length.
    #[inline(always)]
    pub(crate) fn squared_distance<A: Copy + Into<f64>, B: Copy + Into<f64>>(self, a: &[A], b: &[B]) -> f64 {
        self.sum(a, b, |a, b| (a - b) * (a - b))
    }
}

pub(super) fn sum_of<A: Copy + Into<f64>, B: Copy + Into<f64>>(
    a: &[A],
    b: &[B],
    term: impl Fn(f64, f64) -> f64,
) -> f64 {
    SumOrder::Lanes.sum(a, b, term)
}

/// Sum of the products of two rows of the same length, in [`SumOrder::Lanes`].
pub(crate) fn dot<A: Copy + Into<f64>, B: Copy + Into<f64>>(a: &[A], b: &[B]) -> f64 {
    sum_of(a, b, |a, b| a * b)
}

/// Square of the Euclidean distance between two rows of the same length, in [`SumOrder::Lanes`].
pub(crate) fn squared_distance<A: Copy + Into<f64>, B: Copy + Into<f64>>(a: &[A], b: &[B]) -> f64 {
    sum_of(a, b, |a, b| (a - b) * (a - b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_summed_whole() {
        let a: [f32; 40] = core::array::from_fn(|idx| idx as f32);
        let b = [2.0_f64; 40];
        for len in 0..=40 {
            let n = len as f64;
            assert_eq!(dot(&a[..len], &b[..len]), n * (n - 1.0));
            let squares: f64 = (0..len).map(|idx| (idx as f64 - 2.0) * (idx as f64 - 2.0)).sum();
            assert_eq!(squared_distance(&a[..len], &b[..len]), squares);
        }
    }
}
