//! Ranges of open files in buffers of the caller: what `apr._accelerator` reads with.

use alloc::sync::Arc;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::buffer::{Buffer, Wanted};

thread_local! {
    /// What ends the waits of this thread.
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Ends reads that other threads have begun with it and that wait for the network, and those that they begin later.
#[pyclass(frozen, module = "apr._native")]
pub struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// Ends them, within 0.1 s.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether the read that this thread is in was stopped.
pub(crate) fn is_stopped() -> bool {
    STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)))
}

/// Fills a buffer with what `read` writes to it, while other threads run, until `stop` is set.
pub(crate) fn fill<E: Send>(
    buffer: &Bound<'_, PyAny>,
    stop: Option<&Stop>,
    read: impl FnOnce(&mut [u8]) -> Result<(), E> + Send,
    raise: impl FnOnce(E) -> PyErr,
) -> PyResult<()> {
    let mut out = Buffer::of(buffer, Wanted::WritableBytes)?;
    let outer = STOP.replace(stop.map(|stop| Arc::clone(&stop.0)));
    let filled = buffer.py().detach(|| read(out.bytes_mut()));
    STOP.set(outer);
    filled.map_err(raise)
}
