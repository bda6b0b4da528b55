//! Hexadecimal vectors in tests.

use alloc::vec::Vec;

/// The bytes that `text` spells.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The same as an array.
pub(crate) fn array<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().unwrap()
}
