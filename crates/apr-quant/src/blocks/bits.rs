//! Codes of 32 elements as nibbles and fifth bits.

use crate::inline::shared;

shared! {
    /// Codes `j` and `j + 16` share byte `j`.
    pub(crate) fn write_nibbles(codes: &[u8; 32], out: &mut [u8; 16]) {
        for (idx, byte) in out.iter_mut().enumerate() {
            *byte = codes[idx] & 0x0f | codes[idx + 16] << 4;
        }
    }

    /// Unpacks the codes of 16 bytes.
    pub(crate) fn read_nibbles(bytes: &[u8; 16]) -> [u8; 32] {
        let mut codes = [0; 32];
        for (idx, byte) in bytes.iter().enumerate() {
            codes[idx] = byte & 0x0f;
            codes[idx + 16] = byte >> 4;
        }
        codes
    }

    /// Bit `j` is the fifth bit of code `j`.
    pub(crate) fn write_fifth_bits(codes: &[u8; 32], out: &mut [u8; 4]) {
        let mut bits = 0_u32;
        for (idx, code) in codes.iter().enumerate() {
            bits |= u32::from(code >> 4 & 1) << idx;
        }
        *out = bits.to_le_bytes();
    }

    /// Adds the fifth bits to four-bit codes.
    pub(crate) fn add_fifth_bits(codes: &mut [u8; 32], bytes: &[u8; 4]) {
        let bits = u32::from_le_bytes(*bytes);
        for (idx, code) in codes.iter_mut().enumerate() {
            *code |= ((bits >> idx & 1) << 4) as u8;
        }
    }

    /// The part of a block at a constant offset.
    pub(crate) fn part<const LEN: usize>(block: &[u8], at: usize) -> &[u8; LEN] {
        block[at..].first_chunk().expect("a place inside the block")
    }

    /// As [`part`], mutable.
    pub(crate) fn part_mut<const LEN: usize>(block: &mut [u8], at: usize) -> &mut [u8; LEN] {
        block[at..].first_chunk_mut().expect("a place inside the block")
    }
}
