//! The checksum eight bytes at a time, by tables that are made when they are needed: WebAssembly has no instruction for it, and a
//! module that is fetched has no room for tables.

use alloc::boxed::Box;

/// The polynomial, its coefficients from the lowest.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// What one byte becomes by being followed by none to seven others.
type Tables = [[u32; 256]; 8];

/// A checksum that grows.
#[derive(Clone, Debug)]
pub(super) struct Hasher {
    state: u32,
    len: u64,
    tables: Box<Tables>,
}

impl Default for Hasher {
    fn default() -> Self {
        let mut tables = Box::new([[0; 256]; 8]);
        let mut byte = 0_u32;
        while byte < 256 {
            let mut state = byte;
            for table in tables.iter_mut() {
                for _ in 0..8 {
                    state = shifted(state);
                }
                if let Some(entry) = table.get_mut(byte as usize) {
                    *entry = state;
                }
            }
            byte += 1;
        }
        Self { state: !0, len: 0, tables }
    }
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let word = u64::from_le_bytes(*word) ^ u64::from(self.state);
            self.state = self.tables.iter().rev().zip(word.to_le_bytes()).fold(0, |state, (table, byte)| {
                state ^ table.get(usize::from(byte)).copied().unwrap_or_default()
            });
        }
        for &byte in rest {
            let place = usize::from(self.state as u8 ^ byte);
            let entry = self.tables.first().and_then(|table| table.get(place)).copied().unwrap_or_default();
            self.state = self.state >> 8 ^ entry;
        }
        self.len += bytes.len() as u64;
    }

    /// Goes on with bytes whose own checksum is known: this one is multiplied by `x` to as many powers as they have bits.
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
