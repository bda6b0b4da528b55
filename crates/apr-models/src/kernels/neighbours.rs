//! Selection and weights of the nearest samples.

use core::cmp::Ordering;

/// The weights of the neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnnWeights {
    /// All the same.
    #[default]
    Uniform,
    /// The inverse of its distance. Neighbours at the distance 0 count 1, and all others 0 if there is one.
    Distance,
}

/// A candidate for the nearest neighbours; later its value and its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Candidate {
    /// How far away, then its weight.
    pub(crate) value: f64,
    /// Its row, then its class.
    pub(crate) place: usize,
}

impl Candidate {
    /// Nearer first; of equally near ones the smaller row.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(self.place.cmp(&other.place))
    }
}

/// Which of equally far samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Those of the smallest rows, in whatever order they are offered.
    SmallestRows,
    /// Those that scikit-learn 1.9.1 keeps: a sample as far as the farthest does not enter, and of two equally far ones in the heap
    /// the one that a comparison by distance alone selects leaves first.
    Scikit,
}

impl Ties {
    /// No sample yet: any is nearer. With the rule of scikit-learn one at an infinite distance is not, and row 0 stands for it.
    pub(crate) const fn none(self) -> Candidate {
        match self {
            Self::SmallestRows => Candidate { value: f64::INFINITY, place: usize::MAX },
            Self::Scikit => Candidate { value: f64::INFINITY, place: 0 },
        }
    }

    fn is_farther(self, a: &Candidate, b: &Candidate) -> bool {
        match self {
            Self::SmallestRows => a.order(b).is_gt(),
            Self::Scikit => a.value > b.value,
        }
    }

    fn is_at_least_as_far(self, a: &Candidate, b: &Candidate) -> bool {
        match self {
            Self::SmallestRows => a.order(b).is_ge(),
            Self::Scikit => a.value >= b.value,
        }
    }

    /// Puts the candidate in the place of the farthest one, the first of the heap, if it is nearer.
    #[inline]
    pub(crate) fn offer(self, heap: &mut [Candidate], candidate: Candidate) {
        if heap.first().is_none_or(|farthest| self.is_at_least_as_far(&candidate, farthest)) {
            return;
        }
        let mut at = 0;
        loop {
            let child = 2 * at + 1;
            let (rising, place) = match (heap.get(child), heap.get(child + 1)) {
                (Some(left), Some(right)) if self.is_farther(right, left) => (*right, child + 1),
                (Some(left), _) => (*left, child),
                (None, _) => break,
            };
            if self.is_at_least_as_far(&candidate, &rising) {
                break;
            }
            if let Some(place) = heap.get_mut(at) {
                *place = rising;
            }
            at = place;
        }
        if let Some(place) = heap.get_mut(at) {
            *place = candidate;
        }
    }
}

/// The distance that a sample must fall below to enter.
pub(crate) fn worst(heap: &[Candidate]) -> f64 {
    heap.first().map_or(f64::NEG_INFINITY, |farthest| farthest.value)
}

impl KnnWeights {
    /// Turns the values of candidates into weights; `distance` gives the distance of a value.
    pub(crate) fn weigh(self, nearest: &mut [Candidate], distance: impl Fn(f64) -> f64) {
        match self {
            Self::Uniform => nearest.iter_mut().for_each(|near| near.value = 1.0),
            Self::Distance => {
                nearest.iter_mut().for_each(|near| near.value = 1.0 / distance(near.value));
                // Samples at the distance 0 are the only ones that count.
                if nearest.iter().any(|near| near.value.is_infinite()) {
                    nearest.iter_mut().for_each(|near| near.value = f64::from(near.value.is_infinite()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_equal_samples_the_first_stay() {
        for ties in [Ties::SmallestRows, Ties::Scikit] {
            let mut heap = vec![ties.none(); 3];
            (0..10).for_each(|place| ties.offer(&mut heap, Candidate { value: 1.0, place }));
            heap.sort_unstable_by(Candidate::order);
            assert_eq!(heap.iter().map(|near| near.place).collect::<Vec<_>>(), [0, 1, 2]);
        }
    }

    proptest! {
        #[test]
        fn the_nearest_are_kept(distances in proptest::collection::vec(0..20_u8, 1..60), k in 1..20_usize) {
            for ties in [Ties::SmallestRows, Ties::Scikit] {
                let mut heap = vec![ties.none(); k];
                for (place, &distance) in distances.iter().enumerate() {
                    ties.offer(&mut heap, Candidate { value: f64::from(distance), place });
                    let is_heap = (1..k).all(|at| heap[(at - 1) / 2].value >= heap[at].value);
                    prop_assert!(is_heap);
                }
                let mut sorted: Vec<f64> = distances.iter().map(|&distance| f64::from(distance)).collect();
                sorted.resize(sorted.len().max(k), f64::INFINITY);
                sorted.sort_by(f64::total_cmp);
                sorted.truncate(k);
                let mut kept: Vec<f64> = heap.iter().map(|near| near.value).collect();
                kept.sort_by(f64::total_cmp);
                prop_assert_eq!(kept, sorted);
            }
        }
    }
}
