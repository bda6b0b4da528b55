//! Selection of the nearest candidates.

use core::cmp::Ordering;

/// A candidate for the nearest neighbours; later its value and its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate {
    /// How far away, then its weight.
    pub(crate) value: f64,
    /// Its row, then its class.
    pub(crate) place: usize,
}

impl Candidate {
    /// Farther away than everything.
    pub(crate) const NONE: Self = Self { value: f64::INFINITY, place: usize::MAX };

    /// Nearer first; of equally near ones the smaller row.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(self.place.cmp(&other.place))
    }
}

/// Puts the candidate in the place of the farthest one, the first of the heap, if it is nearer.
pub(crate) fn offer(heap: &mut [Candidate], candidate: Candidate) {
    match heap.first_mut() {
        Some(farthest) if candidate.order(farthest).is_lt() => *farthest = candidate,
        _ => return,
    }
    let mut parent = 0;
    loop {
        let (left, right) = (2 * parent + 1, 2 * parent + 2);
        let Some(mut child) = heap.get(left) else { return };
        let mut place = left;
        if let Some(other) = heap.get(right)
            && other.order(child).is_gt()
        {
            (child, place) = (other, right);
        }
        match heap.get(parent) {
            Some(above) if child.order(above).is_gt() => heap.swap(parent, place),
            _ => return,
        }
        parent = place;
    }
}
