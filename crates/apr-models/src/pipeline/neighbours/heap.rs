//! The nearest samples so far.

/// A sample that may be among the nearest: how far it is, and its row.
pub(super) type Candidate = (f64, u32);

/// No sample yet: any is nearer.
pub(super) const NONE: Candidate = (f64::INFINITY, 0);

/// The distance that a sample must fall below to enter.
pub(super) fn worst(heap: &[Candidate]) -> f64 {
    heap.first().map_or(f64::NEG_INFINITY, |&(distance, _)| distance)
}

/// Puts a sample in the place of the farthest, if it is nearer.
///
/// Which of several equally far samples leaves depends on each comparison here. They are those of scikit-learn, so that
/// its models keep the same ones: a sample as far as the farthest does not enter, and of two equal children the left one
/// rises.
pub(super) fn offer(heap: &mut [Candidate], candidate: Candidate) {
    if candidate.0 >= worst(heap) {
        return;
    }
    let mut at = 0;
    loop {
        let child = 2 * at + 1;
        let distance = |place: usize| heap.get(place).map(|&(distance, _)| distance);
        let rising = match (distance(child), distance(child + 1)) {
            (Some(left), Some(right)) if left < right => (right, child + 1),
            (Some(left), _) => (left, child),
            (None, _) => break,
        };
        if candidate.0 >= rising.0 {
            break;
        }
        let risen = heap.get(rising.1).copied();
        if let (Some(place), Some(risen)) = (heap.get_mut(at), risen) {
            *place = risen;
        }
        at = rising.1;
    }
    if let Some(place) = heap.get_mut(at) {
        *place = candidate;
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
        let mut heap = vec![NONE; 3];
        for row in 0..10 {
            offer(&mut heap, (1.0, row));
        }
        let mut rows: Vec<u32> = heap.iter().map(|candidate| candidate.1).collect();
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn the_nearest_are_kept(distances in proptest::collection::vec(0..20_u8, 1..60), k in 1..20_usize) {
            let mut heap = vec![NONE; k];
            for (row, &distance) in distances.iter().enumerate() {
                offer(&mut heap, (f64::from(distance), row as u32));
                let is_heap = (1..k).all(|at| heap[(at - 1) / 2].0 >= heap[at].0);
                prop_assert!(is_heap);
            }
            let mut sorted: Vec<f64> = distances.iter().map(|&distance| f64::from(distance)).collect();
            sorted.resize(sorted.len().max(k), f64::INFINITY);
            sorted.sort_by(f64::total_cmp);
            sorted.truncate(k);
            let mut kept: Vec<f64> = heap.iter().map(|candidate| candidate.0).collect();
            kept.sort_by(f64::total_cmp);
            prop_assert_eq!(kept, sorted);
        }
    }
}
