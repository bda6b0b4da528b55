//! Inner loops of trainings, compiled for the vectors of the processor.
//!
//! They add in the order of [`products`](super::products), so that results have the same bits everywhere; unlike those they
//! become part of the loop around them, which [`vectorized`] compiles for wider vectors.

use crate::kernels::vectors::Vectors;

const LANES: usize = 8;

/// Runs `work`, which is to be inlined, with the widest vectors there are.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    match Vectors::detect() {
        Some(vectors) => vectors.run(work),
        None => work(),
    }
}

#[inline(always)]
fn sum_of(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += term(a[lane], b[lane]);
        }
    }
    for (sum, (&a, &b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += term(a, b);
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
    ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
}

/// Sum of the products of two rows of the same length.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum_of(a, b, |a, b| a * b)
}

/// Square of the Euclidean distance between two rows of the same length.
#[inline(always)]
pub(crate) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    sum_of(a, b, |a, b| (a - b) * (a - b))
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
    use crate::kernels::products;
    use crate::rng::Rng;

    #[test]
    fn bits_are_those_of_the_plain_loops() {
        let mut rng = Rng::new(4);
        for len in 0..70 {
            let mut numbers = || (0..len).map(|_| rng.normal()).collect::<Vec<f64>>();
            let (a, b) = (numbers(), numbers());
            let found = vectorized(
                #[inline(always)]
                || (dot(&a, &b), squared_distance(&a, &b)),
            );
            assert_eq!(found.0.to_bits(), products::dot(&a, &b).to_bits());
            assert_eq!(found.1.to_bits(), products::squared_distance(&a, &b).to_bits());
        }
    }
}
