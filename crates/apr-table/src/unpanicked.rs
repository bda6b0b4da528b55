//! Panics of the libraries.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::thread_local;

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread, now, becomes an [`Error`](crate::Error): the Arrow libraries assert some of what a file declares.
/// A panic hook has nothing to report then.
#[must_use]
pub fn catches_panics() -> bool {
    CATCHES.get()
}

/// The result, or none if it panicked. What it changed is not used again.
pub(crate) fn unpanicked<T>(make: impl FnOnce() -> T) -> Option<T> {
    let before = CATCHES.replace(true);
    let made = catch_unwind(AssertUnwindSafe(make)).ok();
    CATCHES.set(before);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_knows_what_is_caught() {
        assert!(!catches_panics());
        assert_eq!(
            unpanicked(|| (catches_panics(), unpanicked(|| ()), catches_panics())),
            Some((true, Some(()), true))
        );
        assert_eq!(unpanicked(|| unpanicked(|| panic!("of a library"))), Some(None::<()>));
        assert!(!catches_panics());
    }
}
