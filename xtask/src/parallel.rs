//! Work on all cores.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Results of `work` for each item, in order. As many run at a time as there are cores; `work` gets the number of its worker, from 0, and
/// the item.
pub(crate) fn side_by_side<I: Sync, O: Send>(items: &[I], work: impl Fn(usize, &I) -> O + Sync) -> Vec<O> {
    let next = AtomicUsize::new(0);
    let take = |worker| {
        let at = next.fetch_add(1, Ordering::Relaxed);
        items.get(at).map(|item| (at, work(worker, item)))
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<_> = thread::scope(|scope| {
        let start = |worker| {
            let take = &take;
            scope.spawn(move || core::iter::from_fn(|| take(worker)).collect::<Vec<_>>())
        };
        let workers: Vec<_> = (0..cores).map(start).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("work ends without a panic")).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_side_by_side_keeps_its_order() {
        let numbers: Vec<u32> = (0..100).collect();
        assert_eq!(side_by_side(&numbers, |_, number| number * 2), (0..200).step_by(2).collect::<Vec<_>>());
        assert!(side_by_side(&[0; 0], |_, number| *number).is_empty());
    }
}
