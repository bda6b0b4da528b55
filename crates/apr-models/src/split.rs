//! Which samples a model is trained on, and which ones are held out to measure it.

use alloc::vec;
use alloc::vec::Vec;

use crate::rng::Rng;

/// Draws samples to be held out, about `share` of them: `true` for those. With `classes` (`[n_samples]`) that share of every class is
/// drawn, and at least one sample of each class stays.
///
/// Same arguments, same samples, on every platform.
#[must_use]
pub fn held_out(n_samples: usize, classes: Option<&[usize]>, share: f64, seed: u64) -> Vec<bool> {
    let mut out = vec![false; n_samples];
    let groups = shuffled_groups(n_samples, classes, seed);
    for group in &groups {
        let drawn = libm::round(group.len() as f64 * share) as usize;
        for &sample in group.iter().take(drawn.min(group.len() - 1)) {
            out[sample] = true;
        }
    }
    out
}

/// Divides samples into folds of equal size, give or take one: the fold of each, from 0. With `classes` (`[n_samples]`) every class is
/// divided so.
///
/// Same arguments, same folds, on every platform.
#[must_use]
pub fn folds(n_samples: usize, classes: Option<&[usize]>, n_folds: usize, seed: u64) -> Vec<usize> {
    let mut out = vec![0; n_samples];
    // Dealt on across classes, so that small classes do not all begin in the first fold.
    let dealt = shuffled_groups(n_samples, classes, seed).into_iter().flatten();
    for (place, sample) in dealt.enumerate() {
        out[sample] = place.checked_rem(n_folds).unwrap_or(0);
    }
    out
}

/// The samples of each class, or all of them, in random order. No group is empty.
fn shuffled_groups(n_samples: usize, classes: Option<&[usize]>, seed: u64) -> Vec<Vec<usize>> {
    let mut samples: Vec<usize> = (0..n_samples).collect();
    let class = |sample: usize| classes.and_then(|classes| classes.get(sample)).copied().unwrap_or_default();
    samples.sort_by_key(|&sample| class(sample));
    let mut rng = Rng::new(seed);
    let groups = samples.chunk_by_mut(|&a, &b| class(a) == class(b));
    groups
        .map(|group| {
            rng.shuffle(group);
            group.to_vec()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_held_out_in_its_share() {
        let classes: Vec<usize> = (0..100).map(|sample| if sample < 90 { 4 } else { 1 }).collect();
        let out = held_out(100, Some(&classes), 0.2, 7);
        assert_eq!(out[..90].iter().filter(|&&out| out).count(), 18);
        assert_eq!(out[90..].iter().filter(|&&out| out).count(), 2);
        assert_eq!(out, held_out(100, Some(&classes), 0.2, 7));
        assert_ne!(out, held_out(100, Some(&classes), 0.2, 8));
        assert_eq!(held_out(100, None, 0.25, 7).iter().filter(|&&out| out).count(), 25);
    }

    #[test]
    fn a_class_keeps_a_sample() {
        assert_eq!(held_out(3, Some(&[0, 1, 2]), 0.9, 0), [false; 3]);
        assert!(held_out(0, None, 0.5, 0).is_empty());
    }

    #[test]
    fn folds_differ_by_at_most_one_sample() {
        let classes: Vec<usize> = (0..47).map(|sample| sample % 3).collect();
        for classes in [None, Some(&classes[..])] {
            let found = folds(47, classes, 5, 1);
            let count = |class: Option<usize>, fold| {
                let of_class = |&sample: &usize| class.is_none_or(|class| sample % 3 == class);
                (0..47).filter(of_class).filter(|&sample| found[sample] == fold).count()
            };
            assert!((0..5).all(|fold| matches!(count(None, fold), 9 | 10)), "{found:?}");
            if classes.is_some() {
                assert!((0..15).all(|at| matches!(count(Some(at % 3), at / 3), 3 | 4)), "{found:?}");
            }
        }
    }
}
