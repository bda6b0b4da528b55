//! The checksum eight bytes at a time, with tables computed when they are first used: WebAssembly has no instruction for it, and
//! tables would enlarge a module.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The polynomial, its coefficients from the lowest.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// The effect of one byte followed by zero to seven others. Zeros take no space in a module.
static TABLES: [[AtomicU32; 256]; 8] = [const { [const { AtomicU32::new(0) }; 256] }; 8];
static ARE_MADE: AtomicBool = AtomicBool::new(false);

/// The tables. Threads that race to compute them store the same values.
fn tables() -> &'static [[AtomicU32; 256]; 8] {
    if !ARE_MADE.load(Ordering::Acquire) {
        for byte in 0..=u8::MAX {
            let mut state = u32::from(byte);
            for table in &TABLES {
                for _ in 0..8 {
                    state = shifted(state);
                }
                table[usize::from(byte)].store(state, Ordering::Relaxed);
            }
        }
        ARE_MADE.store(true, Ordering::Release);
    }
    &TABLES
}

/// A checksum that is computed incrementally.
#[derive(Clone, Debug)]
pub(super) struct Hasher {
    state: u32,
    len: u64,
}

impl Default for Hasher {
    fn default() -> Self {
        Self { state: !0, len: 0 }
    }
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        let tables = tables();
        let entry = |table: usize, byte: u8| tables[table][usize::from(byte)].load(Ordering::Relaxed);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let [a, b, c, d, e, f, g, h] = (u64::from_le_bytes(*word) ^ u64::from(self.state)).to_le_bytes();
            self.state = entry(7, a) ^ entry(6, b) ^ entry(5, c) ^ entry(4, d);
            self.state ^= entry(3, e) ^ entry(2, f) ^ entry(1, g) ^ entry(0, h);
        }
        for &byte in rest {
            self.state = self.state >> 8 ^ entry(0, self.state as u8 ^ byte);
        }
        self.len += bytes.len() as u64;
    }

    /// Appends bytes whose own checksum is known: this one is multiplied by `x` to as many powers as they have bits.
    #[cfg(any(feature = "std", test))]
    pub(super) fn combine(&mut self, other: &Self) {
        let mut bits = other.len.wrapping_mul(8);
        let (mut crc, mut power) = (!self.state, shifted(1 << 31));
        while bits != 0 {
            if bits & 1 != 0 {
                crc = product(crc, power);
            }
            power = product(power, power);
            bits >>= 1;
        }
        self.state = !(crc ^ !other.state);
        self.len += other.len;
    }

    pub(super) fn finalize(self) -> u32 {
        !self.state
    }
}

/// Times `x`.
const fn shifted(value: u32) -> u32 {
    value >> 1 ^ if value & 1 != 0 { POLYNOMIAL } else { 0 }
}

/// Of two polynomials, modulo the one of the checksum.
#[cfg(any(feature = "std", test))]
const fn product(left: u32, right: u32) -> u32 {
    let (mut product, mut shift, mut power) = (0, 31, right);
    loop {
        if left >> shift & 1 != 0 {
            product ^= power;
        }
        if shift == 0 {
            return product;
        }
        shift -= 1;
        power = shifted(power);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn agrees_with_the_tables_of_crc32fast_in_any_split() {
        let bytes: Vec<u8> = (0..1000_u32).map(|idx| ((idx * idx) >> 3) as u8).collect();
        for split in [0, 1, 7, 8, 9, 500, 999, 1000] {
            let (head, tail) = bytes.split_at(split);
            let (mut together, mut first, mut second) =
                (Hasher::default(), Hasher::default(), Hasher::default());
            together.update(head);
            together.update(tail);
            first.update(head);
            second.update(tail);
            first.combine(&second);
            assert_eq!(together.finalize(), crc32fast::hash(&bytes), "{split}");
            assert_eq!(first.finalize(), crc32fast::hash(&bytes), "{split}");
        }
    }
}
