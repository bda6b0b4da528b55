//! Inner loops of trainings, compiled for the vectors of the processor.
//!
//! Sums are those of [`SumOrder`](super::products::SumOrder), which become part of the loop around them; [`vectorized`] compiles that for wider
//! vectors.

use crate::kernels::vectors::Vectors;

/// Runs `work`, which is to be inlined, with the widest vectors there are.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    match Vectors::detect() {
        Some(vectors) => vectors.run(work),
        None => work(),
    }
}

/// Adds a row times a factor.
#[inline(always)]
pub(crate) fn add_scaled(row: &[f64], factor: f64, out: &mut [f64]) {
    out.iter_mut().zip(row).for_each(|(out, value)| *out += factor * value);
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::kernels::products::{self, SumOrder};
    use crate::rng::Rng;

    #[test]
    fn bits_are_those_of_the_plain_loops() {
        let mut rng = Rng::new(4);
        for len in 0..70 {
            let mut numbers = || (0..len).map(|_| rng.normal()).collect::<Vec<f64>>();
            let (a, b) = (numbers(), numbers());
            let found = vectorized(
                #[inline(always)]
                || (SumOrder::Lanes.dot(&a, &b), SumOrder::Lanes.squared_distance(&a, &b)),
            );
            assert_eq!(found.0.to_bits(), products::dot(&a, &b).to_bits());
            assert_eq!(found.1.to_bits(), products::squared_distance(&a, &b).to_bits());
        }
    }
}
