//! Panics of the libraries.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

/// The result, or none if it panicked: the Arrow libraries assert some of what a file declares. What it changed is not used again.
pub(crate) fn unpanicked<T>(make: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(make)).ok()
}
