//! The memory budget shared by all requests in progress.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::refusal::Refusal;

/// A limit in bytes, and how much of it is reserved.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    max: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, used: AtomicUsize::new(0) }
    }

    /// Bytes that are reserved.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Bytes that are reserved for a request until it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved<'b> {
    budget: &'b MemoryBudget,
    len: usize,
}

impl<'b> Reserved<'b> {
    pub(crate) const fn none(budget: &'b MemoryBudget) -> Self {
        Self { budget, len: 0 }
    }

    /// Reserves at least `needed` bytes in all, with half as many again for what follows.
    ///
    /// # Errors
    ///
    /// If all requests together would exceed the budget.
    pub(crate) fn grow(&mut self, needed: usize) -> Result<(), Refusal> {
        if needed <= self.len { Ok(()) } else { self.at_least(needed + needed / 2) }
    }

    /// Reserves `needed` bytes in all.
    ///
    /// # Errors
    ///
    /// Those of [`grow`](Self::grow).
    pub(crate) fn at_least(&mut self, needed: usize) -> Result<(), Refusal> {
        let more = needed.saturating_sub(self.len);
        let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
        self.len += more;
        if before.saturating_add(more) > self.budget.max {
            return Err(Refusal::busy("the requests in progress use all memory that is reserved for them"));
        }
        Ok(())
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.len, Ordering::Relaxed);
    }
}
