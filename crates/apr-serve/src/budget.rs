//! The memory budget shared by all requests in progress.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::refusal::Refusal;

/// Most bytes that need no reservation.
pub(crate) const SMALL: usize = 16 << 10;

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

/// Bytes that are reserved for a request or its response until this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    budget: Arc<MemoryBudget>,
    len: usize,
}

impl Reserved {
    pub(crate) fn none(budget: &Arc<MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), len: 0 }
    }

    /// Reserves at least `needed` bytes in all, with half as many again for what follows; nothing up to [`SMALL`].
    ///
    /// # Errors
    ///
    /// If all requests together would exceed the budget; permanently, if this one alone would.
    pub(crate) fn grow(&mut self, needed: usize) -> Result<(), Refusal> {
        let more = needed.saturating_add(needed / 2).min(self.budget.max);
        if needed <= self.len.max(SMALL) { Ok(()) } else { self.at_least(more.max(needed)) }
    }

    /// Gives back what is beyond `needed` bytes, of which up to [`SMALL`] need none.
    pub(crate) fn shrink_to(&mut self, needed: usize) {
        let needed = if needed > SMALL { needed } else { 0 };
        let less = self.len.saturating_sub(needed);
        if less > 0 {
            self.len -= less;
            self.budget.used.fetch_sub(less, Ordering::Relaxed);
        }
    }

    /// Reserves at least `needed` bytes in all; nothing up to [`SMALL`].
    ///
    /// # Errors
    ///
    /// Those of [`grow`](Self::grow).
    pub(crate) fn at_least(&mut self, needed: usize) -> Result<(), Refusal> {
        if needed <= self.len.max(SMALL) {
            return Ok(());
        }
        if needed > self.budget.max {
            return Err(Refusal::too_much_memory(self.budget.max));
        }
        let more = needed - self.len;
        let with = |used: usize| used.checked_add(more).filter(|&all| all <= self.budget.max);
        let added = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        if added.is_err() {
            return Err(Refusal::busy("the requests in progress use all memory that is reserved for them"));
        }
        self.len += more;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}
