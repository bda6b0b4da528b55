//! Division of a model into files of limited size.

use alloc::vec::Vec;
use core::ops::Range;

/// When another file begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitLimit {
    /// Never.
    #[default]
    None,
    /// Where a file would have more tensors.
    Tensors(u64),
    /// Where the tensors of a file would have more bytes, without what is between them.
    Bytes(u64),
}

/// The tensors of each file, by the sizes of all, as the reference implementation divides them. With `keys_first`, the first file
/// has none.
///
/// ```
/// use hf_gguf::{SplitLimit, split};
///
/// assert_eq!(split(&[4, 4, 9, 1], SplitLimit::Bytes(8), false), [0..2, 2..3, 3..4]);
/// assert_eq!(split(&[4, 4, 9], SplitLimit::Tensors(2), true), [0..0, 0..2, 2..3]);
/// assert_eq!(split(&[4, 4], SplitLimit::None, false), [0..2]);
/// ```
#[must_use]
pub fn split(lens: &[u64], limit: SplitLimit, keys_first: bool) -> Vec<Range<usize>> {
    let mut files = Vec::new();
    if keys_first {
        files.push(0..0);
    }
    let (mut begin, mut bytes) = (0, 0_u64);
    for (idx, &len) in lens.iter().enumerate() {
        let next = bytes.saturating_add(len);
        let is_full = match limit {
            SplitLimit::None => false,
            SplitLimit::Tensors(count) => (idx - begin) as u64 >= count,
            SplitLimit::Bytes(max) => next > max,
        };
        if is_full && idx > begin {
            files.push(begin..idx);
            (begin, bytes) = (idx, len);
        } else {
            bytes = next;
        }
    }
    files.push(begin..lens.len());
    files
}
