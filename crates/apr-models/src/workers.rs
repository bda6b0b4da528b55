//! What runs the parts of a training.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A part of a training that depends on no other one.
pub type Job<'j> = Box<dyn FnOnce() + Send + 'j>;

/// Does the parts of a training that do not depend on each other, and is told how far it is.
///
/// What the parts are does not depend on the workers, and their results are put together in one order: the model has the same bits
/// whichever workers do them.
pub trait Workers: Sync {
    /// Jobs that run at the same time, at least 1.
    fn count(&self) -> usize {
        1
    }

    /// Does every job once, in any order, and returns when all are done.
    fn run(&self, jobs: Vec<Job<'_>>) {
        jobs.into_iter().for_each(|job| job());
    }

    /// So many parts of similar length follow: trees, starts, passes over the samples. A training may end before the last one.
    fn expect(&self, n_parts: usize) {
        let _ = n_parts;
    }

    /// A part is done.
    fn advance(&self) {}
}

/// The calling thread, which does not tell how far it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Workers for Alone {}

impl dyn Workers + '_ {
    /// The results of `work` for each index below `count`, in their order.
    ///
    /// # Panics
    ///
    /// If the workers leave a job out.
    pub fn map<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let mut results: Vec<Option<T>> = Vec::new();
        results.resize_with(count, || None);
        let work = &work;
        let jobs = results
            .iter_mut()
            .enumerate()
            .map(|(idx, result)| -> Job<'_> { Box::new(move || *result = Some(work(idx))) });
        self.run(jobs.collect());
        results.into_iter().map(|result| result.expect("workers do every job")).collect()
    }
}
