//! Threads for the parts of a training, and for what else has parts.

use core::num::NonZero;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use apr_models::{Job, Workers};
use clap::value_parser;

use crate::error::Failure;
use crate::terminal::{Console, Parts};

#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ThreadsArg {
    /// Threads for the trees of a forest, the features of boosting, the starts of kmeans and gmm, and the models of --folds; other
    /// trainings use one. The model is the same [default: one per core].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    threads: Option<u32>,
}

/// The results of `work` for each index below `n_parts`, in their order, on all cores, with a line of progress.
///
/// # Errors
///
/// A failure of `work`: what has not begun then is left out.
pub(crate) fn on_all_cores<T: Send>(
    label: &'static str,
    console: &Console,
    n_parts: usize,
    work: impl Fn(usize) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    let busy = console.busy(label);
    let threads = Threads::new(ThreadsArg::default(), busy.parts());
    let workers: &dyn Workers = &threads;
    workers.expect(n_parts);
    let has_failed = AtomicBool::new(false);
    let results = workers.map(n_parts, |idx| {
        (!has_failed.load(Ordering::Relaxed)).then(|| {
            let result = work(idx).inspect_err(|_| has_failed.store(true, Ordering::Relaxed));
            workers.advance();
            result
        })
    });
    results.into_iter().flatten().collect()
}

/// Threads that do parts of a work, and count them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads<'p> {
    count: usize,
    parts: &'p Parts,
}

impl<'p> Threads<'p> {
    pub(crate) fn new(ThreadsArg { threads }: ThreadsArg, parts: &'p Parts) -> Self {
        let per_core = || thread::available_parallelism().map_or(1, NonZero::get);
        Self { count: threads.map_or_else(per_core, |count| count as usize), parts }
    }

    /// The calling thread alone: for a training that is itself a job.
    pub(crate) const fn alone(self) -> Self {
        Self { count: 1, ..self }
    }
}

impl Workers for Threads<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn run(&self, jobs: Vec<Job<'_>>) {
        let helpers = self.count.min(jobs.len()).saturating_sub(1);
        if helpers == 0 {
            return jobs.into_iter().for_each(|job| job());
        }
        let queue = Mutex::new(jobs.into_iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || core::iter::from_fn(next).for_each(|job| job());
        thread::scope(|scope| {
            for _ in 0..helpers {
                // Without a thread the others do its jobs.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }

    fn expect(&self, n_parts: usize) {
        self.parts.expect(n_parts);
    }

    fn advance(&self) {
        self.parts.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_results_keep_their_order() {
        let parts = Parts::default();
        for threads in [1, 2, 7] {
            let threads = Threads::new(ThreadsArg { threads: Some(threads) }, &parts);
            let workers: &dyn Workers = &threads;
            for count in [0, 1, 2, 100] {
                let found = workers.map(count, |idx| idx * idx);
                assert_eq!(found, (0..count).map(|idx| idx * idx).collect::<Vec<_>>());
            }
        }
    }
}
