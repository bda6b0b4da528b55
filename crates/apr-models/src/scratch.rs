//! Scratch memory of predictions.

use alloc::vec;

/// Lends `work` a slice of `len` values: from the stack if it is short, from the heap otherwise.
pub(crate) fn with_scratch<T: Copy + Default, const ON_STACK: usize, R>(
    len: usize,
    work: impl FnOnce(&mut [T]) -> R,
) -> R {
    let mut short = [T::default(); ON_STACK];
    match short.get_mut(..len) {
        Some(scratch) => work(scratch),
        None => work(&mut vec![T::default(); len]),
    }
}
