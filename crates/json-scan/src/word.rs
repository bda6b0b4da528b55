//! Eight bytes at a time.

/// The lowest bit of each byte of a word.
pub const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte of a word.
pub const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Eight bytes from `at`, the first in the lowest byte, zeros after the end of `bytes`; `None` at the end.
#[inline]
#[must_use]
pub fn load(bytes: &[u8], at: usize) -> Option<u64> {
    let rest = bytes.get(at..)?;
    match rest.first_chunk() {
        Some(word) => Some(u64::from_le_bytes(*word)),
        None if rest.is_empty() => None,
        None => Some(rest.iter().rev().fold(0, |word, byte| word * 256 + u64::from(*byte))),
    }
}

/// The high bit of each byte that ends the plain part of a string: a quote, a backslash or a control
/// character. Bits above the lowest one set are not reliable.
#[inline]
pub(crate) const fn string_stops(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | quote.wrapping_sub(ONES) & !quote | backslash.wrapping_sub(ONES) & !backslash) & HIGHS
}
