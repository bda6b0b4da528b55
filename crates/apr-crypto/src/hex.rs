//! Hexadecimal vectors in tests.

use alloc::vec::Vec;

/// The bytes that `text` spells.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    base16ct::mixed::decode_vec(text).unwrap()
}

/// The same as an array.
pub(crate) fn array<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().unwrap()
}
